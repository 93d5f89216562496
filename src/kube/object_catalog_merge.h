// ObjectCatalog::Merge: makes one view of the sources' lists, by the rules of the catalog. This
// class is private to the catalog.
//
// A merge covers everything, or a scope: what changed, and all that is linked with it. The result
// for a name depends on
//  - what is listed, unknown or remembered under the name, and who had it before;
//  - for a pod, what else is listed with its uid or says that it replaces the pod, and who had that
//    uid before;
//  - what a person or the node has said of this name: ended, to be replaced, gone;
//  - what is known of the sources as a whole, if one of them remembers the name.
// So a scope is closed over names and uids (Reach), and a merge of the scope finds what a merge of
// everything would find.
//
// A merge does not change the view: its outcome is taken over by ObjectCatalog::Take(). But it
// links the listed objects by the names and uids that they have now, gives uids to those that have
// none (ObjectIdentities), and notes which pods are to be replaced.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kube/object_catalog.h"

namespace volumed {

// Threads: the control thread. REQUIRES: the catalog does not change while the merge is used.
class ObjectCatalog::Merge {
 public:
  // A merge of everything.
  explicit Merge(ObjectCatalog& catalog) : catalog_(catalog) {}
  // A merge of these names and uids, and of what is linked with them.
  Merge(ObjectCatalog& catalog, Scope scope) : catalog_(catalog), scope_(std::move(scope)) {}

  void Run();
  // The names and uids that would be merged.
  Scope Reached();
  // Links the object under the name and the uid that it has on record, before any merge has seen
  // it: whoever is merged first must find all that are linked with it.
  void LinkAsUsed(Listed& listed) const;

  // REQUIRES: Run() has returned.
  Outcome TakeOutcome() { return std::move(out_); }
  // Adds the names that the next merge has to look at once more. If several want one name, it
  // counts who had it before the merge; if this merge gives it to another, the next merge may find
  // otherwise.
  void AddUnsettled(const Scope& changed, std::set<ObjectKey>& names) const;
  // Adds the names of pods that listeners may have renamed when they heard of the changes: the next
  // merge has to look at these once more. REQUIRES: all listeners have been told.
  void AddRenamed(std::set<ObjectKey>& names) const;
  // Null for a merge of everything.
  const Scope* scope() const { return scope_ ? &*scope_ : nullptr; }

 private:
  // A listed object that wants its name. Candidates claim their names one after the other: first
  // those that had them before, then the others, by the order of the sources and the place in the
  // file.
  struct Candidate {
    Listed* listing = nullptr;
    ObjectPtr object;  // as listed, except for a pod's name
    ObjectOrigin origin;
    ObjectKey key;
    std::string uid;  // the one that it has or is to have; "": a new one, or none
    bool claimed = false;
    bool contested = false;  // it is not used, or not as it is listed

    Source* source() const { return listing->source; }
    const ObjectWithOrigin& listed() const { return listing->object; }
    const std::string& own_uid() const { return MetaOf(*object).uid; }
    PodUid pod_uid() const { return key.kind == ObjectKind::kPod ? PodUid(uid) : PodUid(); }
  };

