#include "unit/crash/crash_monitor.h"

#include <optional>
#include <string_view>
#include <variant>

#include "base/strings.h"
#include "operation/volume_record.h"
#include "unit/crash/crash_devices.h"
#include "unit/crash/crash_provisioning.h"

namespace volumed {
namespace {

constexpr std::string_view kWrapped = "wrapped_";

template <typename... Requests>
bool IsOneOf(const AnyRequest& request) {
  return (std::holds_alternative<Requests>(request) || ...);
}

// What the volume's record says to whoever reads it in this boot.
std::optional<VolumeState> RecordedState(const CrashWorld& world, const std::string& pod,
                                         const std::string& spec) {
  const std::optional<Record> row =
      world.store->Find(kPodVolumeRecordKind, RecordKey(PodVolumeKey{PodUid(pod), SpecName(spec)}));
  if (!row) return std::nullopt;
  const Result<PodVolumeRecord> record = DecodePodVolumeRecord(*row);
  if (!record.ok()) return std::nullopt;
  return AfterRestart(*record, BootId(world.boot_id())).state;
}

bool IsTerminatingOnRecord(const CrashWorld& world, const std::string& pod) {
  const std::optional<Record> row = world.store->Find(kPodRecordKind, pod);
  if (!row) return false;
  const Result<PodRecord> record = DecodePodRecord(*row);
  return record.ok() && record->terminating;
}

// What a row says from now on.
void NoteRow(CrashWorld& world, const Record& row) {
  if (row.kind == kPodRecordKind) {
    const Result<PodRecord> record = DecodePodRecord(row);
    const auto pod = record.ok() ? world.pods.find(record->uid.str()) : world.pods.end();
    if (pod != world.pods.end() && record->terminating) pod->second.command_durable = true;
    return;
  }
  if (row.kind != kPodVolumeRecordKind) return;
  const Result<PodVolumeRecord> record = DecodePodVolumeRecord(row);
  const bool is_there =
      record.ok() && record->boot_id == BootId(world.boot_id()) &&
      (record->state == VolumeState::kSetUp || record->state == VolumeState::kMapped);
  if (!is_there || record->uncertain) return;
  const std::string pod = record->key.pod.str();
  const std::string spec = record->key.spec.str();
  const auto truth = world.pods.find(pod);
  if (truth == world.pods.end() || !truth->second.volumes.contains(spec)) return;
  world.PodBegins(pod, spec);
  world.CheckState("when its record said that it is there", world.VolumePath(pod, spec));
}

}  // namespace

EffectKind KindOfEffect(const AnyRequest& request) {
  if (IsOneOf<Mount, BindMount, Remount, MakeDirectory, MakeFile, ChangeOwnership,
              WriteAtomicPayload, FormatDevice, CheckFilesystem, MakeSymlink, GrowFilesystem>(
          request)) {
    return EffectKind::kMakes;
  }
  if (IsOneOf<Unmount, RemoveTree, RemoveFile, WriteAttribute>(request)) {
    return EffectKind::kTakesAway;
  }
  if (IsOneOf<RemoveDirectory>(request)) return EffectKind::kRemovesEmpty;
  return EffectKind::kNone;
}

bool HadEffect(const AnyRequest& request, const Result<AnyAnswer>& answer) {
  // What lay outside of a mount is gone; an attribute goes with its device.
  if (!answer.ok()) return IsOneOf<RemoveTree, WriteAttribute>(request);
  if (const auto* changed = std::get_if<Changed>(&*answer)) return changed->changed;
  if (const auto* owned = std::get_if<OwnershipInfo>(&*answer)) return owned->changed > 0;
  return true;
}

// ---- the kernel ---------------------------------------------------------------------------------

Result<AnyAnswer> CheckedKernel::Do(const AnyRequest& request, const CallOptions& options) {
  switch_point_();
  Result<AnyAnswer> answer = DoChecked(request, options);
  switch_point_();
  return answer;
}

Result<AnyAnswer> CheckedKernel::DoChecked(const AnyRequest& request, const CallOptions& options) {
  if (!world_.kernel->crashed() && ++calls_ > CrashWorld::kMaxCallsOfAnAgent) {
    world_.Loss("the agent makes effects without end: " + std::string(RequestName(request)));
    throw RunawayAgent{};
  }
  if (world_.has_older_records() && world_.store->recovery().active &&
      std::holds_alternative<FormatDevice>(request)) {
    world_.Loss("mkfs of " + RequestPath(request) + " during a recovery");
  }
  const EffectKind kind = KindOfEffect(request);
  const bool of_devices = IsOneOf<RunProgram, SetFileSize, AttachLoop, DetachLoops>(request);
  if (kind == EffectKind::kNone && !of_devices) return world_.kernel->Do(request, options);
  const std::string broken = of_devices ? BrokenDeviceRule(world_, request) : BrokenRule(request);
  const Result<AnyAnswer> answer = world_.kernel->Do(request, options);
  if (world_.kernel->crashed() || !HadEffect(request, answer)) return answer;
  const std::string effect = std::string(RequestName(request)) + " " + RequestPath(request);
  if (!broken.empty()) world_.Violation(effect + ": " + broken);
  world_.CheckState("after " + effect, RequestPath(request));
  return answer;
}

std::string CheckedKernel::BrokenRule(const AnyRequest& request) const {
  if (const std::string broken = BrokenDeviceRule(world_, request); !broken.empty()) return broken;
  if (const std::string broken = BrokenProvisionRule(world_, request); !broken.empty()) {
    return broken;
  }
  const std::string path = RequestPath(request);
  if (IsProvisioned(path)) return "";
  const std::string pods = world_.paths.GetPodsDir().Display() + "/";
  if (path.rfind(pods, 0) != 0) return BrokenHostPathRule(path);
  const std::vector<std::string> names = Split(path.substr(pods.size()), '/');
  const std::string& pod = names[0];
  if (!world_.store->Find(kPodRecordKind, pod)) {
    // Of an adopted root, what nobody wants goes without a record.
    return world_.adopt_root ? "" : "there is no record of the pod";
  }
  const EffectKind kind = KindOfEffect(request);
  const auto truth = world_.pods.find(pod);
  if (truth != world_.pods.end()) {
    if (kind == EffectKind::kMakes && truth->second.command_durable) {
      return "the pod was deleted by command, and that is on record";
    }
    const std::string& before = truth->second.successor_of;
    if (kind == EffectKind::kMakes && !before.empty() &&
        world_.kernel->Exists(world_.paths.GetPodDir(PodUid(before)).Display())) {
      return "the pod that it replaces is on the node still";
    }
    if (kind == EffectKind::kTakesAway && truth->second.commanded &&
        !IsTerminatingOnRecord(world_, pod)) {
      return "the command to delete the pod is not on record";
    }
  }
  if (kind == EffectKind::kRemovesEmpty) return "";  // can take nothing away that anybody uses
  if (names.size() >= 4 && names[1] == "volume-subpaths") {
    return BrokenVolumeRule(request, kind, pod, names[2], true);
  }
  if (names.size() < 4) return "";
  // The readiness marker of a payload's emptyDir is that of the payload.
  const bool is_wrapped = names[1] == "plugins" && names[3].rfind(kWrapped, 0) == 0;
  const std::string spec = is_wrapped ? names[3].substr(kWrapped.size()) : names[3];
  return BrokenVolumeRule(request, kind, pod, spec, false);
}

std::string CheckedKernel::BrokenVolumeRule(const AnyRequest& request, EffectKind kind,
                                            const std::string& pod, const std::string& spec,
                                            bool in_sub_paths) const {
  const std::optional<VolumeState> state = RecordedState(world_, pod, spec);
  const auto truth = world_.pods.find(pod);
  const bool is_known = truth != world_.pods.end() && truth->second.volumes.contains(spec);
  if (kind == EffectKind::kMakes) {
    if (!state) return "there is no record of the volume";
    const bool intended = *state == VolumeState::kSettingUp || *state == VolumeState::kSetUp ||
                          *state == VolumeState::kMapping;
    return intended ? "" : "its record says " + std::string(VolumeStateName(*state));
  }
  if (!state) {
    // The target of a sub-path, an empty file of ours, goes with the pod.
    return in_sub_paths && IsOneOf<RemoveFile>(request) ? "" : "there is no record of the volume";
  }
  if (*state == VolumeState::kMapped) return "its record says Mapped, and no unmapping";
  if (*state != VolumeState::kSetUp) return "";
  if (in_sub_paths && is_known && truth->second.volumes.at(spec).sub_path_follows_content)
    return "";
  return "its record says SetUp, and no teardown";
}

std::string CheckedKernel::BrokenHostPathRule(const std::string& path) const {
  for (const auto& [uid, pod] : world_.pods) {
    for (const auto& [spec, volume] : pod.volumes) {
      if (!volume.host_path.empty() && path == volume.host_path &&
          !RecordedState(world_, uid, spec)) {
        return "there is no record of the volume";
      }
    }
  }
  return "";
}

void NoteRecords(CrashWorld& world) {
  for (const Record& row : world.store->All()) NoteRow(world, row);
}

// ---- the records --------------------------------------------------------------------------------

Status CheckedStore::Put(const Record& record, Durability durability) {
  switch_point_();
  Status written = world_.store->Put(record, durability);
  if (written.ok() && record.kind == kProvisionRecordKind) CheckProvisionPut(world_, record);
  if (written.ok()) NoteRow(world_, record);
  switch_point_();
  return written;
}

Status CheckedStore::Remove(const std::string& kind, const std::string& key,
                            Durability durability) {
  switch_point_();
  const bool was_there = world_.store->Find(kind, key).has_value();
  Status removed = world_.store->Remove(kind, key, durability);
  if (removed.ok() && was_there) CheckRemove(kind, key);
  switch_point_();
  return removed;
}

void CheckedStore::CheckRemove(const std::string& kind, const std::string& key) {
  if (kind == kProvisionRecordKind) return CheckProvisionRemove(world_, key);
  const std::string pod = key.substr(0, key.find('/'));
  if (kind == kPodRecordKind) {
    const std::string directory = world_.paths.GetPodDir(PodUid(pod)).Display();
    if (world_.kernel->Exists(directory)) {
      world_.Violation("the record of pod " + pod + " went before its directory");
    }
    return;
  }
  const auto truth = world_.pods.find(pod);
  if (kind != kPodVolumeRecordKind || truth == world_.pods.end()) return;
  const std::string spec = key.substr(key.find('/') + 1);
  const auto volume = truth->second.volumes.find(spec);
  if (volume == truth->second.volumes.end()) return;
  if (truth->second.is_protected()) {
    // A set-up that was not applied takes its row back; what an earlier boot left of the volume is
    // found by its directory.
    if (volume->second.established) {
      world_.Violation("the record of " + key + ", which is wanted, was removed");
    }
    return;
  }
  if (volume->second.host_path.empty() && world_.kernel->Exists(world_.VolumePath(pod, spec))) {
    world_.Violation("the record of " + key + " went before the volume");
  }
  for (const std::string& target : volume->second.sub_path_targets) {
    if (world_.kernel->IsMountPoint(target)) {
      world_.Violation("the record of " + key + " went before its sub-path mounts");
    }
  }
}

}  // namespace volumed
