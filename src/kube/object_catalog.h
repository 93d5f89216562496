// ObjectCatalog: one view of the objects of all sources.
//
// Rules, in this order (ConflictRules() prints them for people):
//  1. An object's last complete list counts until the source delivers another or is forgotten.
//  2. If two objects have the same kind, namespace and name, or two pods the same uid, the one that
//     was there first stays; the other is a problem of its file. When the first leaves, the other
//     takes over. What a source had when the last agent ended was there first, until that source
//     says otherwise.
//  3. spec.volumes of a pod does not change under one uid: the first spec stays until the pod
//     leaves; metadata and status follow the file. If the manifest names no uid and has other
//     volumes, it is another pod: Replace() lets the first one leave, and the other one comes after
//     PodGone(). A command replaces a pod by one with another uid, whose file says whom it replaces
//     (ObjectWithOrigin).
//  4. An object that outlives pods (OutlivesPods) does not end because it is absent. It is Missing
//     then, and the next source that delivers it takes it over. Only a command ends it: End().
//
// The cost of an event depends on what it changes, not on how much there is: the rules are applied
// again to the objects that changed, and to all that are linked with them by a name or a pod's uid
// (kube/object_catalog_merge.h). Only an event that may concern every object merges everything:
// IdentifyBy, SetBoundCheck and AbsenceEnds, and a source that is forgotten or not configured any
// more.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/task_limit.h"
#include "kube/object_finder.h"
#include "kube/object_source.h"
#include "kube/objects.h"
#include "kube/problem_index.h"
#include "kube/work_counter.h"

namespace volumed {

// One difference between two views of the catalog. All changes of one event come to the listeners
// together: first what left or became unknown, then what came or changed. A pod that has another
// uid than before under its name is two changes, kRemoved and kAdded.
struct ObjectChange {
  enum class What {
    kAdded,
    kChanged,  // also: the object was Missing and has a source again
    kMoved,    // another file has it now, unchanged
    kMissing,  // its source lacks it now; the object stays
    kUnknown,  // it is not known any more whether it exists, or what it holds
    kRemoved,  // it is certainly absent
  };
  What what = What::kAdded;
  ObjectKey key;
  PodUid uid;               // pods only
  ObjectPtr before;         // null if the object was added or was unknown
  ObjectPtr after;          // null if the object was removed or is unknown
  std::string file = {};    // with kUnknown: which file may have it
  std::string reason = {};  // with kUnknown, for people
};

// A pod as the node has it, whatever the sources say.
struct PodOnNode {
  std::shared_ptr<const Pod> pod;  // null if its content is not known
  bool has_left = false;           // it leaves because no source has it any more
  bool is_here = false;            // some of it is on the node, or on record
};

// A pod that a source has, but that is not made before another pod of the same name is gone.
struct WaitingPod {
  PodUid uid;  // empty: it gets a uid when it is made
  ObjectOrigin origin;
};

// Knows which uid an object has. A uid belongs to kind, namespace and name, whatever source, file,
// document or content the object comes from. The catalog asks it about pods, PersistentVolumes and
// PersistentVolumeClaims. Threads: the control thread. Blocks: never.
class ObjectIdentities {
 public:
  virtual ~ObjectIdentities() = default;
  // The uid on record; "" if there is none.
  virtual std::string KnownUidOf(const ObjectKey& object) const = 0;
  // The uid on record, or a new one; "" if it is not known which uid the object has.
  virtual std::string UidOf(const ObjectKey& object) = 0;
  // The object is new, and its manifest names this uid.
  virtual void Adopt(const ObjectKey& object, const std::string& uid) = 0;
  // A command has ended the object that has this uid: the next object of its name is another one.
  virtual void Ended(const ObjectKey& object, const std::string& uid) = 0;
  // The name under which the pod is on record, else the pod's own name. The two differ if the node
  // had another name then, or if the manifest had a uid then and has none now, or the other way
  // round: a static pod's name ends with the node's suffix.
  virtual std::string NameOf(const Pod& pod) const = 0;
  // The name that the pod would have if its manifest had a uid and has none, or the other way
  // round. Whether a pod of that name is on record decides what NameOf() says.
  virtual std::string OtherNameOf(const Pod& pod) const = 0;
  // The pod that has this uid on record; nullopt if none has.
  virtual std::optional<ObjectKey> PodOfUid(const PodUid& uid) const = 0;
  // What the node has of the pod with this uid, also while the pod leaves.
  virtual PodOnNode FindOnNode(const PodUid& pod) const = 0;
};

// How a source stands, for people.
struct SourceStatus {
  std::string name;
  bool complete = false;  // the source has delivered a complete list
  bool last_list_complete = false;
  // How many objects it has now, those that are unproven or going among them.
  size_t objects = 0;
  std::vector<DecodeProblem> problems;
  std::vector<DecodeProblem> warnings;  // of objects that are used all the same
  std::string last_error;               // the first problem that is not just waiting; or ""
  // When it delivered last, a list or a delta; 0 if it has delivered nothing yet.
  int64_t last_list_unix_millis = 0;
  std::string incomplete_because;  // as in the newest list
  bool unconfigured = false;       // on record, but not configured any more
};

// Threads: the control thread. Blocks: never. Errors: none; what is wrong is in the sources'
// status. Listeners, and what SetBoundCheck(), IdentifyBy() and SetEndedListener() are given, are
// called within the catalog's own methods.
class ObjectCatalog final : public ObjectFinder {
 public:
  using Listener = std::function<void(const std::vector<ObjectChange>&)>;

