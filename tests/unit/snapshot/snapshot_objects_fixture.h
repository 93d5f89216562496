// SnapshotObjectsTest: VolumeSnapshots over a catalog, and over snapshots that the test makes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/simulated_scheduler.h"
#include "fakes/memory_record_store.h"
#include "snapshot/claimed_snapshots.h"
#include "snapshot/snapshot_objects.h"
#include "snapshot/snapshot_tags.h"
#include "unit/kube/kube_testing.h"
#include "unit/snapshot/fake_snapshots.h"
#include "volumehost/event_log.h"
#include "volumemanager/record_writer.h"

namespace volumed {

class SnapshotObjectsTest : public ::testing::Test {
 protected:
  SnapshotObjectsTest() {
    catalog_.AbsenceEnds(kSnapshotSource);
    Begin();
  }

  // A new agent on what the last one left.
  void Begin() {
    objects_.reset();
    records_ = std::make_unique<RecordWriter>(scheduler_, store_);
    SnapshotObjects::Hooks hooks;
    hooks.volume_of = [this](const ObjectKey& claim) { return volumes_[claim.name]; };
    hooks.why_not_yet = [this] { return why_not_yet_; };
    hooks.uid_on_record = [this](const ObjectKey&) { return uids_on_record_; };
    hooks.deleted_since = [this](const ObjectKey& key) -> std::optional<int64_t> {
      return deleted_.contains(key) ? std::optional<int64_t>(1'000) : std::nullopt;
    };
    hooks.let_go = [this](const ObjectKey& key, const std::string& uid) {
      ended_.insert(key);
      deleted_.erase(key);
      catalog_.End(key, uid, ++number_);
    };
    hooks.delete_object = [this](const ObjectKey& key) { Delete(key); };
    objects_ = std::make_unique<SnapshotObjects>(
        SnapshotObjects::Parts{{scheduler_, *records_, log_}, catalog_, maker_, events_}, hooks);
    objects_->Restore(*store_.Load(kSnapshotBindingRecordKind));
    objects_->Start();
    Settle();
  }

  void Settle() { scheduler_.RunFor(std::chrono::milliseconds(10)); }
  // All that is tried again is tried now.
  void WaitLong() { scheduler_.RunFor(std::chrono::minutes(10)); }

  void Apply(const std::vector<std::string>& manifests) {
    for (const std::string& manifest : manifests) {
      ObjectWithOrigin object = FromFile("f", manifest);
      const ObjectKey key = KeyOf(*object.object);
      std::erase_if(applied_, [&](const auto& one) { return KeyOf(*one.object) == key; });
      applied_.push_back(std::move(object));
    }
    Deliver();
  }
  // The object is in no source any more, and no command has ended it.
  void Lose(const ObjectKey& key) {
    std::erase_if(applied_, [&](const auto& one) { return KeyOf(*one.object) == key; });
    Deliver();
  }
  void Deliver() {
    ObjectList list;
    list.source = "manifests";
    list.complete = true;
    list.objects = applied_;
    catalog_.Update(std::move(list));
    Settle();
  }
  void Delete(const ObjectKey& key) {
    deleted_.insert(key);
    objects_->ObjectChanged(key);
  }
  void DeleteAndSettle(const ObjectKey& key) {
    Delete(key);
    Settle();
  }

  // A claim "data" with a volume of the pool, and the default class of its driver.
  void ApplyClaim(const std::string& policy = "Delete") {
    volumes_["data"] = "pv";
    Apply(
        {"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, uid: c1}\n"
         "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n",
         "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: pv, uid: p1}\n"
         "spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], csi: {driver: "
         "pool.volumed.io, volumeHandle: vol-1}}\n",
         ClassOf("fast", kTestDriver, policy, true)});
  }
  static std::string ClassOf(const std::string& name, const std::string& driver,
                             const std::string& policy, bool is_default,
                             const std::string& parameters = "{}") {
    return "apiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshotClass\nmetadata:\n  "
           "name: " +
           name + "\n  annotations: {snapshot.storage.kubernetes.io/is-default-class: \"" +
           (is_default ? "true" : "false") + "\"}\ndriver: " + driver +
           "\nparameters: " + parameters + "\ndeletionPolicy: " + policy + "\n";
  }
  static std::string SnapshotOf(const std::string& source, const std::string& uid = "u1",
                                const std::string& rest = "") {
    return "apiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshot\nmetadata: {name: s, "
           "uid: " +
           uid + "}\nspec: {source: {" + source + "}" + rest + "}\n";
  }
  static std::string OfClaim(const std::string& rest = "", const std::string& uid = "u1") {
    return SnapshotOf("persistentVolumeClaimName: data", uid, rest);
  }
  static std::string NamedContent(const std::string& ref, const std::string& policy = "Delete",
                                  const std::string& driver = kTestDriver,
                                  const std::string& uid = "o1") {
    return "apiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshotContent\n"
           "metadata: {name: old, uid: " +
           uid + "}\nspec: {volumeSnapshotRef: {" + ref + "}, deletionPolicy: " + policy +
           ", driver: " + driver + ", source: {snapshotHandle: snap-old}}\n";
  }

  VolumeSnapshot Shown() const {
    const ObjectPtr object = catalog_.FindObject(kSnapshot);
    return object == nullptr ? VolumeSnapshot()
                             : objects_->Shown(std::get<VolumeSnapshot>(*object));
  }
  VolumeSnapshotStatus StatusShown() const { return Shown().status; }
  std::string ErrorShown() const {
    const auto status = StatusShown();
    return status.error ? status.error->message : "";
  }
  std::optional<VolumeSnapshotContent> ContentShown(const std::string& name) const {
    const ObjectPtr object = catalog_.FindObject({ObjectKind::kVolumeSnapshotContent, "", name});
    if (object == nullptr) return std::nullopt;
    return objects_->Shown(std::get<VolumeSnapshotContent>(*object));
  }
  std::string OnlyId() const { return maker_.rows.empty() ? "" : maker_.rows.begin()->first; }
  int CountOf(const std::string& reason) const {
    const std::vector<KeptEvent> events = events_.Snapshot(EventSubject(kSnapshot));
    return static_cast<int>(std::count_if(
        events.begin(), events.end(), [&](const KeptEvent& one) { return one.reason == reason; }));
  }

  const ObjectKey kSnapshot{ObjectKind::kVolumeSnapshot, "default", "s"};
  const ObjectKey kOldContent{ObjectKind::kVolumeSnapshotContent, "", "old"};
  const std::string kBoundName = "snapcontent-u1";

  SimulatedScheduler scheduler_{7};
  MemoryRecordStore store_;
  RealClock wall_clock_;
  Logger log_{{.target = LogOptions::Target::kCallback, .callback = {}}, wall_clock_};
  EventLog events_{scheduler_.clock()};
  ObjectCatalog catalog_{scheduler_.clock()};
  FakeSnapshots maker_;
  std::unique_ptr<RecordWriter> records_;
  std::unique_ptr<SnapshotObjects> objects_;
  std::vector<ObjectWithOrigin> applied_;
  std::map<std::string, std::string> volumes_;
  std::set<ObjectKey> deleted_;
  std::set<ObjectKey> ended_;
  std::string why_not_yet_;
  bool uids_on_record_ = true;
  uint64_t number_ = 0;
};

}  // namespace volumed
