// A pod without a uid in its manifest whose volumes are edited there: when it is replaced, by whom,
// and what a start in the middle makes of it.
#include "volumemanager/pod_replacements.h"

#include <gtest/gtest.h>

#include "unit/volumemanager/claims/known_objects_fixture.h"

namespace volumed {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

// A pod whose one volume has this name.
std::string With(const std::string& volume) {
  return "spec:\n  containers: [{name: c, image: x, volumeMounts: [{name: " + volume +
         ", mountPath: /v}]}]\n  volumes: [{name: " + volume + ", emptyDir: {}}]\n";
}

class PodReplacementsTest : public TwoSourcesTest {
 protected:
  const ObjectKey kKey{ObjectKind::kPod, "default", "web-n1"};

  // A pod with the volume "first" is ready, and its manifest has "second" then.
  void EditAfterStart() {
    Restart();
    Deliver("", kApplied);
    DeliverPod("first");
    uid_ = UidOfPod("web-n1");
    ASSERT_EQ(Phase(uid_), "Ready");
    DeliverPod("second");
  }
  void DeliverPod(const std::string& volume) {
    DeliverList("manifests", {StaticPod("n1", "/m/web.yaml", With(volume))});
  }
  void HoldIt() {
    watch.processes[7] = 1;
    ASSERT_TRUE(HoldPid(uid_, 7).ok());
  }
  std::string VolumeOf(const std::string& name) {
    const auto pod = catalog().FindPod("default", name);
    return pod == nullptr ? "no pod" : pod->spec.volumes.at(0).name;
  }
  // The pod of the edited manifest is there, and is another one.
  void ExpectReplaced() {
    EXPECT_EQ(Phase(uid_), "gone");
    const std::string now = UidOfPod("web-n1");
    ASSERT_NE(now, "no pod");
    EXPECT_NE(now, uid_);
    EXPECT_EQ(VolumeOf("web-n1"), "second");
    EXPECT_EQ(Phase(now), "Ready");
    EXPECT_FALSE(HasPodRecord(uid_));
  }
  void ExpectAsItWas() {
    EXPECT_EQ(UidOfPod("web-n1"), uid_);
    EXPECT_EQ(VolumeOf("web-n1"), "first");
    EXPECT_EQ(Phase(uid_), "Ready");
  }