  // The clock outlives the catalog.
  explicit ObjectCatalog(const Clock& clock);
  ~ObjectCatalog();

  // Names a configured source: AllSourcesComplete() waits for it. An Update() of a source that was
  // not named expects it from then on.
  void ExpectSource(const std::string& name);

  // Says what a configured source had when the last agent ended. Until the source's first complete
  // list these objects are unknown, and no other source gets their names; the list is then compared
  // with them. If the source has already delivered a complete list, the objects are not taken.
  void Remember(const std::string& source, std::vector<KnownObject> objects);
  // Says what a source had that is not configured any more. Its objects are kept as unproven, or
  // unknown if their content is not on record, until ForgetSource(). AllSourcesComplete() does not
  // wait for the source.
  void KeepUnconfigured(const std::string& source, const std::vector<KnownObject>& objects);
  // Adds an object that was Missing when the last agent ended. REQUIRES: `object.object` is not
  // null, and no source has delivered the object yet. Listeners hear of it as kAdded.
  void RememberMissing(const std::string& source, const KnownObject& object,
                       int64_t since_unix_millis);

  // In this source an object of any kind ends by leaving the source: its absence is a command.
  // Takes effect with the next event.
  void AbsenceEnds(const std::string& source);

  // Takes over a list and tells the listeners what changed, if anything did. Of a list that is not
  // complete, only the objects of its `complete_kinds` count; if there are no such kinds, it
  // changes only the source's status.
  void Update(ObjectList list);
  // Takes over what has changed since the source's last list. It is ignored if that source has
  // never delivered a complete list, or one that was complete for some kinds.
  void Update(ObjectDelta delta);
  void Update(ObjectUpdate update);

  // Like Update(), but in parts, since other tasks wait for the thread (object_catalog_parts.h).
  // Begin() begins to take over an update; each TakeSome() goes on with it, and returns true when
  // all of it is taken over. Until then listeners are not told that the source has delivered, an
  // object that the list lacks does not go, and an object that has not been told of does not count
  // as absent. In the end everything is as after Update(). REQUIRES: no other update is being taken
  // over. Meanwhile all other calls are allowed, except Update() of this source.
  void Begin(ObjectUpdate update);
  bool TakeSome(TaskLimit& limit);
  bool IsTaking() const { return parts_ != nullptr; }
  // If the list that is being taken over is from the same source as `newer` and covers no other
  // kinds, the rest of it is dropped, since `newer` takes its place. Returns false, with no effect,
  // if it is too late for that or if the update is another one.
  bool DropParts(const ObjectList& newer);

