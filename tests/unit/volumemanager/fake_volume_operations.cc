#include "unit/volumemanager/fake_volume_operations.h"

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

StartResult FakeVolumeOperations::MountVolume(
    MountRequest request, std::function<void(OperationOutcome<MountedVolume>)> done) {
  return Make("mount", "SetUp", std::move(request), std::move(done));
}

StartResult FakeVolumeOperations::UnmountVolume(UnmountRequest request,
                                                std::function<void(OperationOutcome<Unit>)> done) {
  return TakeAway("unmount", "TearDown", request, std::move(done));
}

StartResult FakeVolumeOperations::MapVolume(
    MountRequest request, std::function<void(OperationOutcome<MountedVolume>)> done) {
  return Make("map", "BindDevice", std::move(request), std::move(done));
}

StartResult FakeVolumeOperations::UnmapVolume(UnmountRequest request,
                                              std::function<void(OperationOutcome<Unit>)> done) {
  return TakeAway("unmap", "UnbindDevice", request, std::move(done));
}

StartResult FakeVolumeOperations::RemovePod(PodUid pod, std::string, PodRecordEnd record,
                                            std::function<void(OperationOutcome<Unit>)> done) {
  const PodVolumeKey key{pod, SpecName()};
  const auto refused = Admit("remove", key);
  if (refused) return *refused;
  calls.push_back({"remove", key});
  Finish(key, [this, key, record, done] {
    OperationOutcome<Unit> outcome;
    if ((outcome.failure = TakeFailure("remove", key, "RemoveDirectories"))) return done(outcome);
    if (on_remove && record == PodRecordEnd::kRemove) on_remove(key.pod);
    node_.removed_pods.insert(key.pod);
    outcome.value = Unit{};
    done(outcome);
  });
  return StartResult::kStarted;
}

StartResult FakeVolumeOperations::ExpandVolume(
    ExpandRequest request, std::function<void(OperationOutcome<ExpandedVolume>)> done) {
  const OperationKey key = ExpandKey(request.volume);
  const auto refused = Admit("expand", key);
  if (refused) return *refused;
  Call call{"expand", key};
  call.expand = request;
  calls.push_back(call);
  Finish(key, [this, key, done] {
    OperationOutcome<ExpandedVolume> outcome;
    if ((outcome.failure = TakeFailure("expand", key, "NodeExpand"))) return done(outcome);
    outcome.value = ExpandedVolume{};
    done(outcome);
  });
  return StartResult::kStarted;
}

StartResult FakeVolumeOperations::MountDevice(
    MountDeviceRequest request, std::function<void(OperationOutcome<MountedDevice>)> done) {
  const OperationKey key(request.device);
  const auto refused = Admit("mount_device", key);
  if (refused) return *refused;
  calls.push_back({"mount_device", key, std::nullopt, "", request});
  Finish(key, [this, key, request, done] {
    OperationOutcome<MountedDevice> outcome;
    if ((outcome.failure = TakeFailure("mount_device", key, "MountDevice"))) return done(outcome);
    node_.devices.insert(request.device);
    outcome.value =
        MountedDevice{"fake", "/root/plugins/" + request.spec.name().str(), "", request.size};
    done(outcome);
  });
  return StartResult::kStarted;
}

StartResult FakeVolumeOperations::UnmountDevice(UnmountDeviceRequest request,
                                                std::function<void(OperationOutcome<Unit>)> done) {
  return Simple("unmount_device", OperationKey(request.device), request.plugin_name, done,
                [this, device = request.device] { node_.devices.erase(device); });
}

StartResult FakeVolumeOperations::AttachVolume(
    AttachRequest request, std::function<void(OperationOutcome<AttachedVolume>)> done) {
  const OperationKey key(request.device);
  const auto refused = Admit("attach", key);
  if (refused) return *refused;
  calls.push_back({.operation = "attach", .key = key, .attach = request});
  Finish(key, [this, key, request, done] {
    OperationOutcome<AttachedVolume> outcome;
    if ((outcome.failure = TakeFailure("attach", key, "Attach"))) return done(outcome);
    node_.attached.insert(request.device);
    outcome.value = AttachedVolume{"fake", "/dev/" + request.spec.name().str()};
    done(outcome);
  });
  return StartResult::kStarted;
}

StartResult FakeVolumeOperations::DetachVolume(DetachRequest request,
                                               std::function<void(OperationOutcome<Unit>)> done) {
  return Simple("detach", OperationKey(request.device), request.plugin_name, done,
                [this, device = request.device] { node_.attached.erase(device); });
}

StartResult FakeVolumeOperations::VerifyVolumesAreAttached(
    VerifyAttachedRequest request,
    std::function<void(OperationOutcome<VerifiedAttachments>)> done) {
  const OperationKey key = VerifyAttachedKeyOf(request.plugin_name);
  const auto refused = Admit("verify", key);
  if (refused) return *refused;
  calls.push_back({.operation = "verify", .key = key, .verify = request});
  // What the plugin sees when it is asked; its answer may come later.
  VerifiedAttachments seen;
  for (const VolumeToVerify& volume : request.volumes) {
    seen[volume.device] = node_.attached.contains(volume.device);
  }
  Finish(key, [this, key, seen, done] {
    OperationOutcome<VerifiedAttachments> outcome;
    if ((outcome.failure = TakeFailure("verify", key, "VolumesAreAttached"))) {
      return done(outcome);
    }
    outcome.value = seen;
    done(outcome);
  });
  return StartResult::kStarted;
}

