#include "volumemanager/adopted_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ObjectKey PodNamed(const std::string& name) { return {ObjectKind::kPod, "default", name}; }

PodLogs LogsOf(const std::string& name, const std::string& uid) {
  return {PodNamed(name), PodUid(uid)};
}

TEST(AdoptedPodsTest, LogsAreNamedByNamespaceNameAndUid) {
  const std::optional<PodLogs> logs = ParsePodLogsDirectory("kube-system_etcd-n1_0f1c");
  ASSERT_TRUE(logs);
  EXPECT_EQ(logs->pod, (ObjectKey{ObjectKind::kPod, "kube-system", "etcd-n1"}));
  EXPECT_EQ(logs->uid.str(), "0f1c");
  for (const char* other : {"", "a", "a_b", "a_b_", "_b_c", "a__c", "a_b_c_d"}) {
    EXPECT_FALSE(ParsePodLogsDirectory(other)) << other;
  }
}

TEST(AdoptedPodsTest, AUidIsGivenOnceIfExactlyOnePodHasTheName) {
  AdoptedPods pods;
  pods.Restore(
      {{LogsOf("one", "u-1"), LogsOf("two", "u-2"), LogsOf("two", "u-3"), LogsOf("gone", "u-4")},
       {}},
      {PodUid("u-1"), PodUid("u-2"), PodUid("u-3")});
  EXPECT_EQ(pods.TakeUid(PodNamed("one")), "u-1");
  EXPECT_EQ(pods.TakeUid(PodNamed("one")), "");
  EXPECT_EQ(pods.TakeUid(PodNamed("two")), "");
  EXPECT_EQ(pods.TakeUid(PodNamed("gone")), "");
}

TEST(AdoptedPodsTest, APodThatIsOnRecordIsNotHeld) {
  AdoptedPods pods;
  pods.Restore({{}, {{PodUid("u-1"), {}}, {PodUid("u-2"), {}}}}, {PodUid("u-2")});
  EXPECT_FALSE(pods.AwaitsAcceptance(PodUid("u-1")));
  EXPECT_TRUE(pods.AwaitsAcceptance(PodUid("u-2")));
  EXPECT_THAT(pods.Accept(), ElementsAre(PodUid("u-2")));
  EXPECT_THAT(pods.AwaitingAcceptance(), IsEmpty());
}

TEST(AdoptedPodsTest, APodWithMountsIsHeldOnlyIfPodsMayBeUnknown) {
  for (const std::string why : {"no source has any pod", ""}) {
    AdoptedPods pods;
    FoundAdoptedPods found{{}, {{PodUid("u-1"), {}}}};
    for (const char* uid : {"u-1", "u-2", "u-3", "on-record"}) {
      found.with_mounts[PodUid(uid)].mounted = {"data"};
    }
    pods.Restore(std::move(found), {PodUid("u-1"), PodUid("u-2"), PodUid("u-3")});
    pods.Release(PodUid("u-3"));
    EXPECT_FALSE(pods.AwaitsAcceptance(PodUid("u-2")));
    EXPECT_EQ(pods.SourcesHaveDelivered(why), why.empty() ? 0u : 1u);
    EXPECT_EQ(pods.why_held(), why);
    EXPECT_EQ(pods.AwaitsAcceptance(PodUid("u-2")), !why.empty());
    EXPECT_FALSE(pods.AwaitsAcceptance(PodUid("u-3")));
    EXPECT_FALSE(pods.AwaitsAcceptance(PodUid("on-record")));
    EXPECT_EQ(pods.SourcesHaveDelivered("another"), 0u) << "it is decided once";
  }
}

}  // namespace
}  // namespace volumed
