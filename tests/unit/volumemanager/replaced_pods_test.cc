// A pod that a command puts in the place of another one of its name: when it comes, what becomes of
// the first one, and what a start in the middle makes of it.
#include <gtest/gtest.h>

#include "kube/object_directory.h"
#include "unit/volumemanager/claims/known_objects_fixture.h"

namespace volumed {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr const char* kFile = "/objects/pod.default.web-n1.json";

class ReplacedPodsTest : public TwoSourcesTest {
 protected:
  const ObjectKey kKey{ObjectKind::kPod, "default", "web-n1"};

  // As the directory of applied objects has it.
  static ObjectWithOrigin Applied(const std::string& uid, const std::string& volume,
                                  const std::set<PodUid>& replaces = {}) {
    ObjectWithOrigin object =
        StaticPod("n1", kFile,
                  "spec:\n  containers: [{name: c, image: x, volumeMounts: [{name: " + volume +
                      ", mountPath: /v}]}]\n  volumes: [{name: " + volume + ", emptyDir: {}}]\n");
    Pod pod = std::get<Pod>(*object.object);
    SetPodUid(pod, uid);
    object.object = std::make_shared<const Object>(std::move(pod));
    object.number = ++number_;
    object.replaces = replaces;
    return object;
  }
  // A pod "u1" with the volume "first" is ready.
  void StartWithFirst() {
    Restart();
    DeliverList("manifests", {});
    DeliverList(kApplied, {Applied("u1", "first")});
    Pass(seconds(5));
    ASSERT_EQ(Phase("u1"), "Ready");
  }
  void HoldFirst() {
    watch.processes[7] = 1;
    ASSERT_TRUE(HoldPid("u1", 7).ok());
  }
  void Replace() { DeliverList(kApplied, {Applied("u2", "second", {PodUid("u1")})}); }
  void ExpectReplacedBy(const std::string& uid) {
    EXPECT_EQ(Phase("u1"), "gone");
    EXPECT_FALSE(HasPodRecord("u1"));
    EXPECT_EQ(UidOfPod("web-n1"), uid);
    EXPECT_EQ(Phase(uid), "Ready");
    EXPECT_TRUE(HasPodRecord(uid));
    EXPECT_TRUE(catalog().Waiting().empty());
    EXPECT_EQ(ProblemsOf(kApplied), "");
  }
  void ExpectWaiting(const std::string& uid) {
    EXPECT_EQ(Phase("u1"), "Terminating");
    EXPECT_EQ(UidOfPod("web-n1"), "no pod");
    EXPECT_EQ(Phase(uid), "gone");
    EXPECT_FALSE(HasPodRecord(uid));
    ASSERT_TRUE(catalog().Waiting().contains(kKey));
    EXPECT_EQ(catalog().Waiting().at(kKey).uid.str(), uid);
  }

