#include "agent/far_manifest_reader.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "kube/decode.h"
#include "mounter/host_directory.h"

namespace volumed {
namespace {

// Filesystems that only this node serves. The agent itself must not look into others: they may fall
// silent at any moment, and inotify reports only this node's changes.
bool IsLocal(std::string_view fs_type) {
  constexpr std::array<std::string_view, 12> kLocal = {"ext2",  "ext3",  "ext4",     "xfs",
                                                       "btrfs", "f2fs",  "tmpfs",    "overlay",
                                                       "vfat",  "erofs", "squashfs", "ramfs"};
  return std::find(kLocal.begin(), kLocal.end(), fs_type) != kLocal.end();
}

}  // namespace

FarContent ReadFarContent(Kernel& kernel, const Clock& clock, const std::string& path,
                          Duration deadline) {
  CallOptions call;
  call.domain = path;
  call.deadline = Deadline::After(clock, deadline);
  FarContent far;
  const Result<StorageIdentity> storage = kernel.Call(IdentifyStorage{HostPath(path)}, call);
  if (!storage.ok()) {
    far.status = storage.error();
    return far;
  }
  far.may_watch = IsLocal(storage->object.fs_type);
  Result<FileContent> content = kernel.Call(ReadFile{HostPath(path), kMaxManifestBytes}, call);
  if (content.ok()) {
    far.bytes = std::move(content->bytes);
  } else {
    far.status = content.error();
  }
  return far;
}

}  // namespace volumed
