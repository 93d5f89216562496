// What `volumectl delete` says of a StorageClass, a CSIDriver or a Secret that is in use, and of a
// claim of which lost records may have told more: they go all the same.
#include "agent/object_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/delete_commands.h"
#include "unit/agent/control_backend_fixture.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ObjectUseTest : public ControlBackendTest {
 protected:
  static std::string WaitingClass() {
    return "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: slow}\n"
           "provisioner: disk.example.com\nvolumeBindingMode: WaitForFirstConsumer\n";
  }
  static std::string ClaimOf(const std::string& name) {
    return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + name +
           ", namespace: default, uid: uid-" + name +
           "}\nspec: {accessModes: [ReadWriteOnce], storageClassName: slow, "
           "resources: {requests: {storage: 1Gi}}}\n";
  }
  static std::string DriverObject() {
    return "---\napiVersion: storage.k8s.io/v1\nkind: CSIDriver\nmetadata: {name: "
           "disk.example.com}\nspec: {attachRequired: false}\n";
  }
  static std::string VolumeOfDriver(const std::string& name, const std::string& driver) {
    return "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: " + name +
           "}\nspec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], "
           "persistentVolumeReclaimPolicy: Retain, csi: {driver: " +
           driver + ", volumeHandle: h-" + name + "}}\n";
  }
  static std::string VolumeOfClaim(const std::string& claim) {
    return "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: disk}\nspec: {capacity: "
           "{storage: 1Gi}, accessModes: [ReadWriteOnce], storageClassName: slow, claimRef: "
           "{namespace: default, name: " +
           claim + ", uid: uid-" + claim + "}, csi: {driver: disk.example.com, volumeHandle: h}}\n";
  }
  // The warning of a command that has succeeded.
  std::string WarningOf(const std::string& kind, const std::string& name) {
    DeleteCommands commands(*backend_);
    std::optional<Status> told;
    v1::DeleteRequest request;
    request.mutable_object()->set_kind(kind);
    request.mutable_object()->set_name(name);
    v1::DeleteResponse response;
    commands.Delete({{request, &response, [&told](const Status& status) { told = status; }}});
    Settle();
    EXPECT_TRUE(told && told->ok());
    return response.warning();
  }
  bool Has(ObjectKind kind, const std::string& name) const {
    return agent_->catalog.FindObject({kind, "", name}) != nullptr;
  }
};

TEST_F(ObjectUseTest, AClassForWhichClaimsWaitWentWithoutAWord) {
  Deliver(WaitingClass() + ClaimOf("a") + ClaimOf("b"));
  EXPECT_THAT(WarningOf("StorageClass", "slow"),
              HasSubstr("claims of it wait for a volume: default/a, default/b; none is made for "
                        "them until there is a class of that name again"));
  EXPECT_FALSE(Has(ObjectKind::kStorageClass, "slow")) << "it goes all the same";
}

TEST_F(ObjectUseTest, AClassThatNoClaimWaitsForHasNoSuchWarning) {
  Deliver(WaitingClass() + ClaimOf("a"));
  EXPECT_TRUE(DeleteClaim("a"));
  Settle();
  EXPECT_THAT(WarningOf("StorageClass", "slow"), Not(HasSubstr("claims of it")));
}

TEST_F(ObjectUseTest, ACsiDriverWhoseVolumesAreInUseWentWithoutAWord) {
  Deliver(DriverObject() + VolumeOfDriver("disk", "disk.example.com") +
          VolumeOfDriver("other", "other.example.com") +
          PodManifest("web", {"cache: csi: {driver: disk.example.com}"}));
  const std::string warning = WarningOf("CSIDriver", "disk.example.com");
  EXPECT_THAT(warning, HasSubstr("PersistentVolumes of it are here: disk; pods have inline volumes "
                                 "of it: default/web/cache; what is mounted stays"));
  EXPECT_THAT(warning, HasSubstr("attachRequired: true"));
  EXPECT_FALSE(Has(ObjectKind::kCsiDriver, "disk.example.com")) << "it goes all the same";
}

