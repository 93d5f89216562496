// Claims and volumes that are deleted while they are used, on fake operations.
#include <algorithm>

#include "unit/volumemanager/manager_fixture.h"

namespace volumed {
namespace {

constexpr const char* kApplied = "volumectl-apply";

class ProtectionTest : public ManagerTest {
 protected:
  void SetUp() override {
    sources = {"manifests", kApplied};
    StartAgent();
    Deliver("");
  }

  static std::string Volume(bool deleted = false) {
    return std::string(
               "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: disk, uid: v1") +
           (deleted ? kDeleted : "") +
           "}\nspec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: "
           "/srv/data}}\n";
  }
  static std::string Claim(bool deleted = false) {
    return std::string(
               "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, "
               "namespace: default, uid: c1") +
           (deleted ? kDeleted : "") +
           "}\nspec: {accessModes: [ReadWriteOnce], storageClassName: '', resources: {requests: "
           "{storage: 1Gi}}}\n";
  }
  StorageStatus ClaimStatus() {
    return manager()
        .storage()
        .StatusOf({ObjectKind::kPersistentVolumeClaim, "default", "data"})
        .value_or(StorageStatus());
  }
  // As the directory of applied objects does what it is asked to.
  bool ToBeRemoved(const std::string& object) {
    const bool found =
        std::find(removed_objects.begin(), removed_objects.end(), object) != removed_objects.end();
    removed_objects.clear();
    return found;
  }

  static constexpr const char* kDeleted =
      ", deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [kubernetes.io/pvc-protection]";
  static constexpr const char* kClaim = "PersistentVolumeClaim default/data";
  static constexpr const char* kVolume = "PersistentVolume disk";
};

TEST_F(ProtectionTest, ADeletedClaimStaysWhileItsPodDoesAlsoOverARestart) {
  Deliver(Volume() + Claim(), kApplied);
  Deliver(PodManifest("a", {kUse}));
  ASSERT_EQ(Phase("a"), "Ready");
  Deliver(Volume() + Claim(true), kApplied);
  EXPECT_EQ(ClaimStatus().phase, "Terminating");
  EXPECT_EQ(ClaimStatus().held_by, "used by pod default/a");
  EXPECT_EQ(Phase("a"), "Ready");
  EXPECT_FALSE(ToBeRemoved(kClaim));

  PodVolumeRecord record;
  record.key = Key("a", "disk");
  record.pod_namespace = "default";
  record.pod_name = "a";
  record.plugin_name = "kubernetes.io/host-path";
  record.state = VolumeState::kSetUp;
  record.boot_id = BootId("boot-1");
  record.unique_name = UniqueVolumeName("kubernetes.io/host-path/disk");
  ASSERT_TRUE(store.Put(EncodeRecord(record), kPodVolumeRecordDurability).ok());
  StartAgent();
  Deliver(Volume() + Claim(true), kApplied);
  EXPECT_FALSE(ToBeRemoved(kClaim)) << "not every source has delivered";
  Deliver(PodManifest("a", {kUse}));
  EXPECT_EQ(ClaimStatus().phase, "Terminating");
  EXPECT_FALSE(ToBeRemoved(kClaim));
  EXPECT_EQ(operations().Count("unmount"), 0u);
  Deliver("");
  EXPECT_TRUE(ToBeRemoved(kClaim));
}

TEST_F(ProtectionTest, ANewPodIsRefusedADeletedClaimAndDoesNotHoldIt) {
  Deliver(Volume() + Claim(), kApplied);
  Deliver(PodManifest("a", {kUse}));
  Deliver(Volume() + Claim(true), kApplied);
  Deliver(PodManifest("a", {kUse}) + PodManifest("b", {kUse}));
  EXPECT_EQ(Phase("b"), "Pending");
  const auto problem = View("b").volumes.at(0).problem;
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->message,
            "error processing PVC default/data: PVC is being deleted: it is still used by pod "
            "default/a");
  EXPECT_EQ(problem->who_must_act, "the owner of claim default/data");
  Deliver(PodManifest("b", {kUse}));
  EXPECT_TRUE(ToBeRemoved(kClaim));
}

TEST_F(ProtectionTest, AnUnusedClaimGoesAtOnce) {
  Deliver(Claim(), kApplied);
  EXPECT_FALSE(ToBeRemoved(kClaim));
  Deliver(Claim(true), kApplied);
  EXPECT_TRUE(ToBeRemoved(kClaim));
}

// It was taken for a claim that nobody has, and let go at once: its snapshot stayed for ever.
TEST_F(ProtectionTest, ADeletedVolumeSnapshotIsNotLetGoAsAClaimThatIsGone) {
  const std::string snapshot =
      "---\napiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshot\nmetadata: {name: s, uid: "
      "s1}\nspec: {source: {persistentVolumeClaimName: data}}\n";
  Deliver(Volume() + Claim() + snapshot, kApplied);
  const ObjectKey key{ObjectKind::kVolumeSnapshot, "default", "s"};
  ASSERT_TRUE(DeleteObject(key)->ok());
  Deliver(PodManifest("a", {kUse}));
  Settle();
  EXPECT_TRUE(manager().object_commands().DeletedSince(key).has_value());
  EXPECT_FALSE(ToBeRemoved("VolumeSnapshot default/s"));
  manager().object_commands().LetGo({key, "s1"});
  Settle();
  EXPECT_TRUE(ToBeRemoved("VolumeSnapshot default/s"));
}

TEST_F(ProtectionTest, ADeletedVolumeStaysWhileItIsBound) {
  Deliver(Volume() + Claim(), kApplied);
  Deliver(Volume(true) + Claim(), kApplied);
  EXPECT_FALSE(ToBeRemoved(kVolume));
  Deliver(Volume(true), kApplied);
  EXPECT_TRUE(ToBeRemoved(kVolume));
}

TEST_F(ProtectionTest, WhatAManifestSaysIsDeletedIsNotOursToRemove) {
  Deliver(Claim(true));
  EXPECT_FALSE(ToBeRemoved(kClaim));
}

}  // namespace
}  // namespace volumed
