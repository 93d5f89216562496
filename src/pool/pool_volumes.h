// PoolVolumes: the volumes of all pools of the node, and their cuts: what there is, and how it is
// made, changed and removed. Claims of this node and other callers come here alike. Every change is
// on record before its first effect and after its last.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/result.h"
#include "pool/pool.h"
#include "pool/pool_parameters.h"
#include "pool/pool_record.h"
#include "pool/pool_tally.h"
#include "pool/pool_wishes.h"
#include "records/record_store.h"
#include "volumehost/irreversible_steps.h"

namespace volumed {

// The error of a throttled volume whose pod nobody knows. Pure.
Error WhyPodIsNeeded(const std::string& id);

// Threads: any. Blocks: what has CallOptions, until the deadline and for the store; NoteFilesystem
// for the store; the rest never. Errors that those with an id have: NotFound, not applied, of an id
// that is kNone; FailedPrecondition, not applied, of another pool, of a row that cannot be read,
// and of one that is kNone while records are in doubt; Unavailable, not applied, of one that is
// kNotKnownYet. Errors of what changes something: Aborted, not applied, while another call has the
// id or the name; Unavailable, not applied, while the pool is not open; the store's, of which a
// change may be half done: to repeat the call goes on.
class PoolVolumes {
 public:
  // All outlive this object.
  struct Parts {
    RecordStore& store;
    Kernel& kernel;
    const Clock& clock;
    Logger& log;
    IrreversibleSteps& irreversible;
  };
  // The first of the pools is the one of volumes that name none.
  PoolVolumes(Parts parts, std::vector<std::unique_ptr<Pool>> pools);
  ~PoolVolumes();
  PoolVolumes(const PoolVolumes&) = delete;
  PoolVolumes& operator=(const PoolVolumes&) = delete;

  // Without one no volume is made with a content. It outlives this object; set before any call that
  // makes a volume.
  void SetContentHolder(ContentHolder* holder) { contents_ = holder; }

  // Takes over the rows of one kind, of pools, of volumes or of cuts; to be called before anything
  // else. A row that cannot be decoded is set aside as one that the store has set aside.
  void Restore(const std::string& kind, const LoadedRecords& rows) EXCLUDES(mu_);
  // Opens the pool if it is not open, goes on with what was begun in it (kMaking and kExpanding
  // stay for their callers; kDeleting ends, and so do cuts that are kCutting or kDiscarding), and
  // closes devices that nobody has. `is_used` says whether a volume is, or may be, staged here.
  // Called at the start, and when the pool's path appears, by one thread at a time for each pool.
  // The error is the first one; whatever can be done is done all the same.
  using IsUsed = std::function<bool(const std::string& id)>;
  Status Recover(Pool& pool, const IsUsed& is_used, const CallOptions& call) EXCLUDES(mu_);
  // The same of all pools, one after the other.
  Status Recover(const IsUsed& is_used, const CallOptions& call) EXCLUDES(mu_);
  const std::vector<std::unique_ptr<Pool>>& pools() const { return pools_; }

  PoolIdMeaning MeaningOf(const std::string& id, PoolObject object = PoolObject::kVolume) const
      EXCLUDES(mu_);
  Result<PoolVolumeRecord> Find(const std::string& id) const EXCLUDES(mu_);
  std::optional<PoolVolumeRecord> FindByName(const std::string& name) const EXCLUDES(mu_);
  // The volume that is, or is to be, a directory which was at this path: one whose import has not
  // ended, if there is one.
  std::optional<PoolVolumeRecord> FindMovedFrom(const std::string& path) const EXCLUDES(mu_);
  // Whether each volume's record can be read: without that none is made. Blocks: until the
  // deadline. Errors, not applied: FailedPrecondition.
  Status CheckAllReadable(const CallOptions& call) EXCLUDES(mu_);
  // Whether a name that FindByName() does not find is certainly that of no volume. Blocks: until
  // the deadline. Errors, not applied: FailedPrecondition while a volume is kUnreadable, and while
  // records are in doubt; Unavailable until each pool was looked through for files without a row.
  Status CheckNamesKnown(const CallOptions& call) EXCLUDES(mu_);
  // Those that are ready, or are being made larger, after this id; without inline volumes, of which
  // only their pods' kubelet knows.
  PoolPage List(const std::string& after, size_t most) const EXCLUDES(mu_);
  // All volumes that are on record, in whatever state, in the order of their ids.
  std::vector<PoolVolumeRecord> All() const EXCLUDES(mu_);
  // The inline volumes, in whatever state, in the order of their ids.
  std::vector<PoolVolumeRecord> InlineVolumes() const EXCLUDES(mu_);
  // The path of the pool of the volume, or of the cut, or the device of a static volume, or the
  // domain of the server of an export ("nfs:nas-1"), for lanes; "" if it is not known.
  std::string DomainOf(const std::string& id) const EXCLUDES(mu_);

