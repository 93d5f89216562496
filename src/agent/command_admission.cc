#include "agent/command_admission.h"

#include <utility>

#include "kube/validate_update.h"
#include "volumemanager/provisioning.h"

namespace volumed {
namespace {

bool HasUid(ObjectKind kind) {
  return kind == ObjectKind::kPersistentVolume || kind == ObjectKind::kPersistentVolumeClaim;
}

std::string PlaceOf(const ObjectOrigin& origin) {
  return origin.file.empty() ? "source " + origin.source : origin.file;
}

// A pod is checked by its uid, which its directory gives.
Status AdmitObject(const ObjectCatalog& catalog, const VolumeManager& manager, Object& object) {
  const ObjectKey key = KeyOf(object);
  if (manager.IsBeingDeleted(key)) {
    // Source: kubernetes apiserver registry/generic/registry/store.go@v1.36.2 (Create).
    return Error::NotApplied(Code::kAlreadyExists, "object is being deleted: " + ToString(key) +
                                                       " already exists; apply it again when it "
                                                       "is gone");
  }
  ObjectMeta& metadata = MetaOf(object);
  if (!metadata.uid.empty() && manager.HasEnded(key, metadata.uid)) {
    return Error::NotApplied(Code::kAlreadyExists,
                             ToString(key) + " with the uid " + metadata.uid +
                                 " was deleted by command; leave the uid out, and it is another "
                                 "one");
  }
  const ObjectPtr known = catalog.FindObject(key);
  const std::optional<ObjectStanding> standing = catalog.StandingOf(key);
  if (known == nullptr || !standing) {
    if (HasUid(key.kind) && metadata.uid.empty()) metadata.uid = manager.UidOnRecord(key);
    return OkStatus();
  }
  const bool elsewhere =
      standing->origin.source != ObjectDirectory::kSourceName && !standing->missing;
  if (elsewhere) {
    return Error::NotApplied(Code::kAlreadyExists,
                             ToString(key) + " is in " + PlaceOf(standing->origin) +
                                 "; change it there, or remove it there first");
  }
  if (HasUid(key.kind) && metadata.uid.empty()) metadata.uid = MetaOf(*known).uid;
  const std::vector<UpdateProblem> problems = ValidateUpdate(*known, object, manager.IsBound(key));
  if (problems.empty()) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition,
                           ToString(key) + " is invalid: " + ToString(problems));
}

}  // namespace

Result<ApplyCommand> AdmitApply(const ObjectCatalog& catalog, const VolumeManager& manager,
                                std::vector<Object> objects) {
  ApplyCommand command;
  for (Object& object : objects) {
    const ObjectKey key = KeyOf(object);
    if (key.kind != ObjectKind::kPod) {
      RETURN_IF_ERROR(AdmitObject(catalog, manager, object));
      if (manager.IsBound(key)) command.bound.insert(key);
    }
    command.objects.push_back(std::move(object));
  }
  return command;
}

std::string WarningOfDelete(const ObjectCatalog& catalog, const VolumeManager& manager,
                            const ObjectKey& object, const std::optional<ObjectOrigin>& origin) {
  const std::optional<StorageStatus> storage = manager.StorageStatusOf(object);
  if (storage && !storage->held_by.empty()) {
    return ToString(object) + " is Terminating until that is over: " + storage->held_by;
  }
  std::string text;
  if (storage && object.kind == ObjectKind::kPersistentVolume) text = storage->reason;
  const bool of_manifest = origin && origin->source != ObjectDirectory::kSourceName &&
                           origin->source != Provisioning::kSourceName && !origin->file.empty();
  if (of_manifest && catalog.IsEnded(object)) {
    text += (text.empty() ? "" : "; ") + origin->file +
            " still has it, where it is refused until the file has lost it";
  }
  return text;
}

}  // namespace volumed