  // ---- who is concerned (object_catalog_scope.cc) ----
  // Makes candidates of all that is listed, or of what the scope reaches, in the order of their
  // claims.
  void CollectCandidates();
  void SortCandidates();
  // Extends the scope by all that is linked with it, and visits the listed objects that it finds.
  void Reach();
  void Want(const ObjectKey& key);
  void Want(const PodUid& uid);
  void WantAll(const Listed& listed);
  void ReachName(const ObjectKey& key);
  void ReachUid(const PodUid& uid);
  // Makes a candidate of the object, once, and links it by its present names.
  void Visit(Listed& listed);
  Candidate MakeCandidate(Listed& listed) const;
  // Links the candidates under the names that they have now.
  void LinkCandidates();
  void NoteContested();
  bool IsIdentified(ObjectKind kind) const;
  // Returns the object under the name that it has on record; the same object if that is its own.
  ObjectPtr Renamed(const ObjectPtr& object) const;
  // Returns the uid that the candidate has or is to have; "" if nobody knows of one yet.
  std::string UidFor(const Candidate& candidate) const;
  void CollectUnknown();
  void AddUnknown(const Source& source, const UnknownObject& object);
  void AddUnknown(const Source& source, const KnownObject& object);
  // Says why it is not known whether a remembered object is there; "" if it is known.
  std::string WhyUnknown(const Source& source, const KnownObject& object) const;
  bool IsReplacedByListed(const PodUid& uid) const;
  // Keeps the objects that outlive pods, and that no candidate stands for, as Missing.
  void KeepMissing();
  void KeepRemembered(const Source& source, const KnownObject& object);
  void KeepIfMissing(const ObjectKey& key, const Entry& old);
  bool IsItRefused(const ObjectKey& key, const Entry& old) const;

  // ---- who has a name (object_catalog_merge.cc) ----
  bool WasEnded(const ObjectKey& key, const std::string& uid) const;
  const Entry* OldPod(const PodUid& uid) const;
  const ObjectOrigin* NamedBy(const ObjectKey& key) const;
  static bool Replaces(const Candidate& candidate, const PodUid& pod);
  bool HadItsNames(const Candidate& candidate) const;
  // Gives the candidate its name. If it is refused or has to wait instead, its file gets a problem
  // that says why, unless the object is going.
  void Claim(Candidate& candidate);
  // These functions return true if the candidate does not get its name for this reason, and add the
  // problem that says why.
  bool IsNameTaken(const Candidate& candidate);
  bool IsUidTaken(const Candidate& candidate);
  bool IsUidOfAnother(const Candidate& candidate);
  bool IsNameOfAnother(const Candidate& candidate);
  // True if the candidate's pod is to come once another pod is gone.
  bool WaitsForPredecessor(const Candidate& candidate);
  bool ReplacesOneThatIsHere(const Candidate& candidate);
  void WaitFor(const Candidate& candidate, const PodUid& pod);
  bool SucceedsOneThatLeft(const Candidate& candidate) const;
  void Identify(Candidate& candidate);
  bool IsRefusedAsEnded(const Candidate& candidate);
  const Unknown* UnknownElsewhere(const Candidate& candidate) const;
  void Refuse(const Candidate& candidate, std::string field, const ObjectOrigin& owner,
              std::string_view what);
  void AddProblem(const Candidate& candidate, std::string field, std::string reason,
                  bool is_waiting = false);

  // ---- what it is then (object_catalog_immutable.cc) ----
  // What the object was, for comparison with what its file has now; null if that is not known.
  ObjectPtr FirstOf(const Candidate& candidate) const;
  ObjectPtr KnownOf(const Candidate& candidate) const;
  // True if immutable content of a Secret or ConfigMap was changed while no agent ran: it is
  // unknown then.
  bool DiffersFromItsMark(const Candidate& candidate);
  // Returns what the object is to be: as in its file, or as it was if something changed that must
  // not change.
  ObjectPtr WithImmutable(const Candidate& candidate, const ObjectPtr& object);
  ObjectPtr WithFirstSpec(const Candidate& candidate, ObjectPtr object, ObjectStanding& standing);
  ObjectPtr WithUid(const Candidate& candidate) const;

  ObjectCatalog& catalog_;
  std::optional<Scope> scope_;
  std::vector<ObjectKey> names_to_reach_;
  std::vector<PodUid> uids_to_reach_;
  std::set<const Listed*> visited_;
  std::vector<Candidate> candidates_;
  std::map<PodUid, ObjectKey> uid_owners_;
  std::multimap<ObjectKey, ObjectOrigin> refused_without_uid_;
  Outcome out_;
};

}  // namespace volumed
