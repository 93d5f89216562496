#include "unit/crash/crash_devices.h"

#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "fakes/fake_flex_driver.h"
#include "operation/volume_record.h"
#include "plugins/flex_volume_places.h"
#include "plugins/local.h"
#include "pool/pool_plugin.h"
#include "unit/crash/crash_pools.h"
#include "volume/unique_name.h"

namespace volumed {
namespace {

// What the device's record says to whoever reads it in this boot.
std::optional<DeviceRecord> RecordOf(const CrashWorld& world, const std::string& volume) {
  const UniqueVolumeName name = GetUniqueVolumeName(world.PluginOf(volume), world.NameOf(volume));
  const std::optional<Record> row = world.store->Find(kDeviceRecordKind, RecordKey(name));
  if (!row) return std::nullopt;
  const Result<DeviceRecord> record = DecodeDeviceRecord(*row);
  if (!record.ok()) return std::nullopt;
  return AfterRestart(*record, BootId(world.boot_id()));
}

std::string PlaceOf(const CrashWorld& world, const std::string& volume) {
  return world.DevicePlaceOf(volume).Display();
}

// The volume whose device is at `device`, or mounted at `place`.
std::string VolumeOf(const CrashWorld& world, const std::string& device, const std::string& place) {
  for (const auto& [volume, path] : world.devices) {
    if ((!device.empty() && path == device) ||
        (!place.empty() && PlaceOf(world, volume) == place)) {
      return volume;
    }
  }
  return "";
}

std::string MustSay(const CrashWorld& world, const std::string& volume, VolumeState state) {
  const std::optional<DeviceRecord> record = RecordOf(world, volume);
  if (!record) return "there is no record of the device";
  if (record->state == state) return "";
  return "its record says " + std::string(VolumeStateName(record->state));
}

// The pod that has the device as a block volume; "" if none has.
std::string RawUserOf(const CrashWorld& world, const std::string& device) {
  for (const std::string& volume : world.block_volumes) {
    if (world.devices.at(volume) != device) continue;
    for (const auto& [uid, pod] : world.pods) {
      const auto has = pod.volumes.find(volume);
      if (pod.is_protected() && has != pod.volumes.end() && has->second.established) return uid;
    }
  }
  return "";
}

std::string BrokenFormatRule(const CrashWorld& world, const FormatDevice& request,
                             const std::string& volume) {
  const std::string raw = RawUserOf(world, request.device);
  if (!raw.empty()) return "pod " + raw + " has it as a block volume";
  const FakeDevice device = world.kernel->Device(request.device);
  if (device.filesystem != 0) return "it was mounted since it has a filesystem";
  if (!device.fs_type.empty() && !device.unfinished) return "it has a filesystem";
  if (!device.data.empty()) return "it has data that may be anybody's";
  const std::optional<DeviceRecord> record = RecordOf(world, volume);
  if (!record || !record->format) return "no intent of the format is on record";
  if (record->format->finished) return "its format is recorded as finished";
  if (record->format->fs_uuid != request.fs_uuid) return "another UUID is on record";
  return MustSay(world, volume, VolumeState::kMountingDevice);
}

// Two volumes may be on one device: one of them must ask for it.
std::string BrokenFormatRule(const CrashWorld& world, const FormatDevice& request) {
  std::string broken = "nobody asked for this device";
  for (const auto& [volume, path] : world.devices) {
    if (path != request.device) continue;
    broken = BrokenFormatRule(world, request, volume);
    if (broken.empty()) break;
  }
  return broken;
}

std::optional<ClaimResize> ResizeOf(const CrashWorld& world, const std::string& volume) {
  const std::optional<Record> row = world.store->Find(kClaimBindingRecordKind, volume);
  if (!row) return std::nullopt;
  const Result<ClaimBindingRecord> record = DecodeClaimBindingRecord(*row);
  return record.ok() ? record->resize : std::nullopt;
}

std::string BrokenGrowRule(const CrashWorld& world, const GrowFilesystem& request) {
  if (request.only_measure) return "";
  const std::string volume = VolumeOf(world, request.device, "");
  if (volume.empty()) return "nobody asked for this device";
  const std::optional<DeviceRecord> record = RecordOf(world, volume);
  if (!record || record->target_bytes == 0) return "no target size is on record";
  if (!request.mounted_at) return MustSay(world, volume, VolumeState::kMountingDevice);
  const std::optional<ClaimResize> claim = ResizeOf(world, volume);
  if (!claim || claim->status != kNodeResizeInProgress) return "its claim was not told";
  return MustSay(world, volume, VolumeState::kExpanding);
}

std::string BrokenMountRule(const CrashWorld& world, const Mount& request) {
  const std::string volume = VolumeOf(world, "", request.target.Display());
  if (volume.empty()) return "";
  if (const std::string broken = MustSay(world, volume, VolumeState::kMountingDevice);
      !broken.empty()) {
    return broken;
  }
  if (!world.store->Find(kClaimBindingRecordKind, volume)) {
    return "no binding of the volume is on record";
  }
  if (world.kernel->Device(world.devices.at(volume)).damage != CheckResult::kClean) {
    return "its filesystem was not checked";
  }
  const std::optional<DeviceRecord> record = RecordOf(world, volume);
  if (record->format && !record->format->finished) return "an unfinished format is on record";
  return "";
}

std::string BrokenUnmountRule(const CrashWorld& world, const std::string& place) {
  const std::string volume = VolumeOf(world, "", place);
  if (volume.empty()) return "";
  for (const auto& [uid, pod] : world.pods) {
    const auto has = pod.volumes.find(volume);
    // A pod that has only just come waits until the device is mounted again.
    const bool has_it = has != pod.volumes.end() && has->second.established;
    if (pod.is_protected() && has_it) return "pod " + uid + " has the volume";
  }
  const std::string pods = world.paths.GetPodsDir().Display() + "/";
  for (const MountEntry& mount : world.kernel->Mounts()) {
    const bool is_bind =
        mount.mount_point.rfind(pods, 0) == 0 && mount.mount_point.ends_with("/" + volume);
    if (is_bind) return mount.mount_point + " is still bound from it";
  }
  return MustSay(world, volume, VolumeState::kUnmountingDevice);
}

std::string BrokenBindRule(const CrashWorld& world, const BindMount& request) {
  const std::string source = request.source.Display();
  for (const auto& [volume, path] : world.devices) {
    if (source != PlaceOf(world, volume)) continue;
    if (!world.kernel->IsMountPoint(source)) return "nothing is mounted at its source";
    return MustSay(world, volume, VolumeState::kDeviceMounted);
  }
  return "";
}

// A disk is deleted when no pod has its volume, nothing is mounted of it, and all is written.
std::string BrokenDeleteRule(const CrashWorld& world, const WriteAttribute& request) {
  if (!request.path.Display().ends_with("/delete")) return "";
  for (const auto& [volume, names] : world.fc_volumes) {
    const std::string broken = BrokenUnmountRule(world, PlaceOf(world, volume));
    if (!broken.empty()) return broken;
    if (world.kernel->IsMountPoint(PlaceOf(world, volume))) return "its filesystem is mounted";
    if (world.kernel->Device(world.devices.at(volume)).flushes == 0) return "it was not flushed";
  }
  for (const std::string& disk : world.fc_disks) {
    const bool is_map = disk.rfind("dm-", 0) == 0;
    if (is_map && world.kernel->Exists("/sys/block/" + disk)) return disk + " is made of it";
  }
  return "";
}

// ---- block volumes

// The pod whose node, and the volume whose global map directory, the path is.
std::optional<KubeletPaths::PodVolume> NodeAt(const CrashWorld& world, const std::string& path) {
  const auto volume = world.paths.ParsePodVolume(path);
  if (!volume || !volume->is_block || !world.block_volumes.contains(volume->spec.str())) {
    return std::nullopt;
  }
  return volume;
}

std::string PodMustBe(const CrashWorld& world, const KubeletPaths::PodVolume& node,
                      VolumeState state) {
  const std::optional<Record> row =
      world.store->Find(kPodVolumeRecordKind, RecordKey(PodVolumeKey{node.pod, node.spec}));
  if (!row) return "there is no record of the volume";
  const Result<PodVolumeRecord> record = DecodePodVolumeRecord(*row);
  if (!record.ok()) return record.error().message();
  const VolumeState now = AfterRestart(*record, BootId(world.boot_id())).state;
  if (now == state) return "";
  return "its record says " + std::string(VolumeStateName(now));
}

std::string BrokenNodeRule(const CrashWorld& world, const BindMount& bind,
                           const KubeletPaths::PodVolume& node) {
  const std::string volume = node.spec.str();
  const std::string& device = world.devices.at(volume);
  if (bind.source.Display() != device) return bind.source.Display() + " is another device";
  if (!bind.expected_device) return "it is bound whatever it is";
  for (const MountEntry& mount : world.kernel->Mounts()) {
    if (mount.source == device) return "it is mounted at " + mount.mount_point;
  }
  if (world.kernel->Device(device).OpenPins() == 0) return "nobody holds the device";
  const std::optional<DeviceRecord> record = RecordOf(world, volume);
  if (!record || !record->mapped) return "no record says which device it is";
  if (record->mapped->path != device) return "another device is on record";
  if (const std::string broken = MustSay(world, volume, VolumeState::kDeviceMounted);
      !broken.empty()) {
    return broken;
  }
  return PodMustBe(world, node, VolumeState::kMapping);
}

std::string BrokenUnmapRule(const CrashWorld& world, const std::string& path) {
  if (const auto node = NodeAt(world, path)) {
    const auto pod = world.pods.find(node->pod.str());
    // A bind that failed takes its own file back; nothing is mounted on it.
    const bool is_bound = world.kernel->IsMountPoint(path);
    if (!is_bound && PodMustBe(world, *node, VolumeState::kMapping).empty()) return "";
    if (is_bound && pod != world.pods.end() && pod->second.is_protected()) {
      return "pod " + node->pod.str() + " has the volume";
    }
    return PodMustBe(world, *node, VolumeState::kUnmapping);
  }
  for (const std::string& volume : world.block_volumes) {
    const std::string place =
        world.paths.GetBlockMapDir(kLocalVolumePluginName, SpecName(volume)).Display();
    if (path != place) continue;
    if (world.kernel->Device(world.devices.at(volume)).OpenPins() != 0) {
      return "the device is held still";
    }
    return MustSay(world, volume, VolumeState::kUnmountingDevice);
  }
  return "";
}

// What a detach would take from somebody, but for its flush; "" if nothing.
std::string BrokenDetachRule(const CrashWorld& world, const std::string& volume) {
  if (const std::string broken = MustSay(world, volume, VolumeState::kDetaching); !broken.empty()) {
    return broken;
  }
  const std::string& device = world.devices.at(volume);
  for (const MountEntry& mount : world.kernel->Mounts()) {
    if (mount.source == device) return "it is mounted at " + mount.mount_point;
  }
  for (const auto& [uid, pod] : world.pods) {
    if (pod.is_protected() && pod.volumes.contains(volume)) return "pod " + uid + " has the volume";
  }
  return "";
}

// A call of the flexVolume driver.
std::string BrokenDriverRule(const CrashWorld& world, const RunProgram& request) {
  const std::vector<std::string>& words = request.arguments;
  if (words.at(0) != kFakeFlexExecutable) return "";
  if (words.at(1) == "attach") {
    const std::string volume = FlexOption(words.at(2), "kubernetes.io/pvOrVolumeName");
    return MustSay(world, volume, VolumeState::kAttaching);
  }
  if (words.at(1) == "detach") return BrokenDetachRule(world, words.at(2));
  if (words.at(1) == "unmountdevice") return BrokenUnmountRule(world, words.at(2));
  if (words.at(1) == "mountdevice") {
    return MustSay(world, VolumeOf(world, "", words.at(2)), VolumeState::kMountingDevice);
  }
  if (words.at(1) != "unmount") return "";
  const auto volume = world.paths.ParsePodVolume(words.at(2));
  const auto pod = volume ? world.pods.find(volume->pod.str()) : world.pods.end();
  const bool has_it = pod != world.pods.end() && pod->second.is_protected();
  return has_it ? "pod " + pod->first + " has the volume" : "";
}

// Each of the two superblocks would ruin what the other one writes.
void CheckTwins(CrashWorld& world, const std::string& when) {
  std::map<std::string, std::string> mounted;  // key of a storage -> the device that has it mounted
  for (const MountEntry& mount : world.kernel->Mounts()) {
    for (const auto& [volume, path] : world.devices) {
      if (path != mount.source) continue;
      for (const std::string& key : world.kernel->Device(path).storage_own) {
        const std::string& first = mounted.emplace(key, path).first->second;
        if (first == path) continue;
        world.Violation(first + " and " + path + " are one storage and both mounted " + when);
      }
    }
  }
}

}  // namespace

// ---- which devices there are

SafePath CrashWorld::DevicePlaceOf(const std::string& volume) const {
  if (flex_volumes.contains(volume)) {
    return FlexDeviceMountDir(paths, kFakeFlexDriver, SpecName(volume));
  }
  const auto fc = fc_volumes.find(volume);
  if (fc == fc_volumes.end()) {
    return paths.GetDeviceMountDir(PluginOf(volume), SpecName(NameOf(volume)));
  }
  return paths.GetPluginDir(kFcPluginName).Below(FcDirectoryName(fc->second));
}

std::string CrashWorld::PluginOf(const std::string& volume) const {
  if (flex_volumes.contains(volume)) return kFakeFlexDriver;
  if (fc_volumes.contains(volume)) return kFcPluginName;
  if (pool_volumes.contains(volume)) return kPoolPluginName;
  return array.disks.contains(volume) ? kFakeArrayPlugin : kLocalVolumePluginName;
}

std::string CrashWorld::NameOf(const std::string& volume) const {
  if (pool_volumes.contains(volume)) {
    const std::optional<PoolVolumeRecord> row = PoolVolumeNamed(*this, volume);
    return row ? row->id : volume;
  }
  const auto fc = fc_volumes.find(volume);
  return fc == fc_volumes.end() ? volume : FcVolumeName(fc->second);
}

std::string CrashWorld::LeftOfDevices() const {
  for (const auto& [volume, path] : devices) {
    const SpecName name(volume);
    const SafePath place = block_volumes.contains(volume)
                               ? paths.GetBlockMapDir(PluginOf(volume), name)
                               : DevicePlaceOf(volume);
    if (kernel->Exists(place.Display())) return "directory " + place.Display();
    if (kernel->Device(path).OpenPins() != 0) return "a descriptor of " + path;
    const bool flex = flex_volumes.contains(volume) && IsFlexAttached(*kernel, volume);
    if (flex || array.attached.contains(volume)) return "attached volume " + volume;
  }
  for (const std::string& disk : fc_disks) {
    if (kernel->Exists("/sys/block/" + disk)) return "disk " + disk;
  }
  if (!pool_volumes.empty()) return LeftOfPool(*this);
  return csi ? LeftOfCsi(*this) : "";
}

// ---- the rules

std::string BrokenDeviceRule(const CrashWorld& world, const AnyRequest& request) {
  if (const std::string broken = BrokenPoolRule(world, request); !broken.empty()) return broken;
  if (const auto* format = std::get_if<FormatDevice>(&request)) {
    return BrokenFormatRule(world, *format);
  }
  if (const auto* grow = std::get_if<GrowFilesystem>(&request)) {
    return BrokenGrowRule(world, *grow);
  }
  if (const auto* program = std::get_if<RunProgram>(&request)) {
    return BrokenDriverRule(world, *program);
  }
  if (const auto* mount = std::get_if<Mount>(&request)) return BrokenMountRule(world, *mount);
  if (const auto* write = std::get_if<WriteAttribute>(&request)) {
    return BrokenDeleteRule(world, *write);
  }
  if (const auto* bind = std::get_if<BindMount>(&request)) {
    if (const auto node = NodeAt(world, bind->target.Display())) {
      return BrokenNodeRule(world, *bind, *node);
    }
    return BrokenBindRule(world, *bind);
  }
  const bool removes = std::holds_alternative<Unmount>(request) ||
                       std::holds_alternative<RemoveFile>(request) ||
                       std::holds_alternative<RemoveTree>(request);
  if (removes) {
    if (const std::string broken = BrokenUnmapRule(world, RequestPath(request)); !broken.empty()) {
      return broken;
    }
  }
  if (const auto* unmount = std::get_if<Unmount>(&request)) {
    return BrokenUnmountRule(world, unmount->target.Display());
  }
  return "";
}

int64_t ClaimedBytes(const CrashWorld& world, const std::string& volume) {
  const std::optional<ClaimResize> claim = ResizeOf(world, volume);
  return claim ? claim->capacity.Value() : 0;
}

void CheckAttach(CrashWorld& world, const std::string& volume) {
  const std::string broken = MustSay(world, volume, VolumeState::kAttaching);
  if (!broken.empty()) world.Violation("Attach " + volume + ": " + broken);
}

void CheckDetach(CrashWorld& world, const std::string& volume) {
  const std::string what = "Detach " + volume + ": ";
  const std::string broken = BrokenDetachRule(world, volume);
  if (!broken.empty()) world.Violation(what + broken);
  const std::string& device = world.devices.at(volume);
  // What no record has a path of was never used.
  const std::optional<DeviceRecord> record = RecordOf(world, volume);
  const bool is_there =
      world.array.attached.contains(volume) && record && !record->device_path.empty();
  if (is_there && world.kernel->Device(device).flushes <= world.array.flushes.at(volume)) {
    world.Violation(what + "its device was not flushed");
  }
}

void CheckDevices(CrashWorld& world, const std::string& when) {
  CheckTwins(world, when);
  for (const MountEntry& mount : world.kernel->Mounts()) {
    for (const auto& [volume, path] : world.devices) {
      const bool of_array = world.array.disks.contains(volume);
      const bool of_driver = world.flex_volumes.contains(volume);
      const bool attached = of_array    ? world.array.attached.contains(volume)
                            : of_driver ? IsFlexAttached(*world.kernel, volume)
                                        : true;
      if (mount.source == path && !attached) {
        world.Violation("volume " + volume + " is mounted and not attached " + when);
      }
      const std::string raw = mount.source == path ? RawUserOf(world, path) : "";
      if (!raw.empty()) {
        world.Violation(path + " is mounted, and pod " + raw + " has it as a block volume " + when);
      }
    }
  }
  for (const auto& [volume, path] : world.devices) {
    const FakeDevice device = world.kernel->Device(path);
    if (device.is_loop && !device.loop) continue;  // what was on it is with its file
    const auto before = world.filesystems.find(volume);
    if (before != world.filesystems.end() && before->second != device.identity.uuid) {
      world.Violation("the filesystem of " + volume + " is another one " + when);
    }
    if (device.filesystem == 0) continue;
    world.filesystems[volume] = device.identity.uuid;
    const std::optional<DeviceRecord> record = RecordOf(world, volume);
    const int64_t has = device.fs_bytes == 0 ? device.identity.size_bytes : device.fs_bytes;
    if (record && record->size_bytes > has) {
      world.Violation("the record of " + volume + " says more than there is " + when);
    }
    if (ClaimedBytes(world, volume) > has) {
      world.Violation("the claim of " + volume + " says more than there is " + when);
    }
  }
}

std::string DeviceRecordText(const Record& row) {
  const std::string name = row.kind + " " + row.key + ": ";
  if (row.kind == kClaimBindingRecordKind) {
    const Result<ClaimBindingRecord> record = DecodeClaimBindingRecord(row);
    if (!record.ok()) return name + record.error().ToString() + "\n";
    return name + ToString(record->binding.claim) + " " +
           std::to_string(static_cast<int>(record->binding.state)) +
           (record->deleted ? " deleted" : "") + "\n";
  }
  const Result<DeviceRecord> record = DecodeDeviceRecord(row);
  if (!record.ok()) return name + record.error().ToString() + "\n";
  std::string text = name + record->plugin_name + " " + record->device_mount_path + " " +
                     record->device_path + (record->attachable ? " attachable " : "") +
                     std::string(VolumeStateName(record->state)) +
                     // A call that no agent has seen end is uncertain whatever the row says.
                     (record->uncertain && !IsInCall(record->state) ? " uncertain" : "");
  if (record->format) {
    text += " " + record->format->fs_type + (record->format->finished ? " finished" : " begun");
  }
  if (record->mapped) text += " mapped " + record->mapped->path;
  return text + "\n";
}

}  // namespace volumed
