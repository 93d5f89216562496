// ObjectCatalog: how the sources' lists become one view.
#include <algorithm>
#include <tuple>
#include <utility>
#include <variant>

#include "kube/object_catalog.h"
#include "kube/pod_facts.h"
#include "kube/refusal_text.h"
#include "kube/static_pod.h"
#include "kube/validate_update.h"

namespace volumed {
namespace {

const Pod* AsPod(const ObjectPtr& object) { return std::get_if<Pod>(object.get()); }

std::string PlaceOfFile(const ObjectOrigin& origin) {
  return "source " + origin.source + (origin.file.empty() ? "" : ", " + origin.file);
}

std::string Place(const ObjectOrigin& origin) {
  return PlaceOfFile(origin) + ", document " + std::to_string(origin.document + 1);
}

constexpr const char* kLostWithoutCommand = "it has the object no more, and no command ended it";

constexpr const char* kChangedUnseen =
    "it was changed while no agent ran, and what it held before is not on record: put that back, "
    "or "
    "delete the object by command";

std::string NotDelivered(const std::string& source) {
  return "source " + source + " has not delivered since the start of the agent";
}

}  // namespace

// One merge of all sources' lists; the rules of the catalog stand here.
class ObjectCatalog::Merge {
 public:
  explicit Merge(ObjectCatalog& catalog) : catalog_(catalog) {}

  void Run() {
    catalog_.waits_for_uid_ = false;
    CollectCandidates();
    CollectUnknown();
    // What was there first stays: those who hold their names already claim before the others.
    for (Candidate& candidate : candidates_) {
      if (HeldItsNames(candidate)) Claim(candidate);
    }
    for (Candidate& candidate : candidates_) {
      if (!candidate.claimed) Claim(candidate);
    }
    KeepMissing();
    for (const auto& [key, entry] : entries_) unknown_.erase(key);
  }

  // REQUIRES: Run() is over, for these and those below.
  Entries TakeEntries() { return std::move(entries_); }
  std::map<ObjectKey, Unknown> TakeUnknown() { return std::move(unknown_); }
  // Objects that a command ended and that a source has all the same, or may have.
  const std::set<ObjectKey>& ended_and_there() const { return ended_and_there_; }
  std::map<ObjectKey, WaitingPod> TakeWaiting() { return std::move(waiting_); }
  std::map<PodUid, ObjectKey> TakeReplacedByCommand() { return std::move(replaced_by_command_); }
  std::map<ObjectKey, ObjectOrigin> TakeRefused() { return std::move(refused_); }

 private:
  struct Candidate {
    Source* source = nullptr;
    const ObjectWithOrigin* listed = nullptr;
    ObjectPtr object;  // as listed, but for a pod's name of when the node was called otherwise
    ObjectOrigin origin;
    ObjectKey key;
    std::string uid;  // that it has or is to have; "": it is to get a new one, or none
    bool claimed = false;

    const std::string& own_uid() const { return MetaOf(*object).uid; }
    PodUid pod_uid() const { return key.kind == ObjectKind::kPod ? PodUid(uid) : PodUid(); }
  };

  void CollectCandidates() {
    std::vector<std::pair<const std::string*, Source*>> sources;
    for (auto& [name, source] : catalog_.sources_) {
      source.conflict_problems.clear();
      sources.emplace_back(&name, &source);
    }
    std::sort(sources.begin(), sources.end(),
              [](const auto& a, const auto& b) { return a.second->order < b.second->order; });
    for (const auto& [name, source] : sources) {
      for (const ObjectWithOrigin& object : source->objects) {
        Candidate candidate;
        candidate.source = source;
        candidate.listed = &object;
        candidate.object = Renamed(object.object);
        candidate.origin = {*name, object.file, object.document};
        candidate.key = KeyOf(*candidate.object);
        candidate.uid = UidFor(candidate);
        listed_replaced_.insert(object.replaces.begin(), object.replaces.end());
        candidates_.push_back(std::move(candidate));
      }
    }
  }

