#include "unit/crash/crash_provisioning.h"

#include <map>
#include <optional>
#include <set>
#include <variant>

#include "base/strings.h"
#include "operation/object_record.h"
#include "operation/recorded_volume.h"
#include "unit/crash/crash_monitor.h"
#include "unit/crash/crash_pools.h"

namespace volumed {
namespace {

const std::string kBelow = std::string(CrashWorld::kProvisionRoot) + "/";

// A source has this very claim, and no command has ended it.
bool IsThere(const CrashWorld& world, const ProvisionRecord& record) {
  const ObjectKey claim{ObjectKind::kPersistentVolumeClaim, record.claim.name_space,
                        record.claim.name};
  const std::string key = RecordKey(DeletedObjectRecord{claim, record.claim_uid});
  if (const auto row = world.store->Find(kDeletedObjectRecordKind, key)) {
    const Result<DeletedObjectRecord> deleted = DecodeDeletedObjectRecord(*row);
    if (deleted.ok() && deleted->ended) return false;
  }
  const std::string uid = "uid: " + record.claim_uid + "}";
  for (const auto& [source, objects] : world.sources) {
    const auto manifest = objects.find("claim-" + record.claim.name);
    if (manifest != objects.end() && manifest->second.find(uid) != std::string::npos) return true;
  }
  return false;
}

// Of volumes that were made.
std::set<std::string> Directories(const CrashWorld& world) {
  const std::string tree = world.kernel->DumpTree(CrashWorld::kProvisionRoot);
  std::set<std::string> names;
  for (size_t at = tree.find(kBelow); at != std::string::npos; at = tree.find(kBelow, at + 1)) {
    const size_t begin = at + kBelow.size();
    names.insert(tree.substr(begin, tree.find_first_of("/ \n", begin) - begin));
  }
  return names;
}

}  // namespace

std::optional<ProvisionRecord> ProvisionOf(const CrashWorld& world, const std::string& volume) {
  const std::optional<Record> row = world.store->Find(kProvisionRecordKind, volume);
  if (!row) return std::nullopt;
  const Result<ProvisionRecord> record = DecodeProvisionRecord(*row);
  return record.ok() ? std::optional(*record) : std::nullopt;
}

std::string BrokenRemovalRule(const CrashWorld& world, const ProvisionRecord& record) {
  const std::optional<Record> row = world.store->Find(kClaimBindingRecordKind, record.volume_name);
  if (!row) return "no binding of the volume is on record";
  const Result<ClaimBindingRecord> binding = DecodeClaimBindingRecord(*row);
  if (!binding.ok()) return "the binding of the volume cannot be read";
  const BindingState state = binding->binding.state;
  if (state != BindingState::kReleased && state != BindingState::kReclaimFailed) {
    return "the volume is not released";
  }
  if (IsThere(world, record)) return "its claim is there";
  const auto volume = DecodePersistentVolume(record.volume_json);
  const bool deletes = volume != nullptr && volume->spec.reclaim_policy == ReclaimPolicy::kDelete;
  return deletes ? "" : "the volume is to be retained";
}

bool IsProvisioned(const std::string& path) { return path.starts_with(kBelow); }

std::string BrokenProvisionRule(const CrashWorld& world, const AnyRequest& request) {
  const std::string path = RequestPath(request);
  if (!IsProvisioned(path) || KindOfEffect(request) == EffectKind::kNone) return "";
  const std::string volume = Split(path.substr(kBelow.size()), '/').front();
  const std::optional<ProvisionRecord> record = ProvisionOf(world, volume);
  if (!record) return "there is no record of the volume that is made";
  if (std::holds_alternative<RemoveTree>(request)) return BrokenRemovalRule(world, *record);
  const bool intended = record->state == ProvisionState::kProvisioning;
  if (std::holds_alternative<MakeDirectory>(request)) {
    return intended ? "" : "its record says that it was made";
  }
  if (std::holds_alternative<RemoveDirectory>(request)) {
    return intended ? "" : "its record says that it was made, and somebody may use it";
  }
  return "it is its claim's";
}

void CheckProvisionPut(CrashWorld& world, const Record& row) {
  const Result<ProvisionRecord> record = DecodeProvisionRecord(row);
  if (!record.ok() || record->state != ProvisionState::kProvisioned) return;
  if (world.pool_volumes.contains(record->volume_name)) {
    return CheckPoolProvisionPut(world, record->volume_name);
  }
  if (world.csi) {
    if (!world.csi->volumes.contains("vol-" + record->volume_name)) {
      world.Violation("volume " + record->volume_name + " is recorded as made, and is not there");
    }
    return;
  }
  if (!world.kernel->Exists(kBelow + record->volume_name)) {
    world.Violation("volume " + record->volume_name + " is recorded as made, and is not there");
  }
}

void CheckProvisionRemove(CrashWorld& world, const std::string& volume) {
  CheckPoolProvisionRemove(world, volume);
  if (world.csi && world.csi->volumes.contains("vol-" + volume)) {
    world.Violation("the record of volume " + volume + " went before the driver's");
  }
  if (world.kernel->Exists(kBelow + volume)) {
    world.Violation("the record of volume " + volume + " went before its directory");
  }
}

void CheckProvisioned(CrashWorld& world, const std::string& when) {
  if (world.csi) CheckCsiProvisioned(world, when);
  CheckPoolProvisioned(world, when);
  std::map<std::string, std::string> of_claim;
  for (const std::string& name : Directories(world)) {
    const std::optional<ProvisionRecord> record = ProvisionOf(world, name);
    if (!record) {
      world.Violation("directory " + kBelow + name + " is nobody's " + when);
      continue;
    }
    const auto [first, is_first] = of_claim.emplace(record->claim_uid, name);
    if (!is_first) world.Violation("a claim has " + first->second + " and " + name + " " + when);
  }
}

std::string WithoutCreation(std::string json) {
  static const std::string kKey = "\"creationTimestamp\":\"";
  const size_t at = json.find(kKey);
  if (at == std::string::npos) return json;
  size_t end = json.find('"', at + kKey.size()) + 1;
  if (json[end] == ',') ++end;
  return json.erase(at, end - at);
}

std::string ProvisionRecordText(const Record& row) {
  const Result<ProvisionRecord> record = DecodeProvisionRecord(row);
  if (!record.ok()) return row.key + ": " + record.error().ToString() + "\n";
  return row.kind + " " + row.key + ": " + ToString(record->claim) + " " + record->claim_uid +
         (record->state == ProvisionState::kProvisioned ? " made" : " intended") + " " +
         WithoutCreation(record->volume_json) + "\n";
}

}  // namespace volumed
