// What the verbs print of an agent's answers, and what they ask it.
#include <fstream>

#include "unit/cli/scripted_agent.h"

namespace volumed {
namespace {

// A slip in the name was taken for the end of the pod.
TEST_F(CommandsTest, AWaitForTheEndOfAPodThatNobodyKnowsSaysSo) {
  agent_.waits.resize(1);
  agent_.waits[0].set_met(true);
  const Printed unknown = WaitForEnd();
  EXPECT_EQ(unknown.code, kExitOk);
  EXPECT_EQ(unknown.out, "pod web gone\n");
  EXPECT_EQ(unknown.err, "note: no pod web is known: there was none since the agent's start\n");
  // The same was said right after `pod web deleted`.
  agent_.waits[0].set_has_left(true);
  const Printed left = WaitForEnd();
  EXPECT_EQ(left.out, "pod web gone\n");
  EXPECT_EQ(left.err, "");
  agent_.waits[0].set_has_left(false);
  agent_.waits.resize(2);
  agent_.waits[0].set_met(false);
  agent_.waits[0].mutable_pod()->set_name("web");
  agent_.waits[1].set_met(true);
  const Printed seen = WaitForEnd();
  EXPECT_EQ(seen.out, "pod web gone\n");
  EXPECT_EQ(seen.err, "");
}

TEST_F(CommandsTest, AWaitForAllNamesEachPodThatIsNotInTime) {
  EXPECT_EQ(Run({"wait", "--all"}).out, "there is no pod\n");
  EXPECT_EQ(Run({"wait", "--all", "-n", "nope"}).out, "there is no pod in namespace nope\n");
  AddPods({"a", "b", "c"});
  agent_.waits.resize(1);
  agent_.waits[0].set_met(true);
  const Printed gone = Run({"wait", "--all", "--for", "gone", "--timeout", "20"});
  EXPECT_EQ(gone.code, kExitOk);
  EXPECT_EQ(gone.out, "pod default/a gone\npod default/b gone\npod default/c gone\n");
  EXPECT_EQ(gone.err, "") << "it was there when the list was made";
  EXPECT_EQ(agent_.waited_for,
            (std::vector<std::string>{"uid-a gone", "uid-b gone", "uid-c gone"}));
  agent_.never = "uid-b";
  const Printed late = Run({"wait", "--all", "--timeout", "20"});
  EXPECT_EQ(late.code, kExitTimeout);
  EXPECT_EQ(late.out, "pod default/a ready\npod default/c ready\n");
  EXPECT_EQ(late.err, "volumectl: pod default/b is not ready after 20000 ms\n");
}

// It said `pod web create`.
TEST_F(CommandsTest, AWaitForAPodToBeThereSaidCreateOfIt) {
  agent_.waits.resize(1);
  agent_.waits[0].set_met(true);
  EXPECT_EQ(Run({"wait", "web", "--for", "create"}).out, "pod web created\n");
  agent_.waits[0].set_met(false);
  agent_.never = "";
  EXPECT_EQ(Run({"wait", "web", "--for", "create", "--timeout", "1"}).err,
            "volumectl: pod web is not created after 1000 ms\n");
}

// The driver's registrar was not there by then, and it still said that the driver makes the volume.
TEST_F(CommandsTest, AWaitThatWasOverSaidWhyThePodHadWaitedBefore) {
  AddPods({"a"});
  const auto waits_for = [](v1::Pod& pod, const std::string& why) {
    pod.clear_problems();
    pod.add_problems()->set_message(why);
  };
  waits_for(*agent_.pods.mutable_pods(0), "its registrar has to be started");
  agent_.waits.resize(1);
  *agent_.waits[0].mutable_pod() = agent_.pods.pods(0);
  waits_for(*agent_.waits[0].mutable_pod(), "its volume is being made");
  agent_.never = "";
  const Printed late = Run({"wait", "a", "--timeout", "20"});
  EXPECT_EQ(late.code, kExitTimeout);
  EXPECT_NE(late.err.find("its registrar has to be started"), std::string::npos) << late.err;
  EXPECT_EQ(late.err.find("its volume is being made"), std::string::npos) << late.err;
}

// A script that waited for all pods to be gone went on before the agent knew of any.
TEST_F(CommandsTest, AWaitForAllAtAnAgentThatIsStartingEndedWithThereIsNoPod) {
  v1::ErrorDetail detail;
  detail.set_outcome("NotApplied");
  agent_.refusal = {grpc::StatusCode::UNAVAILABLE, "the pods are not known yet",
                    detail.SerializeAsString()};
  agent_.pods.add_pods()->set_namespace_("default");
  agent_.pods.mutable_pods(0)->set_name("a");
  agent_.waits.resize(1);
  agent_.waits[0].set_met(true);
  const Printed never = Run({"wait", "--all", "--for", "gone", "--timeout", "0.2"});
  EXPECT_EQ(never.code, kExitTimeout);
  EXPECT_EQ(never.out, "");
  EXPECT_EQ(never.err, "volumectl: the pods are not known yet\n");
  EXPECT_GT(agent_.pages_asked.size(), 1u);
  EXPECT_TRUE(agent_.waited_for.empty());
  agent_.refusals = agent_.pages_asked.size() + 2;
  const Printed later = Run({"wait", "--all", "--for", "gone", "--timeout", "20"});
  EXPECT_EQ(later.code, kExitOk) << later.err;
  EXPECT_EQ(later.out, "pod default/a gone\n");
}

// The wait ended with that pod, and nothing was said of the others.
TEST_F(CommandsTest, APodThatLeavesDoesNotEndTheWaitForTheOthers) {
  AddPods({"a", "b"});
  agent_.waits.resize(1);
  agent_.waits[0].set_met(true);
  agent_.left = "uid-a";
  const Printed ready = Run({"wait", "--all", "--timeout", "20"});
  EXPECT_EQ(ready.code, kExitOk);
  EXPECT_EQ(ready.out, "pod default/b ready\n");
  EXPECT_EQ(ready.err, "note: pod default/a has left\n");
  agent_.never = "uid-b";
  EXPECT_EQ(Run({"wait", "--all", "--timeout", "20"}).code, kExitTimeout);
}

TEST_F(CommandsTest, AWaitIsForOnePodOrForAllThatThereAre) {
  EXPECT_EQ(Run({"wait"}).code, kExitUsage);
  EXPECT_EQ(Run({"wait", "web", "--all"}).code, kExitUsage);
  EXPECT_EQ(Run({"wait", "--all", "--for", "create"}).code, kExitUsage);
  EXPECT_TRUE(agent_.waited_for.empty());
}

// 1e10 seconds overflowed the clock: the wait was over at once, and said that it had lasted.
TEST_F(CommandsTest, AWaitForLongerThanAnyClockIsRefusedWithTheRange) {
  for (const char* seconds :
       {"1e10", "1e300", "nan", "inf", "-1", "0", "0.0001", "31536001", "5s"}) {
    for (const char* option : {"--timeout", "--request-timeout"}) {
      const Printed refused = Run({"wait", "web", option, seconds});
      EXPECT_EQ(refused.code, kExitUsage) << seconds;
      EXPECT_NE(refused.err.find("it takes 0.001 to 31536000 seconds (a year), not '" +
                                 std::string(seconds) + "'"),
                std::string::npos)
          << refused.err;
    }
  }
  EXPECT_TRUE(agent_.waited_for.empty());
  agent_.waits.resize(1);
  agent_.waits[0].set_met(true);
  for (const char* seconds : {"31536000", "0.001", "2.5"}) {
    EXPECT_NE(Run({"wait", "web", "--timeout", seconds}).code, kExitUsage) << seconds;
  }
  EXPECT_EQ(Run({"wait", "web", "--timeout", "31536000"}).code, kExitOk);
}

// A directory that was made anew often has the inode of the one before.
TEST_F(CommandsTest, AnotherDirectoryOfTheSameWordsWasSaidToBeNothingToAccept) {
  agent_.accepted.set_path("/srv/d1");
  agent_.accepted.set_before("ext4 0b3c, inode 12");
  agent_.accepted.set_now("ext4 0b3c, inode 12");
  EXPECT_NE(Accept().out.find("there is nothing to accept"), std::string::npos);
  agent_.accepted.set_was_other(true);
  EXPECT_NE(Accept().out.find("pv d1 has its data in /srv/d1"), std::string::npos);
}

TEST_F(CommandsTest, ADeletionIsConfirmedByYesAlone) {
  EXPECT_EQ(Run({"delete", "pv", "disk"}).code, kExitOk);
  EXPECT_FALSE(agent_.deleted.yes());
  EXPECT_EQ(Run({"delete", "pv", "disk", "--yes"}).code, kExitOk);
  EXPECT_TRUE(agent_.deleted.yes());
}

TEST_F(CommandsTest, ADriverThatHasLeftForGoodIsForgottenByDelete) {
  const Printed printed = Run({"delete", "driver", "d.io"});
  EXPECT_EQ(printed.code, kExitOk);
  EXPECT_EQ(printed.out, "driver d.io forgotten\n");
  EXPECT_EQ(agent_.forgotten_driver, "d.io");
  EXPECT_FALSE(agent_.forgotten_by_force);
  EXPECT_EQ(Run({"delete", "driver", "d.io", "--force"}).code, kExitOk);
  EXPECT_TRUE(agent_.forgotten_by_force);
  EXPECT_FALSE(agent_.deleted.has_object());
  agent_.forgets = {grpc::StatusCode::NOT_FOUND, "there is no CSI driver d.io"};
  EXPECT_EQ(Run({"delete", "driver", "d.io"}).code, kExitNotFound);
  EXPECT_EQ(Run({"delete", "driver", "d.io", "--ignore-not-found"}).code, kExitOk);
  agent_.forgets = {grpc::StatusCode::FAILED_PRECONDITION, "it is registered"};
  const Printed refused = Run({"delete", "drivers", "d.io"});
  EXPECT_NE(refused.code, kExitOk);
  EXPECT_NE(refused.err.find("it is registered"), std::string::npos) << refused.err;
}

TEST_F(CommandsTest, ADeletionByAFileSaysWhatIsWrongWithTheFile) {
  const std::string file = directory_ + "/pod.yaml";
  std::ofstream(file) << "kind: Pod\nmetadata: }\n";
  const Printed torn = Run({"delete", "-f", file});
  EXPECT_EQ(torn.code, kExitInvalid);
  EXPECT_EQ(torn.err, "volumectl: " + file + ": line 2 is not valid YAML\n");
  for (const char* nameless :
       {"kind: Pod\n", "kind: Pod\nmetadata: web\n", "metadata: {name: a}\n"}) {
    std::ofstream(file) << nameless;
    const Printed refused = Run({"delete", "-f", file});
    EXPECT_EQ(refused.code, kExitInvalid) << nameless;
    EXPECT_EQ(refused.err, "volumectl: " + file + ": an object has no kind or no metadata.name\n");
  }
  EXPECT_FALSE(agent_.deleted.has_object());
}

TEST_F(CommandsTest, ARetryOfAllNamesThePodsThatAreTriedAgain) {
  agent_.pods.add_pods()->set_name("web");
  EXPECT_EQ(Run({"retry", "--all"}).out, "every pod is ready\n");
  v1::ObjectRef* pod = agent_.retried.add_pods();
  pod->set_namespace_("shop");
  pod->set_name("web");
  EXPECT_EQ(Run({"retry", "--all", "-n", "shop"}).out, "pod shop/web is tried again\n");
  EXPECT_EQ(agent_.retried_in, "shop");
  EXPECT_EQ(Run({"retry"}).code, kExitUsage) << "neither a pod nor all";
  EXPECT_EQ(Run({"retry", "web", "--all"}).code, kExitUsage) << "one pod and all";
}

TEST_F(CommandsTest, APodWhoseOperationsRunWasSaidToBeTriedAgain) {
  EXPECT_EQ(Run({"retry", "two"}).out, "pod two is tried again\n");
  v1::RetriedVolume* volume = agent_.retried_pod.add_volumes();
  volume->set_name("data");
  volume->set_what("running already");
  EXPECT_EQ(Run({"retry", "two"}).out,
            "pod two: what runs goes on\n  volume data: running already\n");
  v1::RetriedVolume* other = agent_.retried_pod.add_volumes();
  other->set_name("logs");
  other->set_what("tried now");
  EXPECT_EQ(Run({"retry", "two"}).out,
            "pod two is tried again\n  volume data: running already\n  volume logs: tried now\n");
}

// A slip in the namespace was told as one whose pods are all ready.
TEST_F(CommandsTest, ARetryOfAllSaysThatThereIsNoPod) {
  EXPECT_EQ(Run({"retry", "--all", "-n", "nope"}).out, "there is no pod in namespace nope\n");
  EXPECT_EQ(Run({"retry", "--all"}).out, "there is no pod\n");
}

TEST_F(CommandsTest, WordsThatAreMissingOrTooManyAreAnErrorOfUse) {
  EXPECT_EQ(Run({"delete"}).code, kExitUsage);
  EXPECT_EQ(Run({"hold", "web"}).code, kExitUsage) << "neither a process nor a cgroup";
  EXPECT_NE(Run({"hold", "web", "--release"}).err.find("whose hold ends"), std::string::npos);
  EXPECT_NE(Run({"hold", "--help"}).out.find("one of --pid and --cgroup is needed"),
            std::string::npos);
  EXPECT_EQ(Run({"source"}).code, kExitUsage) << "accept or forget has to follow";
  EXPECT_EQ(Run({"accept", "pod", "web"}).code, kExitUsage) << "only a volume is accepted";
  EXPECT_EQ(Run({"explain", "pvc/data"}).code, kExitUsage) << "a pod cannot be of a kind";
}

}  // namespace
}  // namespace volumed
