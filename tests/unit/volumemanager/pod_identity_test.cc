// Which pod a manifest is: by its name before the node's suffix, and whose a uid is.
#include <gtest/gtest.h>

#include "unit/volumemanager/claims/known_objects_fixture.h"

namespace volumed {
namespace {

constexpr const char* kWithData =
    "spec:\n  containers: [{name: c, image: x, volumeMounts: [{name: v, mountPath: /v}]}]\n"
    "  volumes: [{name: v, emptyDir: {}}]\n";

class PodIdentityTest : public TwoSourcesTest {
 protected:
  static ObjectWithOrigin Named(const std::string& metadata, const std::string& file) {
    return StaticPod("n1", file, kWithData, metadata);
  }
  // A pod "web" of the node "n0", which has the name "n1" from now on; its uid.
  std::string StartOnFormerNode() {
    Restart();
    Deliver("", kApplied);
    DeliverList("manifests", {StaticPod("n0", "/m/web.yaml", kWithData)});
    const std::string uid = UidOfPod("web-n0");
    EXPECT_EQ(Phase(uid), "Ready");
    PutVolumeRecord(uid, "v", "kubernetes.io/empty-dir", VolumeState::kSetUp, "boot-1", "web-n0",
                    "web");
    return uid;
  }
  void ExpectStillThatOne(const std::string& uid, const std::string& phase) {
    Restart();
    Deliver("", kApplied);
    DeliverList("manifests", {StaticPod("n1", "/m/web.yaml", kWithData)});
    Pass(std::chrono::minutes(2));
    EXPECT_EQ(UidOfPod("web-n0"), uid);
    EXPECT_EQ(UidOfPod("web-n1"), "no pod");
    EXPECT_EQ(Phase(uid), phase);
  }
  void ExpectRunning(const std::string& name, const std::string& uid) {
    EXPECT_EQ(UidOfPod(name), uid);
    EXPECT_EQ(Phase(uid), "Ready");
  }
};

// It was taken for another pod, and the first one went with its data.
TEST_F(PodIdentityTest, AUidThatAppearsInAManifestIsRefused) {
  Restart();
  Deliver("", kApplied);
  DeliverList("manifests", {Named("name: web", "/m/web.yaml")});
  const std::string uid = UidOfPod("web-n1");
  ASSERT_EQ(Phase(uid), "Ready");
  const ObjectWithOrigin edited = Named("name: web, uid: u-2", "/m/web.yaml");
  DeliverList("manifests", {edited});
  for (int start = 0; start < 3; ++start) {
    Pass(std::chrono::minutes(1));
    ExpectRunning("web-n1", uid);
    EXPECT_EQ(UidOfPod("web"), "no pod");
    EXPECT_NE(ProblemsOf("manifests").find("metadata.uid: is immutable"), std::string::npos)
        << ProblemsOf("manifests");
    Restart();
    Deliver("", kApplied);
    DeliverList("manifests", {edited});
  }
  DeliverList("manifests", {});
  Pass(std::chrono::minutes(1));
  EXPECT_EQ(Phase(uid), "gone");
}

TEST_F(PodIdentityTest, AUidThatDisappearsFromAManifestStays) {
  Restart();
  Deliver("", kApplied);
  DeliverList("manifests", {Named("name: web, uid: u-1", "/m/web.yaml")});
  ASSERT_EQ(Phase("u-1"), "Ready");
  for (int start = 0; start < 3; ++start) {
    DeliverList("manifests", {Named("name: web", "/m/web.yaml")});
    Pass(std::chrono::minutes(1));
    ExpectRunning("web", "u-1");
    EXPECT_EQ(UidOfPod("web-n1"), "no pod");
    Restart();
    Deliver("", kApplied);
  }
}

// The source that delivered first had it, with the directory and the data of the other one.
TEST_F(PodIdentityTest, AUidIsNotAnotherPodsOverAStart) {
  Restart();
  Deliver("", kApplied);
  DeliverList("manifests", {Named("name: web, uid: u-1", "/m/web.yaml")});
  ASSERT_EQ(Phase("u-1"), "Ready");
  const ObjectWithOrigin other = Named("name: other, uid: u-1", "/objects/other.json");
  DeliverList(kApplied, {other});
  Restart();
  DeliverList(kApplied, {other});
  EXPECT_EQ(UidOfPod("other"), "no pod");
  EXPECT_NE(ProblemsOf(kApplied).find("is that of Pod default/web"), std::string::npos)
      << ProblemsOf(kApplied);
  DeliverList("manifests", {Named("name: web, uid: u-1", "/m/web.yaml")});
  ExpectRunning("web", "u-1");
  EXPECT_EQ(UidOfPod("other"), "no pod");

  DeliverList("manifests", {});
  Pass(std::chrono::minutes(1));
  ExpectRunning("other", "u-1");
}

// They were another pod's, which replaced this one with its data.
TEST_F(PodIdentityTest, VolumesInAnotherOrderAreThoseOfTheSamePod) {
  const std::string two =
      "spec:\n  containers: [{name: c, image: x, volumeMounts: [{name: v, mountPath: /v}]}]\n"
      "  volumes: [";
  Restart();
  Deliver("", kApplied);
  DeliverList("manifests",
              {StaticPod("n1", "/m/web.yaml",
                         two + "{name: v, emptyDir: {}}, {name: w, emptyDir: {}}]\n")});
  const std::string uid = UidOfPod("web-n1");
  ASSERT_EQ(Phase(uid), "Ready");
  const ObjectWithOrigin other =
      StaticPod("n1", "/m/web.yaml", two + "{name: w, emptyDir: {}}, {name: v, emptyDir: {}}]\n");
  for (int start = 0; start < 2; ++start) {
    DeliverList("manifests", {other});
    Pass(std::chrono::minutes(2));
    ExpectRunning("web-n1", uid);
    EXPECT_EQ(ProblemsOf("manifests"), "");
    Restart();
    Deliver("", kApplied);
  }
}

// A second pod of the name started on empty volumes beside the one that nobody could read.
TEST_F(PodIdentityTest, APodWhoseRecordIsDamagedIsStillThePodOfItsName) {
  Restart();
  Deliver("", kApplied);
  DeliverList("manifests", {Named("name: web", "/m/web.yaml")});
  const std::string uid = UidOfPod("web-n1");
  ASSERT_EQ(Phase(uid), "Ready");
  PutVolumeRecord(uid, "v", "kubernetes.io/empty-dir", VolumeState::kSetUp, "boot-1", "web-n1");
  store.Corrupt(kPodRecordKind, uid, "its checksum is wrong");
  Restart();
  Deliver("", kApplied);
  DeliverList("manifests", {Named("name: web", "/m/web.yaml")});
  Pass(std::chrono::minutes(2));
  EXPECT_EQ(UidOfPod("web-n1"), uid);
  EXPECT_EQ(Phase(uid), "Refused");
  EXPECT_NE(View(uid).problems.at(0).message.find("its checksum is wrong"), std::string::npos);
}

// Found with a thousand of them: each had a second pod beside it.
TEST_F(PodIdentityTest, APodOfARenamedNodeWhoseRecordIsDamagedIsStillThePodOfItsName) {
  const std::string uid = StartOnFormerNode();
  store.Corrupt(kPodRecordKind, uid, "its checksum is wrong");
  ExpectStillThatOne(uid, "Refused");
}

TEST_F(PodIdentityTest, APodOfARenamedNodeWhoseRecordWasGivenUpHasItsVolumesStill) {
  const std::string uid = StartOnFormerNode();
  ASSERT_TRUE(store.Remove(kPodRecordKind, uid, kPodRecordDurability).ok());
  ExpectStillThatOne(uid, "Ready");
}

TEST_F(PodIdentityTest, APodWhoseRecordWasGivenUpHasItsVolumesStill) {
  Restart();
  Deliver("", kApplied);
  DeliverList("manifests", {Named("name: web", "/m/web.yaml")});
  const std::string uid = UidOfPod("web-n1");
  ASSERT_EQ(Phase(uid), "Ready");
  PutVolumeRecord(uid, "v", "kubernetes.io/empty-dir", VolumeState::kSetUp, "boot-1", "web-n1");
  ASSERT_TRUE(store.Remove(kPodRecordKind, uid, kPodRecordDurability).ok());
  Restart();
  Deliver("", kApplied);
  DeliverList("manifests", {Named("name: web", "/m/web.yaml")});
  Pass(std::chrono::minutes(2));
  ExpectRunning("web-n1", uid);
  EXPECT_TRUE(HasPodRecord(uid));
}

// The node was renamed, and the pod was given up with its data: it had no uid under its new name.
TEST_F(PodIdentityTest, APodOfARenamedNodeStaysWhileItsFileIsInDisorder) {
  Restart();
  Deliver("", kApplied);
  DeliverList("manifests", {StaticPod("n0", "/m/web.yaml", kWithData)});
  const std::string uid = UidOfPod("web-n0");
  ASSERT_EQ(Phase(uid), "Ready");
  for (int start = 0; start < 2; ++start) {
    SCOPED_TRACE(start);
    Restart();
    Deliver("", kApplied);
    // As its source tells what it remembers, and cannot read now.
    const SourceMemory memory = agent_->memories.at("manifests");
    ObjectWithOrigin held{memory.objects.at(0).object, "/m/web.yaml", 0, ObjectPresence::kUnproven,
                          "it is in disorder"};
    DeliverList("manifests", {held});
    Pass(std::chrono::minutes(2));
    ExpectRunning("web-n0", uid);
    DeliverList("manifests", {StaticPod("n1", "/m/web.yaml", kWithData)});
    Pass(std::chrono::minutes(2));
    ExpectRunning("web-n0", uid);
  }
}

// Its name is on record as that of the pod of the renamed node, with which another one took it
// away.
TEST_F(PodIdentityTest, APodThatSpellsTheWholeNameOutIsNotThePodOfTheRenamedNode) {
  Restart();
  Deliver("", kApplied);
  DeliverList("manifests", {StaticPod("x-n1", "/m/web.yaml", kWithData)});
  const std::string uid = UidOfPod("web-x-n1");
  ASSERT_EQ(Phase(uid), "Ready");
  for (int start = 0; start < 2; ++start) {
    SCOPED_TRACE(start);
    Restart();
    Deliver("", kApplied);
    DeliverList("manifests", {Named("name: web-x-n1, uid: u-2", "/m/a.yaml"),
                              StaticPod("n1", "/m/web.yaml", kWithData)});
    Pass(std::chrono::minutes(2));
    ExpectRunning("web-x-n1", uid);
    EXPECT_EQ(Phase("u-2"), "gone");
  }
}

// It took over the first one's name, uid and data as soon as that one's manifest went.
TEST_F(PodIdentityTest, AStaticPodThatIsNamedAsAnotherWithItsNodeIsAnotherPod) {
  const ObjectWithOrigin web = Named("name: web", "/m/web.yaml");
  const ObjectWithOrigin longer = Named("name: web-n1", "/m/longer.yaml");
  Restart();
  Deliver("", kApplied);
  DeliverList("manifests", {web});
  const std::string uid = UidOfPod("web-n1");
  DeliverList("manifests", {web, longer});
  const std::string others = UidOfPod("web-n1-n1");
  EXPECT_NE(others, "no pod");
  EXPECT_NE(others, uid);
  for (int start = 0; start < 2; ++start) {
    ExpectRunning("web-n1", uid);
    ExpectRunning("web-n1-n1", others);
    EXPECT_EQ(ProblemsOf("manifests"), "");
    Restart();
    Deliver("", kApplied);
    DeliverList("manifests", {web, longer});
  }
  DeliverList("manifests", {longer});
  Pass(std::chrono::minutes(2));
  ExpectRunning("web-n1-n1", others);
  EXPECT_EQ(UidOfPod("web-n1"), "no pod");
}

// After the next start its manifest counted as that of the other pod, and it went with its data.
TEST_F(PodIdentityTest, APodWhoseManifestGetsAUidIsNotTheStaticPodThatIsCalledLikeIt) {
  Restart();
  Deliver("", kApplied);
  DeliverList("manifests", {Named("name: web-n1", "/m/longer.yaml")});
  const std::string uid = UidOfPod("web-n1-n1");
  const ObjectWithOrigin edited = Named("name: web-n1, uid: u-2", "/m/longer.yaml");
  DeliverList("manifests", {edited});
  const ObjectWithOrigin web = Named("name: web", "/m/web.yaml");
  DeliverList("manifests", {edited, web});
  const std::string others = UidOfPod("web-n1");
  EXPECT_NE(others, "no pod");
  for (int start = 0; start < 3; ++start) {
    Pass(std::chrono::minutes(1));
    ExpectRunning("web-n1-n1", uid);
    ExpectRunning("web-n1", others);
    Restart();
    Deliver("", kApplied);
    DeliverList("manifests", start == 1 ? std::vector{web, edited} : std::vector{edited, web});
  }
}

// The command was carried out, and the pod was there again: its data went by the older records.
TEST_F(PodIdentityTest, ACommandOfOlderRecordsIsNotObeyed) {
  const ObjectWithOrigin pod = Named("name: web, uid: u-1", "/m/web.yaml");
  Restart();
  Deliver("", kApplied);
  DeliverList("manifests", {pod});
  ASSERT_EQ(Phase("u-1"), "Ready");
  watch.processes[7] = 1;
  ASSERT_TRUE(HoldPid("u-1", 7).ok());
  Delete("u-1");
  Pass(std::chrono::seconds(5));
  ASSERT_EQ(Phase("u-1"), "Terminating");
  PutVolumeRecord("u-1", "v", "kubernetes.io/empty-dir", VolumeState::kSetUp, "boot-1", "web");
  watch.processes.erase(7);
  irreversible.hold = true;
  Restart();
  Deliver("", kApplied);
  DeliverList("manifests", {pod});
  Pass(std::chrono::minutes(2));
  ExpectRunning("web", "u-1");
  EXPECT_EQ(operations().Count("remove", Key("u-1", "")), 0u);
  // The doubt ends, and no command is left.
  irreversible.hold = false;
  Restart();
  Deliver("", kApplied);
  DeliverList("manifests", {pod});
  Pass(std::chrono::minutes(2));
  ExpectRunning("web", "u-1");
  EXPECT_EQ(operations().Count("remove", Key("u-1", "")), 0u);
  // Given again it holds.
  Delete("u-1");
  Pass(std::chrono::minutes(2));
  EXPECT_EQ(operations().Count("remove", Key("u-1", "")), 1u);
}

}  // namespace
}  // namespace volumed
