#include "agent/storage_list.h"

#include <optional>
#include <string>

#include "agent/view_codec.h"
#include "kube/storage_enums.h"
#include "volume/claim_matcher.h"
#include "volumemanager/claims/refused_objects.h"

namespace volumed {
namespace {

constexpr int kMaxListed = 5000;

void Encode(const PersistentVolumeView& view, v1::PersistentVolume* out) {
  out->set_name(view.name);
  out->set_capacity(view.capacity);
  for (const std::string& mode : view.access_modes) out->add_access_modes(mode);
  out->set_reclaim_policy(view.reclaim_policy);
  out->set_phase(view.phase);
  out->set_claim(view.claim);
  out->set_storage_class(view.storage_class);
  out->set_volume_mode(view.volume_mode);
  out->set_reason(view.reason);
  out->set_deleting(view.deleting);
  out->set_missing(view.missing);
  out->set_created_unix_ms(view.created_unix_ms);
  if (view.problem) EncodeProblemView(*view.problem, out->mutable_problem());
}

void Encode(const PersistentVolumeClaimView& view, v1::PersistentVolumeClaim* out) {
  out->set_namespace_(view.ns);
  out->set_name(view.name);
  out->set_uid(view.uid);
  out->set_owner(view.owner);
  out->set_phase(view.phase);
  out->set_volume(view.volume);
  out->set_capacity(view.capacity);
  for (const std::string& mode : view.access_modes) out->add_access_modes(mode);
  out->set_storage_class(view.storage_class);
  out->set_volume_mode(view.volume_mode);
  out->set_reason(view.reason);
  out->set_deleting(view.deleting);
  out->set_missing(view.missing);
  out->set_created_unix_ms(view.created_unix_ms);
}

void Encode(const StorageClass& storage_class, bool is_default, bool missing,
            v1::StorageClass* out) {
  out->set_name(storage_class.metadata.name);
  out->set_provisioner(storage_class.provisioner);
  out->set_reclaim_policy(std::string(EnumText(storage_class.reclaim_policy)));
  out->set_volume_binding_mode(std::string(EnumText(storage_class.volume_binding_mode)));
  out->set_allow_volume_expansion(storage_class.allow_volume_expansion);
  out->set_is_default(is_default);
  out->set_missing(missing);
  out->set_created_unix_ms(storage_class.metadata.creation_unix_millis.value_or(0));
}

// False if the list is full; the object is then counted as not shown.
bool HasRoom(int listed, v1::GetStorageResponse* response) {
  if (listed < kMaxListed) return true;
  response->set_not_shown(response->not_shown() + 1);
  return false;
}

void ListVolumes(const VolumeManager& manager, const std::string& name,
                 v1::GetStorageResponse* response) {
  for (const PersistentVolumeView& view : manager.storage().PersistentVolumes()) {
    if (!name.empty() && view.name != name) continue;
    if (HasRoom(response->persistent_volumes_size(), response)) {
      Encode(view, response->add_persistent_volumes());
    }
  }
}

void ListClaims(const VolumeManager& manager, const v1::GetStorageRequest& request,
                v1::GetStorageResponse* response) {
  for (const PersistentVolumeClaimView& view : manager.storage().PersistentVolumeClaims()) {
    if (!request.namespace_().empty() && view.ns != request.namespace_()) continue;
    if (!request.name().empty() && view.name != request.name()) continue;
    if (HasRoom(response->persistent_volume_claims_size(), response)) {
      Encode(view, response->add_persistent_volume_claims());
    }
  }
}

void ListClasses(const ObjectCatalog& catalog, const std::string& name,
                 v1::GetStorageResponse* response) {
  const std::vector<StorageClassPtr> classes = catalog.StorageClasses();
  const StorageClass* default_class = DefaultClass(classes);
  for (const StorageClassPtr& one : classes) {
    if (!name.empty() && one->metadata.name != name) continue;
    if (HasRoom(response->storage_classes_size(), response)) {
      const ObjectKey key{ObjectKind::kStorageClass, "", one->metadata.name};
      Encode(*one, one.get() == default_class, catalog.IsMissing(key),
             response->add_storage_classes());
    }
  }
  for (const auto& [key, origin] : catalog.Refused()) {
    const bool is_asked = name.empty() || key.name == name;
    if (key.kind != ObjectKind::kStorageClass || !is_asked || catalog.FindObject(key)) continue;
    if (!HasRoom(response->storage_classes_size(), response)) continue;
    v1::StorageClass* const refused = response->add_storage_classes();
    refused->set_name(key.name);
    refused->set_phase(kRefusedPhase);
    refused->set_reason(RefusedText(key.kind, origin));
  }
}

}  // namespace

Status ListStorage(const ObjectCatalog& catalog, const VolumeManager& manager,
                   const v1::GetStorageRequest& request, v1::GetStorageResponse* response) {
  const std::optional<ObjectKind> kind = ParseObjectKind(request.kind());
  if (kind == ObjectKind::kPersistentVolume) {
    ListVolumes(manager, request.name(), response);
  } else if (kind == ObjectKind::kPersistentVolumeClaim) {
    ListClaims(manager, request, response);
  } else if (kind == ObjectKind::kStorageClass) {
    ListClasses(catalog, request.name(), response);
  } else {
    return Error::NotApplied(
        Code::kInvalidArgument,
        "'" + request.kind() + "' is neither a persistent volume nor a claim nor a class");
  }
  return OkStatus();
}

}  // namespace volumed