  // The path of the pool that a volume of these parameters would be in, for lanes; "" if there is
  // none.
  std::string DomainFor(const StringMap& parameters) const;

  // What a volume of this wish would be, with what follows from its content: the pool and the
  // filesystem of that, unless the parameters name others, and its size at least. Errors, not
  // applied: those of the parameters and of the size; NotFound and FailedPrecondition of a content
  // that cannot be had; InvalidArgument for one of another pool, mode or filesystem.
  struct Shape {
    PoolParameters parameters;
    int64_t bytes = 0;
    std::string family;  // of the content; empty: it has none
    // Of its device: a filesystem does not mount from larger sectors than those it was made with.
    int64_t block_bytes = kPoolBlockBytes;
  };
  Result<Shape> ShapeOf(const PoolVolumeWish& wish) const EXCLUDES(mu_);

  // How much volumes of these parameters have, and could have. Errors, not applied: those of the
  // parameters; NotFound for a pool that is not configured; Unavailable while it is not open.
  Result<PoolAccount> Capacity(const StringMap& parameters, const CallOptions& call) EXCLUDES(mu_);
  // The same of the pool of this name, for people. Blocks: for kAnswerPatience at most.
  PoolGlance Glance(const std::string& pool) EXCLUDES(mu_);
  // What was found by whoever has asked last.
  PoolSeen Seen(const std::string& pool) const EXCLUDES(mu_);
  // How many volumes of the pool List() has.
  int64_t CountOf(const std::string& pool) const EXCLUDES(mu_);
  // What is wrong with the pool of this name, and with its volumes. A pool that does not answer
  // within kAnswerPatience is not waited for any longer.
  PoolHealth Look(const std::string& pool, const CallOptions& call) EXCLUDES(mu_);
  // An id for a volume that is planned. Errors: as those of Capacity().
  Result<std::string> PlanId(const StringMap& parameters) const EXCLUDES(mu_);

  // Makes the volume, or finds the one that was made by this name. Errors, not applied:
  // AlreadyExists, if that one is another, or has another id; InvalidArgument, OutOfRange,
  // ResourceExhausted; FailedPrecondition while a volume of any pool is kUnreadable, as names are
  // the node's; those of the backend and of IrreversibleSteps. Of a content: NotFound;
  // InvalidArgument for one of another pool, another mode or another filesystem; Unimplemented
  // without a holder; those of ContentHolder::Hold, of which Unavailable is maybe applied, as the
  // id is kept. Maybe applied: the same call goes on, or Delete() takes back.
  Result<PoolVolumeRecord> Create(const PoolVolumeWish& wish, const CallOptions& call)
      EXCLUDES(mu_);
  // Which names of static volumes are listed; from the start on. One that is on record and not
  // listed is not opened, and can be deleted, by which it loses its id and nothing else.
  void ListStatic(std::set<std::string> names) EXCLUDES(mu_);
  // Takes the device or the export as the volume of this name, or finds that it is the one on
  // record, which has grown meanwhile, has another path, or has other options, which hold from the
  // next staging on. Nothing is written to it, and the server of an export is not asked. Errors,
  // not applied: NotFound, if there is no device; FailedPrecondition for another one than that on
  // record, for one that says nothing lasting of itself or is a volume by another name, for one
  // that has become smaller, for another mode, and, unless it is a block volume, for what is on it
  // and is no filesystem of pools; likewise for another export than that on record, and for one
  // that is a volume by another name; those of Create().
  Result<PoolVolumeRecord> TakeStatic(const StaticVolume& wish, const CallOptions& call)
      EXCLUDES(mu_);
  // Makes a volume of what is there, or finds the one that was made by this name. Nothing is
  // copied, and the source stays as it is, but for a plain directory, which is moved. REQUIRES:
  // nobody writes to the source. Errors: those of PoolBackend::Import; NotFound, not applied, for a
  // pool that is not configured; and those of Create(), but for the ones of the wish. Maybe
  // applied: the same call goes on, if the source is the same by then, or begins anew; Delete()
  // takes back, and never deletes what was moved.
  Result<PoolVolumeRecord> Import(const PoolImportWish& wish, const CallOptions& call)
      EXCLUDES(mu_);
  // Success if there is none of this id, unless it is of another pool. REQUIRES: nothing of it is
  // mounted, and nobody can mount it until this returns. Errors: FailedPrecondition, not applied,
  // if it is a static volume that is listed, if (`only_unused`) it was used, if a node has a lease,
  // while a cut is copied from it, and by IrreversibleSteps; those of the backend, after which it
  // stays kDeleting. Its cuts stay.
  Status Delete(const std::string& id, bool only_unused, const CallOptions& call) EXCLUDES(mu_);
  // Makes it as large as that, also while it is open. The capacity afterwards, which is at least
  // `bytes`. Errors: OutOfRange; FailedPrecondition, not applied, while it is made, deleted or
  // pinned; ResourceExhausted, after which it may have a promise of this size.
  Result<int64_t> Expand(const std::string& id, int64_t bytes, const CallOptions& call)
      EXCLUDES(mu_);

