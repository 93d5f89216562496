// SnapshotObjects: makes of VolumeSnapshots what they ask for, as a snapshot-controller and a
// csi-snapshotter do in a cluster: snapshots of claims, and bindings to those that exist already.
// Source: kubernetes-csi/external-snapshotter pkg/common-controller/snapshot_controller.go,
// pkg/sidecar-controller/snapshot_controller.go@v8.6.0.
//
// - A snapshot of a claim is called "snapshot-<uid>" and has in its tags of which VolumeSnapshot it
//   is. Its VolumeSnapshotContent, "snapcontent-<uid>", follows from that (snapshot_tags.h), and is
//   published as the source "snapshots".
// - A pair is bound only if the VolumeSnapshot names the content, and the content the
//   VolumeSnapshot, with its uid if it has one. The binding is on record.
// - A VolumeSnapshot ends by command alone, once nobody restores from it and, by its deletion
//   policy, its snapshot and its content are gone. One whose content is lost is never taken anew.
// - Nothing is made or deleted before each source was looked into once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/alive_guard.h"
#include "base/backoff.h"
#include "base/scheduler.h"
#include "kube/object_catalog.h"
#include "snapshot/snapshot_bindings.h"
#include "snapshot/snapshot_maker.h"
#include "volumehost/volume_host.h"

namespace volumed {

// Threads: the control thread. Blocks: never. Errors: none; why a snapshot is not made, or not
// deleted, is in the status of its VolumeSnapshot, and an event of it. It is tried again after 1 s,
// 2 s ... 5 min, and when what it may be for has changed.
class SnapshotObjects {
 public:
  // All outlive this object.
  struct Parts {
    LastingRows::Parts rows;
    ObjectCatalog& catalog;
    SnapshotMaker& maker;
    HostEvents& events;
  };
  // All have to be set.
  struct Hooks {
    // The PersistentVolume that a claim is bound to; empty: none.
    std::function<std::string(const ObjectKey& claim)> volume_of;
    // Why nothing may be made or deleted yet; empty: it may (VolumeManager::WhyUnseen).
    std::function<std::string()> why_not_yet;
    // Whether the uid of the object is on record.
    std::function<bool(const ObjectKey&)> uid_on_record;
    // ObjectCommands::DeletedSince.
    std::function<std::optional<int64_t>(const ObjectKey&)> deleted_since;
    // ObjectCommands::LetGo: nothing protects the deleted object any more.
    std::function<void(const ObjectKey&, const std::string& uid)> let_go;
    // ObjectCommands::Delete.
    std::function<void(const ObjectKey&)> delete_object;
  };

  SnapshotObjects(Parts parts, Hooks hooks);
  SnapshotObjects(const SnapshotObjects&) = delete;
  SnapshotObjects& operator=(const SnapshotObjects&) = delete;

  // What the last agent left of kSnapshotBindingRecordKind; before Start().
  void Restore(const LoadedRecords& rows) { bindings_.Restore(rows); }
  // Publishes the contents, and begins. REQUIRES: the maker's records are restored. To be called
  // once, before the sources start.
  void Start();
  // What was decided about a claim, or is on record of an object, has changed; without one: of any.
  void ObjectChanged(const std::optional<ObjectKey>& object);

  // The object as it is to be shown: with its status, finalizers and deletion.
  VolumeSnapshot Shown(const VolumeSnapshot& snapshot) const;
  VolumeSnapshotContent Shown(const VolumeSnapshotContent& content) const;
  // The VolumeSnapshot that is bound to this snapshot; nullopt if none is.
  std::optional<ObjectKey> WhoHas(const std::string& id) const;
  // For whoever deletes snapshots without regard to objects. Errors, not applied:
  // FailedPrecondition, naming the VolumeSnapshot that has it; Unavailable before each source was
  // looked into.
  Status CheckNotHad(const std::string& id) const;
  // Why the object, which was deleted, is still there; empty if nothing is known to keep it.
  std::string HeldBy(const ObjectKey& object) const;

