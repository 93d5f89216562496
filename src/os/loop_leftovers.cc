#include "os/loop_leftovers.h"

#include <linux/fs.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <optional>

#include "os/loop_asker.h"
#include "os/sysfs.h"
#include "os/write_file.h"

namespace volumed {
namespace {

constexpr char kWriteCache[] = "write_cache";
constexpr char kFlushed[] = "write back";

Status MakeWritable(int device, const std::string& what) {
  int read_only = 0;
  if (::ioctl(device, BLKROGET, &read_only) == 0 && read_only == 0) return OkStatus();
  read_only = 0;
  if (::ioctl(device, BLKROSET, &read_only) == 0) return OkStatus();
  return Error::FromErrno(errno, what + " takes no writes", Outcome::kMaybeApplied);
}

// A kernel that does not tell has no such setting.
Status FlushWrites(const std::string& queue, const std::string& what) {
  const std::optional<std::string> shown = ReadAttribute(queue + "/" + kWriteCache);
  if (!shown || *shown == kFlushed) return OkStatus();
  RETURN_IF_ERROR(DoWriteAttribute({SafePath{queue, kWriteCache}, kFlushed})
                      .With(what + " drops flushes, as somebody has set for it"));
  return OkStatus();
}

}  // namespace

Status ClearLoopLeftovers(int device, const std::string& name, const std::string& what) {
  const std::string its = what + ": /dev/" + name;
  RETURN_IF_ERROR(MakeWritable(device, its));
  return FlushWrites(SysfsOfLoop(name) + "/queue", its);
}

}  // namespace volumed