  // Drops the source, its objects, and the expectation that it delivers. Objects that outlive pods
  // become Missing. False if there is no such source.
  bool ForgetSource(const std::string& name);
  // The administrator's word that the source has what it should have: no object that it does not
  // show may have moved to it.
  void AcceptSource(const std::string& name);

  // A command with this number has ended the object for good, and that is on record: the object
  // goes, Missing or not. If a source still has an object of this name that an earlier command
  // gave, or that no command gave, that object is refused if it has this uid or none. To be called
  // at a start, too, for the commands on record.
  void End(const ObjectKey& key, const std::string& uid, uint64_t number);
  // Whether a command has ended the object and a source may still have it.
  bool IsEnded(const ObjectKey& key) const { return ended_.contains(key); }
  // The number of that command; nullopt if no command has ended the object, or if no source has it
  // any more.
  std::optional<uint64_t> EndedBy(const ObjectKey& key) const;
  // The highest number of a command that gave an object of some list.
  uint64_t last_number() const { return last_number_; }
  // The sources and files in which ended objects are refused.
  const std::map<ObjectKey, ObjectOrigin>& Refused() const { return refused_; }
  // Differs whenever Refused() has changed.
  uint64_t refused_version() const { return refused_version_; }
  // Called once no source has an object any more that a command ended, and all sources are in
  // order: the record of the command may then go.
  using EndedListener = std::function<void(const ObjectKey&)>;
  void SetEndedListener(EndedListener listener) { ended_listener_ = std::move(listener); }

  // Sets who knows the uids of objects; null: an object has the uid that its manifest names. If a
  // uid appears or changes in a manifest while the object is known, that is refused. `identities`
  // outlives the catalog, or is replaced by null first. Unless it is null, everything is merged
  // again at once.
  void IdentifyBy(ObjectIdentities* identities);

  // Replaces the pod of this name by the one that its file has now: the pod leaves, and the file's
  // pod waits until PodGone(). The same happens without a call if a pod has left its sources, is
  // still on the node, and a file has a pod of its name with other volumes. REQUIRES: the manifest
  // does not name the pod's uid.
  void Replace(const ObjectKey& pod);
  // Nothing of the pod is on the node any more, and no source has it.
  void PodGone(const ObjectKey& pod);
  // Nothing of a pod of this name is on the node any more; a source may still have it.
  void PodRemoved(const ObjectKey& pod);
  // Names of pods whose successors wait until nothing of these pods is on the node.
  const std::set<ObjectKey>& Replaced() const { return replaced_; }
  // Pods that a command has replaced by others, with the names of these others; a source has the
  // others.
  const std::map<PodUid, ObjectKey>& ReplacedByCommand() const { return replaced_by_command_; }
  // Pods that wait for the end of another pod of the same name.
  const std::map<ObjectKey, WaitingPod>& Waiting() const { return waiting_; }

  // Those of the source's objects that another source has too; that source gets them once this
  // source has lost them or is forgotten. The value says where the other source has them. A pod
  // with another uid or other volumes does not count.
  std::map<ObjectKey, ObjectOrigin> HandedOverBy(const std::string& source) const;
  // Whether the newest list of the source has the object as present, under whatever name
  // (IdentityOf).
  bool IsPresentIn(const std::string& source, const ObjectKey& object) const;
  // Why an object that nobody saw leave the source `former` may be in another source: that source
  // has not been in order since the start. The result is for people, and "" if every other source
  // has been in order; with "" as `former` it is about all sources.
  std::string WhereItMayHaveMoved(const std::string& former) const;
  // The identity of the object by kind, namespace and name: a pod that is on record with the node's
  // suffix keeps that name if its manifest gives the name without it.
  ObjectKey IdentityOf(const Object& object) const;

