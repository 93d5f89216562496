#include "volumemanager/watch/consumers.h"

#include "unit/volumemanager/manager_fixture.h"

namespace volumed {
namespace {

class ConsumersTest : public ManagerTest {
 protected:
  const std::string manifest_ = PodManifest("a", {"data: emptyDir: {}"});
  const std::string deleted_ = PodManifest("a", {"data: emptyDir: {}"},
                                           "  deletionTimestamp: \"2020-01-01T00:00:00Z\"\n"
                                           "  deletionGracePeriodSeconds: 3000\n");

  Status Release(const std::string& pod, int64_t pid) {
    std::optional<Status> answer;
    manager().pod_commands().ReleaseHold({PodUid(pod), pid, ""},
                                         [&](Status status) { answer = status; });
    Settle();
    EXPECT_TRUE(answer.has_value());
    return answer.value_or(OkStatus());
  }
};

TEST_F(ConsumersTest, RefusesWhatCannotHold) {
  StartAgent();
  watch.processes[1] = 5;
  EXPECT_EQ(HoldPid("a", 1).error().code(), Code::kUnavailable) << "before the records are loaded";
  Deliver(manifest_);
  EXPECT_EQ(HoldPid("b", 1).error().code(), Code::kNotFound);
  EXPECT_EQ(HoldPid("a", 2).error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(HoldPid("a", 0).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(HoldPid("a", -1).error().code(), Code::kInvalidArgument);
  std::optional<Status> both;
  manager().pod_commands().Hold({PodUid("a"), 1, "/x"}, [&](Status status) { both = status; });
  Settle();
  EXPECT_EQ(both->error().code(), Code::kInvalidArgument);
  EXPECT_TRUE(View("a").held_by.empty());
  EXPECT_TRUE(store.Load(kHoldRecordKind)->records.empty());
}

TEST_F(ConsumersTest, AHoldThatCannotBeRecordedDoesNotCount) {
  StartAgent();
  Deliver(manifest_);
  watch.processes[1] = 5;
  store.FailNext(Error::NotApplied(Code::kResourceExhausted, "disk full"));
  EXPECT_EQ(HoldPid("a", 1).error().code(), Code::kResourceExhausted);
  EXPECT_TRUE(View("a").held_by.empty());
  EXPECT_TRUE(watch.watches.empty());
  EXPECT_TRUE(HoldPid("a", 1).ok());
  EXPECT_TRUE(HoldPid("a", 1).ok()) << "again";
  EXPECT_EQ(View("a").held_by.size(), 1u);
}

// The pod counted as one whose consumers had ended: it was torn down at once.
TEST_F(ConsumersTest, AHoldThatCannotBeRecordedDoesNotEndTheGracePeriod) {
  StartAgent();
  Deliver(manifest_);
  watch.processes[1] = 5;
  store.FailNext(Error::NotApplied(Code::kResourceExhausted, "disk full"));
  ASSERT_FALSE(HoldPid("a", 1).ok());
  Deliver(deleted_);
  Pass(std::chrono::seconds(5));
  EXPECT_EQ(operations().Count("unmount"), 0u);
  EXPECT_EQ(Phase("a"), "Terminating");
}

// The pod waited for its grace period, although its consumer had ended.
TEST_F(ConsumersTest, ARefusedHoldDoesNotHideThatAConsumerHasEnded) {
  StartAgent();
  Deliver(manifest_);
  watch.processes[1] = 5;
  ASSERT_TRUE(HoldPid("a", 1).ok());
  watch.EndProcess(1);
  Settle();
  ASSERT_EQ(HoldPid("a", 2).error().code(), Code::kFailedPrecondition);
  Deliver(deleted_);
  EXPECT_EQ(operations().Count("unmount"), 1u);
}

TEST_F(ConsumersTest, ARepeatedHoldIsAnsweredAsTheRecordOfTheFirst) {
  StartAgent();
  Deliver(manifest_);
  watch.processes[1] = 5;
  for (const bool full : {true, false}) {
    if (full) store.FailNext(Error::NotApplied(Code::kResourceExhausted, "disk full"));
    std::vector<bool> answers;
    for (int i = 0; i < 2; ++i) {
      manager().pod_commands().Hold({PodUid("a"), 1, ""},
                                    [&](const Status& status) { answers.push_back(status.ok()); });
    }
    Settle();
    EXPECT_EQ(answers, (std::vector<bool>{!full, !full})) << full;
    EXPECT_EQ(View("a").held_by.size(), full ? 0u : 1u);
  }
}

TEST_F(ConsumersTest, AReleaseLetsThePodLeave) {
  StartAgent();
  Deliver(manifest_);
  watch.processes[1] = 5;
  ASSERT_TRUE(HoldPid("a", 1).ok());
  Deliver("");
  EXPECT_EQ(Phase("a"), "Terminating");
  EXPECT_EQ(Release("a", 2).error().code(), Code::kNotFound);
  EXPECT_TRUE(Release("a", 1).ok());
  EXPECT_EQ(Phase("a"), "gone");
}

// NotFound was taken for a hold that is released already; then the records were loaded, and it
// held.
TEST_F(ConsumersTest, AReleaseBeforeTheRecordsAreLoadedIsToBeRepeated) {
  StartAgent();
  Deliver(manifest_);
  watch.processes[1] = 5;
  ASSERT_TRUE(HoldPid("a", 1).ok());
  StartAgent();
  EXPECT_EQ(Release("a", 1).error().code(), Code::kUnavailable);
  EXPECT_TRUE(Release("a", 1).ok());
}

TEST_F(ConsumersTest, ACgroupHoldsUntilItIsEmpty) {
  StartAgent();
  Deliver(manifest_);
  watch.cgroups["/kubepods/a"] = true;
  std::optional<Status> held;
  manager().pod_commands().Hold({PodUid("a"), 0, "/kubepods/a"},
                                [&](Status status) { held = status; });
  Settle();
  ASSERT_TRUE(held->ok());
  Deliver("");
  EXPECT_EQ(View("a").held_by, std::vector<std::string>{"cgroup /kubepods/a"});
  watch.EmptyCgroup("/kubepods/a");
  Settle();
  EXPECT_EQ(Phase("a"), "gone");
}

TEST_F(ConsumersTest, ANewAgentKnowsTheHoldsOfTheLast) {
  StartAgent();
  Deliver(manifest_);
  watch.processes[1] = 5;
  ASSERT_TRUE(HoldPid("a", 1).ok());
  StartAgent();
  Deliver("");
  EXPECT_EQ(View("a").held_by, std::vector<std::string>{"pid 1 (runc)"});
  EXPECT_TRUE(HasPodRecord("a"));
  watch.EndProcess(1);
  Settle();
  EXPECT_EQ(Phase("a"), "gone");
}

TEST_F(ConsumersTest, AHoldOfAReusedPidOrOfAnotherBootIsDropped) {
  for (const bool other_boot : {false, true}) {
    StartAgent("boot-1");
    Deliver(manifest_);
    watch.processes[1] = 5;
    ASSERT_TRUE(HoldPid("a", 1).ok());
    if (!other_boot) watch.processes[1] = 6;
    StartAgent(other_boot ? "boot-2" : "boot-1");
    Deliver("");
    EXPECT_EQ(Phase("a"), "gone");
    EXPECT_TRUE(store.Load(kHoldRecordKind)->records.empty());
  }
}

TEST_F(ConsumersTest, ATeardownThatHasBegunTakesNoNewConsumer) {
  StartAgent();
  Deliver(manifest_);
  watch.processes[1] = 5;
  operations().Hang(Key("a", "data"));
  Deliver("");
  EXPECT_EQ(HoldPid("a", 1).error().code(), Code::kFailedPrecondition);
}

}  // namespace
}  // namespace volumed
