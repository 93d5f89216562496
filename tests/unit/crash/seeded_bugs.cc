#include "unit/crash/seeded_bugs.h"

#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "operation/volume_record.h"
#include "plugins/local.h"
#include "unit/crash/crash_monitor.h"
#include "unit/crash/crash_scenarios.h"

namespace volumed {
namespace {

// ---- the records
// ------------------------------------------------------------------------------------

// A store that keeps its promises; a mistake overrides what it breaks.
class PassingStore : public RecordStore {
 public:
  explicit PassingStore(RecordStore& real) : real_(real) {}
  Status Put(const Record& record, Durability durability) override {
    return real_.Put(record, durability);
  }
  Status Remove(const std::string& kind, const std::string& key, Durability durability) override {
    return real_.Remove(kind, key, durability);
  }
  Result<LoadedRecords> Load(const std::string& kind) override { return real_.Load(kind); }
  RecordStoreStats stats() const override { return real_.stats(); }

 protected:
  RecordStore& real_;
};

std::optional<VolumeState> StateIn(const Record& row) {
  if (row.kind != kPodVolumeRecordKind) return std::nullopt;
  const Result<PodVolumeRecord> record = DecodePodVolumeRecord(row);
  return record.ok() ? std::optional<VolumeState>(record->state) : std::nullopt;
}

bool SaysTerminating(const Record& row) {
  if (row.kind != kPodRecordKind) return false;
  const Result<PodRecord> record = DecodePodRecord(row);
  return record.ok() && record->terminating;
}

// Puts that `lost` names are answered with success, and never made.
class LosingStore final : public PassingStore {
 public:
  LosingStore(RecordStore& real, std::function<bool(const Record&)> lost)
      : PassingStore(real), lost_(std::move(lost)) {}
  Status Put(const Record& record, Durability durability) override {
    return lost_(record) ? OkStatus() : PassingStore::Put(record, durability);
  }

 private:
  const std::function<bool(const Record&)> lost_;
};

// A put is answered at once, and made when the next write comes.
class LateStore final : public PassingStore {
 public:
  using PassingStore::PassingStore;
  Status Put(const Record& record, Durability durability) override {
    RETURN_IF_ERROR(Flush());
    late_ = {record, durability};
    return OkStatus();
  }
  Status Remove(const std::string& kind, const std::string& key, Durability durability) override {
    RETURN_IF_ERROR(Flush());
    return PassingStore::Remove(kind, key, durability);
  }

 private:
  Status Flush() {
    if (!late_) return OkStatus();
    const auto [record, durability] = *std::exchange(late_, std::nullopt);
    return PassingStore::Put(record, durability);
  }
  std::optional<std::pair<Record, Durability>> late_;
};

// The outcome is recorded with the intent, before the effect.
class HastyStore final : public PassingStore {
 public:
  using PassingStore::PassingStore;
  Status Put(const Record& row, Durability durability) override {
    if (StateIn(row) != VolumeState::kSettingUp) return PassingStore::Put(row, durability);
    PodVolumeRecord record = DecodePodVolumeRecord(row).value();
    record.state = VolumeState::kSetUp;
    record.uncertain = false;
    return PassingStore::Put(EncodeRecord(record), durability);
  }
};

// The row goes with the intent to tear down, before the effect.
class EarlyRemovingStore final : public PassingStore {
 public:
  using PassingStore::PassingStore;
  Status Put(const Record& row, Durability durability) override {
    if (StateIn(row) != VolumeState::kTearingDown) return PassingStore::Put(row, durability);
    return PassingStore::Remove(row.kind, row.key, durability);
  }
};

class ForgetfulStore final : public PassingStore {
 public:
  ForgetfulStore(RecordStore& real, std::string kind)
      : PassingStore(real), kind_(std::move(kind)) {}
  Status Remove(const std::string& kind, const std::string& key, Durability durability) override {
    return kind == kind_ ? OkStatus() : PassingStore::Remove(kind, key, durability);
  }

