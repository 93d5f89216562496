// SnapshotEngine: snapshots of the pool's volumes, and how far each is: made, copied, cancelled,
// deleted, held by whoever makes a volume of it. The pool cuts; the engine knows what a cut is for.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/alive_guard.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "operation/volume_operations.h"
#include "operation/volume_record_keeper.h"
#include "pool/pool_volumes.h"
#include "snapshot/snapshot_record.h"
#include "volumehost/kubelet_paths.h"

namespace volumed {

struct SnapshotWish {
  std::string name;
  std::string volume;
  StringMap tags = {};
};

// A group that is whole, with its members in their order.
struct SnapshotGroupView {
  SnapshotGroupRecord group;
  std::vector<SnapshotRecord> snapshots;
};

struct SnapshotFilter {
  std::string id;      // empty: any
  std::string volume;  // likewise
  std::string after;   // an id: those that follow
  size_t most = 0;     // 0: all
};

struct SnapshotSettings {
  CutLimits limits;
  int64_t copy_bytes_per_second = 0;  // of each copy; 0: as fast as it goes
  int most_copies = 2;                // at the same time, of each pool
};

// Threads: control, for what starts something; Find, FindByName, FindGroup, List, Hold,
// HoldForClone and Release are for any. Blocks: HoldForClone alone, until the deadline, the store
// and the pool. A callback is called once, on the control thread, perhaps before the call returns.
//
// Errors that all have which start something: Unavailable, not applied, before Start();
// FailedPrecondition, not applied, while a row cannot be read that may be the one; the store's, and
// those of PoolVolumes, of which a change may be half done: to repeat the call goes on.
class SnapshotEngine {
 public:
  // All outlive this object, which outlives the operations that it starts.
  struct Parts {
    Scheduler& scheduler;
    VolumeOperations& operations;
    PoolVolumes& volumes;
    const KubeletPaths& paths;
    const DeviceRecordKeeper& devices;  // say where a volume is mounted
    RecordStore& store;
    Kernel& kernel;
    Logger& log;
    std::string driver;  // by which volumes name the pools; empty: there are none
  };
  SnapshotEngine(Parts parts, SnapshotSettings settings);
  ~SnapshotEngine();
  SnapshotEngine(const SnapshotEngine&) = delete;
  SnapshotEngine& operator=(const SnapshotEngine&) = delete;

  // Takes over the rows of one kind; to be called for both before anything else. A row that cannot
  // be decoded is set aside as one that the store has set aside.
  void Restore(const std::string& kind, const LoadedRecords& rows) EXCLUDES(mu_);
  // While the records are in doubt, what was being copied by them has failed: the snapshot may have
  // been whole by now, or its source written to, by rows that are missing. Called once, as soon as
  // the rows of snapshots and cuts are there, and before Start().
  void FailDoubted() EXCLUDES(mu_);
  // That it is on record that these have failed, without which whoever accepts the records would
  // let the copies go on at the next start. Threads: any but the control thread. Blocks: on the
  // store. Errors, not applied: Unavailable before FailDoubted(); those of RecordStore::Write.
  Status SaveDoubted() EXCLUDES(mu_, saving_doubted_);
  // Thaws what an agent before this one may have left frozen, whether its pool is open or not.
  // Called once, as soon as the rows of snapshots, volumes and devices are there.
  void EndFreezes() EXCLUDES(mu_);
  // Goes on with what an agent before this one has left: discards what was not cut and what is in
  // no whole group, and goes on with copies and deletions. Called whenever a pool was opened
  // (PoolVolumes::Recover), as what is in one that is not open waits for it.
  void Start() EXCLUDES(mu_);
  // A volume was made, or deleted: clones' cuts that nobody needs any more go.
  void VolumesChanged() EXCLUDES(mu_);
  // The agent ends: from now on no cut begins, and Create(), CreateGroup() and the cut for a clone
  // are Unavailable, not applied. Whether one goes on, which may have a filesystem frozen. To be
  // called again until it is false.
  bool EndCuts() EXCLUDES(mu_);
  // They hold for what begins from now on.
  void SetSettings(const SnapshotSettings& settings) EXCLUDES(mu_);

