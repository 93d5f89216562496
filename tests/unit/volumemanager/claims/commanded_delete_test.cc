// Pods that are deleted by command: when that is durable, and what the next agent makes of it.
#include "unit/volumemanager/manager_fixture.h"

namespace volumed {
namespace {

class CommandedDeleteTest : public ManagerTest {
 protected:
  // The same pod in each of these files, as one list.
  void DeliverIn(const std::vector<std::string>& files) {
    ObjectList list{"manifests", true, {}, {}};
    for (const std::string& file : files) {
      for (ObjectWithOrigin& object : Objects(PodManifest("a", {kData}))) {
        object.file = file;
        list.objects.push_back(std::move(object));
      }
    }
    agent_->catalog.Update(std::move(list));
    manager().ObjectsChanged();
    Settle();
  }
  // Which file has the pod, whom its view names, and which files are told that another one has it.
  std::string WhoRefuses() {
    const auto origin = agent_->catalog.OriginOf({ObjectKind::kPod, "default", "a"});
    std::string text = origin ? origin->file : "nobody";
    const PodView view = View("a");
    text += view.problems.empty() ? "" : ", view: " + view.problems[0].message;
    for (const SourceStatus& source : agent_->catalog.Sources()) {
      for (const DecodeProblem& problem : source.problems) text += ", second: " + problem.file;
    }
    return text;
  }
  void ExpectTheSameAfterARestart(const std::vector<std::string>& files) {
    const std::string before = WhoRefuses();
    StartAgent();
    Settle();  // a source starts once the records are loaded
    DeliverIn(files);
    EXPECT_EQ(WhoRefuses(), before);
    EXPECT_EQ(operations().Count("mount"), 0u);
  }
};

TEST_F(CommandedDeleteTest, ADeleteByUidDoesNotWaitForSources) {
  PutPodRecord("a");
  PutVolumeRecord("a", "data", "kubernetes.io/empty-dir", VolumeState::kSetUp, "boot-1");
  sources = {"manifests", "api"};
  StartAgent();
  Settle();
  ASSERT_FALSE(manager().Ready());
  EXPECT_TRUE(Delete("a")->ok());
  EXPECT_EQ(operations().Count("unmount"), 1u);
  EXPECT_EQ(operations().Count("remove"), 1u);
  EXPECT_EQ(Delete("b")->error().code(), Code::kNotFound);
}

TEST_F(CommandedDeleteTest, APodDeletedByUidStaysAwayWhileASourceHasItAlsoAfterARestart) {
  StartAgent();
  Deliver(PodManifest("a", {kData}));
  EXPECT_TRUE(Delete("a")->ok());
  EXPECT_TRUE(node.present.empty());
  EXPECT_EQ(Phase("a"), "Refused");
  EXPECT_EQ(View("a").problems[0].step, "Deleted");

  StartAgent();
  Deliver(PodManifest("a", {kData}));
  EXPECT_EQ(operations().Count("mount"), 0u);
  EXPECT_EQ(Phase("a"), "Refused");

  // Once it has left its source it may come again.
  Deliver("");
  EXPECT_FALSE(HasPodRecord("a"));
  Deliver(PodManifest("a", {kData}));
  EXPECT_EQ(Phase("a"), "Ready");
}

TEST_F(CommandedDeleteTest, TheFileThatRefusesADeletedPodIsTheSameAfterARestart) {
  StartAgent();
  DeliverIn({"b.yaml"});
  DeliverIn({"a.yaml", "b.yaml"});
  EXPECT_TRUE(Delete("a")->ok());
  EXPECT_EQ(WhoRefuses(),
            "b.yaml, view: it was deleted by command and b.yaml still has it, second: a.yaml");
  ExpectTheSameAfterARestart({"a.yaml", "b.yaml"});

  // The other file takes over, and keeps it when the first has it again.
  DeliverIn({"a.yaml"});
  EXPECT_EQ(WhoRefuses(), "a.yaml, view: it was deleted by command and a.yaml still has it");
  DeliverIn({"a.yaml", "b.yaml"});
  EXPECT_EQ(WhoRefuses(),
            "a.yaml, view: it was deleted by command and a.yaml still has it, second: b.yaml");
  ExpectTheSameAfterARestart({"a.yaml", "b.yaml"});
}

TEST_F(CommandedDeleteTest, TheFileOfAPodThatIsStillLeavingIsTheSameAfterARestart) {
  StartAgent();
  DeliverIn({"b.yaml"});
  operations().Hang(Key("a", "data"));
  EXPECT_TRUE(Delete("a")->ok());
  DeliverIn({"a.yaml"});
  DeliverIn({"a.yaml", "b.yaml"});
  ASSERT_EQ(Phase("a"), "Terminating");
  EXPECT_EQ(DecodePodRecord(*store.Find(kPodRecordKind, "a"))->file, "a.yaml");
  StartAgent();
  Settle();
  DeliverIn({"a.yaml", "b.yaml"});
  EXPECT_EQ(Phase("a"), "Refused");
  EXPECT_EQ(WhoRefuses(),
            "a.yaml, view: it was deleted by command and a.yaml still has it, second: b.yaml");
}

TEST_F(CommandedDeleteTest, ACommandedDeleteIsDurableBeforeItsFirstUnmount) {
  StartAgent();
  Deliver(PodManifest("a", {kData}));
  operations().Hang(Key("a", "data"));
  operations().on_unmount = [&](const PodVolumeKey&) {
    EXPECT_TRUE(DecodePodRecord(*store.Find(kPodRecordKind, "a"))->terminating);
  };
  EXPECT_TRUE(Delete("a")->ok());
  ASSERT_EQ(operations().Count("unmount"), 1u);
  StartAgent();
  Deliver(PodManifest("a", {kData}));
  EXPECT_EQ(operations().Count("mount"), 0u);
}

TEST_F(CommandedDeleteTest, ADeleteIsAnsweredWhenItsRecordIsWritten) {
  StartAgent();
  Deliver(PodManifest("a", {kData}));
  std::optional<Status> answer;
  manager().pod_commands().Delete(PodUid("a"), false, [&](const Status& status) {
    answer = status;
    EXPECT_TRUE(DecodePodRecord(*store.Find(kPodRecordKind, "a"))->terminating);
  });
  EXPECT_FALSE(answer.has_value());
  Settle();
  EXPECT_TRUE(answer.value().ok());
  EXPECT_TRUE(Delete("a")->ok());  // of one that is gone and still in its source
}

// Whatever write is the last one: an answer that came is kept by the next agent.
TEST_F(CommandedDeleteTest, ACrashAfterTheAnswerOfADeleteNeverBringsThePodBack) {
  int answered = 0;
  for (uint64_t at = 1; at <= 6; ++at) {
    SCOPED_TRACE(at);
    store.Revive();
    StartAgent();
    Deliver("");
    Deliver(PodManifest("a", {kData}));
    ASSERT_EQ(Phase("a"), "Ready");
    bool ok = false;
    store.Revive();
    store.CrashAtCall((at + 1) / 2, at % 2 == 0 ? MemoryRecordStore::CrashPoint::kAfter
                                                : MemoryRecordStore::CrashPoint::kBefore);
    manager().pod_commands().Delete(PodUid("a"), false, [&](const Status& status) {
      ok = status.ok();
      if (ok) throw SimulatedCrash();
    });
    EXPECT_THROW(Settle(), SimulatedCrash);
    answered += ok ? 1 : 0;
    agent_.reset();
    store.Revive();
    StartAgent();
    Deliver(PodManifest("a", {kData}));
    if (ok) {
      EXPECT_EQ(operations().Count("mount"), 0u);
      EXPECT_EQ(Phase("a"), "Refused");
    }
  }
  EXPECT_GE(answered, 2);  // else this test has looked at nothing
}

TEST_F(CommandedDeleteTest, ADeleteOfAPodWithoutVolumesIsRecordedToo) {
  StartAgent();
  Deliver(PodManifest("a", {}));
  EXPECT_TRUE(Delete("a")->ok());
  StartAgent();
  Deliver(PodManifest("a", {kData}));
  EXPECT_EQ(operations().Count("mount"), 0u);
  EXPECT_EQ(Phase("a"), "Refused");
}

TEST_F(CommandedDeleteTest, ADeleteThatCouldNotBeRecordedMayBeCommandedAgain) {
  StartAgent();
  Deliver(PodManifest("a", {kData}));
  store.FailNext(Error::NotApplied(Code::kUnavailable, "locked"), 3);
  EXPECT_TRUE(Delete("a")->error().maybe_applied());
  EXPECT_TRUE(Delete("a")->error().maybe_applied());
  store.FailNext(Error::NotApplied(Code::kUnavailable, "locked"), 0);
  Status last = Delete("a").value();
  for (int again = 0; again < 3 && !last.ok(); ++again) last = Delete("a").value();
  EXPECT_TRUE(last.ok());
  StartAgent();
  Deliver(PodManifest("a", {kData}));
  EXPECT_EQ(Phase("a"), "Refused");
}

// It was answered as done, and the pod was back after a kill: its row knew of no command.
TEST_F(CommandedDeleteTest, TheDeletionOfAPodThatNoSourceHasIsNotDoneBeforeItIsOnRecord) {
  StartAgent();
  Deliver(PodManifest("a", {kData}));
  operations().Hang(Key("a", "data"));
  Deliver("");
  store.FailNext(Error::NotApplied(Code::kUnavailable, "locked"), 1);
  EXPECT_TRUE(Delete("a")->error().maybe_applied());
}

TEST_F(CommandedDeleteTest, APodWhoseRecordsCannotBeReadIsNotDeleted) {
  PutPodRecord("a");
  store.Corrupt(kPodRecordKind, "a", "checksum");
  StartAgent();
  Deliver(PodManifest("a", {kData}));
  const Status told = Delete("a").value();
  ASSERT_FALSE(told.ok());
  EXPECT_EQ(told.error().code(), Code::kFailedPrecondition);
  EXPECT_FALSE(told.error().maybe_applied());
  EXPECT_EQ(operations().Count("unmount"), 0u);
}

// Found by the crash walk: the record was removed with the directories, and written anew after
// that.
TEST_F(CommandedDeleteTest, ACommandIsNotForgottenByACrashRightAfterThePodsRemoval) {
  StartAgent();
  Deliver(PodManifest("a", {kData}));
  store.Revive();  // writes are counted from here: first the command, then the end of the pod
  store.CrashAtCall(2, MemoryRecordStore::CrashPoint::kBefore);
  EXPECT_THROW(Delete("a"), SimulatedCrash);
  EXPECT_EQ(operations().Count("remove"), 1u);
  store.Revive();
  StartAgent();
  Deliver(PodManifest("a", {kData}));
  EXPECT_EQ(operations().Count("mount"), 0u);
  EXPECT_EQ(Phase("a"), "Refused");
  Deliver("");
  EXPECT_FALSE(HasPodRecord("a"));
}

TEST_F(CommandedDeleteTest, ACommandedPodThatNoSourceHasLeavesNoRecord) {
  StartAgent();
  Deliver(PodManifest("a", {kData}));
  operations().Hang(Key("a", ""));
  EXPECT_TRUE(Delete("a")->ok());
  Deliver("");  // it leaves its source while its directories go
  EXPECT_TRUE(HasPodRecord("a"));
  operations().Release(Key("a", ""));
  Settle();
  EXPECT_FALSE(HasPodRecord("a"));
}

}  // namespace
}  // namespace volumed