 private:
  const std::string kind_;
};

// A new agent does not see the rows of a kind.
class BlindStore final : public PassingStore {
 public:
  BlindStore(RecordStore& real, std::string kind) : PassingStore(real), kind_(std::move(kind)) {}
  Result<LoadedRecords> Load(const std::string& kind) override {
    return kind == kind_ ? Result<LoadedRecords>(LoadedRecords()) : PassingStore::Load(kind);
  }

 private:
  const std::string kind_;
};

// The end of a deletion is recorded with the release, before the effect.
class HastyDeletionStore final : public PassingStore {
 public:
  using PassingStore::PassingStore;
  Status Put(const Record& row, Durability durability) override {
    if (row.kind != kClaimBindingRecordKind) return PassingStore::Put(row, durability);
    ClaimBindingRecord record = DecodeClaimBindingRecord(row).value();
    if (record.binding.state == BindingState::kReleased) record.deleted = true;
    return PassingStore::Put(EncodeRecord(record), durability);
  }
};

// ---- the effects
// ------------------------------------------------------------------------------------

class PassingKernel : public Kernel {
 public:
  PassingKernel(Kernel& real, CrashWorld& world) : real_(real), world_(world) {}
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    return real_.Do(request, options);
  }

 protected:
  Kernel& real_;
  CrashWorld& world_;
};

// Says that it has unmounted, and has not.
class LazyUnmountKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    if (std::holds_alternative<Unmount>(request)) return AnyAnswer(Changed{false});
    return real_.Do(request, options);
  }
};

// A tmpfs is mounted only after the next effect: what that one makes lies below it.
class SwappingKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    if (std::holds_alternative<Mount>(request) && !held_back_) {
      held_back_ = request;
      return AnyAnswer(Done{});
    }
    Result<AnyAnswer> answer = real_.Do(request, options);
    if (held_back_ && KindOfEffect(request) == EffectKind::kMakes) {
      (void)real_.Do(*std::exchange(held_back_, std::nullopt), options);
    }
    return answer;
  }

 private:
  std::optional<AnyRequest> held_back_;
};

// Writes the files of a payload that is there one by one, in place.
class InPlaceKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    if (const auto* write = std::get_if<WriteAtomicPayload>(&request)) {
      const std::string data = write->target.Display() + "/..data";
      if (world_.kernel->Exists(data) && !world_.kernel->crashed()) {
        for (const PayloadFile& file : write->files) {
          world_.kernel->AddFile(data + "/" + file.path, file.content.Reveal(), file.mode);
          world_.CheckState("while " + write->target.Display() + " is written");
          // An effect like any other: the agent can end here.
          (void)real_.Do(Stat{.path = write->target.Below("..data")}, options);
        }
      }
    }
    return real_.Do(request, options);
  }
};

// Removes a tree with whatever is mounted in it.
class CrossingKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    if (const auto* remove = std::get_if<RemoveTree>(&request); remove && Alive()) {
      const std::string path = remove->path.Display();
      for (const MountEntry& mount : world_.kernel->Mounts()) {
        if (mount.mount_point.rfind(path + "/", 0) == 0) Empty(mount.mount_point);
      }
      world_.kernel->UnmountBelow(path);
    }
    return real_.Do(request, options);
  }

 private:
  bool Alive() const { return !world_.kernel->crashed(); }
  void Empty(const std::string& mount_point) {
    for (const auto& [path, content] : world_.precious) {
      if (path.rfind(mount_point + "/", 0) == 0) world_.kernel->Remove(path);
    }
    world_.CheckState("after a removal");
  }
};

// Unmounts one mount too many: that of the same volume's name in another pod.
class GreedyUnmountKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    Result<AnyAnswer> answer = real_.Do(request, options);
    if (std::holds_alternative<Unmount>(request) && !world_.kernel->crashed()) {
      world_.kernel->UnmountBelow(world_.VolumePath("u-other", "mem"));
      world_.CheckState("after an unmount");
    }
    return answer;
  }
};

