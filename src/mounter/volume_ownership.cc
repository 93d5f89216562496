#include "mounter/volume_ownership.h"

#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"

namespace volumed {
namespace {

using std::chrono::seconds;

// Source: volume_linux.go@v1.36.2 (progressReportDuration, firstEventReportDuration).
constexpr seconds kFirstReport{30};
constexpr seconds kNextReports{60};
// (gid_t)-1 means "leave the group alone" to chown(2), so it is no group.
constexpr int64_t kMaxGroup = int64_t{std::numeric_limits<uint32_t>::max()} - 1;

// Source: kubernetes pkg/volume/util/metrics.go@v1.36.2 (FSGroupCompleteHook).
constexpr const char* kApplyAccessControl = "volume_apply_access_control";

// The part of the path from the pod's uid on: an event shows no more of the node's layout to a
// user.
std::string FromPodOn(const std::string& path, const PodUid& pod) {
  const size_t at = pod.empty() ? std::string::npos : path.find(pod.str());
  return at == std::string::npos ? path : path.substr(at);
}

// Turns the progress calls of the effect, which may come on any thread, into rare events.
class ProgressNotifier {
 public:
  ProgressNotifier(HostEvents& events, const Clock& clock, const OwnershipRequest& request)
      : events_(events),
        clock_(clock),
        pod_(request.pod),
        what_("Setting volume ownership for " + FromPodOn(request.dir.Display(), request.pod)),
        next_report_(clock.Now() + kFirstReport) {}

  void Report(int64_t done) EXCLUDES(mu_) {
    MutexLock lock(mu_);
    const TimePoint now = clock_.Now();
    if (now < next_report_) return;
    next_report_ = now + kNextReports;
    const std::string detail =
        std::exchange(first_, false)
            ? " is taking longer than expected, consider using OnRootMismatch - "
              "https://kubernetes.io/docs/tasks/configure-pod-container/security-context/"
              "#configure-volume-permission-and-ownership-change-policy-for-pods"
            : ", processed " + std::to_string(done) + " files.";
    events_.RecordPodEvent(pod_, EventType::kWarning, "VolumePermissionChangeInProgress",
                           what_ + detail);
  }

 private:
  HostEvents& events_;
  const Clock& clock_;
  const PodUid pod_;
  const std::string what_;
  Mutex mu_;
  TimePoint next_report_ GUARDED_BY(mu_);
  bool first_ GUARDED_BY(mu_) = true;
};

}  // namespace

Result<uint32_t> GroupId(int64_t fs_group) {
  if (fs_group >= 0 && fs_group <= kMaxGroup) return static_cast<uint32_t>(fs_group);
  return Error::NotApplied(
      Code::kInvalidArgument,
      "fsGroup " + std::to_string(fs_group) + " is not between 0 and " + std::to_string(kMaxGroup));
}

Result<OwnershipInfo> SetVolumeOwnership(Kernel& kernel, HostEvents& events, const Clock& clock,
                                         const OwnershipRequest& request, const CallOptions& call) {
  if (!request.fs_group) return OwnershipInfo{};
  ASSIGN_OR_RETURN(const uint32_t gid, GroupId(*request.fs_group));
  // The callback shares the notifier, because a kernel may report once more while it gives up.
  auto notifier = std::make_shared<ProgressNotifier>(events, clock, request);
  CallOptions with_progress = call;
  with_progress.progress = [notifier, next = call.progress](int64_t done) {
    notifier->Report(done);
    if (next) next(done);
  };
  ChangeOwnership effect;
  effect.path = request.dir;
  effect.gid = gid;
  effect.read_only = request.read_only;
  effect.on_root_mismatch = request.policy == FsGroupChangePolicy::kOnRootMismatch;
  const TimePoint start = clock.Now();
  Result<OwnershipInfo> done = kernel.Call(effect, with_progress);
  // No walk was made if the root was right already. Source: volume_linux.go@v1.36.2.
  if (request.metrics != nullptr && !(done.ok() && done->skipped)) {
    request.metrics->ObserveStorageOperation(request.plugin_name, kApplyAccessControl, done.ok(),
                                             clock.Now() - start);
  }
  return std::move(done).With("setting volume ownership of " + request.dir.Display());
}

void ObserveOwnership(ExportedFamilies& metrics, const std::string& plugin_name,
                      const std::optional<int64_t>& elapsed_ns) {
  if (!elapsed_ns) return;
  metrics.ObserveStorageOperation(plugin_name, kApplyAccessControl, true, Duration(*elapsed_ns));
}

}  // namespace volumed
