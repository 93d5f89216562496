// What the verbs print of an agent's answers, and what they ask it.
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
  EXPECT_EQ(unknown.err,
            "note: no pod web is known: it left before this call, or there never was one\n");
  agent_.waits.resize(2);
  agent_.waits[0].set_met(false);
  agent_.waits[0].mutable_pod()->set_name("web");
  agent_.waits[1].set_met(true);
  const Printed seen = WaitForEnd();
  EXPECT_EQ(seen.out, "pod web gone\n");
  EXPECT_EQ(seen.err, "");
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

TEST_F(CommandsTest, ARetryOfAllNamesThePodsThatAreTriedAgain) {
  EXPECT_EQ(Run({"retry", "--all"}).out, "every pod is ready\n");
  v1::ObjectRef* pod = agent_.retried.add_pods();
  pod->set_namespace_("shop");
  pod->set_name("web");
  EXPECT_EQ(Run({"retry", "--all", "-n", "shop"}).out, "pod shop/web is tried again\n");
  EXPECT_EQ(agent_.retried_in, "shop");
  EXPECT_EQ(Run({"retry"}).code, kExitUsage) << "neither a pod nor all";
  EXPECT_EQ(Run({"retry", "web", "--all"}).code, kExitUsage) << "one pod and all";
}

TEST_F(CommandsTest, WordsThatAreMissingOrTooManyAreAnErrorOfUse) {
  EXPECT_EQ(Run({"delete"}).code, kExitUsage);
  EXPECT_EQ(Run({"hold", "web"}).code, kExitUsage) << "neither a process nor a cgroup";
  EXPECT_EQ(Run({"source"}).code, kExitUsage) << "accept or forget has to follow";
  EXPECT_EQ(Run({"accept", "pod", "web"}).code, kExitUsage) << "only a volume is accepted";
  EXPECT_EQ(Run({"explain", "pvc/data"}).code, kExitUsage) << "a pod cannot be of a kind";
}

}  // namespace
}  // namespace volumed
