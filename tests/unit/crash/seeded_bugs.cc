// The list of mistakes; what makes them is in seeded_stores.h, seeded_kernels.h and
// seeded_operations.h.
#include "unit/crash/seeded_bugs.h"

#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "kube/object_directory.h"
#include "operation/object_record.h"
#include "operation/storage_record.h"
#include "operation/volume_record.h"
#include "plugins/local.h"
#include "unit/crash/crash_monitor.h"
#include "unit/crash/crash_scenarios.h"
#include "unit/crash/seeded_kernels.h"
#include "unit/crash/seeded_operations.h"
#include "unit/crash/seeded_storage_kernels.h"
#include "unit/crash/seeded_stores.h"

namespace volumed {
namespace {

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

// In what the directory of applied objects delivers first, as after a restart.
SeededBug InAppliedObjects(const std::string& name, std::function<void(ObjectList&)> change) {
  SeededBug bug;
  bug.name = name;
  bug.list = [change = std::move(change)](ObjectList& list, bool first) {
    if (first && list.source == ObjectDirectory::kSourceName) change(list);
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
  impatient.forgets_unconfigured_sources = true;  // else what they had is remembered, and stays
  SeededBug same_boot;
  same_boot.name = "boot id not compared";
  same_boot.ignores_boot_id = true;
  const SeededBug keyless =
      InOperations<KeylessOperations>("keys dropped: operations of a volume overlap");
  return {{empty_list, ChangeScenario()},
          {impatient, ChangeScenario()},
          {same_boot, HeldPodScenario(), WalkKind::kReboot},
          {keyless, ShortLifeScenario(), WalkKind::kCrash, 13}};
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
      {InKernel<GreedyDeleteKernel>("disk of a LUN deleted while a pod has it"), FcScenario()},
      {InKernel<IdleKernel<FlushDevice>>("LUN not flushed before its disks go"), FcScenario()},
      {InKernel<IdleToolKernel>("multipath map taken for flushed"), FcScenario()},
  };
}

std::vector<SeededBugCase> BugsOfFlexVolumes() {
  return {
      {Losing("intent of a driver's attach not written",
              [](const Record& row) { return DeviceStateIn(row) == VolumeState::kAttaching; }),
       FlexVolumeScenario()},
      {Losing("intent of a driver's detach not written",
              [](const Record& row) { return DeviceStateIn(row) == VolumeState::kDetaching; }),
       FlexVolumeScenario()},
      {InKernel<GreedyDriverKernel>("driver detaches while a pod has the disk"),
       FlexVolumeScenario()},
      {InKernel<PretendingDriverKernel<kDetachCall>>("driver not asked to detach"),
       FlexVolumeScenario()},
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
      {InKernel<ProbeChangingKernel<&SeeMarkEverywhere>>("format repeated over a whole filesystem"),
       DeviceScenario()},
      {InKernel<ProbeChangingKernel<&IgnoreMark>>("mark of an unfinished format ignored"),
       CutFormatScenario()},
      {InKernel<ProbeChangingKernel<&TakeDataForBlank>>("format repeated over data without a mark"),
       LostFormatScenario()},
      {InKernel<CredulousKernel>("format taken for finished without a proof"),
       HalfFormatScenario()},
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

std::vector<SeededBugCase> BugsOfNfs() {
  return {
      {InKernel<OtherExportKernel>("another export recycled"), NfsRecycleScenario()},
      {InKernel<NfsBlindKernel>("an export mounted where it is mounted"), NfsScenario()},
      {InKernel<GreedyExportKernel>("an export taken from a pod that has it"), NfsScenario()},
      {InKernel<IdleKernel<RemoveTree>>("an export not scrubbed"), NfsRecycleScenario()},
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
                               std::string(kKnownObjectRecordKind)),
       RemadeClaimScenario()},
      {InStore<BlindStore>("uids forgotten at restart", std::string(kKnownObjectRecordKind)),
       RemadeClaimScenario()},
  };
}

std::vector<SeededBugCase> BugsOfSharedStorage() {
  SeededBug no_own;
  no_own.name = "the agent's own directories not compared";
  no_own.knows_no_own_directories = true;
  return {
      {InKernel<IncuriousKernel>("other volumes' directories on record not looked for"),
       RenamedDirectoryScenario()},
      {InOperations<UntoldOperations>("volumes that nobody can read not asked for"),
       UnreadableVolumeScenario()},
      {InKernel<UnguardedPoolKernel>("pool volume deleted without guard"), StagedPoolScenario()},
      {InKernel<TwinlessStorageKernel>("two devices of one storage not compared"),
       TwinDevicesScenario()},
      {no_own, OwnDirectoriesScenario()},
      {InKernel<FlatStorageKernel>("nested directory not seen"), NestedVolumesScenario()},
      {Losing("identity of a directory not recorded",
              [](const Record& row) { return row.kind == kStorageOwnerRecordKind; }),
       ExchangedDirectoryScenario()},
      {InStore<BlindStore>("identity of a directory forgotten at restart",
                           std::string(kStorageOwnerRecordKind)),
       ExchangedDirectoryScenario()},
      {InStore<UnretainingStore>("retained data forgotten at restart"), RetainedVolumeScenario()},
      {InKernel<AnonymousDeviceKernel>("another device given to a block volume"),
       ExchangedDeviceScenario()},
      {InKernel<UndistinguishedStorageKernel>("another directory given to a claim's pod"),
       UnmountedDiskScenario()},
      {InKernel<IdleKernel<MarkStorage>>("owner's mark not written"), MarkedDirectoryScenario()},
      {InKernel<UnmarkedStorageKernel>("owner's mark not compared"), MarkedDirectoryScenario()},
  };
}

std::vector<SeededBugCase> BugsOfIdentity() {
  SeededBug unknown_is_absent;
  unknown_is_absent.name = "what nobody knows taken for absent";
  unknown_is_absent.list = [](ObjectList& list, bool) { list.unknown.clear(); };
  SeededBug replaces_nobody;
  replaces_nobody.name = "whom a pod replaces forgotten at restart";
  replaces_nobody.list = [](ObjectList& list, bool first) {
    for (ObjectWithOrigin& object : list.objects) {
      if (first) object.replaces.clear();
    }
  };
  SeededBug unconfigured;
  unconfigured.name = "a source that is not configured any more forgotten at restart";
  unconfigured.forgets_unconfigured_sources = true;
  SeededBug impatient;
  impatient.name = "a pod replaced before its consumers are gone";
  impatient.ignores_consumers = true;
  return {
      {impatient, EditedPodScenario()},
      {Losing("identity of an object not written",
              [](const Record& row) { return row.kind == kKnownObjectRecordKind; }),
       MovedClaimScenario()},
      {InStore<HolderlessStore>("holder of a name forgotten at restart"), DoubledObjectScenario()},
      {InStore<NamelessPodStore>("identity of a pod forgotten at restart"), MovedPodScenario()},
      {InStore<VolumelessStore>("volumes of a pod forgotten at restart"), EditedPodScenario()},
      {replaces_nobody, ReplacedPodScenario()},
      {unconfigured, UnconfiguredSourceScenario()},
      {unknown_is_absent, UnknownObjectScenario()},
  };
}

std::vector<SeededBugCase> BugsOfCommands() {
  SeededBug hasty;
  hasty.name = "a claim that has left its source taken for deleted";
  hasty.takes_absence_for_a_command = true;
  const auto ended = [](const Record& row) {
    if (row.kind != kDeletedObjectRecordKind) return false;
    const Result<DeletedObjectRecord> record = DecodeDeletedObjectRecord(row);
    return record.ok() && record->ended;
  };
  SeededBug unheeded;
  unheeded.name = "a removal that is the command not heeded";
  unheeded.ignores_removals = true;
  const auto forget_numbers = [](ObjectList& list) {
    for (ObjectWithOrigin& object : list.objects) object.number = 0;
  };
  const auto take_for_absent = [](ObjectList& list) {
    list.unknown.clear();
    list.incomplete_because.clear();
  };
  return {
      {unheeded, RemovalDeletesScenario()},
      {InAppliedObjects("number of a command forgotten at restart", forget_numbers),
       NumberedCommandsScenario()},
      {InStore<NumberlessStore>("number of a command not in its row"), NumberedCommandsScenario()},
      {InAppliedObjects("a damaged applied object taken for absent", take_for_absent),
       DamagedObjectScenario()},
      {hasty, MissingClaimScenario()},
      {Losing("deletion by command not written",
              [](const Record& row) { return row.kind == kDeletedObjectRecordKind; }),
       CommandedClaimScenario()},
      {Losing("end of a deleted claim not written", ended), CommandedClaimScenario()},
      {InStore<BlindStore>("deletions forgotten at restart", std::string(kDeletedObjectRecordKind)),
       CommandedClaimScenario()},
      {InStore<ForgetfulStore>("row of a deleted claim not removed when its file has lost it",
                               std::string(kDeletedObjectRecordKind)),
       CommandedClaimScenario()},
  };
}

std::vector<SeededBugCase> BugsOfIscsi() {
  return {
      {InKernel<NoIscsiFileKernel>("iSCSI portals of a volume not written down"), IscsiScenario()},
      {InKernel<LonelyIscsiKernel>("iSCSI session ended under another disk"), IscsiScenario()},
      {InKernel<IdleKernel<FlushDevice>>("iSCSI disk deleted unflushed"), IscsiScenario()},
      {InKernel<KeepingScsiKernel>("iSCSI disk not deleted"), IscsiScenario()},
  };
}

std::vector<SeededBugCase> BugsOfWorkers() {
  SeededBug keyless;
  keyless.name = "keys not held by a worker that outlives its agent";
  keyless.workers_hold_no_keys = true;
  SeededBug harmless;
  harmless.name = "a worker that died taken to have done nothing";
  harmless.dead_workers_did_nothing = true;
  return {{keyless, SetUpScenario(), WalkKind::kWorkerOutlives},
          {harmless, ShortLifeScenario(), WalkKind::kWorkerDies}};
}

}  // namespace

std::vector<SeededBugCase> SeededBugs() {
  std::vector<SeededBugCase> all = BugsOfRecords();
  for (SeededBugCase& bug : BugsOfStorage()) all.push_back(std::move(bug));
  for (SeededBugCase& bug : BugsOfProvisioning()) all.push_back(std::move(bug));
  for (SeededBugCase& bug : BugsOfSharedStorage()) all.push_back(std::move(bug));
  for (SeededBugCase& bug : BugsOfCommands()) all.push_back(std::move(bug));
  for (SeededBugCase& bug : BugsOfNfs()) all.push_back(std::move(bug));
  for (SeededBugCase& bug : BugsOfBlockVolumes()) all.push_back(std::move(bug));
  for (SeededBugCase& bug : BugsOfAttachments()) all.push_back(std::move(bug));
  for (SeededBugCase& bug : BugsOfFlexVolumes()) all.push_back(std::move(bug));
  for (SeededBugCase& bug : BugsOfIdentity()) all.push_back(std::move(bug));
  for (SeededBugCase& bug : BugsOfIscsi()) all.push_back(std::move(bug));
  for (SeededBugCase& bug : BugsOfEffects()) all.push_back(std::move(bug));
  for (SeededBugCase& bug : SeededCsiBugs()) all.push_back(std::move(bug));
  for (SeededBugCase& bug : BugsOfWorkers()) all.push_back(std::move(bug));
  for (SeededBugCase& bug : BugsOfTheAgent()) all.push_back(std::move(bug));
  return all;
}

}  // namespace volumed