  // Tunes the volume, also while it is open, and whenever it is opened from now on; what is not
  // named stays as it is. A throttle is set for `pods`, by their uids, which are those that have
  // the volume now. Nothing has changed after an error that is not applied. Errors, not applied:
  // InvalidArgument, for what ParsePoolTuning() refuses and for what the pool's filesystem cannot
  // do; FailedPrecondition, while it is made or deleted, and if a throttle cannot be set.
  Status Modify(const std::string& id, const StringMap& parameters, const CallOptions& call,
                const std::set<std::string>& pods = {}) EXCLUDES(mu_);
  // Whether it has a throttle on record. One of no limit is none.
  bool IsThrottled(const std::string& id) const EXCLUDES(mu_);
  // Sets the throttle of the volume for a pod that gets it, and finds it in the file of the pod's
  // cgroup; success if it has none on record. What is no limit takes an earlier one away. REQUIRES:
  // it is open. Errors: FailedPrecondition, not applied, without a uid, and if the cgroup has no
  // file of limits that can be written; InvalidArgument, not applied, for what is no uid.
  Status Throttle(const std::string& id, const std::string& pod, const CallOptions& call)
      EXCLUDES(mu_);
  // The pod has the volume by a row of an earlier agent: KeepThrottles() looks whether there is a
  // throttle to be kept.
  void NoteThrottled(const std::string& id, const std::string& pod) EXCLUDES(mu_);
  bool HasThrottlesToKeep() const EXCLUDES(mu_);
  // Sets the throttles again where cgroups are limited each by itself (version 1): a container's is
  // made after its pod has the volume, and has no limit then. Pods whose cgroup is gone, and those
  // that have the volume no more, are forgotten. To be called every few seconds while there are
  // some.
  void KeepThrottles(const CallOptions& call) EXCLUDES(mu_);

  // Whether the records may be older than the disks. Threads: any. Blocks: never.
  bool InDoubt() const { return parts_.irreversible.InDoubt(); }
  // To be called before records are accepted: what was being made by those that were in doubt when
  // they were restored may be whole, and somebody's by now, and that is put on record. Errors:
  // Aborted, not applied, while a call has such a volume; those of the store.
  Status SaveDoubted() EXCLUDES(mu_);

  // Gives the volume to the node, until EndLease(); also over boots and power losses, but for one
  // by_stage, which a power loss may take: it voids what is staged, too. Success if the node has it
  // so already, or if it has a lease and this one is by_stage. Errors, not applied:
  // FailedPrecondition, naming the other node, if that one excludes it (WhyNotBeside), and while
  // the volume is made or deleted; AlreadyExists, if the node has it with another mode or another
  // readonly; ResourceExhausted, if the node has leases of `node_limit` volumes (0: no limit).
  Status TakeLease(const std::string& id, const PoolLease& lease, int64_t node_limit) EXCLUDES(mu_);
  // Takes away what was given by_stage, or what was given otherwise, from the node, or from every
  // node if `node` is empty. Success if there is none, and for an id without a row.
  Status EndLease(const std::string& id, const std::string& node, bool by_stage) EXCLUDES(mu_);