  std::string uid_;
};

TEST_F(PodReplacementsTest, AnEditOfAPodsVolumesReplacesItAfterTheSettleTime) {
  ASSERT_NO_FATAL_FAILURE(EditAfterStart());
  const auto begins = manager().pods().ReplacedAtUnixMillis(kKey);
  ASSERT_TRUE(begins.has_value());
  EXPECT_EQ(*begins - clock.WallUnixMillis(), 10'000);
  Pass(seconds(9));
  ExpectAsItWas();
  Pass(minutes(1));
  ExpectReplaced();
  EXPECT_FALSE(manager().pods().ReplacedAtUnixMillis(kKey).has_value());
}

TEST_F(PodReplacementsTest, TheSuccessorWaitsForTheConsumersOfThePod) {
  ASSERT_NO_FATAL_FAILURE(EditAfterStart());
  HoldIt();
  Pass(minutes(5));
  EXPECT_EQ(UidOfPod("web-n1"), "no pod");
  EXPECT_EQ(Phase(uid_), "Terminating");
  EXPECT_NE(ProblemsOf("manifests").find("it is made once the pod with the volumes of before"),
            std::string::npos)
      << ProblemsOf("manifests");
  watch.EndProcess(7);
  Pass(minutes(1));
  ExpectReplaced();
}

TEST_F(PodReplacementsTest, AnEditTakenBackWithinTheSettleTimeReplacesNothing) {
  ASSERT_NO_FATAL_FAILURE(EditAfterStart());
  Pass(seconds(9));
  DeliverPod("first");
  EXPECT_FALSE(manager().pods().ReplacedAtUnixMillis(kKey).has_value());
  Pass(minutes(1));
  ExpectAsItWas();
  // Made again, it has to last anew.
  DeliverPod("second");
  Pass(seconds(9));
  ExpectAsItWas();
  Pass(minutes(1));
  ExpectReplaced();
}

TEST_F(PodReplacementsTest, APodWhoseManifestNamesItsUidIsNeverReplaced) {
  const std::string metadata = "name: web, uid: u1";
  Restart();
  Deliver("", kApplied);
  DeliverList("manifests", {StaticPod("n1", "/m/web.yaml", With("first"), metadata)});
  DeliverList("manifests", {StaticPod("n1", "/m/web.yaml", With("second"), metadata)});
  EXPECT_TRUE(catalog().StandingOf({ObjectKind::kPod, "default", "web"})->has_first_volumes);
  Pass(minutes(5));
  EXPECT_EQ(UidOfPod("web"), "u1");
  EXPECT_EQ(VolumeOf("web"), "first");
  EXPECT_EQ(Phase("u1"), "Ready");
  EXPECT_NE(ProblemsOf("manifests").find("the first spec stays until the pod leaves"),
            std::string::npos);
}

TEST_F(PodReplacementsTest, APodWhoseFileIsHeldBackIsNotReplaced) {
  ASSERT_NO_FATAL_FAILURE(EditAfterStart());
  Pass(seconds(9));
  ObjectWithOrigin held = StaticPod("n1", "/m/web.yaml", With("second"));
  held.presence = ObjectPresence::kUnproven;
  DeliverList("manifests", {held});
  Pass(minutes(5));
  ExpectAsItWas();
  DeliverPod("second");
  Pass(seconds(9));
  ExpectAsItWas();
  Pass(minutes(1));
  ExpectReplaced();
}

TEST_F(PodReplacementsTest, NothingIsReplacedBeforeEverySourceHasDelivered) {
  ASSERT_NO_FATAL_FAILURE(EditAfterStart());
  Restart();
  DeliverPod("second");
  Pass(minutes(5));
  EXPECT_EQ(UidOfPod("web-n1"), uid_);
  EXPECT_EQ(VolumeOf("web-n1"), "first");
  Deliver("", kApplied);
  Pass(minutes(1));
  ExpectReplaced();
}

TEST_F(PodReplacementsTest, AShorterSettleTimeCountsForAnEditThatHasBegun) {
  ASSERT_NO_FATAL_FAILURE(EditAfterStart());
  Pass(seconds(3));
  manager().SetReplaceSettle(seconds(2));
  Pass(seconds(1));
  ExpectReplaced();
}

TEST_F(PodReplacementsTest, AnEditMadeWhileNoAgentRanReplacesThePod) {
  Restart();
  Deliver("", kApplied);
  DeliverPod("first");
  uid_ = UidOfPod("web-n1");
  Restart();
  Deliver("", kApplied);
  DeliverPod("second");
  ExpectAsItWas();
  Pass(minutes(1));
  ExpectReplaced();
}

// What was wrong before: the pod that was leaving came back, with its uid and the other volumes.
TEST_F(PodReplacementsTest, AStartWhileThePodLeavesGoesOnWithTheReplacement) {
  ASSERT_NO_FATAL_FAILURE(EditAfterStart());
  HoldIt();
  Pass(minutes(1));
  ASSERT_EQ(Phase(uid_), "Terminating");
  Restart();
  Deliver("", kApplied);
  DeliverPod("second");
  EXPECT_EQ(UidOfPod("web-n1"), "no pod");
  Pass(minutes(1));
  EXPECT_EQ(Phase(uid_), "Terminating");
  watch.EndProcess(7);
  Pass(minutes(1));
  ExpectReplaced();
}

TEST_F(PodReplacementsTest, APodThatComesBackEditedWhileItsFormerSelfLeavesHasAUidOfItsOwn) {
  Restart();
  Deliver("", kApplied);
  DeliverPod("first");
  uid_ = UidOfPod("web-n1");
  HoldIt();
  DeliverList("manifests", {});
  DeliverPod("second");
  EXPECT_EQ(UidOfPod("web-n1"), "no pod");
  Pass(minutes(1));
  EXPECT_EQ(Phase(uid_), "Terminating");
  watch.EndProcess(7);
  Pass(minutes(1));
  ExpectReplaced();
}

TEST_F(PodReplacementsTest, AFileThatMovedWithAnEditWaitsForTheSettleTimeToo) {
  ASSERT_NO_FATAL_FAILURE(EditAfterStart());
  Restart();
  Deliver("", kApplied);
  DeliverList("manifests", {StaticPod("n1", "/m/other.yaml", With("second"))});
  ExpectAsItWas();
  Pass(minutes(1));
  ExpectReplaced();
}

TEST_F(PodReplacementsTest, TheSuccessorOfAPodThatWentWhileASourceWasNewComesOnceThatHasDelivered) {
  ASSERT_NO_FATAL_FAILURE(EditAfterStart());
  HoldIt();
  Pass(minutes(1));
  catalog().ExpectSource("new");
  manager().ObjectsChanged();
  watch.EndProcess(7);
  Pass(minutes(1));
  EXPECT_EQ(UidOfPod("web-n1"), "no pod");
  DeliverList("new", {});
  Pass(minutes(1));
  ExpectReplaced();
}

TEST_F(PodReplacementsTest, APodDeletedByCommandIsAnotherOneOnceItsVolumesAreEdited) {
  Restart();
  Deliver("", kApplied);
  DeliverPod("first");
  uid_ = UidOfPod("web-n1");
  ASSERT_TRUE(Delete(uid_)->ok());
  Pass(minutes(1));
  ASSERT_EQ(Phase(uid_), "Refused");
  DeliverPod("second");
  EXPECT_EQ(Phase(uid_), "Refused");
  Pass(minutes(1));
  ExpectReplaced();
}

}  // namespace
}  // namespace volumed
