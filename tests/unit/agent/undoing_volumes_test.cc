// A volume that was begun for a claim which is gone, and that its driver does not take back: how
// people see it, and how they give it up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "agent/storage_list.h"
#include "unit/agent/made_volume_fixture.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;

class UndoingVolumesTest : public MadeVolumeTest {
 protected:
  UndoingVolumesTest() {
    const Error error = Error::MaybeApplied(Code::kInternal, "no disk is so large");
    operations().FailNext("provision", ProvisionKey(kVolume), error, 1000);
    operations().FailNext("undo_provision", ProvisionKey(kVolume), error, 1000);
    DeliverClaim();
    EXPECT_TRUE(DeleteClaim("data"));
    Settle();
  }
  int Listed() {
    v1::GetStorageRequest request;
    request.set_kind("PersistentVolume");
    listed_.Clear();
    EXPECT_TRUE(ListStorage(agent_->catalog, manager(), request, &listed_).ok());
    return listed_.persistent_volumes_size();
  }
  std::string Field(const std::string& name) const {
    for (const v1::SummaryField& field : described_.summary()) {
      if (field.name() == name) return field.value();
    }
    return "";
  }

  v1::GetStorageResponse listed_;
};

TEST_F(UndoingVolumesTest, ItIsListedAndDescribedWithWhoActsAndTheNextTry) {
  ASSERT_EQ(Listed(), 1);
  EXPECT_EQ(listed_.persistent_volumes(0).phase(), "Undoing");
  EXPECT_GT(listed_.persistent_volumes(0).problem().next_try_unix_ms(), 0);
  ASSERT_TRUE(Describe(kVolume).ok());
  EXPECT_EQ(Field("Status"), "Undoing");
  EXPECT_EQ(Field("Reason"), "no disk is so large");
  ASSERT_EQ(described_.problems_size(), 1);
  EXPECT_THAT(described_.problems(0).who_must_act(), HasSubstr("delete pv pvc-c1 --force"));
}

TEST_F(UndoingVolumesTest, NobodyGivesItUpWithoutSayingSo) {
  const std::optional<Status> told = Delete(/*force=*/false);
  ASSERT_TRUE(told && !told->ok());
  EXPECT_EQ(told->error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(told->error().message(), HasSubstr("`volumectl delete pv pvc-c1 --force`"));
  EXPECT_EQ(Listed(), 1);
}

TEST_F(UndoingVolumesTest, WhoGivesItUpIsToldWhatMayBeLeft) {
  const std::optional<Status> told = Delete(/*force=*/true);
  ASSERT_TRUE(told && told->ok());
  EXPECT_THAT(response_.warning(), HasSubstr("what disk.example.com may have made as pvc-c1"));
  EXPECT_EQ(Listed(), 0);
  EXPECT_FALSE(Describe(kVolume).ok());
  EXPECT_FALSE(store.Find(kProvisionRecordKind, kVolume));
}

TEST_F(UndoingVolumesTest, TheAnnotationThatDecidesWhetherAVolumeIsDeletedWasNotDescribed) {
  Deliver(
      "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: disk, annotations: "
      "{pv.kubernetes.io/provisioned-by: disk.example.com, "
      "kubectl.kubernetes.io/last-applied-configuration: \"{}\"}}\nspec:\n  capacity: {storage: "
      "1Gi}\n  accessModes: [ReadWriteOnce]\n  csi: {driver: disk.example.com, volumeHandle: "
      "v1}\n");
  ASSERT_TRUE(Describe("disk").ok());
  EXPECT_EQ(Field("Annotation"), "pv.kubernetes.io/provisioned-by=disk.example.com");
}

TEST_F(UndoingVolumesTest, ASecretThatTheDriverPutIntoAVolumesContextWasDescribed) {
  const auto volume = [](const std::string& name, const std::string& of_driver) {
    return "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: " + name +
           ", annotations: {note: hunter2}}\nspec:\n  capacity: {storage: 1Gi}\n"
           "  accessModes: [ReadWriteOnce]\n  csi: {driver: " +
           of_driver + ", volumeHandle: v-" + name +
           ", volumeAttributes: {login: \"u:hunter2@nas\", share: a}}\n";
  };
  secrets_->Remember({"hunter2"});
  Deliver(volume("disk", "disk.example.com") + volume("other", "other.example.com"));
  ASSERT_TRUE(Describe("disk").ok());
  EXPECT_EQ(Field("spec.csi.volumeAttributes.login"), "u:***stripped***@nas");
  EXPECT_EQ(Field("spec.csi.volumeAttributes.share"), "a");
  EXPECT_EQ(Field("Annotation"), "note=***stripped***");
  ASSERT_TRUE(Describe("other").ok());
  EXPECT_EQ(Field("spec.csi.volumeAttributes.login"), "u:hunter2@nas") << "it is no driver's";
}

// What a volume's owner has written is shown: by it one sees which Secret is missing.
TEST_F(UndoingVolumesTest, AsLongAsADriversWordsAreWithheldItsContextOfAVolumeIsNotDescribed) {
  secrets_->Withhold("Secret default/login is there");
  Deliver(
      "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: disk}\nspec:\n  capacity: "
      "{storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n  csi: {driver: disk.example.com, "
      "volumeHandle: v1, nodeStageSecretRef: {name: login, namespace: default}, volumeAttributes: "
      "{login: \"u:hunter2@nas\"}}\n");
  ASSERT_TRUE(Describe("disk").ok());
  EXPECT_EQ(Field("spec.csi.nodeStageSecretRef.name"), "login");
  EXPECT_EQ(Field("spec.csi.volumeAttributes.login"), "");
  const std::string note =
      "[withheld, as it may have a secret in it, until Secret default/login is there]";
  EXPECT_EQ(Field(note), note);
}

}  // namespace
}  // namespace volumed