  // Makes it, or finds the one of this name. `done` is called when the point in time exists: a
  // snapshot that is not ready may be answered. Errors: AlreadyExists, not applied, for the same
  // name of another volume; Aborted, not applied, while another call makes it, while it is being
  // taken away, or while the volume is being mounted or changed; that of an earlier one that failed
  // after its cut, once: the next call begins anew, under a new id; Cancelled; those of
  // PoolVolumes::Cut.
  using Made = std::function<void(const Result<SnapshotRecord>&)>;
  void Create(const SnapshotWish& wish, Made done) EXCLUDES(mu_);
  // All of one moment, or none: what was begun is discarded before the error is told. The order of
  // the volumes does not matter. Errors: as Create; InvalidArgument, not applied, for no volume, or
  // one that is named twice; AlreadyExists also for other parameters.
  struct GroupWish {
    std::string name;
    std::vector<std::string> volumes;
    StringMap parameters = {};
  };
  using GroupMade = std::function<void(const Result<SnapshotGroupView>&)>;
  void CreateGroup(const GroupWish& wish, GroupMade done) EXCLUDES(mu_);

  // Ends what goes on, and discards it; it deletes nothing that is ready, and success without
  // effect is told of what has ended. A call that makes it is told Cancelled. Errors: NotFound, not
  // applied; InvalidArgument, not applied, for a member of a group.
  using Done = std::function<void(const Status&)>;
  void Cancel(const std::string& id, Done done) EXCLUDES(mu_);
  // One that is unknown is success, unless it may be another pool's. It ends what goes on first.
  // Errors, not applied: InvalidArgument for a member of a group; FailedPrecondition while a volume
  // is made of it, and for the cut of a clone.
  void Delete(const std::string& id, Done done) EXCLUDES(mu_);
  // Deletes all members. `snapshots` may be empty; else InvalidArgument, not applied, unless it
  // names each member. FailedPrecondition likewise while a volume is made of one.
  void DeleteGroup(const std::string& id, const std::vector<std::string>& snapshots, Done done)
      EXCLUDES(mu_);

  // In whatever phase; nullopt if it is unknown, or a clone's.
  std::optional<SnapshotRecord> Find(const std::string& id) const EXCLUDES(mu_);
  std::optional<SnapshotRecord> FindByName(const std::string& name) const EXCLUDES(mu_);
  // Why Find() is nullopt, not applied: NotFound, if there is none; FailedPrecondition, if another
  // node may have it, while records are in doubt, and for the cut of a clone.
  Error WhyNotFound(const std::string& id) const;
  // Errors, not applied: NotFound, also while it is made; Aborted while it is to be deleted, as
  // that may be refused yet; InvalidArgument, if `snapshots` is not empty and does not name each
  // member.
  Result<SnapshotGroupView> FindGroup(const std::string& id,
                                      const std::vector<std::string>& snapshots) const
      EXCLUDES(mu_);
  // Those that are cut, by id, without those of clones: nobody is shown what has no point in time.
  // Looks at all.
  std::vector<SnapshotRecord> List(const SnapshotFilter& filter) const EXCLUDES(mu_);

  // For ContentHolder. The first holds a ready snapshot. The second cuts a volume for a clone, on
  // this thread, and holds that, or the one that was cut for it before; Unavailable, not applied,
  // while its bytes are being copied, which goes on without the caller. What is cut for a clone
  // goes once nobody holds it and its volume is not being made any more. REQUIRES and errors: as
  // ContentHolder::Hold.
  Result<SnapshotRecord> Hold(const std::string& id) EXCLUDES(mu_);
  Result<SnapshotRecord> HoldForClone(const std::string& volume, const std::string& for_volume,
                                      const CallOptions& call) EXCLUDES(mu_);
  void Release(const std::string& id) EXCLUDES(mu_);
  // Calls `done` as soon as no bytes of the volume are being copied for a clone, which may be at
  // once, or after that time. Threads: control. Blocks: never.
  void WhenCopiedForClone(const std::string& volume, Duration at_most, std::function<void()> done)
      EXCLUDES(mu_);
  const std::string& driver() const { return parts_.driver; }