// Answers that a request is done without doing it.
template <typename Request>
class IdleKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    if (std::holds_alternative<Request>(request)) return AnyAnswer(typename Request::Answer{});
    return real_.Do(request, options);
  }
};

// Says of every filesystem that it has grown to its device, and lets none.
class PretendingGrowthKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    const auto* grow = std::get_if<GrowFilesystem>(&request);
    if (grow == nullptr || grow->only_measure) return real_.Do(request, options);
    GrowFilesystem measure = *grow;
    measure.only_measure = true;
    Result<AnyAnswer> answer = real_.Do(measure, options);
    if (answer.ok()) {
      auto& growth = std::get<FilesystemGrowth>(*answer);
      growth.after_bytes = growth.device_bytes;
      growth.fills_device = true;
    }
    return answer;
  }
};

// Mounts a tmpfs where one is: it does not look first.
class ForgetfulStatKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    Result<AnyAnswer> answer = real_.Do(request, options);
    if (const auto* stat = std::get_if<Stat>(&request); stat && answer.ok()) {
      if (stat->only_mount_point) std::get<FileInfo>(*answer).is_mount_point = false;
    }
    return answer;
  }
};

// Takes the device away with the first pod's bind of it.
class GreedyDeviceUnmountKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    const auto* unmount = std::get_if<Unmount>(&request);
    const auto volume =
        unmount == nullptr ? std::nullopt : world_.paths.ParsePodVolume(unmount->target.Display());
    if (volume && volume->plugin == kLocalVolumePluginName) {
      (void)real_.Do(Unmount{world_.paths.GetDeviceMountDir(volume->plugin, volume->spec)},
                     options);
    }
    return PassingKernel::Do(request, options);
  }
};

// Detaches the disk with the first pod's bind of it.
class GreedyDetachKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    const auto* unmount = std::get_if<Unmount>(&request);
    const auto volume =
        unmount == nullptr ? std::nullopt : world_.paths.ParsePodVolume(unmount->target.Display());
    if (volume && volume->plugin == kFakeArrayPlugin && !world_.kernel->crashed()) {
      world_.array.attached.erase(volume->spec.str());
    }
    return PassingKernel::Do(request, options);
  }
};

// Sees no filesystem on any disk.
class BlindProbeKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    Result<AnyAnswer> answer = PassingKernel::Do(request, options);
    if (!answer.ok() || !std::holds_alternative<ProbeDevice>(request)) return answer;
    DeviceProbe probe = std::get<DeviceProbe>(*answer);
    probe.fs_type.clear();
    probe.blank = true;
    probe.why_not_blank.clear();
    return AnyAnswer(probe);
  }
};

// Deletes the storage of a volume that is still bound: with the first look at it.
class EarlyDeletionKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    Result<AnyAnswer> answer = PassingKernel::Do(request, options);
    const auto* made = std::get_if<MakeDirectory>(&request);
    const bool of_claim =
        made != nullptr && made->path.root == CrashWorld::kProvisionRoot && answer.ok();
    if (of_claim) (void)real_.Do(RemoveTree{made->path}, options);
    return answer;
  }
};

// Takes the nodes of all pods away with that of one.
class GreedyUnmapKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    Result<AnyAnswer> answer = real_.Do(request, options);
    const auto* unmount = std::get_if<Unmount>(&request);
    const auto volume =
        unmount == nullptr ? std::nullopt : world_.paths.ParsePodVolume(unmount->target.Display());
    if (volume && volume->is_block && !world_.kernel->crashed()) {
      world_.kernel->UnmountBelow(
          world_.paths.GetBlockMapDir(volume->plugin, volume->spec).Display());
      world_.CheckState("after an unmap");
    }
    return answer;
  }
};

// Binds the node that is at hand, not the device that was identified.
class AnyDeviceKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    const auto* bind = std::get_if<BindMount>(&request);
    if (bind == nullptr || !bind->expected_device) return real_.Do(request, options);
    BindMount other = *bind;
    other.source = {kOtherBlockDevice, ""};
    other.expected_device.reset();
    return real_.Do(other, options);
  }
};

