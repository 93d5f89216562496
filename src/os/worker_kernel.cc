#include "os/worker_kernel.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "os/composites.h"
#include "os/fault_domain.h"
#include "os/kernel_features.h"
#include "os/mount_places.h"
#include "os/mount_table.h"
#include "os/worker_pool.h"

namespace volumed {
namespace {

// The lane of walks on the agent's own filesystem, and of programs.
constexpr char kWalkDomain[] = "walks";
constexpr char kSyncDomain[] = "syncs";

std::vector<std::string> Command(const WorkerKernelOptions& options) {
  std::vector<std::string> command = {options.worker_path};
  if (!options.agent_root.empty()) command.push_back("--agent-root=" + options.agent_root);
  for (const std::string& mask : options.masked_features) command.push_back("--mask=" + mask);
  return command;
}

// Composite requests of different pods hardly meet in the kernel: as many as there are cores, but
// no more than are worth their memory.
int FastWorkers() {
  constexpr int kMost = 4;
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMost);
}

// What is mounted at its path is not asked for anything.
bool IsAboutMountItself(const AnyRequest& request) {
  if (const auto* stat = std::get_if<Stat>(&request)) return stat->only_mount_point;
  return std::holds_alternative<Unmount>(request);
}

std::string TextOf(const std::string& path) { return path; }
std::string TextOf(const SafePath& path) { return path.Display(); }

// The path of the device that a request of LaneKind::kDevice is about.
std::string DeviceOf(const AnyRequest& request) {
  const auto device = [](const auto& r) -> std::string {
    constexpr LaneKind kKind = std::decay_t<decltype(r)>::kLane;
    if constexpr (kKind == LaneKind::kDeviceIfExpected) {
      return TextOf(r.source);
    } else if constexpr (kKind != LaneKind::kDevice) {
      return "";
    } else if constexpr (requires { r.device; }) {
      return r.device;
    } else {
      return TextOf(r.path);
    }
  };
  return std::visit(device, request);
}

// The lane of a request whose caller names none; empty for the fast workers'.
std::string LaneByKind(const AnyRequest& request) {
  // A disk takes milliseconds to sync a file, and nobody behind it in the fast lane needs that.
  const auto* file = std::get_if<WriteFile>(&request);
  if (file != nullptr && !file->unsynced) return kSyncDomain;
  switch (LaneKindOf(request)) {
    case LaneKind::kWalks:
      return kWalkDomain;  // it must not hold up the mounts behind it in the fast lane
    case LaneKind::kDevice: {
      const std::string device = DeviceOf(request);
      return device.empty() ? "" : DeviceDomain(device);
    }
    case LaneKind::kNoWorker:
    case LaneKind::kOwnFilesystem:
    case LaneKind::kDeviceIfExpected:
    case LaneKind::kOfItems:
      return "";
  }
  return "";
}

// Where a request goes whose volume has the domain: a part of a volume may be mounted from
// elsewhere.
std::string WayOf(const AnyRequest& request, const std::string& domain) {
  const auto* part = std::get_if<PrepareSubPath>(&request);
  return part != nullptr ? part->volume.Display() + "/" + part->sub_path : domain;
}

// What else is mounted on its way cannot hold it up.
bool StaysOnItsMount(const AnyRequest& request) {
  const auto* identify = std::get_if<IdentifyStorage>(&request);
  return identify != nullptr && identify->same_mount;
}

// All that its items are about lies below its path, and at least one asks what is mounted there.
bool LiesInItsPath(const Batch& batch) {
  const std::string top = batch.path.Display();
  bool asks = false;
  for (const BatchItem& item : batch.items) {
    if (StaysOnItsMount(item.request)) continue;
    const std::string path = RequestPath(item.request);
    if (path != top && !path.starts_with(top + "/")) return false;
    asks = asks || IsComposite(item.request);
  }
  return asks && !top.empty();
}

// How far the path can lie on the root's filesystem: to the directory in which the first other
// mount on its way is.
std::string PartOnRoot(const std::string& path, const std::vector<MountEntry>& around) {
  std::string part = path;
  for (const MountEntry& mount : around) {
    if (mount.mount_point == "/" || mount.mount_point.size() > part.size()) continue;
    part = mount.mount_point.substr(0, mount.mount_point.rfind('/'));
  }
  return part.empty() ? "/" : part;
}

}  // namespace