  // For the plugin: the device of a volume that is ready. From now on it was used; and a copy has a
  // UUID of its own, so that Find() is to be called again. Errors: FailedPrecondition, not applied,
  // while it is made or deleted, and for a device that takes writes while a cut is copied from it;
  // those of the backend and of ChangeFilesystemUuid.
  Result<OpenedVolume> Open(const std::string& id, bool read_only, const CallOptions& call)
      EXCLUDES(mu_);
  // REQUIRES: nothing is mounted from it. Success if nothing is open, and for an id without a row;
  // what has files and no row is closed, too.
  Status Close(const std::string& id, const CallOptions& call) EXCLUDES(mu_);
  // It was mounted with this filesystem. Errors: FailedPrecondition, not applied, if another one is
  // on record.
  Status NoteFilesystem(const std::string& id, const PoolFilesystem& filesystem) EXCLUDES(mu_);

  // Closes the volume and makes its file anew, so that all of it reads as zero. REQUIRES: nothing
  // is mounted from it, and there is nothing on it but what a mkfs has left that did not end.
  // Errors: FailedPrecondition, not applied, of a block volume, and of one that was mounted or is
  // not ready; those of IrreversibleSteps, as for a format, and of the backend. Maybe applied: Open
  // goes on.
  Status MakeAnew(const std::string& id, const CallOptions& call) EXCLUDES(mu_);

  // Cuts, for whoever keeps them. Their ids are errors as those of volumes are. A new id for a cut
  // of this volume; "" if the volume is not known.
  std::string NewCutId(const std::string& volume) const EXCLUDES(mu_);
  // In whatever state it is.
  Result<PoolCutRecord> FindCut(const std::string& id) const EXCLUDES(mu_);
  // The ids of all, also of those that cannot be read, in order.
  std::vector<std::string> Cuts() const EXCLUDES(mu_);

  struct CutRequest {
    std::string volume;
    std::string cut;  // NewCutId()
    std::optional<CutWish::Mounted> mounted;
    std::string writer = {};  // who can write to it now, for people; empty: nobody of this node
  };
  // Cuts the volumes at one moment under these ids, or none; one answer each, in their order. A cut
  // that is no whole copy yet (IsWhole) needs CopyCut(), and its volume is pinned until then. The
  // caller syncs what is on record of them by a row of its own: after a power loss before that
  // there is no cut. REQUIRES: as PoolBackend::Cut. Errors: those of PoolBackend::Cut, after which
  // no cut counts and what is left goes by itself, or by Discard(); FailedPrecondition, not
  // applied, for volumes of several pools, for one that is made, deleted or pinned, and for one
  // that was used while nobody noted its filesystem; AlreadyExists, not applied, for an id that is
  // taken; ResourceExhausted. A listed device is copied: its cut is one of an image of its pool.
  // FailedPrecondition, not applied, naming who it is, while anybody can write to it, and for an
  // export.
  Result<std::vector<PoolCutRecord>> Cut(const std::vector<CutRequest>& requests,
                                         const CutLimits& limits, const CallOptions& call)
      EXCLUDES(mu_);
  // Copies what Cut() has left to copy, from where an earlier call ended, and so fast (0: no
  // limit); success if nothing is left. `call.progress` is told, on this thread, up to which byte
  // all is copied, as FindCut() says it then; the deadline does not end it, but `call.cancel` does.
  // Errors: FailedPrecondition, not applied, unless it is kCut; Cancelled, maybe applied.
  Status CopyCut(const std::string& cut, int64_t bytes_per_second, const CallOptions& call)
      EXCLUDES(mu_);
  // Whether somebody has a cut, as PoolBackend::PrepareDiscard says, whose errors it has; success
  // for one without a row. To be called before its deletion is put on record.
  Status PrepareDiscard(const std::string& cut, const CallOptions& call) EXCLUDES(mu_);
  // Success if there is none of this id, unless it is of another pool. Volumes that were made of it
  // stay. REQUIRES: nobody makes a volume of it. Errors: those of the backend, after which it stays
  // kDiscarding; FailedPrecondition, not applied, by IrreversibleSteps. A power loss may bring its
  // row back, as one that is being discarded.
  Status Discard(const std::string& cut, const CallOptions& call) EXCLUDES(mu_);
  // Where the bytes of the cut lie on the pool's disk: those from `from_offset` on, `most` runs at
  // a time (ListExtents). It keeps nobody from discarding the cut meanwhile. Errors, not applied:
  // FailedPrecondition, unless it is whole, and one file.
  Result<ExtentList> ListCutExtents(const std::string& cut, int64_t from_offset, uint32_t most,
                                    const CallOptions& call) const EXCLUDES(mu_);