// Holds nothing.
class LoosingKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    const auto* identify = std::get_if<IdentifyDevice>(&request);
    if (identify == nullptr) return real_.Do(request, options);
    return real_.Do(IdentifyDevice{identify->path, false}, options);
  }
};

// ---- the operations
// ---------------------------------------------------------------------------------

// Each set-up is started twice, and the second does not know of the first: no key keeps them apart.
class KeylessOperations final : public VolumeOperations {
 public:
  KeylessOperations(VolumeOperations& real, VolumeOperations& other) : real_(real), other_(other) {}
  StartResult MountVolume(MountRequest request,
                          std::function<void(OperationOutcome<MountedVolume>)> done) override {
    (void)other_.MountVolume(request, [](const OperationOutcome<MountedVolume>&) {});
    return real_.MountVolume(std::move(request), std::move(done));
  }
  StartResult UnmountVolume(UnmountRequest request,
                            std::function<void(OperationOutcome<Unit>)> done) override {
    return real_.UnmountVolume(std::move(request), std::move(done));
  }
  StartResult MapVolume(MountRequest request,
                        std::function<void(OperationOutcome<MountedVolume>)> done) override {
    return real_.MapVolume(std::move(request), std::move(done));
  }
  StartResult UnmapVolume(UnmountRequest request,
                          std::function<void(OperationOutcome<Unit>)> done) override {
    return real_.UnmapVolume(std::move(request), std::move(done));
  }
  StartResult RemovePod(PodUid pod, std::string name, PodRecordEnd record,
                        std::function<void(OperationOutcome<Unit>)> done) override {
    return real_.RemovePod(std::move(pod), std::move(name), record, std::move(done));
  }
  StartResult MountDevice(MountDeviceRequest request,
                          std::function<void(OperationOutcome<MountedDevice>)> done) override {
    return real_.MountDevice(std::move(request), std::move(done));
  }
  StartResult UnmountDevice(UnmountDeviceRequest request,
                            std::function<void(OperationOutcome<Unit>)> done) override {
    return real_.UnmountDevice(std::move(request), std::move(done));
  }
  StartResult ExpandVolume(ExpandRequest request,
                           std::function<void(OperationOutcome<ExpandedVolume>)> done) override {
    return real_.ExpandVolume(std::move(request), std::move(done));
  }
  StartResult AttachVolume(AttachRequest request,
                           std::function<void(OperationOutcome<AttachedVolume>)> done) override {
    return real_.AttachVolume(std::move(request), std::move(done));
  }
  StartResult DetachVolume(DetachRequest request,
                           std::function<void(OperationOutcome<Unit>)> done) override {
    return real_.DetachVolume(std::move(request), std::move(done));
  }
  StartResult VerifyVolumesAreAttached(
      VerifyAttachedRequest request,
      std::function<void(OperationOutcome<VerifiedAttachments>)> done) override {
    return real_.VerifyVolumesAreAttached(std::move(request), std::move(done));
  }
  StartResult ForgetDevice(UniqueVolumeName device,
                           std::function<void(OperationOutcome<Unit>)> done) override {
    return real_.ForgetDevice(std::move(device), std::move(done));
  }
  StartResult ReclaimVolume(ReclaimRequest request,
                            std::function<void(OperationOutcome<Unit>)> done) override {
    return real_.ReclaimVolume(std::move(request), std::move(done));
  }
  StartResult ProvisionVolume(
      ProvisionRequest request,
      std::function<void(OperationOutcome<PersistentVolume>)> done) override {
    return real_.ProvisionVolume(std::move(request), std::move(done));
  }
  StartResult UndoProvision(ProvisionRequest request,
                            std::function<void(OperationOutcome<Unit>)> done) override {
    return real_.UndoProvision(std::move(request), std::move(done));
  }
  bool IsPending(const OperationKey& key) const override { return real_.IsPending(key); }
  std::optional<TimePoint> NextTry(const OperationKey& key) const override {
    return real_.NextTry(key);
  }
  void ResetBackoff(const OperationKey& key) override { real_.ResetBackoff(key); }
  std::vector<RunningOperation> Running() const override { return real_.Running(); }

