#include "unit/volumemanager/fake_volume_operations.h"

#include <stdexcept>
#include <type_traits>

namespace volumed {

void FakeVolumeOperations::FailNext(const std::string& operation, const OperationKey& key,
                                    Error error, int times) {
  failures_.insert_or_assign({operation, key}, Failure{std::move(error), times});
}

void FakeVolumeOperations::Hang(const OperationKey& key) { hanging_.insert(key); }

void FakeVolumeOperations::Release(const OperationKey& key) {
  hanging_.erase(key);
  const auto held = held_.find(key);
  if (held == held_.end()) return;
  const std::function<void()> finish = std::move(held->second);
  held_.erase(held);
  scheduler_.Post(finish);
}

void FakeVolumeOperations::SetRefresh(const OperationKey& key, int64_t unix_ms) {
  refresh_[key] = {0, unix_ms};
}

void FakeVolumeOperations::SetFreshness(const OperationKey& key, Freshness fresh) {
  refresh_[key] = fresh;
}

size_t FakeVolumeOperations::Count(const std::string& operation) const {
  size_t count = 0;
  for (const Call& call : calls) count += call.operation == operation ? 1 : 0;
  return count;
}

size_t FakeVolumeOperations::Count(const std::string& operation, const OperationKey& key) const {
  size_t count = 0;
  for (const Call& call : calls) {
    count += call.operation == operation && call.key == key ? 1 : 0;
  }
  return count;
}

const FakeVolumeOperations::Call* FakeVolumeOperations::Last(const std::string& operation,
                                                             const OperationKey& key) const {
  const Call* last = nullptr;
  for (const Call& call : calls) {
    if (call.operation == operation && call.key == key) last = &call;
  }
  return last;
}

// ---- what each kind is called, and does to the node
// -----------------------------------------------

namespace {

// The step at which it fails when it is told to.
std::string StepOf(const std::string& operation) {
  static const std::map<std::string, std::string> steps = {{"mount", "SetUp"},
                                                           {"unmount", "TearDown"},
                                                           {"map", "BindDevice"},
                                                           {"unmap", "UnbindDevice"},
                                                           {"remove", "RemoveDirectories"},
                                                           {"expand", "NodeExpand"},
                                                           {"mount_device", "MountDevice"},
                                                           {"attach", "Attach"},
                                                           {"verify", "VolumesAreAttached"}};
  const auto found = steps.find(operation);
  return found == steps.end() ? operation : found->second;
}

MountedVolume Mounted(const MountRequest& request) {
  MountedVolume mounted;
  mounted.plugin_name = "fake";
  mounted.host_path = "/root/pods/" + request.key().ToString();
  for (const SubPathRequest& sub_path : request.sub_paths) {
    mounted.sub_paths.push_back({sub_path.container, sub_path.index, sub_path.sub_path});
  }
  return mounted;
}

}  // namespace

template <typename Op>
FakeVolumeOperations::Call FakeVolumeOperations::Describe(const Op& operation) {
  const OperationKey key = operation.key();
  if constexpr (std::is_same_v<Op, MountVolume>) {
    return {"mount", key, operation.request};
  } else if constexpr (std::is_same_v<Op, MapVolume>) {
    return {"map", key, operation.request};
  } else if constexpr (std::is_same_v<Op, UnmountVolume>) {
    return {"unmount", key, std::nullopt, operation.request.plugin_name};
  } else if constexpr (std::is_same_v<Op, UnmapVolume>) {
    return {"unmap", key, std::nullopt, operation.request.plugin_name};
  } else if constexpr (std::is_same_v<Op, RemovePod>) {
    return {"remove", key};
  } else if constexpr (std::is_same_v<Op, MountDevice>) {
    return {"mount_device", key, std::nullopt, "", operation.request};
  } else if constexpr (std::is_same_v<Op, UnmountDevice>) {
    return {"unmount_device", key, std::nullopt, operation.request.plugin_name};
  } else if constexpr (std::is_same_v<Op, PinDevice>) {
    return {"pin_device", key, std::nullopt, operation.plugin_name};
  } else if constexpr (std::is_same_v<Op, ForgetDevice>) {
    return {"forget_device", key};
  } else if constexpr (std::is_same_v<Op, AttachVolume>) {
    return {.operation = "attach", .key = key, .attach = operation.request};
  } else if constexpr (std::is_same_v<Op, DetachVolume>) {
    return {"detach", key, std::nullopt, operation.request.plugin_name};
  } else if constexpr (std::is_same_v<Op, VerifyVolumesAreAttached>) {
    return {.operation = "verify", .key = key, .verify = operation.request};
  } else if constexpr (std::is_same_v<Op, ExpandVolume>) {
    return {.operation = "expand", .key = key, .expand = operation.request};
  } else if constexpr (std::is_same_v<Op, ExpandStorage>) {
    return {.operation = "expand_storage", .key = key, .expand_storage = operation.request};
  } else if constexpr (std::is_same_v<Op, ReclaimVolume>) {
    return {.operation = "reclaim", .key = key, .reclaim = operation.request};
  } else if constexpr (std::is_same_v<Op, ProvisionVolume>) {
    return {.operation = "provision",
            .key = key,
            .plugin_name = operation.request.plugin_name,
            .provision = operation.request};
  } else {
    static_assert(std::is_same_v<Op, UndoProvision>);
    return {.operation = "undo_provision",
            .key = key,
            .plugin_name = operation.request.plugin_name,
            .provision = operation.request};
  }
}

template <typename Op>
typename Op::Value FakeVolumeOperations::Perform(const Op& operation) {
  if constexpr (std::is_same_v<Op, MountVolume> || std::is_same_v<Op, MapVolume>) {
    const PodVolumeKey key = operation.request.key();
    node_.present.insert(key);
    MountedVolume mounted = Mounted(operation.request);
    if (refresh_.contains(key)) mounted.freshness = refresh_.at(key);
    if constexpr (std::is_same_v<Op, MapVolume>) {
      mounted.mapped = MappedDevice{"/dev/fake", "/root/nodes/fake"};
    }
    return mounted;
  } else if constexpr (std::is_same_v<Op, UnmountVolume> || std::is_same_v<Op, UnmapVolume>) {
    node_.present.erase(operation.request.key());
  } else if constexpr (std::is_same_v<Op, RemovePod>) {
    if (on_remove && operation.record == PodRecordEnd::kRemove) on_remove(operation.pod);
    node_.removed_pods.insert(operation.pod);
  } else if constexpr (std::is_same_v<Op, MountDevice>) {
    const MountDeviceRequest& request = operation.request;
    node_.devices.insert(request.device);
    const std::string name = request.spec.name().str();
    return {"fake", "/root/plugins/" + name, request.attachable ? "/dev/" + name : "",
            request.size};
  } else if constexpr (std::is_same_v<Op, PinDevice>) {
    return {"/dev/fake"};
  } else if constexpr (std::is_same_v<Op, UnmountDevice>) {
    node_.devices.erase(operation.request.device);
  } else if constexpr (std::is_same_v<Op, AttachVolume>) {
    node_.attached.insert(operation.request.device);
    return {"fake", "/dev/" + operation.request.spec.name().str()};
  } else if constexpr (std::is_same_v<Op, DetachVolume>) {
    node_.attached.erase(operation.request.device);
  } else if constexpr (std::is_same_v<Op, ProvisionVolume>) {
    node_.made_volumes.insert(operation.request.planned.metadata.name);
    PersistentVolume made = operation.request.planned;
    // A driver says only now how it calls the volume.
    if (auto* source = std::get_if<CsiPersistentVolumeSource>(&made.spec.source)) {
      source->volume_handle = "vol-" + made.metadata.name;
    }
    return made;
  } else if constexpr (std::is_same_v<Op, ExpandStorage>) {
    return grows_to.value_or(ExpandedStorage{operation.request.new_size, true});
  } else if constexpr (std::is_same_v<Op, UndoProvision>) {
    node_.made_volumes.erase(operation.request.planned.metadata.name);
  }
  return typename Op::Value();
}

// What the plugin sees when it is asked; its answer may come later.
template <>
VerifiedAttachments FakeVolumeOperations::Perform(const VerifyVolumesAreAttached& operation) {
  VerifiedAttachments seen;
  for (const VolumeToVerify& volume : operation.request.volumes) {
    seen[volume.device] = node_.attached.contains(volume.device);
  }
  return seen;
}

// ---- one of any kind
// ------------------------------------------------------------------------------

template <typename Op>
std::optional<StartResult> FakeVolumeOperations::Try(const OperationPtr& operation) {
  auto* const started = As<Op>(*operation);
  if (started == nullptr) return std::nullopt;
  const Op& asked = started->operation();
  const Call call = Describe(asked);
  if (const auto refused = Admit(call.operation, call.key)) return *refused;
  calls.push_back(call);
  constexpr bool kTakesAway = std::is_same_v<Op, UnmountVolume> || std::is_same_v<Op, UnmapVolume>;
  if (kTakesAway && on_unmount) on_unmount(call.key.pod_volume());
  std::optional<typename Op::Value> seen_now;
  if constexpr (std::is_same_v<Op, VerifyVolumesAreAttached>) seen_now = Perform(asked);
  Finish(call.key, [this, operation, started, seen_now, name = call.operation, key = call.key] {
    OperationOutcome<typename Op::Value> outcome;
    const auto step = fails_at.find(name);
    outcome.failure = TakeFailure(name, key, step == fails_at.end() ? StepOf(name) : step->second);
    if (!outcome.failure) outcome.value = seen_now ? *seen_now : Perform(started->operation());
    started->Finish(outcome);
  });
  return StartResult::kStarted;
}

StartResult FakeVolumeOperations::StartOne(const OperationPtr& operation) {
  if (auto* const forgotten = As<ForgetStorage>(*operation)) {
    forgotten_storage.push_back(forgotten->operation().volume_name);
    forgotten->Finish({.value = Unit(), .failure = std::nullopt});
    return StartResult::kStarted;
  }
  if (auto* const ended = As<EndReclaim>(*operation)) {
    ended_reclaims.push_back(ended->operation().volume_name);
    ended->Finish({.value = Unit(), .failure = std::nullopt});
    return StartResult::kStarted;
  }
  if (auto* const forgotten = As<ForgetStorageBut>(*operation)) {
    kept_storage = forgotten->operation().volume_names;
    forgotten->Finish({.value = Unit(), .failure = std::nullopt});
    return StartResult::kStarted;
  }
  std::optional<StartResult> result;
  const auto try_each = [&]<typename... Op>() {
    (void)((result = Try<Op>(operation)).has_value() || ...);
  };
  try_each.operator()<MountVolume, UnmountVolume, MapVolume, UnmapVolume, RemovePod, MountDevice,
                      UnmountDevice, PinDevice, ForgetDevice, AttachVolume, DetachVolume,
                      VerifyVolumesAreAttached, ExpandVolume, ExpandStorage, ReclaimVolume,
                      ProvisionVolume, UndoProvision>();
  if (!result) throw std::logic_error("the fake knows no operation of this kind");
  return *result;
}

std::vector<StartResult> FakeVolumeOperations::StartAll(
    std::vector<std::unique_ptr<AnyOperation>> operations) {
  std::vector<StartResult> results;
  for (auto& operation : operations) results.push_back(StartOne(std::move(operation)));
  return results;
}

bool FakeVolumeOperations::IsPending(const OperationKey& key) const {
  return running_.contains(key);
}

std::optional<TimePoint> FakeVolumeOperations::NextTry(const OperationKey& key) const {
  std::optional<TimePoint> next;
  for (const char* operation : {"mount", "unmount", "map", "unmap", "remove", "mount_device",
                                "unmount_device", "pin_device", "expand", "reclaim", "provision",
                                "undo_provision", "attach", "detach", "verify", "expand_storage"}) {
    const auto until = backoff_.BlockedUntil(key.ToString(), operation);
    if (until && (!next || *next < *until)) next = until;
  }
  return next;
}

void FakeVolumeOperations::ResetBackoff(const OperationKey& key) { backoff_.Reset(key.ToString()); }

std::optional<RunningOperation> FakeVolumeOperations::FindRunning(const OperationKey& key) const {
  const auto found = running_.find(key);
  if (found == running_.end()) return std::nullopt;
  RunningOperation operation{key, "volume_mount", "SetUp", found->second, found->second, 7};
  if (const auto whom = awaited.find(key); whom != awaited.end()) operation.awaited = whom->second;
  const auto waits = waits_for.find(key);
  if (waits == waits_for.end()) return operation;
  operation.step = waits->second.step;
  operation.waits_for = waits->second;
  return operation;
}

std::optional<RunningOperation> FakeVolumeOperations::FindOwner(
    const UniqueVolumeName& device) const {
  const auto owner = owners.find(device);
  return owner == owners.end() ? std::nullopt : FindRunning(owner->second);
}

std::vector<RunningOperation> FakeVolumeOperations::Running() const {
  ++times_all_were_copied;
  std::vector<RunningOperation> all;
  for (const auto& [key, since] : running_) all.push_back(*FindRunning(key));
  return all;
}

std::optional<StartResult> FakeVolumeOperations::Admit(const std::string& operation,
                                                       const OperationKey& key) {
  if (running_.contains(key)) return StartResult::kPending;
  if (backoff_.BlockedUntil(key.ToString(), operation)) return StartResult::kBackoff;
  running_.emplace(key, scheduler_.clock().WallUnixMillis());
  return std::nullopt;
}

void FakeVolumeOperations::Finish(const OperationKey& key, std::function<void()> body) {
  const auto finish = [this, key, body = std::move(body)] {
    running_.erase(key);
    body();
  };
  if (hanging_.contains(key)) {
    held_[key] = finish;
  } else {
    scheduler_.RunBlocking([this, finish] { scheduler_.Post(finish); });
  }
}

std::optional<OperationFailure> FakeVolumeOperations::TakeFailure(const std::string& operation,
                                                                  const OperationKey& key,
                                                                  const std::string& step) {
  if (const auto waits = waits_for.extract(key); waits && given_up.contains(key)) {
    return OperationFailure{"volume_" + operation, waits.mapped().step,
                            Error::NotApplied(Code::kCancelled, "given up")};
  }
  const auto found = failures_.find({operation, key});
  if (found == failures_.end() || found->second.times == 0) {
    backoff_.Reset(key.ToString(), operation);
    return std::nullopt;
  }
  --found->second.times;
  backoff_.RecordFailure(key.ToString(), operation, CodeName(found->second.error.code()));
  return OperationFailure{"volume_" + operation, step, found->second.error};
}
}  // namespace volumed
