#include "os/cut_frozen.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "os/copy_target.h"
#include "os/file_clone.h"
#include "os/freeze_point.h"
#include "os/safe_open.h"
#include "os/statmount.h"
#include "os/thawer.h"
#include "os/work_meter.h"

namespace volumed {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Micros = std::chrono::microseconds;

int64_t MicrosBetween(SteadyClock::time_point from, SteadyClock::time_point to) {
  return std::chrono::duration_cast<Micros>(to - from).count();
}

// What is frozen lets nobody begin a write, so nothing here opens, makes or syncs anything between
// the first freeze and the last thaw.
class FrozenCutter {
 public:
  FrozenCutter(const CutFrozen& request, const KernelFeatures& features, const std::string& thawer,
               const CallOptions& options)
      : request_(request), features_(features), thawer_(thawer), options_(options) {}

  Result<FrozenCut> Run() {
    RETURN_IF_ERROR(CheckRequest());
    RETURN_IF_ERROR(OpenPoints());
    RETURN_IF_ERROR(CheckNever());
    RETURN_IF_ERROR(OpenSources());
    if (const Status made = MakeTargets(); !made.ok()) return TakenBackAll(made.error());
    if (const Status cut = Cut(); !cut.ok()) return TakenBackAll(cut.error());
    return Answer();
  }

 private:
  static Error Refused(Code code, const std::string& why) {
    return Error::NotApplied(code, std::string(kWhat) + ": " + why);
  }

  Status CheckRequest() const {
    if (request_.freeze.empty() || request_.cuts.empty()) {
      return Refused(Code::kInvalidArgument, "there is nothing to freeze, or nothing to clone");
    }
    if (request_.longest_us <= 0 || request_.sync_until_us <= 0 || request_.syncs_most == 0) {
      return Refused(Code::kInvalidArgument, "its limits have to be above zero");
    }
    for (size_t i = 0; i < request_.freeze.size(); ++i) {
      const FreezePoint& point = request_.freeze[i];
      const auto same = [&point](const FreezePoint& other) {
        return other.device_major == point.device_major && other.device_minor == point.device_minor;
      };
      if (std::any_of(request_.freeze.begin() + static_cast<ptrdiff_t>(i) + 1,
                      request_.freeze.end(), same)) {
        return Refused(Code::kInvalidArgument, "a filesystem is to be frozen twice");
      }
    }
    // The later clone would take the place of the earlier one.
    std::set<std::string> made;
    for (const CutPart& part : request_.cuts) {
      if (!made.insert(part.to.Display()).second) {
        return Refused(Code::kInvalidArgument, part.to.Display() + " is to be made twice");
      }
    }
    return OkStatus();
  }

  Status OpenPoints() {
    for (const FreezePoint& point : request_.freeze) {
      ASSIGN_OR_RETURN(OpenedPoint opened, OpenFreezePoint(point, features_).With(kWhat));
      points_.push_back(std::move(opened));
    }
    return OkStatus();
  }

  // That what is open does not lie on one of the filesystems that will be frozen.
  Status CheckIsOutside(int file, const std::string& path) const {
    ASSIGN_OR_RETURN(const std::optional<MountEntry> mount,
                     FindMountEntryOf(file, features_).With(kWhat));
    if (!mount) return Refused(Code::kFailedPrecondition, path + " is not mounted any more");
    for (const FreezePoint& point : request_.freeze) {
      if (mount->device_major == point.device_major && mount->device_minor == point.device_minor) {
        return Refused(Code::kFailedPrecondition,
                       path + " lies on what is to be frozen at " + point.mount_point.Display());
      }
    }
    return OkStatus();
  }

  Status CheckNever() const {
    for (const SafePath& path : request_.never) {
      ASSIGN_OR_RETURN(const Descriptor there, OpenSafePath(path, O_PATH).With(kWhat));
      RETURN_IF_ERROR(CheckIsOutside(there.get(), path.Display()));
    }
    return OkStatus();
  }

  Status OpenSources() {
    for (const CutPart& part : request_.cuts) {
      ASSIGN_OR_RETURN(CopySource source,
                       OpenCopySource(part.from, part.expected, features_, kWhat));
      RETURN_IF_ERROR(CheckIsOutside(source.file.get(), part.from.Display()));
      sources_.push_back(std::move(source));
      ASSIGN_OR_RETURN(const ParentAndName place, OpenParent(part.to).With(kWhat));
      RETURN_IF_ERROR(CheckIsOutside(place.parent.get(), part.to.Display()));
    }
    return OkStatus();
  }

  Status MakeTargets() {
    for (size_t i = 0; i < sources_.size(); ++i) {
      ASSIGN_OR_RETURN(MadeFile target, MakeCopyTarget(request_.cuts[i].to, sources_[i], kWhat));
      targets_.push_back(std::move(target));
    }
    return OkStatus();
  }

  Status Cut() {
    // They come up while the filesystems are synced: what is written between the sync and the
    // freeze is written with everybody waiting.
    RETURN_IF_ERROR(StartThawers());
    RETURN_IF_ERROR(SyncAll());
    for (Thawer& thawer : thawers_) RETURN_IF_ERROR(thawer.AwaitReady().With(kWhat));
    Status done = FreezeAll();
    frozen_at_ = SteadyClock::now();
    for (size_t i = 0; done.ok() && i < sources_.size(); ++i) {
      done = ShareBlocks(sources_[i], targets_[i], kWhat);
    }
    RETURN_IF_ERROR(ThawAll());
    return done;
  }