 private:
  VolumeOperations& real_;
  VolumeOperations& other_;
};

// ---- the list
// ---------------------------------------------------------------------------------------

template <typename Store, typename... Args>
SeededBug InStore(const std::string& name, Args... args) {
  SeededBug bug;
  bug.name = name;
  bug.store = [args...](RecordStore& real, CrashWorld&) -> std::unique_ptr<RecordStore> {
    return std::make_unique<Store>(real, args...);
  };
  return bug;
}

template <typename BuggyKernel>
SeededBug InKernel(const std::string& name) {
  SeededBug bug;
  bug.name = name;
  bug.kernel = [](Kernel& real, CrashWorld& world) -> std::unique_ptr<Kernel> {
    return std::make_unique<BuggyKernel>(real, world);
  };
  return bug;
}

SeededBug Losing(const std::string& name, std::function<bool(const Record&)> lost) {
  return InStore<LosingStore>(name, std::move(lost));
}

std::vector<SeededBugCase> BugsOfRecords() {
  return {
      {Losing("intent of a set-up not written",
              [](const Record& row) { return StateIn(row) == VolumeState::kSettingUp; }),
       SetUpScenario()},
      {Losing("intent of a teardown not written",
              [](const Record& row) { return StateIn(row) == VolumeState::kTearingDown; }),
       RemovedObjectScenario()},
      {Losing("outcome of a set-up not written",
              [](const Record& row) { return StateIn(row) == VolumeState::kSetUp; }),
       SetUpScenario()},
      {Losing("record of the pod not written",
              [](const Record& row) { return row.kind == kPodRecordKind; }),
       SetUpScenario()},
      {Losing("command to delete not written", SaysTerminating), DeletedByUidScenario()},
      {Losing("hold not written", [](const Record& row) { return row.kind == kHoldRecordKind; }),
       HeldPodScenario()},
      {InStore<LateStore>("writes answered before they are made"), SetUpScenario()},
      {InStore<HastyStore>("outcome written before the effect"), SetUpScenario()},
      {InStore<EarlyRemovingStore>("row removed before the teardown"), RemovedObjectScenario()},
      {InStore<ForgetfulStore>("row of a volume not removed", std::string(kPodVolumeRecordKind)),
       RemovedObjectScenario()},
      {InStore<BlindStore>("holds forgotten at restart", std::string(kHoldRecordKind)),
       HeldPodScenario()},
      {InStore<BlindStore>("pods forgotten at restart", std::string(kPodRecordKind)),
       RemovedObjectScenario()},
  };
}

std::vector<SeededBugCase> BugsOfEffects() {
  return {
      {InKernel<LazyUnmountKernel>("unmount skipped"), RemovedObjectScenario()},
      {InKernel<SwappingKernel>("mount after the first write"), SetUpScenario()},
      {InKernel<InPlaceKernel>("payload written in place"), ChangeScenario()},
      {InKernel<CrossingKernel>("removal crosses mounts"), ForeignMountScenario()},
      {InKernel<GreedyUnmountKernel>("one mount too many unmounted"), RemovedObjectScenario()},
      {InKernel<IdleKernel<ChangeOwnership>>("ownership not changed"), SetUpScenario()},
      {InKernel<IdleKernel<BindMount>>("sub-path not bound"), SetUpScenario()},
      {InKernel<ForgetfulStatKernel>("tmpfs mounted where one is"), SetUpScenario()},
  };
}

