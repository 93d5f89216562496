#include "agent/command_admission.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "kube/pod_facts.h"
#include "kube/static_pod.h"
#include "kube/storage_enums.h"
#include "kube/validate_update.h"
#include "volume/claim_binding.h"
#include "volume/csi_translation.h"
#include "volume/storage_name.h"
#include "volumemanager/claims/provisioning.h"
#include "volumemanager/claims/refused_objects.h"

namespace volumed {
namespace {

std::string PlaceOf(const ObjectOrigin& origin) {
  return origin.file.empty() ? "source " + origin.source : origin.file;
}

bool IsOfManifest(const std::optional<ObjectOrigin>& origin) {
  return origin && origin->source != ObjectDirectory::kSourceName &&
         origin->source != Provisioning::kSourceName && !origin->file.empty();
}

// Gives an object without a uid the one that is known for it. If none is known, the object may name
// any.
Status Identify(const ObjectKey& key, const std::string& known, ObjectMeta& metadata) {
  if (!HasUidOnRecord(key.kind) || known.empty()) return OkStatus();
  if (metadata.uid.empty()) metadata.uid = known;
  return metadata.uid == known ? OkStatus() : Status(RefuseOtherUid(key, known));
}

Status AdmitObject(const ObjectCatalog& catalog, const VolumeManager& manager, bool replace,
                   Object& object) {
  const ObjectKey key = KeyOf(object);
  if (manager.storage().IsBeingDeleted(key)) {
    // Source: kubernetes apiserver registry/generic/registry/store.go@v1.36.2 (Create).
    return Error::NotApplied(Code::kAlreadyExists, "object is being deleted: " + ToString(key) +
                                                       " already exists; apply it again when it "
                                                       "is gone");
  }
  if (const PodUid pod = manager.storage().PodOfClaim(key); !pod.empty()) {
    return Error::NotApplied(Code::kAlreadyExists,
                             ToString(key) + " is that of a generic ephemeral volume of the pod " +
                                 "with the uid " + pod.str() + ", and ends with it");
  }
  ObjectMeta& metadata = MetaOf(object);
  if (!metadata.uid.empty() && manager.storage().HasEnded(key, metadata.uid)) {
    return Error::NotApplied(Code::kAlreadyExists,
                             ToString(key) + " with the uid " + metadata.uid +
                                 " was deleted by command; leave the uid out, and it is another "
                                 "one");
  }
  const ObjectPtr known = catalog.FindObject(key);
  const std::optional<ObjectStanding> standing = catalog.StandingOf(key);
  if (known == nullptr || !standing)
    return Identify(key, manager.storage().UidOnRecord(key), metadata);
  const bool elsewhere =
      standing->origin.source != ObjectDirectory::kSourceName && !standing->missing;
  if (elsewhere) {
    return Error::NotApplied(Code::kAlreadyExists,
                             ToString(key) + " is in " + PlaceOf(standing->origin) +
                                 "; change it there, or remove it there first");
  }
  RETURN_IF_ERROR(Identify(key, MetaOf(*known).uid, metadata));
  // It is still the same object, even if it is Missing.
  metadata.creation_unix_millis = MetaOf(*known).creation_unix_millis;
  const bool bound = manager.storage().IsBound(key);
  Object before = *known;
  if (auto* claim = std::get_if<PersistentVolumeClaim>(&before); claim != nullptr && bound) {
    claim->status = manager.storage().ClaimStatus(*claim);
  }
  const std::vector<UpdateProblem> problems = ValidateUpdate(before, object, bound);
  return problems.empty() ? OkStatus() : Status(RefuseUpdate(*known, problems, replace));
}

// The pod that has the name, or waits for it; empty if none does. With `replace` this includes a
// pod that leaves, since its successor has to wait for it.
PodUid UidOfName(const ObjectCatalog& catalog, const VolumeManager& manager, const ObjectKey& key,
                 bool replace) {
  const auto waiting = catalog.Waiting().find(key);
  if (waiting != catalog.Waiting().end()) return waiting->second.uid;
  const bool is_named = replace || catalog.NamedBy(key).has_value();
  return is_named ? PodUid(manager.storage().UidOnRecord(key)) : PodUid();
}

// A uid has one pod, and a pod has one name: with the node's suffix or without it.
Status CheckNames(const ObjectCatalog& catalog, const VolumeManager& manager, const NodeName& node,
                  const ObjectKey& key, const Pod& pod) {
  const std::optional<PodView> same =
      pod.metadata.uid.empty() ? std::nullopt : manager.pods().Find(pod.uid());
  if (same && !same->name.empty() && (same->ns != key.name_space || same->name != key.name)) {
    return Error::NotApplied(Code::kAlreadyExists, ToString(key) + " has the uid of Pod " +
                                                       same->ns + "/" + same->name + ", " +
                                                       pod.metadata.uid);
  }
  ObjectKey other = key;
  other.name =
      pod.metadata.uid.empty() ? pod.metadata.name : StaticPodName(pod.metadata.name, node);
  const ObjectPtr there = catalog.FindObject(other);
  const bool is_static = there != nullptr && StaticPodBaseName(std::get<Pod>(*there)).has_value();
  if (there == nullptr || is_static == pod.metadata.uid.empty()) return OkStatus();
  const std::optional<ObjectOrigin> origin = catalog.OriginOf(other);
  return Error::NotApplied(Code::kAlreadyExists,
                           ToString(key) + " is " + ToString(other) + " of " +
                               (origin ? PlaceOf(*origin) : std::string("another source")) +
                               ", which has the uid " + MetaOf(*there).uid +
                               "; name another pod, or delete that one first");
}

// A pod that no source has any more keeps its volumes until it is gone. If a pod with its uid and
// other volumes were accepted now, it would become that pod, and the volumes that were asked for
// would be lost.
Status CheckNotLeaving(const ObjectCatalog& catalog, const VolumeManager& manager,
                       const ObjectKey& key, const Pod& pod) {
  if (pod.metadata.uid.empty() || catalog.FindPod(pod.uid()) != nullptr) return OkStatus();
  const PodOnNode here = manager.pods().FindOnNode(pod.uid());
  if (here.pod == nullptr || HaveSameVolumes(*here.pod, pod)) return OkStatus();
  return Error::NotApplied(Code::kAlreadyExists,
                           "object is being deleted: " + ToString(key) + " with the uid " +
                               pod.metadata.uid + " is on the node still, with other volumes; " +
                               "apply it again when it is gone, or with another uid");
}

Status AdmitPod(const ObjectCatalog& catalog, const VolumeManager& manager, const NodeName& node,
                const ObjectKey& key, const Pod& pod, ApplyCommand& command) {
  for (const auto& [replaced, successor] : catalog.ReplacedByCommand()) {
    if (successor == key && !manager.pods().Find(replaced)) command.gone.insert(replaced);
  }
  RETURN_IF_ERROR(CheckNames(catalog, manager, node, key, pod));
  RETURN_IF_ERROR(CheckNotLeaving(catalog, manager, key, pod));
  const PodUid known = UidOfName(catalog, manager, key, command.replace);
  if (known.empty()) return OkStatus();
  command.pods[key] = known;
  const bool is_another = !pod.metadata.uid.empty() && pod.uid() != known;
  return is_another && !command.replace ? Status(RefuseOtherUid(key, known.str())) : OkStatus();
}

bool IsConfigured(const ObjectCatalog& catalog, const std::string& source) {
  const std::vector<SourceStatus> sources = catalog.Sources();
  return std::any_of(sources.begin(), sources.end(), [&](const SourceStatus& status) {
    return status.name == source && !status.unconfigured;
  });
}

// Says how the data can be kept in spite of the policy, as long as the volume can still get another
// policy. `apply` is refused once the volume is being deleted, but a manifest is read even then.
std::string WayToKeep(const ObjectCatalog& catalog, const VolumeManager& manager,
                      const ObjectKey& volume) {
  const std::optional<ObjectStanding> standing = catalog.StandingOf(volume);
  const bool is_missing = standing && standing->missing;
  const std::optional<ObjectOrigin> origin =
      standing ? std::optional(standing->origin) : catalog.NamedBy(volume);
  const bool is_deleted = manager.storage().IsBeingDeleted(volume);
  const bool is_made_here = origin && origin->source == Provisioning::kSourceName;
  const bool has_file = IsOfManifest(origin);
  if (has_file && IsConfigured(catalog, origin->source)) {
    return ", and keeps it if " + origin->file +
           (is_missing ? " has it again with Retain" : " says Retain") + " before then";
  }
  if (!is_deleted && !is_made_here && (!has_file || is_missing)) {
    return ", and keeps it if it is applied with Retain before then";
  }
  const std::string why = is_made_here ? "the volume was made by this node"
                          : is_deleted ? "the volume is being deleted by command"
                                       : "source " + origin->source + " is not configured any more";
  return ", which cannot be changed any more, as " + why +
         "; what is to be kept has to be copied before then";
}

}  // namespace

Result<ApplyCommand> AdmitApply(const ObjectCatalog& catalog, const VolumeManager& manager,
                                const NodeName& node, ApplyWords words) {
  ApplyCommand command;
  command.replace = words.replace;
  for (Object& object : words.objects) {
    const ObjectKey key = KeyOnNode(object, node);
    if (const auto number = catalog.EndedBy(key)) command.ended[key] = *number;
    if (const Pod* pod = std::get_if<Pod>(&object)) {
      RETURN_IF_ERROR(AdmitPod(catalog, manager, node, key, *pod, command));
    } else {
      RETURN_IF_ERROR(AdmitObject(catalog, manager, words.replace, object));
      if (manager.storage().IsBound(key)) command.bound.insert(key);
    }
    command.objects.push_back(std::move(object));
  }
  return command;
}

std::optional<DoomedData> DataThatEndsWith(const ObjectCatalog& catalog,
                                           const VolumeManager& manager, const ObjectKey& object) {
  const std::optional<StorageStatus> status = manager.storage().StatusOf(object);
  if (!status) return std::nullopt;
  const bool is_volume = object.kind == ObjectKind::kPersistentVolume;
  if (is_volume ? !status->claim_goes : !manager.storage().IsBound(object)) return std::nullopt;
  const std::string& name = is_volume ? object.name : status->other;
  const PersistentVolumePtr volume = catalog.FindPersistentVolume(name);
  if (volume == nullptr) return std::nullopt;
  const ReclaimPolicy policy = volume->spec.reclaim_policy;
  if (ReclaimActionOf(policy) == ReclaimAction::kNone) return std::nullopt;
  const auto place = StorageNameOf(AsUsed(VolumeSpec::FromPersistentVolume(*volume, false)));
  DoomedData data{name, place ? place->ToString() : "", std::string(EnumText(policy)),
                  !is_volume && !status->held_by.empty()};
  const ObjectKey key{ObjectKind::kPersistentVolume, "", name};
  if (const auto its = manager.storage().StatusOf(key)) {
    data.stays_because = its->unreclaimable;
    if (!is_volume && its->is_missing && data.stays_because.empty()) {
      data.stays_because = "PersistentVolume " + name + ", whose reclaim policy is " + data.policy +
                           ", has left its source; it is deleted once that is back, or deleted by "
                           "command, and kept if it is applied with Retain before then";
    }
  }
  if (data.in_use) data.way_to_keep = WayToKeep(catalog, manager, key);
  return data;
}

namespace {

// Of a claim whose volume outlives it; "" for any other object.
std::string RetainedText(const ObjectCatalog& catalog, const VolumeManager& manager,
                         const ObjectKey& object) {
  const bool is_claim = object.kind == ObjectKind::kPersistentVolumeClaim;
  if (!is_claim || !manager.storage().IsBound(object)) return "";
  const std::optional<StorageStatus> status = manager.storage().StatusOf(object);
  const PersistentVolumePtr volume = status ? catalog.FindPersistentVolume(status->other) : nullptr;
  if (volume == nullptr) return "";
  const auto place = StorageNameOf(AsUsed(VolumeSpec::FromPersistentVolume(*volume, false)));
  return "its data" + (place ? " in " + place->ToString() : "") + " stays: PersistentVolume " +
         status->other + " has the reclaim policy " +
         std::string(EnumText(volume->spec.reclaim_policy));
}

}  // namespace

std::string FateOfData(const ObjectCatalog& catalog, const VolumeManager& manager,
                       const ObjectKey& object) {
  const std::optional<DoomedData> data = DataThatEndsWith(catalog, manager, object);
  if (!data) return RetainedText(catalog, manager, object);
  const std::string text = "its data" + (data->place.empty() ? "" : " in " + data->place);
  if (!data->stays_because.empty()) return text + " stays: " + data->stays_because;
  if (object.kind == ObjectKind::kPersistentVolume) {
    return text + " is deleted with it: its claim is " +
           (manager.storage().IsBound(object) ? "being deleted" : "gone") +
           ", and its reclaim policy is " + data->policy;
  }
  return text + " is deleted with it: PersistentVolume " + data->volume +
         " has the reclaim policy " + data->policy + data->way_to_keep;
}

Status CheckDelete(const ObjectCatalog& catalog, const VolumeManager& manager,
                   const ObjectKey& object, bool yes) {
  if (yes || object.kind != ObjectKind::kPersistentVolume) return OkStatus();
  const std::optional<StorageStatus> status = manager.storage().StatusOf(object);
  if (!status || !status->is_missing) return OkStatus();
  const std::optional<DoomedData> data = DataThatEndsWith(catalog, manager, object);
  if (!data || !data->stays_because.empty()) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition,
                           ToString(object) + " has left its source and keeps its data; deleted, " +
                               FateOfData(catalog, manager, object) +
                               "; say --yes if that may go, or apply it with "
                               "persistentVolumeReclaimPolicy: Retain first");
}

