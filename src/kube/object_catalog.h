// ObjectCatalog: one view of the objects of all sources.
//
// Rules, in this order (ConflictRules() prints them for people):
//  1. An object's last complete list counts until the source delivers another or is forgotten.
//  2. Two objects of one kind, namespace and name, or two pods of one uid: the one that was there
//     first stays, the other is a problem of its file. When the first leaves, the other takes over.
//     What a source had when the last agent ended is there first, until that source says otherwise.
//  3. spec.volumes of a pod does not change under one uid: the spec that came first stays until the
//     pod leaves; its metadata and status follow the file. A manifest without a uid has another pod
//     then: Replace() lets the first one leave, and the other one comes after PodGone(). A command
//     replaces a pod by one of another uid, which says whom it replaces (ObjectWithOrigin).
//  4. What outlives a pod (OutlivesPods) does not end because it is absent. It is Missing then, and
//     whoever delivers it next takes it over. A command ends it: End().
//
// What an event costs follows from what it changes, not from what there is: the rules are applied
// again to the objects that changed, and to all that are linked with these by a name or a pod's uid
// (kube/object_catalog_merge.h). Only what concerns every object (IdentifyBy, a source that is
// remembered or forgotten) is a merge of everything.
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

struct ObjectChange {
  enum class What {
    kAdded,
    kChanged,  // also of an object that was Missing and has a source again
    kMoved,    // another file has it now, as it was
    kMissing,  // its source lacks it now; it stays
    kUnknown,  // nobody can say any more whether it is there, or what it holds
    kRemoved,  // it is certainly absent
  };
  What what = What::kAdded;
  ObjectKey key;
  PodUid uid;               // pods only
  ObjectPtr before;         // null when added, and when it was unknown before
  ObjectPtr after;          // null when removed or unknown
  std::string file = {};    // of kUnknown: which file may have it
  std::string reason = {};  // of kUnknown, for people
};

// A pod as the node has it.
struct PodOnNode {
  std::shared_ptr<const Pod> pod;  // null if its content is not known
  bool has_left = false;           // no source had it any more, and for that it leaves
  bool is_here = false;            // something of it is on the node, or on record
};

// A pod that a source has, and that is not made before another one of its name is gone.
struct WaitingPod {
  PodUid uid;  // empty: it gets one when it is made
  ObjectOrigin origin;
};

// Who the objects of the catalog are: a uid belongs to kind, namespace and name, whatever source,
// file, document or content it comes from. Asked of pods, PersistentVolumes and
// PersistentVolumeClaims. Threads: the control thread. Blocks: never.
class ObjectIdentities {
 public:
  virtual ~ObjectIdentities() = default;
  // "": none is on record.
  virtual std::string KnownUidOf(const ObjectKey& object) const = 0;
  // The one on record, or a new one; "" if nobody can tell which one it has.
  virtual std::string UidOf(const ObjectKey& object) = 0;
  // The object is a new one, and its manifest names this uid.
  virtual void Adopt(const ObjectKey& object, const std::string& uid) = 0;
  // A command has ended the object that has this uid: whoever has its name next is another one.
  virtual void Ended(const ObjectKey& object, const std::string& uid) = 0;
  // The name of the pod on record that this pod is, else its own name: another one than its own if
  // the node was called otherwise then, or if its manifest had a uid then and has none now, or the
  // other way round, as a static pod has the node's suffix.
  virtual std::string NameOf(const Pod& pod) const = 0;
  // What the pod would be called if its manifest had a uid and has none, or the other way round:
  // who has that name decides what NameOf() says.
  virtual std::string OtherNameOf(const Pod& pod) const = 0;
  // Which pod has this uid on record; nullopt: none has.
  virtual std::optional<ObjectKey> PodOfUid(const PodUid& uid) const = 0;
  // What the node has of the pod with this uid, also while it leaves.
  virtual PodOnNode FindOnNode(const PodUid& pod) const = 0;
};