std::vector<SeededBugCase> BugsOfTheAgent() {
  SeededBug empty_list;
  empty_list.name = "an empty list at the start is taken for complete";
  empty_list.list = [](ObjectList& list, bool first) {
    if (first) list.objects.clear();
  };
  SeededBug impatient;
  impatient.name = "readiness ignored: one source is enough";
  impatient.waits_for_no_source = true;
  SeededBug same_boot;
  same_boot.name = "boot id not compared";
  same_boot.ignores_boot_id = true;
  SeededBug keyless;
  keyless.name = "keys dropped: operations of a volume overlap";
  keyless.operations = [](VolumeOperations& real,
                          VolumeOperations& other) -> std::unique_ptr<VolumeOperations> {
    return std::make_unique<KeylessOperations>(real, other);
  };
  return {{empty_list, ChangeScenario()},
          {impatient, ChangeScenario()},
          {same_boot, HeldPodScenario(), WalkKind::kReboot},
          {keyless, ShortLifeScenario(), WalkKind::kCrash, 101}};
}

std::optional<FormatRecord> FormatIn(const Record& row) {
  if (row.kind != kDeviceRecordKind) return std::nullopt;
  const Result<DeviceRecord> record = DecodeDeviceRecord(row);
  return record.ok() ? record->format : std::nullopt;
}

bool SaysWhichDevice(const Record& row) {
  if (row.kind != kDeviceRecordKind) return false;
  const Result<DeviceRecord> record = DecodeDeviceRecord(row);
  return record.ok() && record->mapped.has_value();
}

std::vector<SeededBugCase> BugsOfBlockVolumes() {
  return {
      {Losing("intent of a mapping not written",
              [](const Record& row) { return StateIn(row) == VolumeState::kMapping; }),
       BlockScenario()},
      {Losing("intent of an unmapping not written",
              [](const Record& row) { return StateIn(row) == VolumeState::kUnmapping; }),
       BlockScenario()},
      {Losing("which device is mapped not written", SaysWhichDevice), BlockScenario()},
      {InKernel<GreedyUnmapKernel>("unmapped while another pod has it"), BlockScenario()},
      {InKernel<AnyDeviceKernel>("another device bound"), BlockScenario()},
      {InKernel<LoosingKernel>("device not held"), BlockScenario()},
      {InKernel<IdleKernel<DetachLoops>>("loop device of a kubelet not detached"), BlockScenario()},
      {InKernel<IdleKernel<MakeSymlink>>("pod given no link to its device"), BlockScenario()},
  };
}

std::optional<VolumeState> DeviceStateIn(const Record& row) {
  if (row.kind != kDeviceRecordKind) return std::nullopt;
  const Result<DeviceRecord> record = DecodeDeviceRecord(row);
  return record.ok() ? std::optional(record->state) : std::nullopt;
}

std::vector<SeededBugCase> BugsOfAttachments() {
  return {
      {Losing("intent of an attach not written",
              [](const Record& row) { return DeviceStateIn(row) == VolumeState::kAttaching; }),
       AttachScenario()},
      {Losing("intent of a detach not written",
              [](const Record& row) { return DeviceStateIn(row) == VolumeState::kDetaching; }),
       AttachScenario()},
      {InStore<BlindStore>("attachments forgotten at restart", std::string(kDeviceRecordKind)),
       AttachScenario()},
      {InKernel<GreedyDetachKernel>("disk detached while a pod has it"), AttachScenario()},
      {InKernel<IdleKernel<FlushDevice>>("disk not flushed before its detach"), AttachScenario()},
  };
}

