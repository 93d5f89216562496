// ObjectCatalog: what an object that has its name becomes, if what it must not change was changed.
#include <utility>
#include <variant>

#include "kube/object_catalog_merge.h"
#include "kube/pod_facts.h"
#include "kube/static_pod.h"
#include "kube/validate_update.h"

namespace volumed {
namespace {

constexpr const char* kChangedUnseen =
    "it was changed while no agent ran, and what it held before is not on record: put that back, "
    "or "
    "delete the object by command";

}  // namespace

// The pod of this uid as it was, also when the last agent ended or while it leaves; null if there
// was none.
ObjectPtr ObjectCatalog::Merge::FirstOf(const Candidate& candidate) const {
  const PodUid uid = candidate.pod_uid();
  if (uid.empty()) return nullptr;
  if (const Entry* old = OldPod(uid)) return old->object;
  if (const auto remembered = candidate.source()->remembered.find(candidate.key);
      remembered != candidate.source()->remembered.end()) {
    const ObjectPtr& object = remembered->second.object;
    if (object != nullptr && UidOfPod(*object) == uid) return object;
  }
  if (catalog_.identities_ == nullptr) return nullptr;
  const PodOnNode here = catalog_.identities_->FindOnNode(uid);
  return here.pod == nullptr ? nullptr : std::make_shared<const Object>(*here.pod);
}

// The object of this name as it was, also when the last agent ended; null if there was none, or
// if that one has ended.
ObjectPtr ObjectCatalog::Merge::KnownOf(const Candidate& candidate) const {
  ObjectPtr known;
  if (const Entry* old = catalog_.FindEntry(candidate.key)) {
    known = old->object;
  } else if (const auto remembered = candidate.source()->remembered.find(candidate.key);
             remembered != candidate.source()->remembered.end()) {
    known = remembered->second.object;
  }
  const bool ended = known != nullptr && WasEnded(candidate.key, MetaOf(*known).uid);
  return ended ? nullptr : known;
}

// What is immutable of a Secret or ConfigMap was changed while no agent ran. Its old content is
// on no record: it is unknown.
bool ObjectCatalog::Merge::DiffersFromItsMark(const Candidate& candidate) {
  if (catalog_.FindEntry(candidate.key) != nullptr) return false;
  const auto remembered = candidate.source()->remembered.find(candidate.key);
  if (remembered == candidate.source()->remembered.end() || !remembered->second.mark) return false;
  const KnownObject& known = remembered->second;
  if (WasEnded(known.key, known.uid)) return false;
  const std::vector<UpdateProblem> problems = ValidateUpdate(*known.mark, *candidate.object);
  if (problems.empty()) return false;
  for (const UpdateProblem& problem : problems) {
    AddProblem(candidate, problem.field_path, problem.reason + "; " + kChangedUnseen);
  }
  out_.unknown.insert_or_assign(
      candidate.key, Unknown{candidate.origin, ToString(problems) + "; " + kChangedUnseen});
  return true;
}

// The object, or the known one if what changed is immutable.
ObjectPtr ObjectCatalog::Merge::WithImmutable(const Candidate& candidate, const ObjectPtr& object) {
  const ObjectPtr known = KnownOf(candidate);
  if (known == nullptr || known == object) return object;
  const bool bound = catalog_.is_bound_ && catalog_.is_bound_(candidate.key);
  ObjectPtr before = known;
  const auto* claim = std::get_if<PersistentVolumeClaim>(known.get());
  if (bound && claim != nullptr && catalog_.claim_status_) {
    PersistentVolumeClaim shown = *claim;
    shown.status = catalog_.claim_status_(*claim);
    before = std::make_shared<const Object>(std::move(shown));
  }
  const std::vector<UpdateProblem> problems = ValidateUpdate(*before, *object, bound);
  for (const UpdateProblem& problem : problems) {
    AddProblem(candidate, problem.field_path, problem.reason + "; the object stays as it was");
  }
  if (!problems.empty() && catalog_.is_bound_) out_.refused_while_bound.insert(candidate.key);
  return problems.empty() ? object : known;
}

// The object, or for a pod whose volumes changed under its uid: the new one with the old spec.
ObjectPtr ObjectCatalog::Merge::WithFirstSpec(const Candidate& candidate, ObjectPtr object,
                                              ObjectStanding& standing) {
  if (candidate.key.kind != ObjectKind::kPod) return WithImmutable(candidate, object);
  const ObjectPtr old = FirstOf(candidate);
  if (old == nullptr || old == object) return object;
  const Pod& before = std::get<Pod>(*old);
  const Pod& now = std::get<Pod>(*object);
  if (HaveSameVolumes(before, now)) return object;
  standing.has_first_volumes = true;
  standing.to_be_replaced = catalog_.identities_ != nullptr && candidate.own_uid().empty() &&
                            standing.presence == ObjectPresence::kPresent;
  AddProblem(candidate, "spec.volumes",
             standing.to_be_replaced
                 ? "is immutable under the same uid; these are another pod's, which replaces "
                   "this one with a new uid once the edit has lasted and its consumers are gone"
                 : "is immutable under the same uid; the first spec stays until the pod leaves");
  Pod kept = now;
  kept.spec = before.spec;
  return kept == before ? old : std::make_shared<const Object>(std::move(kept));
}

ObjectPtr ObjectCatalog::Merge::WithUid(const Candidate& candidate) const {
  const Entry* old = catalog_.FindEntry(candidate.key);
  if (candidate.uid == candidate.own_uid() && candidate.object == candidate.listed().object) {
    return candidate.object;
  }
  Object identified = *candidate.object;
  if (Pod* pod = std::get_if<Pod>(&identified)) {
    SetPodUid(*pod, candidate.uid);
  } else {
    MetaOf(identified).uid = candidate.uid;
  }
  if (old != nullptr && *old->object == identified) return old->object;
  return std::make_shared<const Object>(std::move(identified));
}

}  // namespace volumed