  // A new volume, one less, or capacity that has changed, on the thread that made it; one listener,
  // set before any other call.
  void SetChanged(std::function<void()> changed) { changed_ = std::move(changed); }
  // A pool is short that was not when it was last measured, or no more, on the thread that has
  // found it; one listener, set before any other call.
  using ShortChanged = std::function<void(const std::string& pool)>;
  void SetShortChanged(ShortChanged changed) { short_changed_ = std::move(changed); }

 private:
  class Taken;        // ids and names that a call has
  class Reservation;  // of bytes, until the row says so
  // A volume, and what a call needs to change it.
  struct Held;
  // The same of a cut.
  struct HeldCut;
  // Volumes that are being cut together.
  struct Cutting;

  // Whether a volume or a cut of the pool is, or may be, on record.
  bool MayHaveRows(const std::string& pool) const EXCLUDES(mu_);
  // Null if there is none.
  Pool* PoolNamed(const std::string& name) const;
  Pool* PoolOf(const PoolId& id) const;
  Pool* PoolFor(const PoolParameters& parameters) const;
  // Errors, not applied: NotFound, if there is none; Unavailable, while it is not open.
  Result<Pool*> OpenPoolFor(const PoolParameters& parameters) const;
  static Result<PoolBackend*> BackendOf(const Pool& pool, PoolBackendKind kind);
  // The same of a pool that need not be open. REQUIRES: opened() is not null.
  static Result<PoolBackend*> FindBackend(const Pool& pool, PoolBackendKind kind);
  // The keys are ids, names (NameKey) and places of leases. Errors: Aborted, not applied.
  Result<Taken> Take(std::vector<std::string> keys) EXCLUDES(mu_);
  // The volume, taken by its id and its name. Errors: those of every id, and of every change.
  Result<Held> Hold(const std::string& id, const CallOptions& call) EXCLUDES(mu_);
  // The same for whoever works in the pool, which has to be there.
  Result<Held> HoldThere(const std::string& id, const CallOptions& call) EXCLUDES(mu_);
  // The same for whoever closes it, which needs nothing of a filesystem that has failed.
  Result<Held> HoldToClose(const std::string& id, const CallOptions& call) EXCLUDES(mu_);
  static Status CheckClosable(const Pool& pool, const CallOptions& call);
  enum class PoolNeed { kOpen, kOpenOnce };
  Result<Held> Hold(const std::string& id, PoolNeed need, const CallOptions& call) EXCLUDES(mu_);
  // The error of an id, of a volume or of a cut, that is not kHere.
  Status WhyNotHere(const std::string& id, PoolObject object = PoolObject::kVolume) const
      EXCLUDES(mu_);
  std::optional<PoolVolumeRecord> FindRow(const std::string& id) const EXCLUDES(mu_);
  std::optional<PoolCutRecord> FindCutRow(const std::string& id) const EXCLUDES(mu_);

  std::optional<std::string> RestoreRow(const std::string& kind, const Record& row) EXCLUDES(mu_);
  // Writes the row, or removes it, and then says the same in the tables.
  Status Write(const PoolVolumeRecord& record, Durability durability = kPoolRecordDurability)
      EXCLUDES(mu_);
  Status Remove(const PoolVolumeRecord& record) EXCLUDES(mu_);
  // Moves the volume on by the table of states. REQUIRES: the table has a row for this.
  Status Advance(PoolVolumeRecord& record, PoolVolumeEvent event) EXCLUDES(mu_);
  void TellChanged() const;