Result<std::unique_ptr<WorkerKernel>> WorkerKernel::Create(const WorkerKernelOptions& options,
                                                           const Clock& clock) {
  ASSIGN_OR_RETURN(const KernelFeatures features, ProbeKernelFeatures(options.masked_features));
  WorkerPool::Parts parts{[command = Command(options)](const std::string& key_directory) {
                            return SpawnWorker(command, key_directory);
                          },
                          options.max_workers,
                          options.max_per_domain,
                          FastWorkers(),
                          options.lanes_changed,
                          options.key_directory};
  ASSIGN_OR_RETURN(std::unique_ptr<WorkerPool> pool, WorkerPool::Create(std::move(parts), clock));
  ASSIGN_OR_RETURN(std::unique_ptr<KeptMountTable> mounts,
                   KeptMountTable::Open(features, options.mount_watch));
  return std::unique_ptr<WorkerKernel>(
      new WorkerKernel(clock, std::move(pool), std::move(mounts), features, options.agent_root));
}

WorkerKernel::WorkerKernel(const Clock& clock, std::unique_ptr<WorkerPool> pool,
                           std::unique_ptr<KeptMountTable> mounts, KernelFeatures features,
                           std::string agent_root)
    : clock_(clock),
      pool_(std::move(pool)),
      mounts_(std::move(mounts)),
      features_(features),
      agent_root_(std::move(agent_root)),
      own_lane_(agent_root_.empty() ? "" : Locate(agent_root_).lane) {}
WorkerKernel::~WorkerKernel() = default;

Result<AnyAnswer> WorkerKernel::Do(const AnyRequest& request, const CallOptions& options) {
  if (std::holds_alternative<ProbeFeatures>(request)) return AnyAnswer(features_);
  if (const auto* list = std::get_if<ListMounts>(&request)) return List(*list);
  CallOptions routed = options;
  routed.must_finish = options.must_finish || MustFinish(request);
  if (options.domain.empty()) {
    routed.domain = LaneByKind(request);
    if (const std::string covered = LaneOfCovered(request); !covered.empty()) {
      routed.domain = covered;
    }
  } else if (options.domain.starts_with('/')) {
    ASSIGN_OR_RETURN(routed.domain, LaneOfWay(WayOf(request, options.domain), options));
  } else {
    routed.domain = options.domain;
  }
  return pool_->Do(request, routed);
}

// Most ways have no link on the root's filesystem, which one system call tells: there the mount
// table is asked once, and nothing is walked.
WorkerKernel::Way WorkerKernel::Follow(const std::string& path) {
  const auto mounts_around = [this](const std::string& text) {
    Result<std::vector<MountEntry>> found = mounts_->Find({.around = text});
    return found.ok() ? *std::move(found) : std::vector<MountEntry>();
  };
  if (CheckMountQuestion({.around = path}).ok()) {
    std::vector<MountEntry> around = mounts_around(path);
    if (HasNoLinkOnRoot(PartOnRoot(path, around))) return {path, std::move(around)};
  }
  std::string text = FollowLinksOnRoot(path);
  std::vector<MountEntry> around = mounts_around(text);
  return {std::move(text), std::move(around)};
}

// A link on another filesystem than the root's may lead anywhere. A worker of the filesystem that
// it lies on finds out whether there is one on the way, and can hang with that filesystem alone.
Result<std::string> WorkerKernel::LaneOfWay(const std::string& path, const CallOptions& options) {
  const Way way = Follow(path);
  const std::string lane = DomainOfPath(way.text, way.around).lane;
  const MountEntry* const mount = ClosestMount(way.around);
  const bool is_known = mount == nullptr || mount->mount_point == "/" ||
                        way.text == mount->mount_point || way.text.starts_with("/dev/");
  const TimePoint now = clock_.Now();
  if (is_known || looks_.IsKnown(way.text, *mount, now)) return lane;
  Stat look;
  look.path = {mount->mount_point, way.text.substr(mount->mount_point.size() + 1)};
  CallOptions call;
  call.domain = lane;
  call.deadline = options.deadline;
  call.cancel = options.cancel;
  // Nor does anybody look for a volume at which a worker hangs: that is refused before.
  call.key = options.key;
  call.more_keys = options.more_keys;
  const Result<AnyAnswer> answer = pool_->Do(look, call);
  if (!answer.ok()) {
    const Error& error = answer.error();
    if (error.sys_errno() == ELOOP) return "path " + path;
    if (error.sys_errno() != 0) return lane;
    return Error::FromParts(error.code(), Outcome::kNotApplied, 0, error.message());
  }
  if (std::get<FileInfo>(*answer).type == FileType::kSymlink) return "path " + path;
  looks_.Note(way.text, *mount, now);
  return lane;
}