  static inline uint64_t number_ = 0;
};

TEST_F(ReplacedPodsTest, ACommandReplacesAPodWithoutASettleTime) {
  ASSERT_NO_FATAL_FAILURE(StartWithFirst());
  Replace();
  Pass(seconds(5));
  ExpectReplacedBy("u2");
}

TEST_F(ReplacedPodsTest, TheSuccessorWaitsForTheConsumersOfThePod) {
  ASSERT_NO_FATAL_FAILURE(StartWithFirst());
  HoldFirst();
  Replace();
  Pass(minutes(5));
  ExpectWaiting("u2");
  EXPECT_NE(ProblemsOf(kApplied).find("is made once that is gone"), std::string::npos)
      << ProblemsOf(kApplied);
  for (const SourceStatus& source : catalog().Sources()) {
    EXPECT_EQ(source.last_error, "") << "it waits, and nothing is wrong with its source";
  }
  watch.EndProcess(7);
  Pass(seconds(5));
  ExpectReplacedBy("u2");
}

TEST_F(ReplacedPodsTest, AStartBeforeAnythingWasDoneReplacesThePod) {
  ASSERT_NO_FATAL_FAILURE(StartWithFirst());
  Restart();
  DeliverList("manifests", {});
  EXPECT_EQ(Phase("u1"), "Pending");  // nobody knows whether its source has it
  Replace();
  Pass(seconds(5));
  ExpectReplacedBy("u2");
}

TEST_F(ReplacedPodsTest, AStartWhileThePodLeavesGoesOnWithTheReplacement) {
  ASSERT_NO_FATAL_FAILURE(StartWithFirst());
  HoldFirst();
  Replace();
  Pass(seconds(5));
  Restart();
  Pass(minutes(1));
  EXPECT_EQ(Phase("u1"), "Terminating");
  DeliverList("manifests", {});
  Replace();
  Pass(minutes(1));
  ExpectWaiting("u2");
  watch.EndProcess(7);
  Pass(seconds(5));
  ExpectReplacedBy("u2");
}

TEST_F(ReplacedPodsTest, ASecondReplacementTakesThePlaceOfThePodThatWaits) {
  ASSERT_NO_FATAL_FAILURE(StartWithFirst());
  HoldFirst();
  Replace();
  Pass(seconds(5));
  DeliverList(kApplied, {Applied("u3", "third", {PodUid("u1"), PodUid("u2")})});
  Pass(seconds(5));
  ExpectWaiting("u3");
  watch.EndProcess(7);
  Pass(seconds(5));
  ExpectReplacedBy("u3");
  EXPECT_FALSE(HasPodRecord("u2"));
}

TEST_F(ReplacedPodsTest, APodWhoseSuccessorIsDeletedWhileItWaitsLeavesAllTheSame) {
  ASSERT_NO_FATAL_FAILURE(StartWithFirst());
  HoldFirst();
  Replace();
  Pass(seconds(5));
  DeliverList(kApplied, {});
  Pass(seconds(5));
  EXPECT_EQ(Phase("u1"), "Terminating");
  watch.EndProcess(7);
  Pass(seconds(5));
  EXPECT_EQ(Phase("u1"), "gone");
  EXPECT_EQ(UidOfPod("web-n1"), "no pod");
  EXPECT_FALSE(HasPodRecord("u1"));
}

// Delete pod needs no source to agree; nor does this command.
TEST_F(ReplacedPodsTest, ASourceThatHasNotDeliveredDelaysNoReplacement) {
  ASSERT_NO_FATAL_FAILURE(StartWithFirst());
  Restart();
  Replace();
  Pass(seconds(5));
  EXPECT_FALSE(manager().Ready());
  EXPECT_EQ(Phase("u1"), "gone");
  EXPECT_EQ(Phase("u2"), "Ready");
  // What is left of the first one on record takes nothing from the second at the next start.
  ASSERT_TRUE(HasPodRecord("u1"));
  Restart();
  Replace();
  EXPECT_EQ(UidOfPod("web-n1"), "u2");
  EXPECT_EQ(Phase("u2"), "Ready");
  DeliverList("manifests", {});
  Pass(seconds(5));
  ExpectReplacedBy("u2");
}

TEST_F(ReplacedPodsTest, NoOtherSourceGetsTheNameOfAPodThatWaits) {
  ASSERT_NO_FATAL_FAILURE(StartWithFirst());
  HoldFirst();
  Replace();
  Pass(seconds(5));
  const ObjectWithOrigin other = StaticPod("n1", "/m/web.yaml");
  DeliverList("manifests", {other});
  EXPECT_EQ(catalog().NamedBy(kKey)->source, kApplied);
  EXPECT_NE(ProblemsOf("manifests").find("the same name was there first"), std::string::npos)
      << ProblemsOf("manifests");
  Restart();
  DeliverList("manifests", {other});
  EXPECT_EQ(UidOfPod("web-n1"), "no pod");
  Replace();
  ExpectWaiting("u2");
  watch.EndProcess(7);
  Pass(seconds(5));
  EXPECT_EQ(UidOfPod("web-n1"), "u2");
  EXPECT_EQ(catalog().OriginOf(kKey)->source, kApplied);
  EXPECT_EQ(Phase("u2"), "Ready");
}

TEST_F(ReplacedPodsTest, APodThatWasDeletedByCommandIsReplacedAtOnce) {
  ASSERT_NO_FATAL_FAILURE(StartWithFirst());
  ASSERT_TRUE(Delete("u1")->ok());
  Pass(seconds(5));
  ASSERT_EQ(Phase("u1"), "Refused");
  Replace();
  Pass(seconds(5));
  ExpectReplacedBy("u2");
}

TEST_F(ReplacedPodsTest, DeletingThePodThatLeavesDoesNotKeepItsSuccessorOut) {
  ASSERT_NO_FATAL_FAILURE(StartWithFirst());
  HoldFirst();
  Replace();
  ASSERT_TRUE(Delete("u1")->ok());
  ExpectWaiting("u2");
  watch.EndProcess(7);
  Pass(seconds(5));
  ExpectReplacedBy("u2");
}

}  // namespace
}  // namespace volumed
