#include "os/ownership_walk.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "os/ownership_change.h"
#include "os/safe_open.h"
#include "os/tree_walk.h"

namespace volumed {
namespace {

class OwnershipVisitor final : public TreeVisitor {
 public:
  OwnershipVisitor(const ChangeOwnership& request, bool has_fchmodat2)
      : request_(request), has_fchmodat2_(has_fchmodat2) {}

  int Visit(int thread, const WalkEntry& entry) override {
    Sum& sum = sums_[thread];
    bool changed = false;
    const int failure = ChangeEntryOwnership(entry.directory, entry.name, entry.stat, request_.gid,
                                             WantedMode(entry.stat.stx_mode, request_.read_only),
                                             has_fchmodat2_, changed);
    if (failure == ENOENT) return failure;
    ++sum.visited;
    if (changed) ++sum.changed;
    return failure;
  }

  OwnershipInfo Total() const {
    OwnershipInfo total;
    for (const Sum& sum : sums_) {
      total.visited += sum.visited;
      total.changed += sum.changed;
    }
    return total;
  }

 private:
  // Each thread's on a cache line of its own.
  struct alignas(64) Sum {
    int64_t visited = 0;
    int64_t changed = 0;
  };

  const ChangeOwnership& request_;
  const bool has_fchmodat2_;
  Sum sums_[kWalkThreads];
};

// Whether a finished run has left its mark. Source: kubernetes
// pkg/volume/volume_linux.go@v1.36.2 (requiresPermissionChange).
bool RootIsRight(const struct statx& root, const ChangeOwnership& request) {
  const uint32_t need = (request.read_only ? 0440u : 0660u) | 0110u | S_ISGID;
  return S_ISDIR(root.stx_mode) && root.stx_gid == request.gid && (root.stx_mode & need) == need;
}

}  // namespace

uint32_t WantedMode(uint32_t mode, bool read_only) {
  if (S_ISLNK(mode)) return mode;
  uint32_t wanted = mode | (read_only ? 0440u : 0660u);
  if (S_ISDIR(mode)) wanted |= 0110u | S_ISGID;
  return wanted;
}

Result<OwnershipInfo> DoChangeOwnership(const ChangeOwnership& request,
                                        const KernelFeatures& features,
                                        const CallOptions& options) {
  const std::string what = "change ownership of " + request.path.Display();
  ASSIGN_OR_RETURN(const Descriptor root, OpenSafePath(request.path, O_PATH));
  struct statx stat = {};
  if (::statx(root.get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stat) != 0) {
    return Error::FromErrno(errno, what, Outcome::kNotApplied);
  }
  if (request.on_root_mismatch && RootIsRight(stat, request)) return OwnershipInfo{0, 0, true};

  OwnershipVisitor visitor(request, features.fchmodat2);
  if (S_ISDIR(stat.stx_mode)) {
    Descriptor directory(::openat(root.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directory.valid()) return Error::FromErrno(errno, what, Outcome::kNotApplied);
    WorkMeter meter(options);
    TreeWalk walk(visitor, meter, request.path.Display());
    const Status walked = walk.Run(std::move(directory)).With("change ownership");
    if (!walked.ok()) {
      const bool changed = visitor.Total().changed > 0;
      return changed ? walked.error().AsMaybeApplied() : walked.error();
    }
  }
  OwnershipInfo info = visitor.Total();
  bool changed = false;
  const int failure = ChangeRootOwnership(root.get(), stat, request.gid,
                                          WantedMode(stat.stx_mode, request.read_only), changed);
  ++info.visited;
  if (changed) ++info.changed;
  if (failure != 0) {
    return Error::FromErrno(failure, what,
                            info.changed > 0 ? Outcome::kMaybeApplied : Outcome::kNotApplied);
  }
  return info;
}

}  // namespace volumed