  // A freeze writes back what is dirty with all writers waiting; this does it before.
  Status SyncAll() {
    int64_t syncs = 0;
    for (const OpenedPoint& point : points_) {
      for (uint32_t i = 0; i < request_.syncs_most; ++i) {
        const SteadyClock::time_point begin = SteadyClock::now();
        if (::syncfs(point.root.get()) != 0) {
          return Error::FromErrno(errno, std::string(kWhat) + ", sync " + point.what,
                                  Outcome::kNotApplied);
        }
        if (options_.progress) options_.progress(++syncs);
        if (options_.cancel != nullptr && options_.cancel->cancelled()) {
          return WorkMeter::CancelledError(Outcome::kNotApplied);
        }
        if (MicrosBetween(begin, SteadyClock::now()) < request_.sync_until_us) break;
      }
    }
    return OkStatus();
  }

  Status StartThawers() {
    thawers_.reserve(points_.size());
    for (const OpenedPoint& point : points_) {
      ASSIGN_OR_RETURN(
          Thawer thawer,
          Thawer::Start(thawer_, point.root.get(), Micros(request_.longest_us)).With(kWhat));
      thawers_.push_back(std::move(thawer));
    }
    return OkStatus();
  }

  Status FreezeAll() {
    begin_ = SteadyClock::now();
    for (size_t i = 0; i < points_.size(); ++i) {
      const OpenedPoint& point = points_[i];
      RETURN_IF_ERROR(thawers_[i].BeginFreeze().With(kWhat));
      if (const int failure = FreezeFilesystem(point.root.get())) {
        // Somebody else may have frozen it, which is not this one's to end.
        thawers_[i].End();
        return Error::FromErrno(failure, std::string(kWhat) + ", freeze " + point.what,
                                Outcome::kNotApplied);
      }
      ++frozen_;
      if (MicrosBetween(begin_, SteadyClock::now()) >= request_.longest_us) {
        return Error::MaybeApplied(Code::kAborted, std::string(kWhat) + ": to freeze " +
                                                       point.what + " took longer than it may");
      }
    }
    return OkStatus();
  }

  static Error WasThawed(const OpenedPoint& point) {
    return Error::MaybeApplied(Code::kAborted, std::string(kWhat) + ": " + point.what +
                                                   " was thawed by its watch, or that has died");
  }

  // Everything is tried, whatever fails. What the thawers do not confirm was no cut.
  Status ThawAll() {
    std::optional<Error> failed;
    const SteadyClock::time_point thaw = SteadyClock::now();
    for (size_t i = frozen_; i-- > 0;) {
      const int failure = ThawFrozen(points_[i].root.get());
      if (failure == 0) continue;
      failed = failure == EINVAL
                   ? WasThawed(points_[i])
                   : Error::FromErrno(failure, std::string(kWhat) + ", thaw " + points_[i].what,
                                      Outcome::kMaybeApplied);
    }
    cut_.frozen_us = MicrosBetween(frozen_at_, thaw);
    cut_.stall_us = MicrosBetween(begin_, SteadyClock::now());
    for (size_t i = 0; i < frozen_ && !failed; ++i) {
      if (!thawers_[i].End()) failed = WasThawed(points_[i]);
    }
    in_doubt_ = failed.has_value();
    // Those that were not asked thaw what is frozen still.
    thawers_.clear();
    return failed ? Status(*failed) : OkStatus();
  }

  // `error`, once what was made is gone again.
  Error TakenBackAll(const Error& error) const {
    bool all = true;
    for (const MadeFile& target : targets_) {
      if (target.Unmake()) continue;
      all = false;
      // An earlier call has made it: it stays, without a content that could be taken for a cut.
      (void)!::ftruncate(target.file.get(), 0);
    }
    const std::string text = error.message() + (all ? "" : "; a file of the cut is left");
    const bool undone = all && !in_doubt_;
    return Error::FromParts(error.code(), undone ? Outcome::kNotApplied : Outcome::kMaybeApplied,
                            error.sys_errno(), text);
  }

  Result<FrozenCut> Answer() {
    for (const MadeFile& target : targets_) {
      RETURN_IF_ERROR(target.Sync(kWhat));
      ASSIGN_OR_RETURN(FileExtent extent, ExtentOfFile(target.file.get(), features_, kWhat));
      extent.changed = true;
      cut_.files.push_back(std::move(extent));
    }
    return std::move(cut_);
  }

  static constexpr char kWhat[] = "cut while frozen";

  const CutFrozen& request_;
  const KernelFeatures& features_;
  const std::string& thawer_;
  const CallOptions& options_;
  std::vector<OpenedPoint> points_;
  std::vector<CopySource> sources_;
  std::vector<MadeFile> targets_;
  std::vector<Thawer> thawers_;
  size_t frozen_ = 0;  // so many, from the first one on
  bool in_doubt_ = false;
  SteadyClock::time_point begin_;
  SteadyClock::time_point frozen_at_;
  FrozenCut cut_;
};

}  // namespace

Result<FrozenCut> DoCutFrozen(const CutFrozen& request, const KernelFeatures& features,
                              const std::string& thawer, const CallOptions& options) {
  return FrozenCutter(request, features, thawer, options).Run();
}

}  // namespace volumed