  // The volume that was made by this name, or is being made; or the record of a new one, which is
  // not written yet: its state is kNotKnown.
  Result<PoolVolumeRecord> FindOrPlan(const PoolVolumeWish& wish) const EXCLUDES(mu_);
  Result<PoolVolumeRecord> FindMade(const PoolVolumeWish& wish, PoolVolumeRecord row) const;
  Result<std::string> NewIdFor(const PoolVolumeWish& wish, const Pool& pool) const EXCLUDES(mu_);
  Status WriteIntent(PoolVolumeRecord& record, const PoolParameters& parameters, const Pool& pool,
                     const CallOptions& call) EXCLUDES(mu_);
  // A volume that is being made, while what is in it is held.
  struct Making;
  // How it gets its files.
  using Fill = std::function<Result<MadeArtefact>(Making&)>;
  // With `ends_if_lost` an earlier call is taken back if NotFound or FailedPrecondition says that
  // nothing can be made of its source any more, or not as it is.
  Result<PoolVolumeRecord> Make(PoolVolumeRecord record, const Fill& fill, bool ends_if_lost,
                                const CallOptions& call) EXCLUDES(mu_);
  Result<PoolVolumeRecord> TryMake(PoolVolumeRecord record, const Fill& fill, bool ends_if_lost,
                                   const CallOptions& call) EXCLUDES(mu_);
  // Takes away what an earlier call has made that did not end, with its row.
  Status Unmake(PoolVolumeRecord& record, PoolBackend& backend, const CallOptions& call)
      EXCLUDES(mu_);
  Status CheckImported(const PoolImportWish& wish, const CallOptions& call);
  Status TakeBackImport(PoolVolumeRecord record, const CallOptions& call) EXCLUDES(mu_);
  // The record of the volume that is to be imported, which is not written yet.
  Result<PoolVolumeRecord> PlanImported(const PoolImportWish& wish) const EXCLUDES(mu_);
  Result<MadeArtefact> MakeFrom(const VolumeContent& content, Making& making) EXCLUDES(mu_);
  // The same of a volume that nobody has opened since it was made.
  Status NameCopy(Held& held, const Pool& pool) EXCLUDES(mu_);
  // What is put on record of a copy's filesystem is what its device has once it is opened.
  Status GiveOwnIdentity(PoolVolumeRecord& record, const SafePath& file, const CallOptions& call)
      EXCLUDES(mu_);
  // `limited` gets those of which it is done.
  Status LimitPods(Held& held, const PoolTuning& tuning, const std::set<std::string>& pods,
                   std::set<std::string>& limited) EXCLUDES(mu_);
  void SetKept(const std::string& id, const std::string& pod, bool is_kept) EXCLUDES(mu_);
  // Throttles and tunes; what was done before an error that is not applied is taken back.
  Status ApplyTuning(Held& held, const PoolTuning& before, const PoolTuning& tuning,
                     const std::set<std::string>& pods) EXCLUDES(mu_);
  bool IsListedStatic(const std::string& name) const EXCLUDES(mu_);
  // Errors: FailedPrecondition, not applied, of a volume that was listed and is not any more.
  Status CheckStillListed(const PoolVolumeRecord& volume) const EXCLUDES(mu_);
  // Errors: FailedPrecondition, not applied, if the device of the volume of this name is a part of,
  // or has as a part, another one that is on record.
  Status CheckNoPartListed(const std::string& name, const std::string& identity) const
      EXCLUDES(mu_);
  Status WhyPartOnRecord(const std::string& name, const std::string& identity) const REQUIRES(mu_);
  // The same of a device that is not on record yet, which is listed until EndListing().
  Status BeginListing(const std::string& name, const std::string& identity) EXCLUDES(mu_);
  void EndListing(const std::string& identity) EXCLUDES(mu_);
  // Before a listed volume is cut: IdentifiedDevice::writes. It says in the record what sectors its
  // cut has, and how large it is. Errors: as Cut().
  Result<std::string> PrepareListed(const CutRequest& request, PoolVolumeRecord& source,
                                    const CallOptions& call) EXCLUDES(mu_);
  Result<PoolVolumeRecord> MeetStatic(const StaticVolume& wish, const IdentifiedDevice& device,
                                      const std::string& id) EXCLUDES(mu_);
  Result<PoolVolumeRecord> NewStatic(const StaticVolume& wish, const IdentifiedDevice& device,
                                     const CallOptions& call) EXCLUDES(mu_);
  Result<PoolVolumeRecord> WriteStatic(const StaticVolume& wish, const IdentifiedDevice& device,
                                       const CallOptions& call) EXCLUDES(mu_);
  Result<PoolVolumeRecord> TakeExport(const StaticVolume& wish) EXCLUDES(mu_);
  Result<PoolVolumeRecord> MeetExport(const StaticVolume& wish, const std::string& id)
      EXCLUDES(mu_);
  Result<PoolVolumeRecord> NewExport(const StaticVolume& wish) EXCLUDES(mu_);
  // The record of a listed volume, which is not written yet, without what the kind has of its own.
  // Errors: FailedPrecondition, not applied, if it is a volume by another name; those of a pool
  // that is not open, or was not looked through.
  Result<PoolVolumeRecord> PlanListed(const StaticVolume& wish, PoolBackendKind backend,
                                      const std::string& identity) EXCLUDES(mu_);
  // Puts the new volume on record.
  Result<PoolVolumeRecord> WriteListed(const StaticVolume& wish, PoolVolumeRecord record)
      EXCLUDES(mu_);
  // Puts on record what the list says anew of a volume that is there, and ends a making of it.
  Result<PoolVolumeRecord> Relist(const PoolVolumeRecord& before, PoolVolumeRecord row)
      EXCLUDES(mu_);
  Status FinishDelete(Held& held) EXCLUDES(mu_);
  // That the files of a volume, or cut, that was discarded are gone from the pool. Errors:
  // Unavailable, if the pool is away, or has them still.
  Status CheckGone(const std::string& id, const CallOptions& call) const EXCLUDES(mu_);
  // Errors, not applied: FailedPrecondition if it is not to be made anew (SaveDoubted).
  Status CheckNotDoubted(const PoolVolumeRecord& record) const;
  Status DeleteNothing(const std::string& id) EXCLUDES(mu_);