  bool IsIdentified(ObjectKind kind) const {
    return catalog_.identities_ != nullptr &&
           (kind == ObjectKind::kPod || kind == ObjectKind::kPersistentVolume ||
            kind == ObjectKind::kPersistentVolumeClaim);
  }

  // A pod keeps the name that it got when the node was called otherwise, or when its manifest had a
  // uid and has none now, or the other way round.
  ObjectPtr Renamed(const ObjectPtr& object) const {
    const Pod* pod = AsPod(object);
    if (pod == nullptr || catalog_.identities_ == nullptr) return object;
    std::string name = catalog_.identities_->NameOf(*pod);
    if (name == pod->metadata.name) return object;
    Pod renamed = *pod;
    MakeStatic(StaticPodBaseName(*pod).value_or(pod->metadata.name), name, renamed);
    renamed.metadata.name = std::move(name);
    return std::make_shared<const Object>(std::move(renamed));
  }

  // A manifest that has got a uid is that of a static pod still. The node is the one that the name
  // was made with: what belongs to the pod's name and what to the node's is told by it alone.
  static void MakeStatic(const std::string& base, const std::string& name, Pod& pod) {
    if (!name.starts_with(base + "-")) return;
    pod.spec.node_name = name.substr(base.size() + 1);
    pod.metadata.annotations[std::string(kConfigSourceAnnotation)] = "file";
  }

  // The uid on record counts, whatever the manifest says by now; but a pod that no source has any
  // more may leave yet, and one with a uid of its own is another one then.
  std::string UidFor(const Candidate& candidate) const {
    if (!IsIdentified(candidate.key.kind)) return candidate.own_uid();
    std::string known = catalog_.identities_->KnownUidOf(candidate.key);
    const bool may_be_another =
        candidate.key.kind == ObjectKind::kPod && HolderOf(candidate.key) == nullptr;
    const bool own = !candidate.own_uid().empty() &&
                     (known.empty() || may_be_another || Replaces(candidate, PodUid(known)));
    return own ? candidate.own_uid() : known;
  }

  // By command.
  static bool Replaces(const Candidate& candidate, const PodUid& pod) {
    return candidate.listed->replaces.contains(pod);
  }

  // What a source may have without having said so: that is not anybody else's then.
  void CollectUnknown() {
    for (const auto& [name, source] : catalog_.sources_) {
      for (const UnknownObject& object : source.unknown) {
        unknown_.try_emplace(object.key, Unknown{{name, object.file, 0}, object.reason});
      }
      for (const auto& [key, object] : source.remembered) {
        const std::string why = WhyUnknown(name, source, object);
        if (!why.empty()) unknown_.try_emplace(key, Unknown{{name, object.file, 0}, why});
      }
    }
    for (const auto& [key, unknown] : unknown_) {
      if (catalog_.ended_.contains(key)) ended_and_there_.insert(key);
    }
  }

  // Why nobody knows whether an object that the last agent knew is there; "": that is known.
  std::string WhyUnknown(const std::string& name, const Source& source,
                         const KnownObject& object) const {
    if (!source.complete) return NotDelivered(name);
    if (catalog_.absence_ends_.contains(name) || WasEnded(object.key, object.uid)) return "";
    // A source has what a command has put in its place.
    if (object.key.kind == ObjectKind::kPod && listed_replaced_.contains(PodUid(object.uid))) {
      return "";
    }
    // It does not end by being absent, and nothing is left of it that could be Missing.
    if (OutlivesPods(object.key.kind)) return object.object == nullptr ? kLostWithoutCommand : "";
    return catalog_.WhereItMayHaveMoved(name);
  }

  bool WasEnded(const ObjectKey& key, const std::string& uid) const {
    const auto ended = catalog_.ended_.find(key);
    return ended != catalog_.ended_.end() && ended->second.uids.contains(uid);
  }

  const Entry* OldPod(const PodUid& uid) const {
    const auto found = catalog_.pods_by_uid_.find(uid);
    return found == catalog_.pods_by_uid_.end() ? nullptr : catalog_.FindEntry(found->second);
  }