OperationKey FakeVolumeOperations::VerifyAttachedKeyOf(const std::string& plugin) {
  return VerifyAttachedKey(plugin);
}

StartResult FakeVolumeOperations::ForgetDevice(UniqueVolumeName device,
                                               std::function<void(OperationOutcome<Unit>)> done) {
  return Simple("forget_device", OperationKey(device), "", done, [] {});
}

StartResult FakeVolumeOperations::ReclaimVolume(ReclaimRequest request,
                                                std::function<void(OperationOutcome<Unit>)> done) {
  const OperationKey key = ReclaimKeyOf(request.volume->metadata.name);
  const StartResult started = Simple("reclaim", key, "", done, [] {});
  if (started == StartResult::kStarted) calls.back().reclaim = request;
  return started;
}

OperationKey FakeVolumeOperations::ReclaimKeyOf(const std::string& volume) {
  return ReclaimKey(volume);
}

StartResult FakeVolumeOperations::ProvisionVolume(
    ProvisionRequest request, std::function<void(OperationOutcome<PersistentVolume>)> done) {
  const std::string name = request.planned.metadata.name;
  return Simple(
      "provision", ProvisionKey(name), request.plugin_name,
      [done, request](const OperationOutcome<Unit>& outcome) {
        OperationOutcome<PersistentVolume> answer;
        answer.failure = outcome.failure;
        if (outcome.value) answer.value = request.planned;
        done(answer);
      },
      [this, name] { node_.made_volumes.insert(name); });
}

StartResult FakeVolumeOperations::UndoProvision(ProvisionRequest request,
                                                std::function<void(OperationOutcome<Unit>)> done) {
  const std::string name = request.planned.metadata.name;
  return Simple("undo_provision", ProvisionKey(name), request.plugin_name, done,
                [this, name] { node_.made_volumes.erase(name); });
}

bool FakeVolumeOperations::IsPending(const OperationKey& key) const {
  return running_.contains(key);
}

std::optional<TimePoint> FakeVolumeOperations::NextTry(const OperationKey& key) const {
  std::optional<TimePoint> next;
  for (const char* operation :
       {"mount", "unmount", "map", "unmap", "remove", "mount_device", "unmount_device", "expand",
        "reclaim", "provision", "undo_provision", "attach", "detach", "verify"}) {
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
  const auto waits = waits_for.find(key);
  if (waits == waits_for.end()) return operation;
  operation.step = "WaitForWorker";
  operation.waits_for = waits->second;
  return operation;
}

std::vector<RunningOperation> FakeVolumeOperations::Running() const {
  ++times_all_were_copied;
  std::vector<RunningOperation> all;
  for (const auto& [key, since] : running_) all.push_back(*FindRunning(key));
  return all;
}

StartResult FakeVolumeOperations::Make(const std::string& operation, const std::string& step,
                                       MountRequest request,
                                       std::function<void(OperationOutcome<MountedVolume>)> done) {
  const PodVolumeKey key{request.pod->uid(), request.spec.name()};
  const auto refused = Admit(operation, key);
  if (refused) return *refused;
  calls.push_back({operation, key, request});
  Finish(key, [this, operation, step, key, request, done] {
    OperationOutcome<MountedVolume> outcome;
    if ((outcome.failure = TakeFailure(operation, key, step))) return done(outcome);
    node_.present.insert(key);
    MountedVolume mounted;
    mounted.plugin_name = "fake";
    mounted.host_path = "/root/pods/" + key.ToString();
    for (const SubPathRequest& sub_path : request.sub_paths) {
      mounted.sub_paths.push_back({sub_path.container, sub_path.index, sub_path.sub_path});
    }
    if (refresh_.contains(key)) mounted.freshness = refresh_.at(key);
    if (operation == "map") mounted.mapped = MappedDevice{"/dev/fake", "/root/nodes/fake"};
    outcome.value = mounted;
    done(outcome);
  });
  return StartResult::kStarted;
}

StartResult FakeVolumeOperations::TakeAway(const std::string& operation, const std::string& step,
                                           const UnmountRequest& request,
                                           std::function<void(OperationOutcome<Unit>)> done) {
  const PodVolumeKey key{request.pod, request.spec};
  const auto refused = Admit(operation, key);
  if (refused) return *refused;
  calls.push_back({operation, key, std::nullopt, request.plugin_name});
  if (on_unmount) on_unmount(key);
  Finish(key, [this, operation, step, key, done] {
    OperationOutcome<Unit> outcome;
    if ((outcome.failure = TakeFailure(operation, key, step))) return done(outcome);
    node_.present.erase(key);
    outcome.value = Unit{};
    done(outcome);
  });
  return StartResult::kStarted;
}

StartResult FakeVolumeOperations::Simple(const std::string& operation, const OperationKey& key,
                                         const std::string& plugin,
                                         std::function<void(OperationOutcome<Unit>)> done,
                                         std::function<void()> effect) {
  const auto refused = Admit(operation, key);
  if (refused) return *refused;
  calls.push_back({operation, key, std::nullopt, plugin});
  Finish(key, [this, operation, key, done, effect] {
    OperationOutcome<Unit> outcome;
    if ((outcome.failure = TakeFailure(operation, key, operation))) return done(outcome);
    effect();
    outcome.value = Unit{};
    done(outcome);
  });
  return StartResult::kStarted;
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