TEST_F(ObjectUseTest, ACsiDriverThatNobodyUsesHasNoSuchWarning) {
  Deliver(DriverObject() + VolumeOfDriver("other", "other.example.com"));
  EXPECT_THAT(WarningOf("CSIDriver", "disk.example.com"), Not(HasSubstr("are here")));
}

TEST_F(ObjectUseTest, AClassByWhichAloneClaimsCanGrowWentWithoutAWord) {
  Deliver(WaitingClass() + "allowVolumeExpansion: true\n" + ClaimOf("a") + VolumeOfClaim("a"));
  EXPECT_THAT(WarningOf("StorageClass", "slow"),
              HasSubstr("claims of it can be made larger by it alone: default/a; none of them is "
                        "until there is a class of that name again"));
}

TEST_F(ObjectUseTest, AClassByWhichNothingGrowsHasNoSuchWarning) {
  Deliver(WaitingClass() + ClaimOf("a") + VolumeOfClaim("a"));
  EXPECT_THAT(WarningOf("StorageClass", "slow"), Not(HasSubstr("larger")));
}

TEST_F(ObjectUseTest, ASecretThatCallsToADriverNeedWentWithoutAWord) {
  const std::string secret =
      "---\napiVersion: v1\nkind: Secret\nmetadata: {name: key, namespace: default}\n";
  const std::string with_secret =
      "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: disk}\nspec: {capacity: "
      "{storage: 1Gi}, accessModes: [ReadWriteOnce], persistentVolumeReclaimPolicy: Retain, csi: "
      "{driver: disk.example.com, volumeHandle: h, nodeStageSecretRef: {name: key, namespace: "
      "default}}}\n";
  const std::string by_class = WaitingClass() +
                               "parameters: {csi.storage.k8s.io/provisioner-secret-name: key, "
                               "csi.storage.k8s.io/provisioner-secret-namespace: default}\n";
  Deliver(secret + with_secret + by_class + VolumeOfDriver("other", "disk.example.com"));
  EXPECT_THAT(WarningOf("Secret", "key"),
              HasSubstr("PersistentVolumes name it for calls to their driver: disk; StorageClasses "
                        "name it for the volumes that are made: slow; a call that needs it waits"));
  Deliver(VolumeOfDriver("other", "disk.example.com") +
          "---\napiVersion: v1\nkind: Secret\nmetadata: {name: else, namespace: default}\n");
  EXPECT_THAT(WarningOf("Secret", "else"), Not(HasSubstr("name it")));
}

TEST_F(ObjectUseTest, AClaimThatIsDeletedInARecoveryMayLeaveAVolumeThatNobodyKnows) {
  Deliver(WaitingClass() + ClaimOf("a") + ClaimOf("b"));
  EXPECT_THAT(WarningOf("PersistentVolumeClaim", "a"), Not(HasSubstr("recovery")));
  store.KeepHistory();
  ASSERT_TRUE(store.Put({"kind", "key", 1, "value"}, Durability::kPowerLoss).ok());
  store.PutBack(0, /*number_too=*/false);
  store.Revive();
  ASSERT_TRUE(recovery_.InDoubt());
  EXPECT_THAT(WarningOf("PersistentVolumeClaim", "b"),
              HasSubstr("the records are in recovery: disk.example.com may have made volume "
                        "pvc-uid-b for it before, which nobody deletes then"));
}

// The same command warned well in the recovery, and said nothing once the records were accepted.
TEST_F(ObjectUseTest, AClaimThatIsDeletedAfterARecoveryLeftItsLostVolumeWithoutAWord) {
  Deliver(WaitingClass() + ClaimOf("a") + ClaimOf("b"));
  EXPECT_THAT(WarningOf("PersistentVolumeClaim", "a"), Not(HasSubstr("may have made")));
  recovery_.FoundMounts(1);
  EXPECT_THAT(WarningOf("PersistentVolumeClaim", "b"),
              HasSubstr("mounts that were here at the start are on no record: disk.example.com may "
                        "have made volume pvc-uid-b for it before, which nobody deletes then"));
}

}  // namespace
}  // namespace volumed
