// What `apply` is refused at the door because of what is on record, and what it is told of that.
#include "agent/command_admission.h"

#include <gtest/gtest.h>

#include <utility>

#include "unit/volumemanager/known_objects_fixture.h"

namespace volumed {
namespace {

class CommandAdmissionTest : public TwoSourcesTest {
 protected:
  static std::string ClaimYaml(const std::string& uid, const std::string& created = "") {
    return "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: "
           "default" +
           (uid.empty() ? "" : ", uid: " + uid) +
           (created.empty() ? "" : ", creationTimestamp: \"" + created + "\"") +
           "}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n";
  }
  static std::string PodYaml(const std::string& name, const std::string& uid) {
    return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name +
           (uid.empty() ? "" : ", uid: " + uid) + "}\nspec: {containers: [{name: c, image: x}]}\n";
  }
  Result<ApplyCommand> Admit(const std::string& manifest, bool replace = false) {
    ApplyWords words;
    words.objects.push_back(*Objects(manifest).at(0).object);
    words.replace = replace;
    return AdmitApply(catalog(), manager(), NodeName("n1"), std::move(words));
  }
  std::string Refusal(const std::string& manifest) {
    const Result<ApplyCommand> command = Admit(manifest);
    if (command.ok()) return "";
    EXPECT_EQ(command.error().code(), Code::kFailedPrecondition);
    EXPECT_FALSE(command.error().maybe_applied());
    return command.error().message();
  }
  static ObjectWithOrigin Applied(const std::string& uid, const std::set<PodUid>& replaces = {}) {
    ObjectWithOrigin object = StaticPod("n1", "/objects/web.json");
    Pod pod = std::get<Pod>(*object.object);
    SetPodUid(pod, uid);
    object.object = std::make_shared<const Object>(std::move(pod));
    object.replaces = replaces;
    return object;
  }

  const ObjectKey kPod{ObjectKind::kPod, "default", "web-n1"};
};

TEST_F(CommandAdmissionTest, AnotherUidThanTheOneOnRecordIsRefused) {
  Restart();
  DeliverList(kApplied, {Applied("u1")});
  Deliver(ClaimYaml("c1"));
  Deliver("");  // Missing by now; its uid is on record
  EXPECT_EQ(Refusal(ClaimYaml("c2")),
            "PersistentVolumeClaim default/data is invalid: metadata.uid: is immutable: the object "
            "has the uid c1, and keeps it as long as it is there");
  EXPECT_EQ(Refusal(ClaimYaml("c1")), "");
  EXPECT_NE(Refusal(PodYaml("web-n1", "u2")).find("the object has the uid u1"), std::string::npos);
  EXPECT_EQ(Refusal(PodYaml("web-n1", "u1")), "");
  EXPECT_EQ(Refusal(PodYaml("web", "")), "");
  EXPECT_EQ(MetaOf(Admit(ClaimYaml(""))->objects.at(0)).uid, "c1");
}

TEST_F(CommandAdmissionTest, AUidThatNobodyCanReadNowIsKnownAllTheSame) {
  Restart();
  DeliverList("manifests", {});
  DeliverList(kApplied, {Applied("u1")});
  Pass(std::chrono::seconds(5));
  Restart();
  DeliverList("manifests", {});
  DeliverList(kApplied, {}, {{kPod, "/objects/web.json", "torn"}});
  EXPECT_NE(Refusal(PodYaml("web-n1", "u2")).find("the object has the uid u1"), std::string::npos);
  EXPECT_EQ(Admit(PodYaml("web", ""))->pods.at(kPod), PodUid("u1"));
}

TEST_F(CommandAdmissionTest, APodThatWaitsHasItsOwnUid) {
  Restart();
  DeliverList("manifests", {});
  DeliverList(kApplied, {Applied("u1")});
  Pass(std::chrono::seconds(5));
  watch.processes[7] = 1;
  ASSERT_TRUE(HoldPid("u1", 7).ok());
  DeliverList(kApplied, {Applied("u2", {PodUid("u0"), PodUid("u1")})});
  ASSERT_TRUE(catalog().Waiting().contains(kPod));
  EXPECT_EQ(Refusal(PodYaml("web-n1", "u2")), "");
  EXPECT_NE(Refusal(PodYaml("web-n1", "u1")).find("the object has the uid u2"), std::string::npos);
  const Result<ApplyCommand> again = Admit(PodYaml("web", ""), /*replace=*/true);
  EXPECT_TRUE(again->replace);
  EXPECT_EQ(again->pods.at(kPod), PodUid("u2"));
  EXPECT_EQ(again->gone, std::set<PodUid>{PodUid("u0")});
}

// Else two pods of one name would be on the node.
TEST_F(CommandAdmissionTest, AReplacementOfAPodThatLeavesWaitsForItToo) {
  Restart();
  DeliverList("manifests", {});
  DeliverList(kApplied, {Applied("u1")});
  Pass(std::chrono::seconds(5));
  watch.processes[7] = 1;
  ASSERT_TRUE(HoldPid("u1", 7).ok());
  DeliverList(kApplied, {});
  ASSERT_EQ(Phase("u1"), "Terminating");
  EXPECT_TRUE(Admit(PodYaml("web", ""))->pods.empty());
  EXPECT_EQ(Admit(PodYaml("web", ""), /*replace=*/true)->pods.at(kPod), PodUid("u1"));
}

// The records were put back, and know of fewer commands than there were: a deletion with a low
// number was answered, and the object stayed.
TEST_F(CommandAdmissionTest, AnObjectGivenByALaterCommandThanTheRecordsKnowCouldNotBeDeleted) {
  const ObjectKey claim{ObjectKind::kPersistentVolumeClaim, "default", "data"};
  ObjectWithOrigin given = Objects(ClaimYaml("c1")).at(0);
  given.number = 5000;
  Restart();
  Deliver("");
  DeliverList(kApplied, {given});
  ASSERT_NE(catalog().FindObject(claim), nullptr);
  ASSERT_TRUE(DeleteObject(claim).value().ok());
  Settle();
  EXPECT_EQ(catalog().FindObject(claim), nullptr);
  EXPECT_GT(Admit(ClaimYaml(""))->ended.at(claim), 5000u) << "its file is that of the deleted one";
  std::optional<uint64_t> next;
  manager().NumberCommand([&](const Result<uint64_t>& number) { next = number.value(); });
  Settle();
  EXPECT_GT(next.value(), 5001u);
}

TEST_F(CommandAdmissionTest, AnObjectThatIsKnownIsAsOldAsItWas) {
  Restart();
  Deliver(ClaimYaml("c1", "2026-01-02T03:04:05Z"));
  Deliver("");
  EXPECT_EQ(MetaOf(Admit(ClaimYaml(""))->objects.at(0)).creation_unix_millis, 1767323045000);
}

}  // namespace
}  // namespace volumed