  const ObjectOrigin* HolderOf(const ObjectKey& key) const {
    const auto found = catalog_.holders_.find(key);
    return found == catalog_.holders_.end() ? nullptr : &found->second;
  }

  // True if one of its names was this file's before, and none was another's.
  bool HeldItsNames(const Candidate& candidate) const {
    const PodUid uid = candidate.pod_uid();
    const Entry* by_uid = uid.empty() ? nullptr : OldPod(uid);
    bool held = false;
    for (const ObjectOrigin* holder :
         {HolderOf(candidate.key), by_uid == nullptr ? nullptr : &by_uid->standing.origin}) {
      if (holder == nullptr) continue;
      if (!SameFile(*holder, candidate.origin)) return false;
      held = true;
    }
    return held;
  }

  void Claim(Candidate& candidate) {
    candidate.claimed = true;
    if (IsRefusedAsEnded(candidate)) return;
    if (const auto owner = entries_.find(candidate.key); owner != entries_.end()) {
      return Refuse(candidate, "metadata.name", owner->second.standing.origin, "name");
    }
    if (const Unknown* held = HeldElsewhere(candidate)) {
      return AddProblem(candidate, "metadata.name",
                        "the same name is that of " + PlaceOfFile(held->origin) +
                            ", of which nobody knows whether it still has it (" + held->reason +
                            "); this one is not used until that is known");
    }
    if (const auto first = waiting_.find(candidate.key); first != waiting_.end()) {
      return Refuse(candidate, "metadata.name", first->second.origin, "name");
    }
    if (WaitsForPredecessor(candidate)) {
      waiting_[candidate.key] = {candidate.pod_uid(), candidate.origin};
      return;
    }
    if (IsUidOfAnother(candidate) || IsNameOfAnother(candidate)) return;
    if (const PodUid uid = candidate.pod_uid(); !uid.empty()) {
      if (const auto owner = uid_owners_.find(uid); owner != uid_owners_.end()) {
        return Refuse(candidate, "metadata.uid", entries_.at(owner->second).standing.origin, "uid");
      }
      uid_owners_[uid] = candidate.key;
    }
    if (DiffersFromItsMark(candidate)) return;
    Identify(candidate);
    Entry entry;
    entry.standing.origin = candidate.origin;
    entry.standing.presence = candidate.listed->presence;
    entry.standing.reason = candidate.listed->reason;
    entry.standing.goes_at_unix_millis = candidate.listed->goes_at_unix_millis;
    entry.object = WithFirstSpec(candidate, WithUid(candidate), entry.standing);
    entries_[candidate.key] = std::move(entry);
  }

  // The directory of a uid is that of the pod which has had it, until nothing of that is left.
  bool IsUidOfAnother(const Candidate& candidate) {
    if (candidate.pod_uid().empty() || catalog_.identities_ == nullptr) return false;
    const auto owner = catalog_.identities_->PodOfUid(candidate.pod_uid());
    if (!owner || *owner == candidate.key) return false;
    catalog_.waits_for_uid_ = true;
    AddProblem(
        candidate, "metadata.uid",
        "is that of " + ToString(*owner) + ", which has it as long as anything of it is left");
    return true;
  }

  // "web" on a node "a-b" and "web-a" on a node "b" have one name. The first keeps it, with its uid
  // and its data, also when its node is called "b" by now.
  bool IsNameOfAnother(const Candidate& candidate) {
    const Pod* pod = AsPod(candidate.object);
    if (pod == nullptr || candidate.pod_uid().empty() || catalog_.identities_ == nullptr) {
      return false;
    }
    const PodOnNode here = catalog_.identities_->FindOnNode(candidate.pod_uid());
    if (here.pod == nullptr) return false;
    const std::optional<std::string> base = StaticPodBaseName(*pod);
    const std::optional<std::string> its = StaticPodBaseName(*here.pod);
    if (!base || !its || *base == *its) return false;
    catalog_.waits_for_uid_ = true;
    AddProblem(candidate, "metadata.name",
               "is that of the static pod " + *its + ", which was made when the node was called " +
                   here.pod->spec.node_name + ", and has it as long as anything of it is left");
    return true;
  }

