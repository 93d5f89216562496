#include "os/usage_walk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <unordered_set>

#include "base/mutex.h"
#include "os/safe_open.h"
#include "os/tree_walk.h"

namespace volumed {
namespace {

constexpr int64_t kBlockBytes = 512;  // the unit of st_blocks. Source: stat(3type).

class UsageVisitor final : public TreeVisitor {
 public:
  int Visit(int thread, const WalkEntry& entry) override {
    if (entry.stat.stx_nlink > 1 && !S_ISDIR(entry.stat.stx_mode) && !IsFirst(entry.stat.stx_ino)) {
      return 0;
    }
    Count(thread, entry.stat);
    return 0;
  }

  void Count(int thread, const struct statx& stat) {
    sums_[thread].used_bytes += static_cast<int64_t>(stat.stx_blocks) * kBlockBytes;
    sums_[thread].inodes_used += 1;
  }

  UsageInfo Total() const {
    UsageInfo total;
    for (const Sum& sum : sums_) {
      total.used_bytes += sum.used_bytes;
      total.inodes_used += sum.inodes_used;
    }
    return total;
  }

 private:
  // Each thread's on a cache line of its own.
  struct alignas(64) Sum {
    int64_t used_bytes = 0;
    int64_t inodes_used = 0;
  };

  // One mount is one filesystem, so the inode number is enough.
  bool IsFirst(uint64_t inode) {
    MutexLock lock(mu_);
    return hard_links_.insert(inode).second;
  }

  Sum sums_[kWalkThreads];
  Mutex mu_;
  std::unordered_set<uint64_t> hard_links_ GUARDED_BY(mu_);
};

}  // namespace

Result<UsageInfo> DoUsage(const Usage& request, const CallOptions& options) {
  const std::string what = "usage of " + request.path.Display();
  ASSIGN_OR_RETURN(const Descriptor opened, OpenSafePath(request.path, O_PATH));
  struct statx stat = {};
  if (::statx(opened.get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stat) != 0) {
    return Error::FromErrno(errno, what, Outcome::kNotApplied);
  }
  UsageVisitor visitor;
  visitor.Count(0, stat);
  if (!S_ISDIR(stat.stx_mode)) return visitor.Total();
  // "." of a checked directory is that directory.
  Descriptor directory(::openat(opened.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) return Error::FromErrno(errno, what, Outcome::kNotApplied);
  WorkMeter meter(options);
  TreeWalk walk(visitor, meter, request.path.Display());
  RETURN_IF_ERROR(walk.Run(std::move(directory)).With("usage"));
  return visitor.Total();
}

}  // namespace volumed
