#include "os/extents.h"

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <string>
#include <vector>

#include "os/regular_file.h"

namespace volumed {
namespace {

constexpr uint32_t kMostRuns = 65536;

FileExtentRun RunOf(const fiemap_extent& extent) {
  FileExtentRun run;
  run.logical = static_cast<int64_t>(extent.fe_logical);
  run.physical = static_cast<int64_t>(extent.fe_physical);
  run.bytes = static_cast<int64_t>(extent.fe_length);
  run.flags = extent.fe_flags;
  return run;
}

}  // namespace

Result<ExtentList> DoListExtents(const ListExtents& request, const KernelFeatures& features) {
  const std::string what = "list the extents of " + request.path.Display();
  if (request.from_offset < 0 || request.most == 0 || request.most > kMostRuns) {
    return Error::NotApplied(Code::kInvalidArgument, what + ": no such part of a list");
  }
  ASSIGN_OR_RETURN(const Descriptor file,
                   OpenRegularFile(request.path, O_RDONLY | O_NONBLOCK | O_NOCTTY, request.expected,
                                   features, what));
  // The extents follow the head.
  static_assert(sizeof(fiemap) % alignof(fiemap_extent) == 0);
  const size_t head = sizeof(fiemap) / sizeof(uint64_t);
  const size_t each = sizeof(fiemap_extent) / sizeof(uint64_t);
  std::vector<uint64_t> buffer(head + each * request.most);
  auto* map = reinterpret_cast<fiemap*>(buffer.data());
  map->fm_start = static_cast<uint64_t>(request.from_offset);
  map->fm_length = FIEMAP_MAX_OFFSET - map->fm_start;
  map->fm_flags = FIEMAP_FLAG_SYNC;
  map->fm_extent_count = request.most;
  if (::ioctl(file.get(), FS_IOC_FIEMAP, map) != 0) {
    return Error::FromErrno(errno, what, Outcome::kNotApplied);
  }
  ExtentList list;
  list.done = map->fm_mapped_extents < request.most;
  const auto* extents = reinterpret_cast<const fiemap_extent*>(buffer.data() + head);
  for (uint32_t i = 0; i < map->fm_mapped_extents; ++i) {
    list.runs.push_back(RunOf(extents[i]));
    if ((extents[i].fe_flags & FIEMAP_EXTENT_LAST) != 0) list.done = true;
  }
  return list;
}

}  // namespace volumed