  // What comes after a pod that is replaced has to wait until nothing of that is left.
  bool WaitsForPredecessor(const Candidate& candidate) {
    for (const PodUid& pod : candidate.listed->replaces) replaced_by_command_[pod] = candidate.key;
    if (ReplacesOneThatIsHere(candidate)) {
      AddWaiting(candidate, "spec.volumes",
                 "it replaces the pod with the volumes of before by command, and is made once that "
                 "is gone");
      return true;
    }
    if (SucceedsOneThatLeft(candidate)) catalog_.replaced_.insert(candidate.key);
    if (!catalog_.replaced_.contains(candidate.key)) return false;
    AddWaiting(candidate, "spec.volumes",
               "other volumes need another pod: it is made once the pod with the volumes of before "
               "is gone");
    return true;
  }

  // A pod that is on the node already has waited: of its predecessor there is a row at most.
  bool ReplacesOneThatIsHere(const Candidate& candidate) const {
    const std::set<PodUid>& replaces = candidate.listed->replaces;
    if (replaces.empty() || catalog_.identities_ == nullptr) return false;
    const ObjectIdentities& identities = *catalog_.identities_;
    return !identities.FindOnNode(candidate.pod_uid()).is_here &&
           std::any_of(replaces.begin(), replaces.end(),
                       [&](const PodUid& pod) { return identities.FindOnNode(pod).is_here; });
  }

  // The pod of its name has left its sources, and is on the node still: with other volumes it is
  // not that pod which has come back. A start in the middle of a replacement finds it so.
  bool SucceedsOneThatLeft(const Candidate& candidate) const {
    const Pod* now = AsPod(candidate.object);
    if (now == nullptr || catalog_.identities_ == nullptr) return false;
    if (candidate.uid.empty() || !candidate.own_uid().empty()) return false;
    if (OldPod(candidate.pod_uid()) != nullptr) return false;
    const PodOnNode here = catalog_.identities_->FindOnNode(candidate.pod_uid());
    return here.has_left && here.pod != nullptr && !HaveSameVolumes(*here.pod, *now);
  }