std::optional<ObjectOrigin> OriginOfDeleted(const ObjectCatalog& catalog, const ObjectKey& object) {
  const std::optional<ObjectStanding> standing = catalog.StandingOf(object);
  if (standing && !standing->missing && standing->presence == ObjectPresence::kPresent) {
    return standing->origin;
  }
  const auto refused = catalog.Refused().find(object);
  if (refused != catalog.Refused().end()) return refused->second;
  return std::nullopt;
}

Status CheckAcceptVolume(const ObjectCatalog& catalog, const VolumeManager& manager,
                         const std::string& volume) {
  const ObjectKey key{ObjectKind::kPersistentVolume, "", volume};
  const PersistentVolumePtr object = catalog.FindPersistentVolume(volume);
  const std::optional<StorageStatus> status = manager.storage().StatusOf(key);
  // For a volume that never had a claim nothing is on record.
  if (object == nullptr || !status || status->other.empty()) return OkStatus();
  if (ReclaimActionOf(object->spec.reclaim_policy) == ReclaimAction::kNone) return OkStatus();
  const size_t slash = status->other.find('/');
  const bool has_claim = manager.storage().IsBound(key) && slash != std::string::npos;
  const bool keeps =
      has_claim && !manager.storage().IsBeingDeleted({ObjectKind::kPersistentVolumeClaim,
                                                      status->other.substr(0, slash),
                                                      status->other.substr(slash + 1)});
  if (keeps) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition,
                           "the claim of PersistentVolume " + volume +
                               " is gone or being deleted, and its reclaim policy " +
                               std::string(EnumText(object->spec.reclaim_policy)) +
                               " would delete what is in the directory that is accepted; make it "
                               "Retain first, or delete "
                               "the PersistentVolume once it is");
}

std::string WarningOfDelete(const VolumeManager& manager, const ObjectKey& object,
                            const std::optional<ObjectOrigin>& origin) {
  const std::optional<StorageStatus> storage = manager.storage().StatusOf(object);
  const bool is_held = storage && !storage->held_by.empty();
  std::string text;
  if (is_held) {
    text = ToString(object) + " is Terminating until this is over: " + storage->held_by;
  } else if (storage && object.kind == ObjectKind::kPersistentVolume) {
    text = storage->reason;
  }
  if (IsOfManifest(origin)) {
    text += (text.empty() ? "" : "; ") + origin->file + " still has it, where it is refused" +
            (is_held ? " then; " : "; ") + WayBackText(origin->file);
  }
  return text;
}

std::string WarningOfPodDelete(const ObjectCatalog& catalog, const ObjectKey& pod) {
  const std::optional<ObjectStanding> standing = catalog.StandingOf(pod);
  const bool is_there = standing && standing->presence == ObjectPresence::kPresent;
  if (!is_there || !IsOfManifest(standing->origin)) return "";
  return standing->origin.file +
         " still has it: it stays away until that file has lost it for removal-settle, and comes "
         "back if it is put there anew";
}

}  // namespace volumed
