// What `volumectl delete` says of a StorageClass or a CSIDriver that is in use: it goes all the
// same.
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

}  // namespace
}  // namespace volumed
