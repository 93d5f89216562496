// FakeVolumeOperations: VolumeOperations without plugins. It keeps which volumes are there, can
// fail or hang on order, and backs off as the real one does.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/backoff.h"
#include "base/scheduler.h"
#include "operation/volume_operations.h"

namespace volumed {

// What is on the node; outlives the agents of a test.
struct FakeNode {
  std::set<PodVolumeKey> present;
  std::set<UniqueVolumeName> devices;  // mounted
  std::set<UniqueVolumeName> attached;
  std::set<PodUid> removed_pods;
  std::set<std::string> made_volumes;  // provisioned
};

class FakeVolumeOperations final : public VolumeOperations {
 public:
  struct Call {
    std::string operation;  // "mount", "unmount", "remove", "mount_device" ...
    OperationKey key;
    std::optional<MountRequest> mount = std::nullopt;
    std::string plugin_name = {};
    std::optional<MountDeviceRequest> mount_device = std::nullopt;
    std::optional<ReclaimRequest> reclaim = std::nullopt;
    std::optional<ExpandRequest> expand = std::nullopt;
    std::optional<AttachRequest> attach = std::nullopt;
    std::optional<VerifyAttachedRequest> verify = std::nullopt;
  };

  FakeVolumeOperations(Scheduler& scheduler, FakeNode& node)
      : scheduler_(scheduler), node_(node), backoff_(scheduler.clock()) {}

  std::vector<Call> calls;
  std::vector<std::string> forgotten_storage;  // volumes
  std::set<std::string> kept_storage;          // likewise

  // The next `times` operations of this kind on this volume (an empty spec: on the pod) fail.
  void FailNext(const std::string& operation, const OperationKey& key, Error error, int times = 1) {
    failures_.insert_or_assign({operation, key}, Failure{std::move(error), times});
  }
  // Operations of this volume do not end until Release.
  void Hang(const OperationKey& key) { hanging_.insert(key); }
  void Release(const OperationKey& key) {
    hanging_.erase(key);
    const auto held = held_.find(key);
    if (held == held_.end()) return;
    const std::function<void()> finish = std::move(held->second);
    held_.erase(held);
    scheduler_.Post(finish);
  }
  void SetRefresh(const OperationKey& key, int64_t unix_ms) { refresh_[key] = unix_ms; }

  size_t Count(const std::string& operation) const {
    size_t count = 0;
    for (const Call& call : calls) count += call.operation == operation ? 1 : 0;
    return count;
  }
  size_t Count(const std::string& operation, const OperationKey& key) const {
    size_t count = 0;
    for (const Call& call : calls) {
      count += call.operation == operation && call.key == key ? 1 : 0;
    }
    return count;
  }
  const Call* Last(const std::string& operation, const OperationKey& key) const {
    const Call* last = nullptr;
    for (const Call& call : calls) {
      if (call.operation == operation && call.key == key) last = &call;
    }
    return last;
  }

  StartResult MountVolume(MountRequest request,
                          std::function<void(OperationOutcome<MountedVolume>)> done) override {
    return Make("mount", "SetUp", std::move(request), std::move(done));
  }
  StartResult UnmountVolume(UnmountRequest request,
                            std::function<void(OperationOutcome<Unit>)> done) override {
    return TakeAway("unmount", "TearDown", request, std::move(done));
  }
  StartResult MapVolume(MountRequest request,
                        std::function<void(OperationOutcome<MountedVolume>)> done) override {
    return Make("map", "BindDevice", std::move(request), std::move(done));
  }
  StartResult UnmapVolume(UnmountRequest request,
                          std::function<void(OperationOutcome<Unit>)> done) override {
    return TakeAway("unmap", "UnbindDevice", request, std::move(done));
  }