// At, above or below the path.
bool WorkerKernel::HasMountThatMayHang(const std::string& path) const {
  for (const ListMounts& question : {ListMounts{.around = path}, ListMounts{.below = path}}) {
    const std::vector<MountEntry> mounts = mounts_->LastKnown(question, agent_root_);
    if (std::any_of(mounts.begin(), mounts.end(),
                    [this](const MountEntry& mount) { return !LaneOfMount(mount).empty(); })) {
      return true;
    }
  }
  return false;
}

// A composite asks what lies below its path as well, and never knows what is mounted there.
std::string WorkerKernel::LaneOfCovered(const AnyRequest& request) const {
  if (const auto* batch = std::get_if<Batch>(&request)) {
    // Most often nothing that could hang is mounted in the directory of a pod: then its items need
    // not be asked for, each with two questions of its own.
    if (LiesInItsPath(*batch) && !HasMountThatMayHang(batch->path.Display())) return "";
    // Its path is only what they all lie below: what else is mounted there is not asked.
    for (const BatchItem& item : batch->items) {
      if (std::string lane = LaneOfCovered(item.request); !lane.empty()) return lane;
    }
    return "";
  }
  const std::string path = RequestPath(request);
  if (StaysOnItsMount(request)) return "";
  if (agent_root_.empty() || !path.starts_with('/')) return "";
  // Of several mounts the last one lies upon the others.
  std::string lane;
  for (const MountEntry& mount : mounts_->LastKnown({.around = path}, agent_root_)) {
    if (mount.mount_point == path && IsAboutMountItself(request)) continue;
    lane = LaneOfMount(mount);
  }
  if (!IsComposite(request)) return lane;
  for (const MountEntry& mount : mounts_->LastKnown({.below = path}, agent_root_)) {
    if (std::string below = LaneOfMount(mount); !below.empty()) return below;
  }
  return lane;
}

std::string WorkerKernel::LaneOfMount(const MountEntry& mount) const {
  return LaneBeside(own_lane_, mount);
}

Status WorkerKernel::KeepKeysIn(const std::string& directory) {
  return pool_->KeepKeysIn(directory);
}

void WorkerKernel::SetLimits(int max_workers, int max_per_domain) {
  pool_->SetLimits(max_workers, max_per_domain);
}

Result<AnyAnswer> WorkerKernel::List(const ListMounts& request) {
  RETURN_IF_ERROR(CheckMountQuestion(request));
  if (request.below.empty() && request.around.empty() && !request.showing) {
    ASSIGN_OR_RETURN(std::vector<MountEntry> all, ReadMountTable());
    return AnyAnswer(MountListing{std::move(all)});
  }
  ASSIGN_OR_RETURN(std::vector<MountEntry> mounts, mounts_->Find(request));
  return AnyAnswer(MountListing{std::move(mounts)});
}

FaultDomain WorkerKernel::Locate(const std::string& domain) {
  if (!domain.starts_with('/')) return {domain, domain};
  // A table that cannot be read shows nothing: then all such paths share one lane.
  const Way way = Follow(domain);
  return DomainOfPath(way.text, way.around);
}

std::vector<FaultDomains::KnownMount> WorkerKernel::MountsAround(
    const std::string& directory) const {
  std::vector<KnownMount> known;
  for (const ListMounts& question :
       {ListMounts{.around = directory}, ListMounts{.below = directory}}) {
    for (const MountEntry& mount : mounts_->LastKnown(question, agent_root_)) {
      known.push_back({mount.mount_point, !LaneOfMount(mount).empty()});
    }
  }
  return known;
}

LaneHealth WorkerKernel::HealthOf(const std::string& lane) const { return pool_->HealthOf(lane); }

WorkerPoolStats WorkerKernel::stats() const { return pool_->stats(); }

std::vector<StuckOperation> WorkerKernel::stuck_operations() const {
  return pool_->stuck_operations();
}

}  // namespace volumed