  // The file that has the name, even if it is not known now whether it still has the object.
  // nullopt if the name is free or the object is Missing.
  std::optional<ObjectOrigin> NamedBy(const ObjectKey& key) const;

  // Sets who knows whether a claim or a PersistentVolume is bound; fewer fields of a bound one may
  // change. Without this function none counts as bound. It takes effect with the next event.
  void SetBoundCheck(std::function<bool(const ObjectKey&)> is_bound);
  // Sets who keeps the status of claims whose objects have none: a request may be taken back, but
  // not what the claim has got by that. Without this function the object's own status counts.
  void SetClaimStatus(
      std::function<PersistentVolumeClaimStatus(const PersistentVolumeClaim&)> status_of);

  // The listener is called after the catalog has changed; it may read the catalog, but must not
  // change it.
  void AddListener(Listener listener) { listeners_.push_back(std::move(listener)); }

  // True once every expected source has delivered a complete list. Until then nothing may be
  // unmounted. Without any source it is true as well.
  bool AllSourcesComplete() const;
  // The same for one kind: an absent object of that kind is certainly absent. Without any source it
  // is true as well.
  bool IsComplete(ObjectKind kind) const;
  // The names of the sources for which AllSourcesComplete() waits, sorted.
  std::vector<std::string> IncompleteSources() const;
  // Those that have delivered, but only what is on record of them: this agent has not looked into
  // them yet. With the reason each (ObjectList::unseen_because).
  std::map<std::string, std::string> UnseenSources() const;
  // All sources, sorted by name, also those that have not delivered yet.
  std::vector<SourceStatus> Sources() const;
  // Whether there is a source with another name.
  bool HasSourceBut(std::string_view name) const;
  // Problems of conflicts and of files that concern this object, from all sources; for `volumectl
  // explain`. Problems of the whole file are among them, but only those of the file from which the
  // object is used.
  std::vector<DecodeProblem> ProblemsOf(const ObjectKey& key) const;
  // Unknown fields in the manifest of this object, in the source from which it is used.
  std::vector<DecodeProblem> WarningsOf(const ObjectKey& key) const;

  // The rules above in a few sentences. They are for people, in one line.
  static std::string_view ConflictRules();

  // How many objects all events together have visited so far.
  const WorkCounter& work() const { return work_; }
  // Makes every event merge everything from now on. The result is the same, at a higher price.
  void MergeWholeForTest() { always_whole_ = true; }

 private:
  struct Source;
  // An object of a source's list. The indexes below find it by `names` and `uids`, which are as of
  // the last look at the object.
  struct Listed {
    Source* source = nullptr;
    ObjectWithOrigin object;
    // Its name in the list and its name in the catalog; for a pod also the name with, or without,
    // the node's suffix.
    std::vector<ObjectKey> names;
    // For a pod: the uid that its manifest names, the uid that it is to have, the one that is on
    // record under its name, and the uids of the pods that it replaces.
    std::vector<PodUid> uids;
    uint64_t in_list = 0;  // the number of the last full list that has it
  };
  using FileAndKey = std::pair<std::string, ObjectKey>;  // as listed