  // Called after each change of a snapshot's row, on the control thread, and never for progress
  // alone. Set before Start().
  using Listener = std::function<void(const SnapshotRecord&)>;
  void AddListener(Listener listener) { listeners_.push_back(std::move(listener)); }

 private:
  // Snapshots that are being cut together, and the group's row if they are one.
  struct Cutting {
    std::vector<SnapshotRecord> members;
    std::optional<SnapshotGroupRecord> group;
  };
  using CutDone = std::function<void(const Status&)>;

  // ---- tables (snapshot_engine.cc) ----
  std::optional<SnapshotRecord> Row(const std::string& id) const EXCLUDES(mu_);
  std::optional<SnapshotGroupRecord> GroupRow(const std::string& id) const EXCLUDES(mu_);
  void Show(const SnapshotRecord& record) EXCLUDES(mu_);
  // The only functions that write rows; what is shown follows them.
  Status Save(const std::vector<SnapshotRecord>& records,
              const std::optional<SnapshotGroupRecord>& group = std::nullopt,
              Durability durability = kSnapshotRecordDurability) EXCLUDES(mu_);
  Status Remove(const SnapshotRecord& record) EXCLUDES(mu_);
  Status RemoveGroup(const std::string& id) EXCLUDES(mu_);
  void Forget(const SnapshotRecord& record) REQUIRES(mu_);
  void TellChanged(const SnapshotRecord& record);
  SnapshotSettings settings() const EXCLUDES(mu_);
  bool IsBusy(const std::string& id) const EXCLUDES(mu_);
  int64_t Now() const { return parts_.scheduler.clock().WallUnixMillis(); }
  // Moves the record on by the table. REQUIRES: the table has a row for each.
  SnapshotRecord After(SnapshotRecord record, const std::vector<SnapshotEvent>& events) const;
  // Whether nothing runs on any of them; then something does from now on.
  bool Take(const std::vector<std::string>& ids) EXCLUDES(mu_);
  void GiveBack(const std::vector<std::string>& ids) EXCLUDES(mu_);
  Status CheckStarted() const EXCLUDES(mu_);
  Status CheckNotHeld(const std::string& id) const REQUIRES(mu_);
  // The error of an id that no row has; ok if it is certainly no snapshot of this node.
  Status WhyUnknown(const std::string& id) const;

  // ---- making (snapshot_engine_create.cc) ----
  // New members without names.
  Result<Cutting> PlanCut(const std::vector<std::string>& volumes) const;
  void CreateAgain(const SnapshotRecord& there, const SnapshotWish& wish, Made done) EXCLUDES(mu_);
  void BeginSnapshot(const SnapshotWish& wish, const Made& done) EXCLUDES(mu_);
  void Begin(const Cutting& cutting, CutDone done) EXCLUDES(mu_);
  // From now on something runs on them.
  void Announce(const Cutting& cutting) EXCLUDES(mu_);
  // `taken`: what something runs on no more.
  void CutEnded(const std::vector<std::string>& ids, const std::vector<std::string>& taken,
                const Status& status, const CutDone& done) EXCLUDES(mu_);
  // Of those that were never on record nothing stays.
  void ForgetUncut(const std::vector<std::string>& ids) EXCLUDES(mu_);
  // Notes that `done` is told why the snapshot failed, and tells it.
  void TellError(const SnapshotRecord& failed, CutDone done) EXCLUDES(mu_);
  // On an executor thread: writes the intents, cuts, and writes what came of it. After an error
  // nothing is left but what the rows say.
  Status CutOnRecord(const std::vector<PoolVolumes::CutRequest>& requests, const CallOptions& call)
      EXCLUDES(mu_);
  // Errors: Unavailable, not applied, after EndCuts().
  Status BeginCut() EXCLUDES(mu_);
  Status CutAndNote(const std::vector<PoolVolumes::CutRequest>& requests, const CallOptions& call)
      EXCLUDES(mu_);
  Status NoteCut(const std::vector<PoolCutRecord>& cuts) EXCLUDES(mu_);
  void GiveUpCut(const std::vector<std::string>& ids, const Error& error, const CallOptions& call)
      EXCLUDES(mu_);
  void LogLeft(const std::string& id, const Status& taken);