  // Keeps a place among the node's volumes until the row has the lease. Errors:
  // ResourceExhausted, not applied.
  Result<Taken> TakeLeasePlace(const std::string& id, const std::string& node, int64_t node_limit)
      EXCLUDES(mu_);

  Status WriteCut(const PoolCutRecord& cut) EXCLUDES(mu_);
  std::vector<Status> WriteCuts(const std::vector<PoolCutRecord>& cuts, Durability durability)
      EXCLUDES(mu_);
  Status RemoveCut(const PoolCutRecord& cut) EXCLUDES(mu_);
  Result<HeldCut> HoldCut(const std::string& id, const CallOptions& call) EXCLUDES(mu_);
  // What is needed for effects on the cut, in its pool, which has to be there.
  struct ReachedCut {
    PoolCutRecord record;
    PoolBackend* backend;
    CallOptions call;  // with the caller's keys alone
  };
  Result<ReachedCut> ReachCut(const std::string& id, const CallOptions& call) const EXCLUDES(mu_);
  // Errors: FailedPrecondition, not applied, while a cut is copied from the volume.
  Status CheckNotCopied(const std::string& volume) const EXCLUDES(mu_);
  Result<Cutting> PrepareCut(const std::vector<CutRequest>& requests, const CallOptions& call)
      EXCLUDES(mu_);
  Status AddSource(const CutRequest& request, Cutting& cutting, const CallOptions& call)
      EXCLUDES(mu_);
  static Result<std::map<PoolId, MadeArtefact>> MeasureSources(const Cutting& cutting);
  Status WriteCutting(Cutting& cutting) EXCLUDES(mu_);
  // What is left of a cut that failed so.
  Error TakeBackCut(Cutting& cutting, const Error& error) EXCLUDES(mu_);
  Result<std::vector<PoolCutRecord>> WriteMade(Cutting& cutting, const std::vector<MadeCut>& made)
      EXCLUDES(mu_);
  Status FinishDiscard(HeldCut& held) EXCLUDES(mu_);
  Status EndCuts(const Pool& pool, const CallOptions& call) EXCLUDES(mu_);
  // Makes the file of a volume that is on record without one, if it is not there.
  Status CompleteFile(Held& held) EXCLUDES(mu_);
  // Puts on record by which project the directory that was opened is bounded, and tells if it is
  // not bounded.
  Status NoteBound(PoolVolumeRecord& record, const OpenedVolume& opened) EXCLUDES(mu_);

  // Of volumes with files and without a row.
  Status FindLost(Pool& pool, PoolObject object, const CallOptions& call) EXCLUDES(mu_);
  bool IsLost(const std::string& id) const EXCLUDES(mu_);
  // Whether its files were moved away since, so that it is none any more.
  bool ForgetIfMoved(const std::string& id, const CallOptions& call) EXCLUDES(mu_);
  Status CloseLost(const std::string& id, const CallOptions& call) EXCLUDES(mu_);
  void NoteLookedThrough(const Pool& pool) EXCLUDES(mu_);
  // Errors: Unavailable, not applied, until FindLost has ended once.
  Status CheckLookedThrough(const Pool& pool) const EXCLUDES(mu_);
  static Status EndHalfDone(const Pool& pool, const CallOptions& call);
  Status EndDeletions(const Pool& pool, const CallOptions& call) EXCLUDES(mu_);
  Status CloseUnused(const Pool& pool, const IsUsed& is_used, const CallOptions& call)
      EXCLUDES(mu_);

