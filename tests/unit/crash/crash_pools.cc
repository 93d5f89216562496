#include "unit/crash/crash_pools.h"

#include <set>
#include <stdexcept>
#include <string_view>
#include <variant>
#include <vector>

#include "base/strings.h"
#include "operation/volume_record.h"
#include "pool/pool_id.h"
#include "pool/pool_layout.h"
#include "pool/pool_plugin.h"
#include "unit/crash/crash_monitor.h"
#include "unit/crash/crash_provisioning.h"
#include "volume/unique_name.h"

namespace volumed {
namespace {

const std::string kPoolVolumes = std::string(kCrashPool) + "/volumes/";
constexpr size_t kIdLength = 35;
constexpr std::string_view kAnyId = "ID-OF-A-VOLUME";

std::optional<PoolVolumeRecord> PoolRowOf(const CrashWorld& world, const std::string& id) {
  const std::optional<Record> row = world.store->Find(kPoolVolumeRecordKind, id);
  if (!row) return std::nullopt;
  const Result<PoolVolumeRecord> record = DecodePoolVolumeRecord(*row);
  return record.ok() ? std::optional(*record) : std::nullopt;
}

std::vector<LoopEntry> LoopsBelow(const CrashWorld& world, const SafePath& path) {
  const Result<AnyAnswer> answer = world.kernel->DoAside(ListLoops{path});
  return answer.ok() ? std::get<LoopList>(*answer).loops : std::vector<LoopEntry>();
}

std::string MustBe(const PoolVolumeRecord& row, PoolVolumeState state) {
  return row.state == state ? "" : "its record says " + std::string(PoolVolumeStateName(row.state));
}

// The names of the directories of volumes.
std::set<std::string> PoolDirectories(const CrashWorld& world) {
  const std::string tree = world.kernel->DumpTree(kCrashPool);
  std::set<std::string> names;
  for (size_t at = tree.find(kPoolVolumes); at != std::string::npos;
       at = tree.find(kPoolVolumes, at + 1)) {
    const size_t begin = at + kPoolVolumes.size();
    names.insert(tree.substr(begin, tree.find_first_of("/ \n", begin) - begin));
  }
  return names;
}

std::string BrokenSizeRule(const SetFileSize& request, const PoolVolumeRecord& row) {
  if (request.make) return MustBe(row, PoolVolumeState::kMaking);
  if (request.bytes != row.target_bytes) return "another size is on record";
  return MustBe(row, PoolVolumeState::kExpanding);
}

// Whoever opens it says before that he has it: what nobody has is closed by the next agent.
std::string BrokenOpenRule(const CrashWorld& world, const PoolVolumeRecord& row) {
  if (!row.used) return "its record does not say that somebody may have written to it";
  const UniqueVolumeName name = GetUniqueVolumeName(kPoolPluginName, row.id);
  const std::optional<Record> device = world.store->Find(kDeviceRecordKind, RecordKey(name));
  if (!device) return "there is no record of its device";
  const Result<DeviceRecord> record = DecodeDeviceRecord(*device);
  if (!record.ok() || IsGone(*record)) return "the record of its device says that nobody has it";
  if (row.state == PoolVolumeState::kExpanding) return "";
  return MustBe(row, PoolVolumeState::kReady);
}

std::string BrokenCloseRule(const CrashWorld& world, const PoolVolumeRecord& row) {
  for (const LoopEntry& loop : LoopsBelow(world, PoolImageOf(row.id))) {
    for (const MountEntry& mount : world.kernel->Mounts()) {
      if (mount.source == loop.path) return "it is mounted at " + mount.mount_point;
    }
  }
  return "";
}

// What a volume has goes when nobody has it and its claim is gone, or when it was never opened and
// is not wanted any more.
std::string BrokenDiscardRule(const CrashWorld& world, const PoolVolumeRecord& row) {
  if (const std::string broken = BrokenCloseRule(world, row); !broken.empty()) return broken;
  for (const auto& [uid, pod] : world.pods) {
    const auto has = pod.volumes.find(row.name);
    const bool has_it = has != pod.volumes.end() && has->second.established;
    if (pod.is_protected() && has_it) return "pod " + uid + " has the volume";
  }
  if (!LoopsBelow(world, PoolImageOf(row.id)).empty()) return "its loop device is there still";
  if (row.state == PoolVolumeState::kMaking && !row.used) return "";
  if (const std::string broken = MustBe(row, PoolVolumeState::kDeleting); !broken.empty()) {
    return broken;
  }
  const std::optional<ProvisionRecord> made = ProvisionOf(world, row.name);
  if (!made) return "no record says that it was made for a claim";
  if (made->state == ProvisionState::kProvisioned) return BrokenRemovalRule(world, *made);
  return row.used ? "it was not made yet, and somebody has used it" : "";
}

}  // namespace

void AddPool(CrashWorld& world) {
  world.kernel->AddDirectory(kCrashPool);
  world.pool_volumes.insert(kCrashPoolVolume);
  world.devices[kCrashPoolVolume] = kCrashPoolDevice;
  world.own_directories["the directory of pool fast,"] = kCrashPool;
  // A node of it stays once it was used.
  const SafePath file{"/srv", "blank"};
  world.kernel->AddFile(file.Display(), std::string(4096, '\0'));
  const Result<AnyAnswer> attached = world.kernel->DoAside(AttachLoop{.path = file});
  if (!attached.ok()) throw std::logic_error(attached.error().ToString());
  if (std::get<AttachedLoop>(*attached).device.path != kCrashPoolDevice) {
    throw std::logic_error("the first loop device has another name");
  }
  const Result<AnyAnswer> detached = world.kernel->DoAside(DetachLoops{file});
  if (!detached.ok()) throw std::logic_error(detached.error().ToString());
  world.kernel->Remove(file.Display());
}

std::optional<PoolVolumeRecord> PoolVolumeNamed(const CrashWorld& world, const std::string& name) {
  for (const Record& row : world.store->All()) {
    if (row.kind != kPoolVolumeRecordKind) continue;
    Result<PoolVolumeRecord> record = DecodePoolVolumeRecord(row);
    if (record.ok() && record->name == name) return *std::move(record);
  }
  return std::nullopt;
}

SafePath PoolImageOf(const std::string& id) {
  return {kCrashPool, "volumes/" + id + "/" + kPoolImageFile};
}

std::string BrokenPoolRule(const CrashWorld& world, const AnyRequest& request) {
  const std::string path = RequestPath(request);
  if (!path.starts_with(kPoolVolumes)) return "";
  const std::string id = Split(path.substr(kPoolVolumes.size()), '/').front();
  const std::optional<PoolVolumeRecord> row = PoolRowOf(world, id);
  if (!row) return "there is no record of the volume";
  if (const auto* size = std::get_if<SetFileSize>(&request)) return BrokenSizeRule(*size, *row);
  if (std::holds_alternative<MakeDirectory>(request)) {
    return MustBe(*row, PoolVolumeState::kMaking);
  }
  if (std::holds_alternative<AttachLoop>(request)) return BrokenOpenRule(world, *row);
  if (std::holds_alternative<DetachLoops>(request)) return BrokenCloseRule(world, *row);
  const bool removes = std::holds_alternative<RemoveFile>(request) ||
                       std::holds_alternative<RemoveDirectory>(request);
  if (!removes) return "only its volume is to be made, changed and removed";
  const std::string image = PoolImageOf(id).Display();
  if (path != image && world.kernel->Exists(image)) return "its image is there still";
  return BrokenDiscardRule(world, *row);
}

void CheckPoolProvisionPut(CrashWorld& world, const std::string& volume) {
  const std::optional<PoolVolumeRecord> row = PoolVolumeNamed(world, volume);
  const bool is_there = row && row->state != PoolVolumeState::kMaking &&
                        world.kernel->Exists(PoolImageOf(row->id).Display());
  if (is_there) return;
  world.Violation("volume " + volume + " is recorded as made, and is not in the pool");
}

void CheckPoolProvisionRemove(CrashWorld& world, const std::string& volume) {
  if (!PoolVolumeNamed(world, volume)) return;
  world.Violation("the record of volume " + volume + " went before the pool's");
}

void CheckPoolProvisioned(CrashWorld& world, const std::string& when) {
  for (const std::string& id : PoolDirectories(world)) {
    const std::optional<PoolVolumeRecord> row = PoolRowOf(world, id);
    if (!row) {
      world.Violation("directory " + kPoolVolumes + id + " is nobody's " + when);
    } else if (!ProvisionOf(world, row->name)) {
      world.Violation("volume " + id + " of the pool is of no claim " + when);
    }
  }
}

std::string LeftOfPool(const CrashWorld& world) {
  const std::vector<LoopEntry> loops = LoopsBelow(world, {kCrashPool, ""});
  if (!loops.empty()) return "loop device " + loops[0].path + " of " + loops[0].file;
  const std::string places = world.paths.GetPluginDir(kPoolPluginName).Display() + "/mounts";
  const std::string tree = world.kernel->DumpTree(places);
  return tree.find(places + "/") == std::string::npos ? "" : "places of devices:\n" + tree;
}

std::string WithoutPoolIds(std::string text) {
  for (size_t at = text.find("v-"); at != std::string::npos; at = text.find("v-", at + 1)) {
    if (!ParsePoolId(std::string_view(text).substr(at, kIdLength))) continue;
    text.replace(at, kIdLength, kAnyId);
  }
  const std::string description = std::string("/") + kPoolDescriptionFile + " ";
  for (size_t at = text.find(description); at != std::string::npos;
       at = text.find(description, at + 1)) {
    const size_t digest = text.find(" #", at);
    if (digest != std::string::npos) text.erase(digest, text.find('\n', digest) - digest);
  }
  return text;
}

}  // namespace volumed