  // ---- going on (snapshot_engine_process.cc) ----
  void GoOn(const std::string& id) EXCLUDES(mu_);
  // The same from any thread, a turn later.
  void GoOnSoon(const std::string& id);
  void Process(const std::string& id) EXCLUDES(mu_);
  // Whether a copy of this volume has to wait for others, of its pool, or of its listed device:
  // whoever copies that has it for himself. Those that hang keep no other pool's from running.
  bool WaitsForCopies(const std::string& volume) const EXCLUDES(mu_);
  // What the pool has of a snapshot whose row is lost.
  void DeleteOrphan(const std::string& id, Done done) EXCLUDES(mu_);
  // Errors: FailedPrecondition, not applied, if a group has it, or while somebody holds it.
  Status CheckIsNobodys(const std::string& id) const EXCLUDES(mu_);
  // Errors: FailedPrecondition, not applied, while somebody holds it.
  Status AskDeletion(const std::string& id) EXCLUDES(mu_);
  // Whether it has failed, and what the pool has of it is still to be discarded.
  bool HasRest(const SnapshotRecord& row) const;
  void TakeAwayLater(const std::string& id) EXCLUDES(mu_);
  void Ended(const std::string& id, const Status& status) EXCLUDES(mu_);
  void TellWaiting(const std::string& id, const Status& status);
  // Goes on with the snapshot, or the group, at the next try of its key.
  void GoOnWhenDue(const OperationKey& key, const std::string& id);
  // Ends a copy, and what waits for its lane; a cut that is being made goes on.
  void StopWork(const std::string& id);
  // Of those that wait for copies of the same pool or device.
  void CopyNext(const std::string& domain);
  Status CopyOnRecord(const std::string& id, const CallOptions& call) EXCLUDES(mu_);
  Status CopyFailed(const std::string& id, const Error& error, const CallOptions& call)
      EXCLUDES(mu_);
  void NoteProgress(const std::string& id, int64_t bytes) EXCLUDES(mu_);
  // On an executor thread: discards what is there of a snapshot that was cancelled, deleted, failed
  // or left, and then says so; the row of one that is deleted goes.
  Status TakeAway(const std::string& id, const CallOptions& call) EXCLUDES(mu_);
  // Whoever wants them deleted asks again. Their rows are to be saved: one whose copy has ended
  // meanwhile says that it goes.
  std::vector<SnapshotRecord> AskDeletionNoMore(const std::vector<std::string>& snapshots)
      EXCLUDES(mu_);
  Status Thaw(const SnapshotRecord& record, const CallOptions& call) EXCLUDES(mu_);

  // ---- groups (snapshot_engine_groups.cc) ----
  void CreateGroupAgain(const SnapshotGroupRecord& there, const GroupWish& wish, GroupMade done)
      EXCLUDES(mu_);
  void BeginGroup(const GroupWish& wish, const GroupMade& done) EXCLUDES(mu_);
  // Nullopt unless all members were cut.
  std::optional<SnapshotGroupView> ViewOf(const SnapshotGroupRecord& group) const REQUIRES(mu_);
  // Marks the group and its members as ones that go.
  void MarkGroup(const std::string& id) REQUIRES(mu_);
  // Errors: FailedPrecondition, not applied, while somebody holds a member.
  Status AskGroupDeletion(const SnapshotGroupRecord& group) EXCLUDES(mu_);
  void GoOnWithGroup(const std::string& id) EXCLUDES(mu_);
  // Errors: those of PoolVolumes::PrepareDiscard; at FailedPrecondition the group stays, and its
  // deletion is asked for no more.
  Status CheckNobodyHasAny(const SnapshotGroupRecord& group, const CallOptions& call) EXCLUDES(mu_);
  Status TakeGroupAway(const std::string& id, const CallOptions& call) EXCLUDES(mu_);

