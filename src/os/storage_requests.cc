#include "os/storage_requests.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "base/strings.h"
#include "os/kernel_requests.h"
#include "os/storage_identity.h"

namespace volumed {
namespace {

bool Intersect(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  for (auto at_a = a.begin(), at_b = b.begin(); at_a != a.end() && at_b != b.end();) {
    if (*at_a == *at_b) return true;
    if (*at_a < *at_b) {
      ++at_a;
    } else {
      ++at_b;
    }
  }
  return false;
}

// The number of a file is kept by these for as long as it is there, also over a reboot. Others make
// theirs up at each mount, or each time that they look at it.
bool KeepsInodes(const std::string& fs_type) {
  constexpr std::array<std::string_view, 8> kKinds = {"ext2",  "ext3", "ext4", "xfs",
                                                      "btrfs", "f2fs", "zfs",  "bcachefs"};
  return std::find(kKinds.begin(), kKinds.end(), fs_type) != kKinds.end();
}

// The kernel numbers their files by itself and makes the handles, and forgets both with the inode:
// after that the same file has others, and another file may have these.
bool IsNumberedByItsKernel(std::string_view fs_type) {
  return fs_type.starts_with("fuse") || fs_type == "virtiofs";
}

// An NFS server is the same over each version of its protocol.
std::string_view Family(std::string_view fs_type) { return fs_type == "nfs4" ? "nfs" : fs_type; }

// How a handle is made can change with the mount's options; then it tells nothing.
std::string_view KindOf(std::string_view handle) { return handle.substr(0, handle.find(':')); }

}  // namespace

bool Overlap(const StorageIdentity& a, const StorageIdentity& b) {
  return Intersect(a.own, b.own) || Intersect(a.own, b.within) || Intersect(a.within, b.own);
}

bool AreTwins(const StorageIdentity& a, const StorageIdentity& b) {
  if (a.type != FileType::kBlockDevice || b.type != FileType::kBlockDevice) return false;
  // The number is the device's own; a WWID and a file are its twins', too.
  const bool same = std::any_of(a.own.begin(), a.own.end(), [&b](const std::string& key) {
    return key.starts_with("dev:") && std::binary_search(b.own.begin(), b.own.end(), key);
  });
  if (same) return false;
  return Intersect(a.own, b.own) || Intersect(a.own, b.made_of) || Intersect(a.made_of, b.own);
}

bool IsLastingKey(const std::string& key) {
  return key.starts_with("wwid:") || key.starts_with("file:");
}

bool MayShareFilesystem(const StorageObject& a, const StorageObject& b) {
  if (Family(a.fs_type) != Family(b.fs_type)) return false;
  return a.fs_uuid.empty() || b.fs_uuid.empty() || a.fs_uuid == b.fs_uuid;
}

bool IsSameObject(const StorageObject& recorded, const StorageObject& now) {
  if (recorded.inode == 0 || recorded.inode != now.inode) return false;
  if (IsNumberedByItsKernel(recorded.fs_type)) return false;
  if (!MayShareFilesystem(recorded, now) || !StorageDifference(recorded, now).empty()) return false;
  const bool one_filesystem = !recorded.fs_uuid.empty() && recorded.fs_uuid == now.fs_uuid;
  if (one_filesystem && KeepsInodes(recorded.fs_type)) return true;
  return !recorded.handle.empty() && recorded.handle == now.handle;
}

std::string LastingFileKey(const StorageObject& file) {
  const bool by_inode = KeepsInodes(file.fs_type) && !file.fs_uuid.empty();
  if (file.inode == 0 || (file.handle.empty() && !by_inode)) return "";
  return "file:" + std::string(Family(file.fs_type)) + ":" + file.fs_uuid + ":" +
         std::to_string(file.inode) + ":" + file.handle;
}

std::string StorageDifference(const StorageObject& recorded, const StorageObject& now) {
  const auto differ = [](const char* what, const std::string& before, const std::string& after) {
    return std::string(what) + " is " + after + ", not " + before;
  };
  if (!recorded.fs_type.empty() && !now.fs_type.empty() &&
      Family(recorded.fs_type) != Family(now.fs_type)) {
    return differ("its filesystem", recorded.fs_type, now.fs_type);
  }
  if (!recorded.fs_uuid.empty() && !now.fs_uuid.empty() && recorded.fs_uuid != now.fs_uuid) {
    return differ("its filesystem's UUID", recorded.fs_uuid, now.fs_uuid);
  }
  if (IsNumberedByItsKernel(recorded.fs_type)) return "";
  const bool both = !recorded.handle.empty() && !now.handle.empty();
  if (both && KindOf(recorded.handle) == KindOf(now.handle)) {
    if (recorded.handle == now.handle) return "";
    if (recorded.inode != now.inode) {
      return differ("its inode", std::to_string(recorded.inode), std::to_string(now.inode));
    }
    return differ("its file handle", recorded.handle, now.handle);
  }
  if (!KeepsInodes(recorded.fs_type) || recorded.inode == 0 || now.inode == 0) return "";
  if (recorded.inode == now.inode) return "";
  return differ("its inode", std::to_string(recorded.inode), std::to_string(now.inode));
}

std::string LastingDifference(const StorageObject& recorded, const StorageObject& now) {
  if (KeepsInodes(recorded.fs_type)) return StorageDifference(recorded, now);
  StorageObject type_before;
  type_before.fs_type = recorded.fs_type;
  StorageObject type_now;
  type_now.fs_type = now.fs_type;
  return StorageDifference(type_before, type_now);
}

std::string ObjectText(const StorageObject& object) {
  const std::string uuid = object.fs_uuid.empty() ? "" : " " + object.fs_uuid;
  return object.fs_type + uuid + ", inode " + std::to_string(object.inode);
}

std::string RemovalDoubt(const StorageObject& recorded, const StorageObject& now) {
  std::string difference = StorageDifference(recorded, now);
  if (!difference.empty() || recorded.inode == 0) return difference;
  // Those of memory, of the network and of layers may have none at all.
  const bool has_uuid = !recorded.fs_uuid.empty() || KeepsInodes(recorded.fs_type);
  const bool is_same = !recorded.fs_uuid.empty() && recorded.fs_uuid == now.fs_uuid;
  if (!has_uuid || is_same) return "";
  return "it is missing, and no UUID of its filesystem tells whether its disk is mounted";
}

std::string NfsStorageKey(const std::string& server, const std::string& path) {
  std::string name = server;
  if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
  while (name.ends_with('.')) name.pop_back();
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::vector<std::string> parts;
  for (std::string& part : SplitNonEmpty(path, '/')) {
    if (part == ".") continue;
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
    } else {
      parts.push_back(std::move(part));
    }
  }
  return "nfs:" + name + ":/" + Join(parts, "/");
}

std::vector<std::string> KeysAbove(const std::string& key) {
  // The first slash begins the path: neither numbers nor a server's name have one.
  const size_t root = key.find('/');
  std::vector<std::string> above;
  if (root == std::string::npos || root + 1 == key.size()) return above;
  above.push_back(key.substr(0, root + 1));
  for (size_t slash = key.find('/', root + 1); slash != std::string::npos;
       slash = key.find('/', slash + 1)) {
    above.push_back(key.substr(0, slash));
  }
  return above;
}

}  // namespace volumed