 private:
  // What is known of one VolumeSnapshot.
  struct Entry {
    std::string uid;
    VolumeSnapshotStatus status;
    std::string held_by;
    std::string told;      // reason and text of the last event
    std::string snapshot;  // the id of the one that it was last bound to
  };
  // Why something could not be done, with the reason of its event.
  struct Trouble {
    const char* reason;
    Error error;
  };
  using SnapshotPtr = std::shared_ptr<const VolumeSnapshot>;
  using ContentPtr = std::shared_ptr<const VolumeSnapshotContent>;

  // ---- the queue (snapshot_objects.cc) ----
  void Follow(const std::vector<ObjectChange>& changes);
  void Mark(const ObjectKey& object);
  void MarkUnsettled(const ObjectKey& key);
  void MarkAll();
  void MarkThoseOfClaim(const ObjectKey& claim);
  void MarkThoseOfVolume(const std::string& volume);
  void MarkOwners(const std::string& content);
  bool IsSettled(const ObjectKey& key) const;
  void Run();
  void Look(const ObjectKey& object);
  void RetryLater(const ObjectKey& object);
  bool IsBackingOff(const ObjectKey& object) const;
  void Publish(const std::string& id);
  void PublishAll();
  void Purge();
  Entry& EntryOf(const VolumeSnapshot& snapshot);
  void HasSnapshot(const ObjectKey& key, Entry& entry, const std::string& id);
  // The VolumeSnapshots that are bound to this snapshot.
  std::vector<ObjectKey> OwnersOf(const std::string& id) const;
  SnapshotPtr FindSnapshot(const ObjectKey& key) const;
  ContentPtr FindContent(const std::string& name) const;
  void Tell(const ObjectKey& key, Entry& entry, EventType type, const char* reason,
            const std::string& text);
  void Fail(const ObjectKey& key, const Trouble& trouble);

  // ---- making and binding (snapshot_objects_make.cc) ----
  void LookAtSnapshot(const VolumeSnapshot& snapshot);
  void LookAtWish(const VolumeSnapshot& snapshot);
  void LookAtNamedContent(const VolumeSnapshot& snapshot);
  void Create(const VolumeSnapshot& snapshot);
  void Bound(const VolumeSnapshot& snapshot, const std::string& content,
             const std::string& content_uid, const SnapshotRecord& record);
  Result<SnapshotWish> WishFor(const VolumeSnapshot& snapshot) const;
  Result<std::shared_ptr<const VolumeSnapshotClass>> ClassFor(const VolumeSnapshot& snapshot,
                                                              const std::string& driver) const;
  std::optional<Trouble> WhyNotBound(const VolumeSnapshot& snapshot, const std::string& name,
                                     const ContentPtr& content) const;

  // ---- deleting (snapshot_objects_delete.cc) ----
  void LookAtDeleted(const VolumeSnapshot& snapshot);
  void LookAtDeletedContent(const VolumeSnapshotContent& content);
  std::string WhoRestores(const VolumeSnapshot& snapshot) const;
  // The VolumeSnapshot that has the content, if it is there.
  SnapshotPtr OwnerOf(const VolumeSnapshotContent& content) const;
  // Its snapshot, as the maker calls it; empty: it has none here.
  std::string HandleOf(const VolumeSnapshotContent& content) const;
  void DeleteSnapshot(const ObjectKey& for_object, const std::string& id);
  std::optional<ObjectKey> WhoElseHas(const ObjectKey& object, const std::string& id) const;
  void Hold(const ObjectKey& object, const std::string& why);

  const Parts parts_;
  const Hooks hooks_;
  SnapshotBindings bindings_;
  Backoff backoff_;
  std::map<ObjectKey, Entry> entries_;
  std::map<std::string, std::set<ObjectKey>> owners_;  // by Entry::snapshot
  std::map<ObjectKey, std::string> contents_held_;     // deleted contents -> why they stay
  std::set<ObjectKey> dirty_;
  std::set<ObjectKey> naming_;      // VolumeSnapshots that name a content, and are not ready
  std::set<std::string> changed_;   // ids of snapshots
  std::set<std::string> creating_;  // uids of VolumeSnapshots
  std::set<std::string> deleting_;  // ids of snapshots
  std::map<std::string, ObjectPtr> published_;
  bool started_ = false;
  bool is_queued_ = false;
  bool purge_ = true;
  AliveGuard alive_;
};

}  // namespace volumed