  struct Source {
    std::string name;
    // It has delivered a complete list once.
    bool complete = false;
    bool unconfigured = false;
    bool last_list_complete = false;
    std::set<ObjectKind> kinds;  // kinds that are complete, if not all are
    bool HasDelivered(ObjectKind kind) const { return complete || kinds.contains(kind); }
    bool was_in_order = false;  // once delivered a list that held nothing back
    // The same facts as others may know them: they are set once all of the list is in the view.
    bool told_complete = false;
    bool told_in_order = false;
    std::set<ObjectKind> told_kinds;
    std::string told_unseen_because;
    bool HasTold(ObjectKind kind) const { return told_complete || told_kinds.contains(kind); }
    void Tell();
    uint64_t order = 0;  // of the sources' arrival
    std::map<FileAndKey, Listed> objects;
    std::map<ObjectKey, UnknownObject> unknown;
    // What the last agent knew, except what a list has shown to be present.
    std::map<ObjectKey, KnownObject> remembered;
    // Those of `remembered` that the next list makes needless.
    std::set<ObjectKey> settled;
    ProblemIndex problems;  // of the newest list
    ProblemIndex warnings;  // of the newest list
    // Conflicts that the merges found, by the object's name in the catalog.
    std::map<ObjectKey, std::vector<DecodeProblem>> conflicts;
    std::string incomplete_because;
    std::string unseen_because;
    int64_t last_list_unix_millis = 0;
  };
  // What a merge covers: everything with these names, and the pods with these uids.
  struct Scope {
    std::set<ObjectKey> keys;
    std::set<PodUid> uids;
  };
  // What has changed since the last merge.
  struct Dirty {
    bool all = false;
    // What is known of the sources has changed, which concerns all remembered objects.
    bool remembered = false;
    Scope scope;
  };
  // What a merge has found for the objects in its scope.
  struct Outcome {
    Entries entries;
    std::map<ObjectKey, Unknown> unknown;
    std::map<ObjectKey, WaitingPod> waiting;
    std::map<PodUid, ObjectKey> replaced_by_command;
    std::map<ObjectKey, ObjectOrigin> refused;
    std::map<Source*, std::map<ObjectKey, std::vector<DecodeProblem>>> conflicts;
    std::set<ObjectKey> wait_for_uid;
    std::map<ObjectKey, std::set<ObjectKey>> waits;
    std::set<ObjectKey> refused_while_bound;
    std::set<ObjectKey> ended_and_there;
  };
  struct Ended {
    std::set<std::string> uids;  // of the ended objects of this name
    uint64_t number = 0;         // of the last command that ended one
  };
  class Merge;
  class Parts;

  // ---- what the sources list (object_catalog_lists.cc) ----
  static const std::set<ObjectKind> kAllKinds;
  Listed& SetObject(Source& source, ObjectWithOrigin object);
  // Like SetObject(), for the full list with this number. Has no effect if the object's kind is not
  // among `kinds`, or if the list has set the object before.
  void SetListed(Source& source, ObjectWithOrigin object, uint64_t list,
                 const std::set<ObjectKind>& kinds);
  void DropObject(Source& source, std::map<FileAndKey, Listed>::iterator at);
  void SetUnknown(Source& source, const UnknownObject& object);
  void DropUnknown(Source& source, std::map<ObjectKey, UnknownObject>::iterator at);
  void SetLists(Source& source, std::vector<ObjectWithOrigin> objects,
                const std::vector<UnknownObject>& unknown, const std::set<ObjectKind>& kinds);
  // `as_used` is the object as listed, except for a pod's name. `uid` is the one that it has or is
  // to have.
  void Link(Listed& listed, const Object& as_used, const std::string& uid);
  void Unlink(Listed& listed);
  void MarkDirty(const Listed& listed);
  void CountReplaced(const Listed& listed, int by);
  void RememberObject(Source& source, KnownObject object);
  void ForgetRemembered(Source& source, const ObjectKey& key);
  void ForgetEnded(Source& source, const ObjectKey& key, const Ended& ended);
  // Takes over what a list or a delta says of the source as a whole.
  void NoteList(Source& source, bool complete, const std::set<ObjectKind>& kinds,
                std::string incomplete_because);
  // Merges, and forgets what was remembered of the objects that the list has shown.
  void MergeList(Source& source);
  void EndMemoryOf(Source& source, const ObjectKey& settled);
  // Whether the name is listed only by the source and file whose object is used.
  bool IsUsedAsListed(const ObjectKey& key) const;
  void ChangeProblems(Source& source, ObjectDelta& delta);
  std::string WhereItMayHaveMoved(const std::string& former, bool as_told) const;

