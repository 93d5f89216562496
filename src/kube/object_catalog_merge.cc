// ObjectCatalog: who of several has a name, and what happens to the others.
#include <algorithm>
#include <utility>
#include <variant>

#include "kube/object_catalog_merge.h"
#include "kube/pod_facts.h"
#include "kube/refusal_text.h"
#include "kube/static_pod.h"

namespace volumed {
namespace {

std::string PlaceOfFile(const ObjectOrigin& origin) {
  return "source " + origin.source + (origin.file.empty() ? "" : ", " + origin.file);
}

std::string Place(const ObjectOrigin& origin) {
  return PlaceOfFile(origin) + ", document " + std::to_string(origin.document + 1);
}

}  // namespace

void ObjectCatalog::Merge::Run() {
  CollectCandidates();
  CollectUnknown();
  // What was there first stays: those who have their names already claim before the others.
  for (Candidate& candidate : candidates_) {
    if (HadItsNames(candidate)) Claim(candidate);
  }
  for (Candidate& candidate : candidates_) {
    if (!candidate.claimed) Claim(candidate);
  }
  KeepMissing();
  for (const auto& [key, entry] : out_.entries) out_.unknown.erase(key);
  LinkCandidates();
  NoteContested();
}

bool ObjectCatalog::Merge::WasEnded(const ObjectKey& key, const std::string& uid) const {
  const auto ended = catalog_.ended_.find(key);
  return ended != catalog_.ended_.end() && ended->second.uids.contains(uid);
}

const ObjectCatalog::Entry* ObjectCatalog::Merge::OldPod(const PodUid& uid) const {
  const auto found = catalog_.pods_by_uid_.find(uid);
  return found == catalog_.pods_by_uid_.end() ? nullptr : catalog_.FindEntry(found->second);
}

const ObjectOrigin* ObjectCatalog::Merge::NamedBy(const ObjectKey& key) const {
  const auto found = catalog_.named_by_.find(key);
  return found == catalog_.named_by_.end() ? nullptr : &found->second;
}

// By command.
bool ObjectCatalog::Merge::Replaces(const Candidate& candidate, const PodUid& pod) {
  return candidate.listed().replaces.contains(pod);
}

// True if one of its names was this file's before, and none was another's.
bool ObjectCatalog::Merge::HadItsNames(const Candidate& candidate) const {
  const PodUid uid = candidate.pod_uid();
  const Entry* by_uid = uid.empty() ? nullptr : OldPod(uid);
  bool had = false;
  for (const ObjectOrigin* named_by :
       {NamedBy(candidate.key), by_uid == nullptr ? nullptr : &by_uid->standing.origin}) {
    if (named_by == nullptr) continue;
    if (!SameFile(*named_by, candidate.origin)) return false;
    had = true;
  }
  return had;
}

void ObjectCatalog::Merge::Claim(Candidate& candidate) {
  candidate.claimed = true;
  if (IsRefusedAsEnded(candidate) || IsNameTaken(candidate)) return;
  if (WaitsForPredecessor(candidate)) {
    out_.waiting[candidate.key] = {candidate.pod_uid(), candidate.origin};
    return;
  }
  if (IsUidOfAnother(candidate) || IsNameOfAnother(candidate) || IsUidTaken(candidate)) return;
  if (DiffersFromItsMark(candidate)) return;
  Identify(candidate);
  Entry entry;
  entry.standing.origin = candidate.origin;
  entry.standing.presence = candidate.listed().presence;
  entry.standing.reason = candidate.listed().reason;
  entry.standing.goes_at_unix_millis = candidate.listed().goes_at_unix_millis;
  entry.object = WithFirstSpec(candidate, WithUid(candidate), entry.standing);
  out_.entries[candidate.key] = std::move(entry);
}

bool ObjectCatalog::Merge::IsNameTaken(const Candidate& candidate) {
  if (const auto owner = out_.entries.find(candidate.key); owner != out_.entries.end()) {
    Refuse(candidate, "metadata.name", owner->second.standing.origin, "name");
    return true;
  }
  if (const Unknown* unknown = UnknownElsewhere(candidate)) {
    AddProblem(candidate, "metadata.name",
               "the same name is that of " + PlaceOfFile(unknown->origin) +
                   ", of which nobody knows whether it still has it (" + unknown->reason +
                   "); this one is not used until that is known");
    return true;
  }
  if (const auto first = out_.waiting.find(candidate.key); first != out_.waiting.end()) {
    Refuse(candidate, "metadata.name", first->second.origin, "name");
    return true;
  }
  return false;
}

// The uid is the candidate's from here on, unless it is taken.
bool ObjectCatalog::Merge::IsUidTaken(const Candidate& candidate) {
  const PodUid uid = candidate.pod_uid();
  if (uid.empty()) return false;
  const auto [owner, is_free] = uid_owners_.try_emplace(uid, candidate.key);
  if (!is_free) {
    Refuse(candidate, "metadata.uid", out_.entries.at(owner->second).standing.origin, "uid");
  }
  return !is_free;
}

// The directory of a uid is that of the pod which has had it, until nothing of that is left.
bool ObjectCatalog::Merge::IsUidOfAnother(const Candidate& candidate) {
  if (candidate.pod_uid().empty() || catalog_.identities_ == nullptr) return false;
  const auto owner = catalog_.identities_->PodOfUid(candidate.pod_uid());
  if (!owner || *owner == candidate.key) return false;
  out_.wait_for_uid.insert(candidate.key);
  out_.waits[candidate.key].insert(*owner);
  AddProblem(candidate, "metadata.uid",
             "is that of " + ToString(*owner) + ", which has it as long as anything of it is left");
  return true;
}

// "web" on a node "a-b" and "web-a" on a node "b" have one name. The first keeps it, with its uid
// and its data, also when its node is called "b" by now.
bool ObjectCatalog::Merge::IsNameOfAnother(const Candidate& candidate) {
  const Pod* pod = std::get_if<Pod>(candidate.object.get());
  if (pod == nullptr || candidate.pod_uid().empty() || catalog_.identities_ == nullptr) {
    return false;
  }
  const PodOnNode here = catalog_.identities_->FindOnNode(candidate.pod_uid());
  if (here.pod == nullptr) return false;
  const std::optional<std::string> base = StaticPodBaseName(*pod);
  const std::optional<std::string> its = StaticPodBaseName(*here.pod);
  if (!base || !its || *base == *its) return false;
  out_.wait_for_uid.insert(candidate.key);
  WaitFor(candidate, candidate.pod_uid());
  AddProblem(candidate, "metadata.name",
             "is that of the static pod " + *its + ", which was made when the node was called " +
                 here.pod->spec.node_name + ", and has it as long as anything of it is left");
  return true;
}

// What comes after a pod that is replaced has to wait until nothing of that is left.
bool ObjectCatalog::Merge::WaitsForPredecessor(const Candidate& candidate) {
  for (const PodUid& pod : candidate.listed().replaces)
    out_.replaced_by_command[pod] = candidate.key;
  if (ReplacesOneThatIsHere(candidate)) {
    AddProblem(candidate, "spec.volumes",
               "it replaces the pod with the volumes of before by command, and is made once that "
               "is gone",
               /*is_waiting=*/true);
    return true;
  }
  if (SucceedsOneThatLeft(candidate)) catalog_.replaced_.insert(candidate.key);
  if (!catalog_.replaced_.contains(candidate.key)) return false;
  AddProblem(candidate, "spec.volumes",
             "other volumes need another pod: it is made once the pod with the volumes of before "
             "is gone",
             /*is_waiting=*/true);
  return true;
}

// A pod that is on the node already has waited: of its predecessor there is a row at most.
bool ObjectCatalog::Merge::ReplacesOneThatIsHere(const Candidate& candidate) {
  const std::set<PodUid>& replaces = candidate.listed().replaces;
  if (replaces.empty() || catalog_.identities_ == nullptr) return false;
  const ObjectIdentities& identities = *catalog_.identities_;
  if (identities.FindOnNode(candidate.pod_uid()).is_here) return false;
  bool waits = false;
  for (const PodUid& pod : replaces) {
    if (!identities.FindOnNode(pod).is_here) continue;
    WaitFor(candidate, pod);
    waits = true;
  }
  return waits;
}

// By whatever name the node has it.
void ObjectCatalog::Merge::WaitFor(const Candidate& candidate, const PodUid& pod) {
  std::set<ObjectKey>& waits = out_.waits[candidate.key];
  if (const auto on_record = catalog_.identities_->PodOfUid(pod)) waits.insert(*on_record);
  const PodOnNode here = catalog_.identities_->FindOnNode(pod);
  if (here.pod != nullptr) waits.insert(KeyOf(Object(*here.pod)));
}

// The pod of its name has left its sources, and is on the node still: with other volumes it is
// not that pod which has come back. A start in the middle of a replacement finds it so.
bool ObjectCatalog::Merge::SucceedsOneThatLeft(const Candidate& candidate) const {
  const Pod* now = std::get_if<Pod>(candidate.object.get());
  if (now == nullptr || catalog_.identities_ == nullptr) return false;
  if (candidate.uid.empty() || !candidate.own_uid().empty()) return false;
  if (OldPod(candidate.pod_uid()) != nullptr) return false;
  const PodOnNode here = catalog_.identities_->FindOnNode(candidate.pod_uid());
  return here.has_left && here.pod != nullptr && !HaveSameVolumes(*here.pod, *now);
}

// Gives the candidate the uid that it is to have.
void ObjectCatalog::Merge::Identify(Candidate& candidate) {
  if (!IsIdentified(candidate.key.kind)) return;
  ObjectIdentities& identities = *catalog_.identities_;
  if (candidate.uid.empty()) {
    candidate.uid = identities.UidOf(candidate.key);
    if (!candidate.pod_uid().empty()) uid_owners_[candidate.pod_uid()] = candidate.key;
  } else if (candidate.uid != identities.KnownUidOf(candidate.key)) {
    identities.Adopt(candidate.key, candidate.uid);
  } else if (!candidate.own_uid().empty() && candidate.own_uid() != candidate.uid) {
    AddProblem(candidate, "metadata.uid", UidIsImmutable(candidate.uid));
  }
}

bool ObjectCatalog::Merge::IsRefusedAsEnded(const Candidate& candidate) {
  const auto ended = catalog_.ended_.find(candidate.key);
  if (ended == catalog_.ended_.end()) return false;
  const std::string& uid = candidate.own_uid();
  const bool another = !uid.empty() && !ended->second.uids.contains(uid);
  const bool given_later = candidate.listed().number > ended->second.number;
  if (another || given_later) return false;
  out_.ended_and_there.insert(candidate.key);
  // What the agent gives by itself is in no file, and goes with what it stands for: a content of a
  // snapshot that is kept.
  if (candidate.origin.source == kSnapshotSource) return true;
  out_.refused[candidate.key] = candidate.origin;
  if (uid.empty()) refused_without_uid_.emplace(candidate.key, candidate.origin);
  // A file that has lost it is as it is to be.
  if (candidate.listed().presence == ObjectPresence::kGoing) return true;
  AddProblem(candidate, "metadata.name",
             std::string(HowDeletedText(candidate.key.kind)) + " and " +
                 PlaceOfFile(candidate.origin) +
                 " still has it; it is not used until that has lost it");
  return true;
}

// The file that had the name first, if that may still have it.
const ObjectCatalog::Unknown* ObjectCatalog::Merge::UnknownElsewhere(
    const Candidate& candidate) const {
  const auto unknown = out_.unknown.find(candidate.key);
  const ObjectOrigin* named_by = NamedBy(candidate.key);
  if (unknown == out_.unknown.end() || named_by == nullptr) return nullptr;
  const bool its = SameFile(unknown->second.origin, *named_by);
  return its && !SameFile(*named_by, candidate.origin) ? &unknown->second : nullptr;
}

void ObjectCatalog::Merge::Refuse(const Candidate& candidate, std::string field,
                                  const ObjectOrigin& owner, std::string_view what) {
  AddProblem(candidate, std::move(field),
             "the same " + std::string(what) + " was there first in " + Place(owner) +
                 "; this one is not used");
}

void ObjectCatalog::Merge::AddProblem(const Candidate& candidate, std::string field,
                                      std::string reason, bool is_waiting) {
  DecodeProblem problem{candidate.origin.file, candidate.origin.document, ToString(candidate.key),
                        std::move(field), std::move(reason)};
  problem.is_waiting = is_waiting;
  out_.conflicts[candidate.source()][candidate.key].push_back(std::move(problem));
}

}  // namespace volumed