  // Gives the candidate the uid that it is to have.
  void Identify(Candidate& candidate) {
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

  bool IsRefusedAsEnded(const Candidate& candidate) {
    const auto ended = catalog_.ended_.find(candidate.key);
    if (ended == catalog_.ended_.end()) return false;
    const std::string& uid = candidate.own_uid();
    const bool another = !uid.empty() && !ended->second.uids.contains(uid);
    const bool given_later = candidate.listed->number > ended->second.number;
    if (another || given_later) return false;
    ended_and_there_.insert(candidate.key);
    refused_[candidate.key] = candidate.origin;
    if (uid.empty()) refused_without_uid_.emplace(candidate.key, candidate.origin);
    // A file that has lost it is as it is to be.
    if (candidate.listed->presence == ObjectPresence::kGoing) return true;
    AddProblem(candidate, "metadata.name",
               std::string(HowDeletedText(candidate.key.kind)) + " and " +
                   PlaceOfFile(candidate.origin) +
                   " still has it; it is not used until that has lost it");
    return true;
  }

  // The file that had the name first, if that may still have it.
  const Unknown* HeldElsewhere(const Candidate& candidate) const {
    const auto unknown = unknown_.find(candidate.key);
    const ObjectOrigin* holder = HolderOf(candidate.key);
    if (unknown == unknown_.end() || holder == nullptr) return nullptr;
    const bool its = SameFile(unknown->second.origin, *holder);
    return its && !SameFile(*holder, candidate.origin) ? &unknown->second : nullptr;
  }

  void Refuse(const Candidate& candidate, std::string field, const ObjectOrigin& owner,
              std::string_view what) {
    AddProblem(candidate, std::move(field),
               "the same " + std::string(what) + " was there first in " + Place(owner) +
                   "; this one is not used");
  }

  void AddProblem(const Candidate& candidate, std::string field, std::string reason) {
    candidate.source->conflict_problems.push_back({candidate.origin.file, candidate.origin.document,
                                                   ToString(candidate.key), std::move(field),
                                                   std::move(reason)});
  }

  void AddWaiting(const Candidate& candidate, std::string field, std::string reason) {
    AddProblem(candidate, std::move(field), std::move(reason));
    candidate.source->conflict_problems.back().is_waiting = true;
  }

  // The pod of this uid as it was, also when the last agent ended or while it leaves; null if there
  // was none.
  ObjectPtr FirstOf(const Candidate& candidate) const {
    const PodUid uid = candidate.pod_uid();
    if (uid.empty()) return nullptr;
    if (const Entry* old = OldPod(uid)) return old->object;
    if (const auto remembered = candidate.source->remembered.find(candidate.key);
        remembered != candidate.source->remembered.end()) {
      const ObjectPtr& object = remembered->second.object;
      if (object != nullptr && UidOfPod(*object) == uid) return object;
    }
    if (catalog_.identities_ == nullptr) return nullptr;
    const PodOnNode here = catalog_.identities_->FindOnNode(uid);
    return here.pod == nullptr ? nullptr : std::make_shared<const Object>(*here.pod);
  }

  // The object of this name as it was, also when the last agent ended; null if there was none, or
  // if that one has ended.
  ObjectPtr KnownOf(const Candidate& candidate) const {
    ObjectPtr known;
    if (const Entry* old = catalog_.FindEntry(candidate.key)) {
      known = old->object;
    } else if (const auto remembered = candidate.source->remembered.find(candidate.key);
               remembered != candidate.source->remembered.end()) {
      known = remembered->second.object;
    }
    const bool ended = known != nullptr && WasEnded(candidate.key, MetaOf(*known).uid);
    return ended ? nullptr : known;
  }

  // What is immutable of a Secret or ConfigMap was changed while no agent ran. Its old content is
  // on no record: it is unknown.
  bool DiffersFromItsMark(const Candidate& candidate) {
    if (catalog_.FindEntry(candidate.key) != nullptr) return false;
    const auto remembered = candidate.source->remembered.find(candidate.key);
    if (remembered == candidate.source->remembered.end() || !remembered->second.mark) return false;
    const KnownObject& known = remembered->second;
    if (WasEnded(known.key, known.uid)) return false;
    const std::vector<UpdateProblem> problems = ValidateUpdate(*known.mark, *candidate.object);
    if (problems.empty()) return false;
    for (const UpdateProblem& problem : problems) {
      AddProblem(candidate, problem.field_path, problem.reason + "; " + kChangedUnseen);
    }
    unknown_.insert_or_assign(
        candidate.key, Unknown{candidate.origin, ToString(problems) + "; " + kChangedUnseen});
    return true;
  }

  // The object, or the known one if what changed is immutable.
  ObjectPtr WithImmutable(const Candidate& candidate, const ObjectPtr& object) {
    const ObjectPtr known = KnownOf(candidate);
    if (known == nullptr || known == object) return object;
    const bool bound = catalog_.is_bound_ && catalog_.is_bound_(candidate.key);
    const std::vector<UpdateProblem> problems = ValidateUpdate(*known, *object, bound);
    for (const UpdateProblem& problem : problems) {
      AddProblem(candidate, problem.field_path, problem.reason + "; the object stays as it was");
    }
    return problems.empty() ? object : known;
  }

  // The object, or for a pod whose volumes changed under its uid: the new one with the old spec.
  ObjectPtr WithFirstSpec(const Candidate& candidate, ObjectPtr object, ObjectStanding& standing) {
    if (candidate.key.kind != ObjectKind::kPod) return WithImmutable(candidate, object);
    const ObjectPtr old = FirstOf(candidate);
    if (old == nullptr || old == object) return object;
    const Pod& before = *AsPod(old);
    const Pod& now = *AsPod(object);
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

  ObjectPtr WithUid(const Candidate& candidate) const {
    const Entry* old = catalog_.FindEntry(candidate.key);
    if (candidate.uid == candidate.own_uid() && candidate.object == candidate.listed->object) {
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

  // What outlives a pod does not end by being absent: neither what was here before, nor what a
  // source had when the last agent ended and lacks in its first list.
  void KeepMissing() {
    for (const auto& [key, old] : catalog_.entries_) KeepIfMissing(key, old);
    for (const auto& [name, source] : catalog_.sources_) {
      if (!source.complete) continue;
      for (const auto& [key, object] : source.remembered) {
        if (object.object == nullptr || unknown_.contains(key)) continue;
        Entry old{object.object, {}};
        old.standing.origin = {name, object.file, 0};
        KeepIfMissing(key, old);
      }
    }
  }

  // Taken from a list that came before the commands on record were known, and given another uid:
  // its file lacks nothing, but is refused.
  bool IsItRefused(const ObjectKey& key, const Entry& old) const {
    const auto [first, last] = refused_without_uid_.equal_range(key);
    return !old.standing.missing && std::any_of(first, last, [&old](const auto& refused) {
      return SameFile(refused.second, old.standing.origin);
    });
  }

  void KeepIfMissing(const ObjectKey& key, const Entry& old) {
    const ObjectOrigin& origin = old.standing.origin;
    if (!OutlivesPods(key.kind) || entries_.contains(key)) return;
    if (catalog_.absence_ends_.contains(origin.source)) return;
    if (WasEnded(key, MetaOf(*old.object).uid) || IsItRefused(key, old)) return;
    Entry& kept = entries_[key] = old;
    if (old.standing.missing) return;
    kept.standing = {};
    kept.standing.origin = origin;
    kept.standing.missing = true;
    kept.standing.missing_since_unix_millis = catalog_.clock_.WallUnixMillis();
  }

  ObjectCatalog& catalog_;
  std::vector<Candidate> candidates_;
  Entries entries_;
  std::map<ObjectKey, Unknown> unknown_;
  std::map<PodUid, ObjectKey> uid_owners_;
  std::map<ObjectKey, WaitingPod> waiting_;
  std::set<PodUid> listed_replaced_;  // by command, as the sources say
  std::map<PodUid, ObjectKey> replaced_by_command_;
  std::set<ObjectKey> ended_and_there_;
  std::map<ObjectKey, ObjectOrigin> refused_;
  std::multimap<ObjectKey, ObjectOrigin> refused_without_uid_;
};

void ObjectCatalog::MergeAndNotify() {
  Merge merge(*this);
  merge.Run();
  const std::vector<ObjectKey> ended = DropEnded(merge.ended_and_there());
  const Entries entries_before = std::exchange(entries_, merge.TakeEntries());
  const std::map<ObjectKey, Unknown> unknown_before = std::exchange(unknown_, merge.TakeUnknown());
  const std::vector<ObjectChange> changes = ChangesSince(entries_before, unknown_before);
  refused_ = merge.TakeRefused();
  waiting_ = merge.TakeWaiting();
  replaced_by_command_ = merge.TakeReplacedByCommand();
  pods_by_uid_.clear();
  holders_.clear();
  for (const auto& [key, entry] : entries_) {
    holders_[key] = entry.standing.origin;
    if (const Pod* pod = AsPod(entry.object); pod != nullptr && !pod->metadata.uid.empty()) {
      pods_by_uid_[pod->uid()] = key;
    }
  }
  for (const auto& [key, unknown] : unknown_) holders_[key] = unknown.origin;
  for (const auto& [key, pod] : waiting_) holders_[key] = pod.origin;
  NoteWhoIsWaitedFor();
  Notify(changes);
  for (const ObjectKey& key : ended) {
    if (ended_listener_) ended_listener_(key);
  }
}

}  // namespace volumed