  // ---- the merge (object_catalog_merge.h) ----
  void MergeAndNotify();
  void RunAndNotify(Merge merge);
  void NotifyEnded(const std::vector<ObjectKey>& ended) const;
  void AddWhatNobodyTells(Scope& scope);
  // What the view was before a merge. `scope` is null for a merge of everything.
  struct Before {
    Entries entries;
    std::map<ObjectKey, Unknown> unknown;
    Scope changed;  // objects whose name or identity has changed
  };
  Before Take(Outcome outcome, const Scope* scope);
  void TakeWaits(Outcome& outcome, const Scope* scope);
  void MarkWhoWaitsFor(const ObjectKey& pod);
  void TakeConflicts(Outcome& outcome, const Scope* scope);
  void TakeEnded(const Outcome& outcome, const Scope* scope);
  void Reindex(const Scope* scope, const Entries& entries_before, Scope& changed);
  bool NameAnew(const ObjectKey& key);
  void NoteSettled(Source& source, const ObjectKey& key);
  // The changes since the view was the given one; LeftOf and ComeOf describe how one object has
  // left or come. `keys` names everything that may have changed.
  std::vector<ObjectChange> ChangesSince(const Entries& entries,
                                         const std::map<ObjectKey, Unknown>& unknown_before,
                                         const std::set<ObjectKey>& keys) const;
  ObjectChange LeftOf(const ObjectKey& key, const ObjectPtr& before) const;
  static std::optional<ObjectChange> ComeOf(const ObjectKey& key, const Entry* old,
                                            const Entry& entry);
  // Forgets ended objects that no source has any more, and returns them.
  std::vector<ObjectKey> DropEnded();
  void NoteWhoIsWaitedFor();
  void Notify(const std::vector<ObjectChange>& changes) const;

  const Clock& clock_;
  ObjectIdentities* identities_ = nullptr;
  std::function<bool(const ObjectKey&)> is_bound_;
  std::function<PersistentVolumeClaimStatus(const PersistentVolumeClaim&)> claim_status_;
  uint64_t next_order_ = 1;
  std::map<std::string, Source> sources_;
  std::set<std::string> absence_ends_;
  std::map<ObjectKey, Ended> ended_;
  std::set<ObjectKey> ended_and_gone_;  // those of ended_ that no source has any more
  uint64_t last_number_ = 0;
  std::map<ObjectKey, ObjectOrigin> refused_;
  uint64_t refused_version_ = 0;
  std::set<ObjectKey> replaced_;  // pods whose successors wait
  // Pods with the uid or the name of another pod that is not gone yet.
  std::set<ObjectKey> wait_for_uid_;
  // Pods -> the pods for whose end they wait; and the reverse.
  std::map<ObjectKey, std::set<ObjectKey>> waits_;
  std::map<ObjectKey, std::set<ObjectKey>> waited_for_;
  std::map<ObjectKey, WaitingPod> waiting_;
  std::map<PodUid, ObjectKey> replaced_by_command_;
  // The file that has each name, also for objects that are unknown now.
  std::map<ObjectKey, ObjectOrigin> named_by_;
  // Claims and volumes of which a change is refused because they are, or are not, bound. Nobody
  // tells the catalog when that ends, so they are looked at again by turns.
  std::set<ObjectKey> refused_while_bound_;
  ObjectKey looked_at_last_;  // the last one of these

  // The listed objects by name and by uid (Listed::names and uids).
  std::map<ObjectKey, std::set<Listed*>> by_name_;
  std::map<PodUid, std::set<Listed*>> by_uid_;
  std::map<PodUid, int> replaced_uids_;  // by how many listed pods each is replaced
  std::map<PodUid, std::set<ObjectKey>> remembered_by_uid_;  // the remembered pods of all sources
  Dirty dirty_;
  // The update that is being taken over, or null; and what it has changed that no merge has seen
  // yet.
  std::unique_ptr<Parts> parts_;
  Scope pending_;
  bool has_untold_ = false;  // what it says of the source as a whole is not told yet
  uint64_t last_list_ = 0;   // the number of the newest full list
  bool always_whole_ = false;
  WorkCounter work_;
  std::vector<Listener> listeners_;
  EndedListener ended_listener_;
};

}  // namespace volumed