  // ---- holding (snapshot_engine_hold.cc) ----
  static Status WhyNotHeld(const SnapshotRecord& record);
  // Nullopt if there is none of this name.
  Result<std::optional<SnapshotRecord>> HoldMadeClone(const std::string& volume,
                                                      const std::string& name) EXCLUDES(mu_);
  bool IsCloneNeeded(const SnapshotRecord& record) const EXCLUDES(mu_);
  // Whether it is a clone's that nobody needs any more; then its deletion is asked for.
  bool EndUnneededClone(const SnapshotRecord& record) EXCLUDES(mu_);
  bool IsCopiedForClone(const std::string& volume) const EXCLUDES(mu_);
  void TellCopied(const std::string& volume) EXCLUDES(mu_);

  // ---- restart (snapshot_engine_restart.cc) ----
  void RestoreSnapshots(const LoadedRecords& rows) REQUIRES(mu_);
  void RestoreGroups(const LoadedRecords& rows) REQUIRES(mu_);
  void MarkUnfinished() REQUIRES(mu_);
  // What was being copied, if the records are in doubt.
  std::vector<SnapshotRecord> Doubted() const EXCLUDES(mu_);
  // Nothing else runs on them until SaveDoubted() has succeeded.
  void FailUnsaved(const std::vector<SnapshotRecord>& copied) EXCLUDES(mu_);
  // Discards what was to be copied by rows that are lost, as it holds its source for ever
  // otherwise.
  void DiscardUncopiedOrphans() EXCLUDES(mu_);
  bool IsUncopiedOrphan(const std::string& id) const EXCLUDES(mu_);
  void GoOnAfterRestart(const std::string& id) EXCLUDES(mu_);

  const Parts parts_;
  std::vector<Listener> listeners_;
  // Of the control thread: who is told when nothing runs on an id any more, copies that wait for
  // others, and those that run, with what ends them.
  std::map<std::string, std::vector<Done>> waiting_;
  std::map<std::string, std::deque<std::string>> to_copy_;  // by domain
  std::map<std::string, std::shared_ptr<CancelToken>> copies_;
  // By volume: who waits for its copies; empty once it was called.
  std::multimap<std::string, std::shared_ptr<std::function<void()>>> await_copies_;
  Mutex saving_doubted_;  // while it is written
  mutable Mutex mu_;
  SnapshotSettings settings_ GUARDED_BY(mu_);
  bool started_ GUARDED_BY(mu_) = false;
  bool ends_cuts_ GUARDED_BY(mu_) = false;
  int cuts_ GUARDED_BY(mu_) = 0;                                     // that go on
  std::map<std::string, SnapshotRecord> snapshots_ GUARDED_BY(mu_);  // by id
  std::map<std::string, std::string> names_ GUARDED_BY(mu_);         // name -> id
  std::map<std::string, SnapshotGroupRecord> groups_ GUARDED_BY(mu_);
  std::map<std::string, std::string> group_names_ GUARDED_BY(mu_);
  std::map<std::string, std::string> unreadable_ GUARDED_BY(mu_);  // key -> why
  std::map<std::string, int> held_ GUARDED_BY(mu_);
  std::set<std::string> busy_ GUARDED_BY(mu_);  // ids on which something runs
  bool has_looked_for_doubted_ GUARDED_BY(mu_) = false;
  std::set<std::string> doubted_ GUARDED_BY(mu_);  // ids that have failed, and not on record yet
  std::set<std::string> to_thaw_ GUARDED_BY(mu_);  // they may be frozen since an earlier agent
  std::set<std::string> clones_ GUARDED_BY(mu_);   // ids of those for_volume
  AliveGuard alive_;
};

}  // namespace volumed
