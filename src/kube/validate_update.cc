#include "kube/validate_update.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/strings.h"
#include "kube/field_rules.h"
#include "kube/pod_facts.h"
#include "kube/snapshot_fields.h"
#include "kube/storage_fields.h"

namespace volumed {
namespace {

constexpr const char* kImmutableIsSet = "Forbidden: field is immutable when `immutable` is set";
constexpr const char* kNotLess = "Forbidden: field can not be less than previous value";
constexpr const char* kNotLessThanCapacity =
    "Forbidden: field can not be less than status.capacity";

std::string_view TextOf(VolumeMode mode) {
  return mode == VolumeMode::kBlock ? "Block" : "Filesystem";
}

std::string_view TextOf(VolumeBindingMode mode) {
  return mode == VolumeBindingMode::kImmediate ? "Immediate" : "WaitForFirstConsumer";
}

// An API server writes what an empty list means.
std::vector<VolumeLifecycleMode> ModesOf(const CsiDriverObject& driver) {
  if (!driver.volume_lifecycle_modes.empty()) return driver.volume_lifecycle_modes;
  return {VolumeLifecycleMode::kPersistent};
}

// A request that could not be granted may be taken back, never what the claim has got.
void CompareWithCapacity(const PersistentVolumeClaim& before, const PersistentVolumeClaim& now,
                         UpdateChecks& checks) {
  const auto capacity = before.status.capacity.find("storage");
  if (capacity == before.status.capacity.end()) {
    checks.Add("spec.resources.requests.storage", kNotLess);
  } else if (now.spec.storage.request <= capacity->second) {
    checks.Add("spec.resources.requests.storage", kNotLessThanCapacity);
  }
}

}  // namespace

void UpdateChecks::Compare(const char* field, std::string_view before, std::string_view now) {
  if (before != now) Add(field, Invalid(now));
}

std::string UpdateChecks::Invalid(std::string_view value) {
  return "Invalid value: " + Quoted(std::string(value)) + ": " + kFieldIsImmutable;
}

void CheckUpdate(const Pod& before, const Pod& now, UpdateChecks& checks) {
  if (before.metadata.uid != now.metadata.uid || HaveSameVolumes(before, now)) return;
  checks.Add("spec.volumes", "Forbidden: spec.volumes is immutable under the same uid");
}

void CheckUpdate(const PersistentVolume& before, const PersistentVolume& now,
                 UpdateChecks& checks) {
  if (before.spec.source != now.spec.source) {
    checks.Add("spec.persistentvolumesource",
               "Forbidden: spec.persistentvolumesource is immutable after creation");
  }
  checks.Compare("volumeMode", TextOf(before.spec.volume_mode), TextOf(now.spec.volume_mode));
  if (before.spec.node_affinity && before.spec.node_affinity != now.spec.node_affinity) {
    checks.Add("nodeAffinity", std::string("Invalid value: ") + kFieldIsImmutable +
                                   ", except for updating from beta label to GA");
  }
  if (!checks.bound()) return;
  if (now.spec.capacity < before.spec.capacity) checks.Add("spec.capacity.storage", kNotLess);
  if (before.spec.storage_class_name != now.spec.storage_class_name) {
    checks.Add("spec.storageClassName", UpdateChecks::Invalid(now.spec.storage_class_name) +
                                            " while the volume is bound to a claim");
  }
}

void CheckUpdate(const PersistentVolumeClaim& before, const PersistentVolumeClaim& now,
                 UpdateChecks& checks) {
  PersistentVolumeClaimSpec allowed = before.spec;
  if (allowed.volume_name.empty()) allowed.volume_name = now.spec.volume_name;
  // Source: as above (storageClassName may be given to a claim that has none).
  if (!allowed.storage_class_name) allowed.storage_class_name = now.spec.storage_class_name;
  if (checks.bound()) {
    allowed.storage.request = now.spec.storage.request;
    allowed.volume_attributes_class_name = now.spec.volume_attributes_class_name;
    // The binder writes a claim's volume into its spec; here a manifest may leave it out.
    if (now.spec.volume_name.empty()) allowed.volume_name.clear();
  }
  if (allowed != now.spec) {
    checks.Add("spec",
               "Forbidden: spec is immutable after creation except resources.requests and "
               "volumeAttributesClassName for bound claims");
  }
  if (now.spec.storage.request < before.spec.storage.request) {
    CompareWithCapacity(before, now, checks);
  }
}

void CheckUpdate(const StorageClass& before, const StorageClass& now, UpdateChecks& checks) {
  if (before.parameters != now.parameters) {
    checks.Add("parameters", "Forbidden: updates to parameters are forbidden.");
  }
  if (before.provisioner != now.provisioner) {
    checks.Add("provisioner", "Forbidden: updates to provisioner are forbidden.");
  }
  if (before.reclaim_policy != now.reclaim_policy) {
    checks.Add("reclaimPolicy", "Forbidden: updates to reclaimPolicy are forbidden.");
  }
  checks.Compare("volumeBindingMode", TextOf(before.volume_binding_mode),
                 TextOf(now.volume_binding_mode));
}

void CheckUpdate(const CsiDriverObject& before, const CsiDriverObject& now, UpdateChecks& checks) {
  if (before.attach_required != now.attach_required) {
    checks.Add("spec.attachedRequired", std::string("Invalid value: ") +
                                            (now.attach_required ? "true" : "false") + ": " +
                                            kFieldIsImmutable);
  }
  if (ModesOf(before) != ModesOf(now)) {
    checks.Add("spec.volumeLifecycleModes", std::string("Invalid value: ") + kFieldIsImmutable);
  }
}

void CheckUpdate(const CsiNodeObject& before, const CsiNodeObject& now, UpdateChecks& checks) {
  std::map<std::string_view, const CsiNodeDriver*> known;
  for (const CsiNodeDriver& driver : before.drivers) known.emplace(driver.name, &driver);
  for (const CsiNodeDriver& driver : now.drivers) {
    const auto old = known.find(driver.name);
    const bool changed = old != known.end() && (old->second->node_id != driver.node_id ||
                                                old->second->topology_keys != driver.topology_keys);
    if (changed) checks.Add("spec.drivers", UpdateChecks::Invalid(driver.name));
  }
}

void CheckUpdate(const VolumeAttachment& before, const VolumeAttachment& now,
                 UpdateChecks& checks) {
  const bool same = before.attacher == now.attacher && before.node_name == now.node_name &&
                    before.persistent_volume_name == now.persistent_volume_name &&
                    before.inline_volume_spec == now.inline_volume_spec;
  if (!same) checks.Add("spec", std::string("Invalid value: ") + kFieldIsImmutable);
}

void CheckUpdate(const SecretObject& before, const SecretObject& now, UpdateChecks& checks) {
  checks.Compare("type", before.type, now.type);
  if (!before.immutable) return;
  if (!now.immutable) checks.Add("immutable", kImmutableIsSet);
  // Only that the contents differ is told.
  SecretObject same_but_data = before;
  same_but_data.data = now.data;
  if (!(same_but_data == before)) checks.Add("data", kImmutableIsSet);
}

void CheckUpdate(const ConfigMapObject& before, const ConfigMapObject& now, UpdateChecks& checks) {
  if (!before.immutable) return;
  if (!now.immutable) checks.Add("immutable", kImmutableIsSet);
  if (before.data != now.data) checks.Add("data", kImmutableIsSet);
  if (before.binary_data != now.binary_data) checks.Add("binaryData", kImmutableIsSet);
}

std::vector<UpdateProblem> ValidateUpdate(const Object& before, const Object& now, bool bound) {
  UpdateChecks checks(bound);
  std::visit(
      [&](const auto& old) {
        const auto* other = std::get_if<std::decay_t<decltype(old)>>(&now);
        if (other != nullptr) CheckUpdate(old, *other, checks);
      },
      before);
  return checks.Take();
}

std::string ToString(const std::vector<UpdateProblem>& problems) {
  std::string text;
  for (const UpdateProblem& problem : problems) {
    if (!text.empty()) text += "; ";
    text += problem.field_path + ": " + problem.reason;
  }
  return text;
}

std::string UidIsImmutable(const std::string& uid) {
  return "is immutable: the object has the uid " + uid + ", and keeps it as long as it is there";
}

Error RefuseUpdate(const Object& before, const std::vector<UpdateProblem>& problems, bool replace) {
  std::string what_then;
  if (const Pod* pod = std::get_if<Pod>(&before)) {
    const std::vector<std::string> data = VolumesThatEndWithPod(*pod);
    what_then =
        "; `volumectl apply --replace` replaces the pod by another one with a new uid, once "
        "its consumers are gone" +
        (data.empty() ? ", and no data on disk goes with it"
                      : "; the data of these volumes goes with it: " + Join(data, ", "));
  } else if (replace) {
    const bool has_data = std::holds_alternative<PersistentVolume>(before) ||
                          std::holds_alternative<PersistentVolumeClaim>(before);
    what_then = "; --replace is for pods alone" +
                std::string(has_data ? ", since this object may hold data" : "") +
                ": delete it, and apply it anew once it is gone";
  }
  // Source: kubernetes apimachinery pkg/api/errors (NewInvalid).
  return Error::NotApplied(Code::kFailedPrecondition, ToString(KeyOf(before)) + " is invalid: " +
                                                          ToString(problems) + what_then);
}

Error RefuseOtherUid(const ObjectKey& object, const std::string& uid) {
  return Error::NotApplied(Code::kFailedPrecondition,
                           ToString(object) + " is invalid: metadata.uid: " + UidIsImmutable(uid));
}

}  // namespace volumed