  StartResult RemovePod(PodUid pod, std::string, PodRecordEnd record,
                        std::function<void(OperationOutcome<Unit>)> done) override {
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

  StartResult ExpandVolume(ExpandRequest request,
                           std::function<void(OperationOutcome<ExpandedVolume>)> done) override {
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

  StartResult MountDevice(MountDeviceRequest request,
                          std::function<void(OperationOutcome<MountedDevice>)> done) override {
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

  StartResult UnmountDevice(UnmountDeviceRequest request,
                            std::function<void(OperationOutcome<Unit>)> done) override {
    return Simple("unmount_device", OperationKey(request.device), request.plugin_name, done,
                  [this, device = request.device] { node_.devices.erase(device); });
  }

  StartResult AttachVolume(AttachRequest request,
                           std::function<void(OperationOutcome<AttachedVolume>)> done) override {
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

  StartResult DetachVolume(DetachRequest request,
                           std::function<void(OperationOutcome<Unit>)> done) override {
    return Simple("detach", OperationKey(request.device), request.plugin_name, done,
                  [this, device = request.device] { node_.attached.erase(device); });
  }

  StartResult VerifyVolumesAreAttached(
      VerifyAttachedRequest request,
      std::function<void(OperationOutcome<VerifiedAttachments>)> done) override {
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
  static OperationKey VerifyAttachedKeyOf(const std::string& plugin) {
    return VerifyAttachedKey(plugin);
  }

  StartResult ForgetDevice(UniqueVolumeName device,
                           std::function<void(OperationOutcome<Unit>)> done) override {
    return Simple("forget_device", OperationKey(device), "", done, [] {});
  }

  StartResult ForgetStorage(std::string volume_name,
                            std::function<void(OperationOutcome<Unit>)> done) override {
    forgotten_storage.push_back(std::move(volume_name));
    OperationOutcome<Unit> outcome;
    outcome.value = Unit();
    done(outcome);
    return StartResult::kStarted;
  }

  StartResult ForgetStorageBut(std::set<std::string> volume_names,
                               std::function<void(OperationOutcome<Unit>)> done) override {
    kept_storage = std::move(volume_names);
    OperationOutcome<Unit> outcome;
    outcome.value = Unit();
    done(outcome);
    return StartResult::kStarted;
  }

  StartResult ReclaimVolume(ReclaimRequest request,
                            std::function<void(OperationOutcome<Unit>)> done) override {
    const OperationKey key = ReclaimKeyOf(request.volume->metadata.name);
    const StartResult started = Simple("reclaim", key, "", done, [] {});
    if (started == StartResult::kStarted) calls.back().reclaim = request;
    return started;
  }
  static OperationKey ReclaimKeyOf(const std::string& volume) { return ReclaimKey(volume); }

  StartResult ProvisionVolume(
      ProvisionRequest request,
      std::function<void(OperationOutcome<PersistentVolume>)> done) override {
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
  StartResult UndoProvision(ProvisionRequest request,
                            std::function<void(OperationOutcome<Unit>)> done) override {
    const std::string name = request.planned.metadata.name;
    return Simple("undo_provision", ProvisionKey(name), request.plugin_name, done,
                  [this, name] { node_.made_volumes.erase(name); });
  }

  bool IsPending(const OperationKey& key) const override { return running_.contains(key); }
  std::optional<TimePoint> NextTry(const OperationKey& key) const override {
    std::optional<TimePoint> next;
    for (const char* operation :
         {"mount", "unmount", "map", "unmap", "remove", "mount_device", "unmount_device", "expand",
          "reclaim", "provision", "undo_provision", "attach", "detach", "verify"}) {
      const auto until = backoff_.BlockedUntil(key.ToString(), operation);
      if (until && (!next || *next < *until)) next = until;
    }
    return next;
  }
  void ResetBackoff(const OperationKey& key) override { backoff_.Reset(key.ToString()); }
  std::vector<RunningOperation> Running() const override {
    std::vector<RunningOperation> all;
    for (const auto& [key, since] : running_) {
      all.push_back({key, "volume_mount", "SetUp", since, since, 7});
    }
    return all;
  }

  // Called when an unmount starts.
  std::function<void(const PodVolumeKey&)> on_unmount;
  // Does what the real one does to the store.
  std::function<void(const PodUid&)> on_remove;

 private:
  struct Failure {
    Error error;
    int times;
  };

  StartResult Make(const std::string& operation, const std::string& step, MountRequest request,
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
      if (refresh_.contains(key)) mounted.refresh_unix_ms = refresh_.at(key);
      if (operation == "map") mounted.mapped = MappedDevice{"/dev/fake", "/root/nodes/fake"};
      outcome.value = mounted;
      done(outcome);
    });
    return StartResult::kStarted;
  }

  StartResult TakeAway(const std::string& operation, const std::string& step,
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

  StartResult Simple(const std::string& operation, const OperationKey& key,
                     const std::string& plugin, std::function<void(OperationOutcome<Unit>)> done,
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

  std::optional<StartResult> Admit(const std::string& operation, const OperationKey& key) {
    if (running_.contains(key)) return StartResult::kPending;
    if (backoff_.BlockedUntil(key.ToString(), operation)) return StartResult::kBackoff;
    running_.emplace(key, scheduler_.clock().WallUnixMillis());
    return std::nullopt;
  }

  void Finish(const OperationKey& key, std::function<void()> body) {
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

  std::optional<OperationFailure> TakeFailure(const std::string& operation, const OperationKey& key,
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

  Scheduler& scheduler_;
  FakeNode& node_;
  Backoff backoff_;
  std::map<OperationKey, int64_t> running_;  // since, unix milliseconds
  std::set<OperationKey> hanging_;
  std::map<OperationKey, std::function<void()>> held_;
  std::map<OperationKey, int64_t> refresh_;
  std::map<std::pair<std::string, OperationKey>, Failure> failures_;
};

}  // namespace volumed