  // What volumes of one backend have in common, with all others that get their bytes from where
  // they do: what is there of these and of their cuts, and the figures of that place after that.
  struct Measured {
    PoolBackendKind kind = PoolBackendKind::kNotKnown;
    std::map<PoolId, MadeArtefact> artefacts;
    FsInfo filesystem;
    std::string shortage;  // PoolRoom::shortage
  };
  struct ToMeasure {
    std::map<PoolBackendKind, std::vector<PoolId>> known;
    std::map<PoolBackendKind, std::vector<PoolId>> unreadable;
  };
  ToMeasure IdsOf(const Pool& pool, PoolBackendKind kind) const EXCLUDES(mu_);
  Result<Measured> Measure(const Pool& pool, PoolBackendKind kind, const CallOptions& call)
      EXCLUDES(mu_);
  Result<Measured> MeasureNow(const Pool& pool, PoolBackendKind kind, const CallOptions& call)
      EXCLUDES(mu_);
  PoolAccount AccountFor(const Pool& pool, const Measured& measured) const REQUIRES(mu_);
  void AddReserved(const Pool& pool, PoolBackendKind kind, std::vector<PoolShare>& shares) const
      REQUIRES(mu_);
  // The pools that get their bytes from the same filesystem.
  std::vector<const Pool*> PoolsBeside(const Pool& pool, PoolBackendKind kind) const;
  // What is wrong with those of these volumes that are of what was measured.
  void NoteHealth(const Pool& pool, const Measured& measured,
                  const std::set<std::string>& looked_for, PoolHealth& health) const EXCLUDES(mu_);
  // Keeps `bytes` of the pool for the volume of this backend. Errors: ResourceExhausted, not
  // applied.
  Result<Reservation> Reserve(const Pool& pool, PoolBackendKind kind, const std::string& id,
                              int64_t bytes, const CallOptions& call) EXCLUDES(mu_);
  // The same if it is plain without a measure that there is room; false: it is not, or is not
  // known.
  Result<bool> ReserveUnmeasured(const Pool& pool, PoolBackendKind kind, const std::string& id,
                                 int64_t bytes, const CallOptions& call) EXCLUDES(mu_);
  // Takes the row into the tables.
  void Keep(const PoolVolumeRecord& record) REQUIRES(mu_);
  void KeepCut(const PoolCutRecord& cut) REQUIRES(mu_);

  struct Reserved {
    std::string pool;
    PoolBackendKind kind = PoolBackendKind::kNotKnown;
    int64_t bytes = 0;
  };

  const Parts parts_;
  PoolUuids uuids_;
  const std::vector<std::unique_ptr<Pool>> pools_;
  std::function<void()> changed_;
  ShortChanged short_changed_;
  ContentHolder* contents_ = nullptr;
  mutable Mutex mu_;
  std::map<std::string, PoolVolumeRecord> volumes_ GUARDED_BY(mu_);     // by id
  std::map<std::string, PoolCutRecord> cuts_ GUARDED_BY(mu_);           // by id
  PoolTally tally_ GUARDED_BY(mu_);                                     // of both
  std::map<std::string, std::string> names_ GUARDED_BY(mu_);            // name -> id
  std::map<std::string, std::string> unreadable_ GUARDED_BY(mu_);       // key -> why
  std::map<std::string, std::string> unreadable_cuts_ GUARDED_BY(mu_);  // likewise
  std::set<std::string> lost_ GUARDED_BY(mu_);            // ids; of unreadable_ those without a row
  std::set<std::string> looked_through_ GUARDED_BY(mu_);  // names of pools; see FindLost()
  std::map<std::string, PoolSeen> last_seen_ GUARDED_BY(mu_);  // by the pool's name
  std::map<std::string, Reserved> reserved_ GUARDED_BY(mu_);   // by id: not on record yet
  std::set<std::string> taken_ GUARDED_BY(mu_);                // see Take()
  // Volumes and pods, by id and uid; see KeepThrottles().
  std::set<std::pair<std::string, std::string>> kept_throttles_ GUARDED_BY(mu_);
  std::set<std::string> listed_static_ GUARDED_BY(mu_);  // names as rows have them
  std::set<std::string> listing_ GUARDED_BY(mu_);        // see BeginListing()
};

}  // namespace volumed