std::vector<SeededBugCase> BugsOfStorage() {
  return {
      {Losing("intent of a format not written",
              [](const Record& row) {
                const auto format = FormatIn(row);
                return format && !format->finished;
              }),
       DeviceScenario()},
      {Losing("end of a format not written",
              [](const Record& row) {
                const auto format = FormatIn(row);
                return format && format->finished;
              }),
       DeviceScenario()},
      {Losing("binding of a claim not written",
              [](const Record& row) { return row.kind == kClaimBindingRecordKind; }),
       BindingScenario()},
      {Losing("release of a claim not written",
              [](const Record& row) {
                if (row.kind != kClaimBindingRecordKind) return false;
                const auto record = DecodeClaimBindingRecord(row);
                return record.ok() && record->binding.state == BindingState::kReleased;
              }),
       ReleasedClaimScenario()},
      {InStore<BlindStore>("formats and devices forgotten at restart",
                           std::string(kDeviceRecordKind)),
       CutFormatScenario()},
      {InStore<BlindStore>("bindings forgotten at restart", std::string(kClaimBindingRecordKind)),
       ReleasedClaimScenario()},
      {InStore<ForgetfulStore>("row of a volume that is gone not removed",
                               std::string(kDeviceRecordKind)),
       ReleasedClaimScenario()},
      {InKernel<GreedyDeviceUnmountKernel>("device unmounted while a pod has it"),
       DeviceScenario()},
      {InKernel<BlindProbeKernel>("a disk with a filesystem taken for blank"),
       CheckedDiskScenario()},
      {InKernel<IdleKernel<CheckFilesystem>>("filesystem not checked"), CheckedDiskScenario()},
      {InKernel<IdleKernel<RemoveTree>>("volume not scrubbed"), RecycleScenario()},
      {Losing("intent of an expansion not written",
              [](const Record& row) {
                if (row.kind != kDeviceRecordKind) return false;
                const auto record = DecodeDeviceRecord(row);
                return record.ok() && record->state == VolumeState::kExpanding;
              }),
       ExpandScenario()},
      {Losing("claim not told that its volume grows",
              [](const Record& row) {
                if (row.kind != kClaimBindingRecordKind) return false;
                const auto record = DecodeClaimBindingRecord(row);
                return record.ok() && record->resize &&
                       record->resize->status == kNodeResizeInProgress;
              }),
       ExpandScenario()},
      {InKernel<PretendingGrowthKernel>("a growth that did not happen taken for done"),
       ExpandScenario()},
  };
}

std::optional<ProvisionState> ProvisionIn(const Record& row) {
  if (row.kind != kProvisionRecordKind) return std::nullopt;
  const Result<ProvisionRecord> record = DecodeProvisionRecord(row);
  return record.ok() ? std::optional(record->state) : std::nullopt;
}

std::vector<SeededBugCase> BugsOfProvisioning() {
  return {
      {Losing("intent to make a volume not written",
              [](const Record& row) { return ProvisionIn(row) == ProvisionState::kProvisioning; }),
       ProvisionScenario()},
      {Losing("that a volume was made not written",
              [](const Record& row) { return ProvisionIn(row) == ProvisionState::kProvisioned; }),
       ProvisionScenario()},
      {InStore<HastyDeletionStore>("deletion of a volume recorded before it is done"),
       ProvisionScenario()},
      {InStore<ForgetfulStore>("row of a deleted volume not removed",
                               std::string(kProvisionRecordKind)),
       ProvisionScenario()},
      {InStore<BlindStore>("volumes that were made forgotten at restart",
                           std::string(kProvisionRecordKind)),
       ProvisionScenario()},
      {InKernel<EarlyDeletionKernel>("a volume deleted that is not released"), ProvisionScenario()},
      {InKernel<IdleKernel<RemoveDirectory>>("a volume that is not wanted any more not undone"),
       ShortClaimScenario()},
      {InStore<ForgetfulStore>("uid of a claim that is gone not forgotten",
                               std::string(kObjectUidRecordKind)),
       RemadeClaimScenario()},
      {InStore<BlindStore>("uids forgotten at restart", std::string(kObjectUidRecordKind)),
       RemadeClaimScenario()},
  };
}

}  // namespace

std::vector<SeededBugCase> SeededBugs() {
  std::vector<SeededBugCase> all = BugsOfRecords();
  for (SeededBugCase& bug : BugsOfStorage()) all.push_back(std::move(bug));
  for (SeededBugCase& bug : BugsOfProvisioning()) all.push_back(std::move(bug));
  for (SeededBugCase& bug : BugsOfBlockVolumes()) all.push_back(std::move(bug));
  for (SeededBugCase& bug : BugsOfAttachments()) all.push_back(std::move(bug));
  for (SeededBugCase& bug : BugsOfEffects()) all.push_back(std::move(bug));
  for (SeededBugCase& bug : BugsOfTheAgent()) all.push_back(std::move(bug));
  return all;
}

}  // namespace volumed