struct SourceStatus {
  std::string name;
  bool complete = false;  // has delivered a complete list at least once
  bool last_list_complete = false;
  size_t objects = 0;  // of the last complete list
  std::vector<DecodeProblem> problems;
  std::vector<DecodeProblem> warnings;  // of what is used all the same, by object
  std::string last_error;               // the newest list's first problem that is no waiting; or ""
  int64_t last_list_unix_millis = 0;    // 0: never heard of it
  std::string incomplete_because;       // as the newest list has it
  bool unconfigured = false;            // on record, and not among the configured sources any more
};

// Threads: control thread. Blocks: never. Errors: none; what is wrong is in the sources' status.
class ObjectCatalog final : public ObjectFinder {
 public:
  using Listener = std::function<void(const std::vector<ObjectChange>&)>;

  explicit ObjectCatalog(const Clock& clock);
  ~ObjectCatalog();

  // A source that is configured: AllSourcesComplete() waits for it. Update() of a source that was
  // not expected expects it from then on.
  void ExpectSource(const std::string& name);

  // What a configured source had when the last agent ended. Until its first complete list these
  // objects are unknown, and no other source gets their names; the list is compared with them.
  // Nothing happens if the source has delivered already.
  void Remember(const std::string& source, std::vector<KnownObject> objects);
  // What a source had that is not configured any more: all of it is held, or unknown if its content
  // is not on record, until ForgetSource(). Nobody waits for the source.
  void HoldUnconfigured(const std::string& source, const std::vector<KnownObject>& objects);
  // An object that was Missing when the last agent ended. REQUIRES: `object.object` is not null,
  // and nobody has delivered it yet.
  void RememberMissing(const std::string& source, const KnownObject& object,
                       int64_t since_unix_millis);

  // In this source an object ends by leaving it, whatever its kind: its absence is a command.
  void AbsenceEnds(const std::string& source);

  // Takes a list over and tells the listeners what changed, if anything did. A list that is not
  // complete changes the source's status only.
  void Update(ObjectList list);
  // Takes over what has changed since the source's last complete list; without one it is ignored.
  void Update(ObjectDelta delta);
  void Update(ObjectUpdate update);

  // The same in parts, for a thread that others wait for (object_catalog_parts.h): begins to take
  // an update over; TakeSome() goes on with it, and says true when all of it is taken over. Until
  // then nobody is told that the source has delivered, nothing goes that the list lacks, and what
  // nobody has been told of is not absent. In the end everything is as after Update(). REQUIRES: no
  // other update is being taken over. Meanwhile whatever else happens to the catalog may happen,
  // but for Update() of this source.
  void Begin(ObjectUpdate update);
  bool TakeSome(TaskLimit& limit);
  bool IsTaking() const { return parts_ != nullptr; }
  // A newer list of the source takes the place of the list that is being taken over: what is left
  // of that is dropped. False, and nothing happens, if it is too late for that, or if it was no
  // list of this source and these kinds.
  bool DropParts(const ObjectList& newer);

  // Drops the source, its objects and its expectation. What outlives a pod is Missing then. False
  // if there is no such source.
  bool ForgetSource(const std::string& name);
  // An administrator's word that the source has what it is to have: nothing may have moved to it
  // that it does not show.
  void AcceptSource(const std::string& name);

  // A command with this number has ended the object for good, and that is on record: it goes,
  // Missing or not. Where a source still has what an earlier command has given, or what no command
  // has, it is refused, with this uid or without any. Also to be called at a start, for commands on
  // record.
  void End(const ObjectKey& key, const std::string& uid, uint64_t number);
  // A command has ended the object, and a source may still have it.
  bool IsEnded(const ObjectKey& key) const { return ended_.contains(key); }
  // The number of that command; nothing if none has, or nothing has the object any more.
  std::optional<uint64_t> EndedBy(const ObjectKey& key) const;
  // The highest number of a command that has given an object of any list.
  uint64_t last_number() const { return last_number_; }
  // Where such an object is refused.
  const std::map<ObjectKey, ObjectOrigin>& Refused() const { return refused_; }
  // Another one whenever Refused() has changed.
  uint64_t refused_version() const { return refused_version_; }
  // Told once no source has an object any more that a command ended, and all of them are in order:
  // its record may go.
  using EndedListener = std::function<void(const ObjectKey&)>;
  void SetEndedListener(EndedListener listener) { ended_listener_ = std::move(listener); }

  // Who says which uid an object has; null: nobody, and it has what its manifest names. A uid that
  // appears or changes in a manifest while the object is known is refused. `identities` outlives
  // the catalog, or is taken back. What is there is merged anew at once.
  void IdentifyBy(ObjectIdentities* identities);

  // The pod of this name is to be replaced by what its file has now: it leaves, and the file's pod
  // waits until PodGone(). It does so by itself after a pod that has left its sources and is still
  // on the node, if it has other volumes than that. REQUIRES: its uid is not named by its manifest.
  void Replace(const ObjectKey& pod);
  // Nothing of the pod is on the node any more, and no source has it.
  void PodGone(const ObjectKey& pod);
  // Nothing of a pod of this name is on the node any more; a source may have it yet.
  void PodRemoved(const ObjectKey& pod);
  // Names of pods whose successors wait until nothing of them is on the node any more.
  const std::set<ObjectKey>& Replaced() const { return replaced_; }
  // Pods in whose places a command has put others, which a source has, and the names of these.
  const std::map<PodUid, ObjectKey>& ReplacedByCommand() const { return replaced_by_command_; }
  // Pods that wait for the end of another one of their name.
  const std::map<ObjectKey, WaitingPod>& Waiting() const { return waiting_; }

  // Of the source's objects those that another one has too, and that are its own once this source
  // has lost them or is forgotten; where that one has them.
  std::map<ObjectKey, ObjectOrigin> HandedOverBy(const std::string& source) const;
  // Whether the newest list of the source has the object as present, under whatever name
  // (IdentityOf).
  bool IsPresentIn(const std::string& source, const ObjectKey& object) const;
  // Why an object that nobody saw leave this source may be in another one: that has not been in
  // order since the start. "" if it is in none.
  std::string WhereItMayHaveMoved(const std::string& former) const;
  // Who the object is, by kind, namespace and name: a pod that is on record with the node's suffix
  // is that one without it too.
  ObjectKey IdentityOf(const Object& object) const;

  // Which file has the name, even if nobody knows now whether it still has the object. nullopt for
  // a name that is free, and for that of an object that is Missing.
  std::optional<ObjectOrigin> HolderOf(const ObjectKey& key) const;

  // Who knows of a claim or a PersistentVolume whether it is bound: less of it may change then.
  // Without: none is.
  void SetBoundCheck(std::function<bool(const ObjectKey&)> is_bound);

  // Called after the catalog has changed; may read it, must not change it.
  void AddListener(Listener listener) { listeners_.push_back(std::move(listener)); }

  // True once every expected source has delivered a complete list. Nothing may be unmounted before.
  bool AllSourcesComplete() const;
  // The same of one kind: what is absent of it is absent.
  bool IsComplete(ObjectKind kind) const;
  std::vector<std::string> IncompleteSources() const;
  std::vector<SourceStatus> Sources() const;
  // Whether there is a source of another name.
  bool HasSourceBut(std::string_view name) const;
  // Problems of conflicts and of files that concern this object; for `volumectl explain`.
  std::vector<DecodeProblem> ProblemsOf(const ObjectKey& key) const;
  // Fields of its manifest that nobody knows, of the source that the object is used from.
  std::vector<DecodeProblem> WarningsOf(const ObjectKey& key) const;

  // The rules above in a few sentences.
  static std::string_view ConflictRules();

  // Objects that were visited so far, by all events.
  const WorkCounter& work() const { return work_; }
  // Every event merges everything from now on. That is what the other merges are held against.
  void MergeWholeForTest() { always_whole_ = true; }

 private:
  struct Source;
  // An object of a source's list. `names` and `uids` are what it is found by in the indexes below,
  // as of when it was looked at last.
  struct Listed {
    Source* source = nullptr;
    ObjectWithOrigin object;
    // What it is called in its list and in the catalog; of a pod also with the node's suffix, or
    // without it.
    std::vector<ObjectKey> names;
    // Of a pod: the uid that its manifest names, the one that it is to have, and those of the pods
    // whose places it takes.
    std::vector<PodUid> uids;
    uint64_t in_list = 0;  // the last full list that has it, by its number
  };
  using FileAndKey = std::pair<std::string, ObjectKey>;  // as listed

  struct Source {
    std::string name;
    bool expected = false;
    bool complete = false;
    bool unconfigured = false;
    bool last_list_complete = false;
    std::set<ObjectKind> kinds;  // that are complete, as long as not all are
    bool HasDelivered(ObjectKind kind) const { return complete || kinds.contains(kind); }
    bool was_in_order = false;  // has delivered a list from which nothing was held back
    // The same, as everybody may know it: once all of the list is in the view.
    bool told_complete = false;
    bool told_in_order = false;
    std::set<ObjectKind> told_kinds;
    bool HasTold(ObjectKind kind) const { return told_complete || told_kinds.contains(kind); }
    void Tell();
    uint64_t order = 0;  // of arrival
    std::map<FileAndKey, Listed> objects;
    std::map<ObjectKey, UnknownObject> unknown;
    // Of the last agent, as far as no list has shown it to be present.
    std::map<ObjectKey, KnownObject> remembered;
    // Of these: what the next list ends the memory of.
    std::set<ObjectKey> settled;
    ProblemIndex problems;  // of the last list
    ProblemIndex warnings;  // of the last list
    // Of the last merges, by the object's name in the catalog.
    std::map<ObjectKey, std::vector<DecodeProblem>> conflicts;
    std::string incomplete_because;
    int64_t last_list_unix_millis = 0;
  };
  // What a merge is about: everything of these names, and the pods of these uids.
  struct Scope {
    std::set<ObjectKey> keys;
    std::set<PodUid> uids;
  };
  // What has happened since the last merge.
  struct Dirty {
    bool all = false;
    bool remembered = false;  // what is known of the sources has changed, and with it of these
    Scope scope;
  };
  // What a merge has found of the objects in its scope.
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
    std::set<std::string> uids;  // of those that had the name
    uint64_t number = 0;         // of the last command
  };
  class Merge;
  class Parts;

  // ---- what the sources list (object_catalog_lists.cc) ----
  static const std::set<ObjectKind> kAllKinds;
  Listed& SetObject(Source& source, ObjectWithOrigin object);
  // Of the full list with this number: nothing if it is not of these kinds, or has been set before.
  void SetListed(Source& source, ObjectWithOrigin object, uint64_t list,
                 const std::set<ObjectKind>& kinds);
  void DropObject(Source& source, std::map<FileAndKey, Listed>::iterator at);
  void SetUnknown(Source& source, const UnknownObject& object);
  void DropUnknown(Source& source, std::map<ObjectKey, UnknownObject>::iterator at);
  void SetLists(Source& source, std::vector<ObjectWithOrigin> objects,
                const std::vector<UnknownObject>& unknown, const std::set<ObjectKind>& kinds);
  // `as_used`: as listed, but for a pod's name. `uid`: the one that it has or is to have.
  void Link(Listed& listed, const Object& as_used, const std::string& uid);
  void Unlink(Listed& listed);
  void MarkDirty(const Listed& listed);
  void CountReplaced(const Listed& listed, int by);
  void RememberObject(Source& source, KnownObject object);
  void ForgetRemembered(Source& source, const ObjectKey& key);
  void ForgetEnded(Source& source, const ObjectKey& key, const Ended& ended);
  // Takes over what a list and a delta both say of the source.
  void NoteList(Source& source, bool complete, const std::set<ObjectKind>& kinds,
                std::string incomplete_because);
  // Merges, and ends the memory of what the list has shown.
  void MergeList(Source& source);
  void EndMemoryOf(Source& source, const ObjectKey& settled);
  // Nobody else lists the name than who is used for it.
  bool IsUsedAsListed(const ObjectKey& key) const;
  void ChangeProblems(Source& source, ObjectDelta& delta);
  std::string WhereItMayHaveMoved(const std::string& former, bool as_told) const;

  // ---- the merge (object_catalog_merge.h) ----
  void MergeAndNotify();
  void RunAndNotify(Merge merge);
  void NotifyEnded(const std::vector<ObjectKey>& ended) const;
  void AddWhatNobodyTells(Scope& scope);
  // `scope`: null for a merge of everything.
  struct Before {
    Entries entries;
    std::map<ObjectKey, Unknown> unknown;
    Scope changed;  // who is called otherwise than before, or is another one
  };
  Before Take(Outcome outcome, const Scope* scope);
  void TakeWaits(Outcome& outcome, const Scope* scope);
  void MarkWhoWaitsFor(const ObjectKey& pod);
  void TakeConflicts(Outcome& outcome, const Scope* scope);
  void TakeEnded(const Outcome& outcome, const Scope* scope);
  void Reindex(const Scope* scope, const Entries& entries_before, Scope& changed);
  bool HoldAnew(const ObjectKey& key);
  void NoteSettled(Source& source, const ObjectKey& key);
  // What has changed since the view was this one, and how one object has left it or come into it.
  // `keys`: everything that may have changed.
  std::vector<ObjectChange> ChangesSince(const Entries& entries,
                                         const std::map<ObjectKey, Unknown>& unknown_before,
                                         const std::set<ObjectKey>& keys) const;
  ObjectChange LeftOf(const ObjectKey& key, const ObjectPtr& before) const;
  static std::optional<ObjectChange> ComeOf(const ObjectKey& key, const Entry* old,
                                            const Entry& entry);
  // Objects that a command ended and that no source has any more.
  std::vector<ObjectKey> DropEnded();
  void NoteWhoIsWaitedFor();
  void Notify(const std::vector<ObjectChange>& changes) const;

  const Clock& clock_;
  ObjectIdentities* identities_ = nullptr;
  std::function<bool(const ObjectKey&)> is_bound_;
  uint64_t next_order_ = 1;
  std::map<std::string, Source> sources_;
  std::set<std::string> absence_ends_;
  std::map<ObjectKey, Ended> ended_;
  std::set<ObjectKey> ended_and_gone_;  // of these: what no source has any more
  uint64_t last_number_ = 0;
  std::map<ObjectKey, ObjectOrigin> refused_;
  uint64_t refused_version_ = 0;
  std::set<ObjectKey> replaced_;      // pods whose successors wait
  std::set<ObjectKey> wait_for_uid_;  // they have the uid or the name of a pod that is not gone yet
  // Pods -> the pods that they wait for to be gone, and the same the other way round.
  std::map<ObjectKey, std::set<ObjectKey>> waits_;
  std::map<ObjectKey, std::set<ObjectKey>> waited_for_;
  std::map<ObjectKey, WaitingPod> waiting_;
  std::map<PodUid, ObjectKey> replaced_by_command_;
  // Who has each name, also of objects that are unknown now.
  std::map<ObjectKey, ObjectOrigin> holders_;
  // Changes of claims and volumes that are refused as these are bound, or are not: of the end of
  // that nobody tells the catalog.
  std::set<ObjectKey> refused_while_bound_;
  ObjectKey looked_at_last_;  // of these

  // What is listed, by name and by uid (Listed::names and uids).
  std::map<ObjectKey, std::set<Listed*>> by_name_;
  std::map<PodUid, std::set<Listed*>> by_uid_;
  std::map<PodUid, int> replaced_uids_;                      // by how many that are listed
  std::map<PodUid, std::set<ObjectKey>> remembered_by_uid_;  // the pods of all memories
  Dirty dirty_;
  // An update that is being taken over, or null; and what it has changed and no merge has seen yet.
  std::unique_ptr<Parts> parts_;
  Scope pending_;
  bool has_untold_ = false;  // what it says of the source as a whole is not told yet
  uint64_t last_list_ = 0;   // the number of a full list
  bool always_whole_ = false;
  WorkCounter work_;
  std::vector<Listener> listeners_;
  EndedListener ended_listener_;
};

}  // namespace volumed
