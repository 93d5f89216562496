// What a person is told of an object that a command has deleted and that its manifest still has, of
// one that has left its file, and of words that are off.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "integration/agent/agent_fixture.h"
#include "places.h"

namespace volumed::way_back_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kClaim =
    "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n"
    "spec:\n  accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: 1Gi}}\n";

class WayBackTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    settings["removal-settle"] = "1s";
    settings["node-name"] = "n1";
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  }
  std::string File(const std::string& name) const { return manifests() + "/" + name; }
  static std::string PodOf(const std::string& name, const std::string& volume) {
    return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", uid: uid-" + name +
           "}\nspec:\n  containers: [{name: c, image: x, volumeMounts: [{name: v, mountPath: "
           "/v}]}]\n"
           "  volumes: [{name: v, " +
           volume + "}]\n";
  }
  // A PersistentVolume "scratch" for the claim; its directory.
  std::string ApplyRecycledVolume() {
    const std::string data = scratch() + "/data";
    EXPECT_EQ(::mkdir(data.c_str(), 0755), 0);
    ApplyOk(
        "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: scratch}\n"
        "spec:\n  capacity: {storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n"
        "  persistentVolumeReclaimPolicy: Recycle\n  hostPath: {path: " +
        data + "}\n");
    return data;
  }
  bool Says(const std::vector<std::string>& words, const std::string& text) {
    return Eventually(kPatience, [&] { return Ctl(words).output.find(text) != std::string::npos; });
  }
};

TEST_F(WayBackTest, ADeletedClaimThatItsFileStillHasSaysHowItComesBackAndDoes) {
  WriteText(File("pvc.yaml"), kClaim);
  ASSERT_TRUE(Says({"get", "pvc", "data"}, "Pending"));
  const std::string uid = Ctl({"describe", "pvc", "data"}).output;
  const std::string way_back =
      "take it out of " + File("pvc.yaml") +
      ", wait for removal-settle and put it back, or give it by `volumectl "
      "apply`";
  const CommandResult deleted = Ctl({"delete", "pvc", "data"});
  EXPECT_EQ(deleted.exit_status, 0);
  EXPECT_THAT(deleted.output, HasSubstr(way_back));
  EXPECT_THAT(Ctl({"get", "pvc"}).output, HasSubstr(way_back));
  EXPECT_THAT(Ctl({"describe", "pvc", "data"}).output, HasSubstr(way_back));
  ApplyOk(PodOf("p", "persistentVolumeClaim: {claimName: data}"));
  EXPECT_TRUE(Says({"explain", "p"}, way_back)) << Ctl({"explain", "p"}).output;
  // As it is told.
  ASSERT_EQ(::unlink(File("pvc.yaml").c_str()), 0);
  ASSERT_TRUE(Eventually(kPatience, [&] { return Ctl({"get", "pvc", "data"}).exit_status == 3; }));
  WriteText(File("pvc.yaml"), kClaim);
  EXPECT_TRUE(Says({"get", "pvc", "data"}, "Pending")) << Ctl({"get", "pvc"}).output;
}

TEST_F(WayBackTest, ApplyIsAWayBackToo) {
  WriteText(File("pvc.yaml"), kClaim);
  ASSERT_TRUE(Says({"get", "pvc", "data"}, "Pending"));
  ASSERT_EQ(Ctl({"delete", "pvc", "data"}).exit_status, 0);
  ASSERT_TRUE(Says({"get", "pvc", "data"}, "Refused"));
  ApplyOk(kClaim);
  EXPECT_TRUE(Says({"get", "pvc", "data"}, "Pending")) << Ctl({"get", "pvc"}).output;
}

// `wait --for gone` timed out.
TEST_F(WayBackTest, ADeletedPodThatItsManifestStillHasIsGoneOnceItsVolumesAre) {
  WriteText(File("p.yaml"), PodOf("p", "emptyDir: {}"));
  ASSERT_TRUE(WaitPhase("p", "Ready"));
  const CommandResult deleted = Ctl({"delete", "pod", "p"});
  EXPECT_EQ(deleted.exit_status, 0);
  EXPECT_THAT(deleted.output, HasSubstr(File("p.yaml") + " still has it"));
  const CommandResult gone = Ctl({"wait", "p", "--for", "gone", "--timeout", "20"});
  EXPECT_EQ(gone.exit_status, 0) << gone.output;
  EXPECT_THAT(gone.output, HasSubstr("pod p gone\n"));
  EXPECT_THAT(gone.output, HasSubstr(File("p.yaml") + " still has it"));
  EXPECT_FALSE(Exists(root() + "/pods/uid-p"));
  ASSERT_TRUE(WaitPhase("p", "Refused"));
}

// The answer said that the file still had it, and `source accept` that its data would go.
TEST_F(WayBackTest, OfADeletedPodWhoseFileHasJustLostItNothingMoreGoes) {
  ASSERT_EQ(StopAgent(), 0);
  settings["removal-settle"] = "60s";
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  WriteText(File("p.yaml"), PodOf("p", "emptyDir: {}"));
  ASSERT_TRUE(WaitPhase("p", "Ready"));
  ASSERT_EQ(::unlink(File("p.yaml").c_str()), 0);
  ASSERT_TRUE(Eventually(kPatience, [&] { return Says({"sources"}, "going"); }));
  ASSERT_EQ(Ctl({"delete", "pod", "p"}).exit_status, 0);
  const CommandResult gone = Ctl({"wait", "p", "--for", "gone", "--timeout", "20"});
  EXPECT_EQ(gone.exit_status, 0) << gone.output;
  EXPECT_THAT(gone.output, HasSubstr(File("p.yaml") + " lacks it"));
  const CommandResult accepted = Ctl({"source", "accept", "manifests:" + manifests()});
  EXPECT_EQ(accepted.exit_status, 0) << accepted.output;
}

// A script took the claim for one that was gone.
TEST_F(WayBackTest, AClaimIsNoPodThatIsGone) {
  ApplyOk(kClaim);
  for (const char* word : {"wait", "explain", "retry"}) {
    std::vector<std::string> words = {word, "pvc/data"};
    if (words.front() == "wait") words.insert(words.end(), {"--for", "gone"});
    const CommandResult refused = Ctl(words);
    EXPECT_NE(refused.exit_status, 0) << refused.output;
    EXPECT_THAT(refused.output, HasSubstr("'pvc/data' names a kind"));
  }
}

// Only of a volume that is retained the answer told what becomes of the data.
TEST_F(WayBackTest, ADeletedClaimSaysThatItsDataGoesWithIt) {
  const std::string data = ApplyRecycledVolume();
  ApplyOk(kClaim);
  ASSERT_TRUE(Says({"get", "pvc", "data"}, "Bound"));
  ApplyOk(PodOf("p", "persistentVolumeClaim: {claimName: data}"));
  ASSERT_TRUE(WaitPhase("p", "Ready"));
  const CommandResult deleted = Ctl({"delete", "pvc", "data"});
  EXPECT_EQ(deleted.exit_status, 0);
  EXPECT_THAT(deleted.output, HasSubstr("its data in " + data + " is deleted with it"));
  EXPECT_THAT(deleted.output, HasSubstr("Recycle"));
  EXPECT_TRUE(Says({"explain", "p"}, "has been deleted by command"))
      << Ctl({"explain", "p"}).output;
  ASSERT_EQ(Ctl({"delete", "pod", "p"}).exit_status, 0);
}

// A typing error and `source accept` deleted the data of a claim without a question.
TEST_F(WayBackTest, AcceptAsksBeforeItEndsAClaimWithItsData) {
  ASSERT_EQ(StopAgent(), 0);
  settings["removal-deletes-claims"] = manifests();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const std::string data = ApplyRecycledVolume();
  WriteText(data + "/kept", "kept");
  WriteText(File("pvc.yaml"), kClaim);
  ASSERT_TRUE(Says({"get", "pvc", "data"}, "Bound"));
  WriteText(File("pvc.yaml"), "kind: [");
  ASSERT_TRUE(Says({"sources"}, "INCOMPLETE"));
  const std::string source = "manifests:" + manifests();
  const CommandResult refused = Ctl({"source", "accept", source});
  EXPECT_EQ(refused.exit_status, 1) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("scratch in " + data + " (Recycle)"));
  EXPECT_THAT(refused.output, HasSubstr("--yes"));
  EXPECT_TRUE(Says({"get", "pvc", "data"}, "Bound"));
  EXPECT_EQ(ReadText(data + "/kept"), "kept");
  EXPECT_EQ(Ctl({"source", "accept", source, "--yes"}).exit_status, 0);
  EXPECT_TRUE(Eventually(kPatience, [&] { return !Exists(data + "/kept"); }));
}

// Whoever accepted the other directory had it emptied within seconds.
TEST_F(WayBackTest, NoDirectoryIsAcceptedWhoseContentWouldBeDeletedThen) {
  const std::string data = ApplyRecycledVolume();
  ApplyOk(kClaim);
  ApplyOk(PodOf("p", "persistentVolumeClaim: {claimName: data}"));
  ASSERT_TRUE(WaitPhase("p", "Ready"));
  EXPECT_EQ(Ctl({"accept", "pv", "scratch"}).exit_status, 0) << "its claim has it";
  ASSERT_EQ(Ctl({"delete", "pod", "p"}).exit_status, 0);
  ASSERT_TRUE(WaitGone("p"));
  ASSERT_EQ(::rename(data.c_str(), (data + ".away").c_str()), 0);
  ASSERT_EQ(::mkdir(data.c_str(), 0755), 0);
  WriteText(data + "/new", "new");
  ASSERT_EQ(Ctl({"delete", "pvc", "data"}).exit_status, 0);
  ASSERT_TRUE(Says({"get", "pv", "scratch"}, "another directory")) << Ctl({"get", "pv"}).output;
  const CommandResult refused = Ctl({"accept", "pv", "scratch"});
  EXPECT_NE(refused.exit_status, 0) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("Recycle would delete what is in the directory"));
  ::usleep(1'500'000);  // longer than its next try takes
  EXPECT_EQ(ReadText(data + "/new"), "new");
}

// A slip in the name was taken for the end of the pod.
TEST_F(WayBackTest, AWaitForTheEndOfAPodThatNeverWasSaysSo) {
  const CommandResult waited = Ctl({"wait", "nobody", "--for", "gone"});
  EXPECT_EQ(waited.exit_status, 0) << waited.output;
  EXPECT_THAT(waited.output, HasSubstr("note: no pod nobody is known"));
}

// The log said that it had been accepted.
TEST_F(WayBackTest, AnAcceptOfTheDirectoryThatIsOnRecordIsNoneInTheLog) {
  ApplyRecycledVolume();
  ApplyOk(kClaim);
  ApplyOk(PodOf("p", "persistentVolumeClaim: {claimName: data}"));
  ASSERT_TRUE(WaitPhase("p", "Ready"));
  const CommandResult accepted = Ctl({"accept", "pv", "scratch"});
  EXPECT_THAT(accepted.output, HasSubstr("there is nothing to accept"));
  EXPECT_THAT(ReadText(log_path()), Not(HasSubstr("was accepted by command")));
  EXPECT_THAT(ReadText(log_path()), HasSubstr("was the one on record already"));
}

TEST_F(WayBackTest, AnAppliedPodIsDeletedWithoutAWarning) {
  ApplyOk(PodOf("p", "emptyDir: {}"));
  ASSERT_TRUE(WaitPhase("p", "Ready"));
  EXPECT_EQ(Ctl({"delete", "pod", "p"}).output, "pod p deleted\n");
  EXPECT_THAT(Ctl({"wait", "p", "--for", "gone"}).output, HasSubstr("pod p gone\n"));
}

// It was said to go, and stayed.
TEST_F(WayBackTest, AClaimThatHasLeftItsFileIsMissingInSourcesInGetAndInDescribe) {
  WriteText(File("pvc.yaml"), kClaim);
  ASSERT_TRUE(Says({"get", "pvc", "data"}, "Pending"));
  ASSERT_EQ(::unlink(File("pvc.yaml").c_str()), 0);
  ASSERT_TRUE(Says({"sources"}, "PersistentVolumeClaim default/data: will be Missing in 1s"));
  ASSERT_TRUE(Says({"sources"},
                   "PersistentVolumeClaim default/data: Missing: it has left " + File("pvc.yaml")));
  EXPECT_THAT(Ctl({"get", "pvc", "data"}).output, HasSubstr("Pending (MISSING)"));
  EXPECT_THAT(Ctl({"describe", "pvc", "data"}).output, HasSubstr("Pending (MISSING)"));
  WriteText(File("pvc.yaml"), kClaim);
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return Ctl({"sources"}).output.find("Missing") == std::string::npos;
  })) << Ctl({"sources"}).output;
}

TEST_F(WayBackTest, WhatSourceAcceptLeavesMissingIsNotAmongWhatGoes) {
  WriteText(File("all.yaml"), std::string(kClaim) + "---\n" + PodOf("p", "emptyDir: {}"));
  ASSERT_TRUE(WaitPhase("p", "Ready"));
  ASSERT_EQ(StopAgent(), 0);
  ASSERT_EQ(::unlink(File("all.yaml").c_str()), 0);
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const std::string source = "manifests:" + manifests();
  const std::string shown = Ctl({"source", "accept", source, "--dry-run"}).output;
  const size_t missing = shown.find("BECOMES MISSING");
  ASSERT_NE(missing, std::string::npos) << shown;
  EXPECT_LT(shown.find("Pod default/p"), missing) << shown;
  EXPECT_GT(shown.find("PersistentVolumeClaim default/data"), missing) << shown;
  ASSERT_EQ(Ctl({"source", "accept", source, "--yes"}).exit_status, 0);
  EXPECT_TRUE(Says({"sources"}, "PersistentVolumeClaim default/data: Missing"));
}

// It was shown as going with its data until the other directory had it.
TEST_F(WayBackTest, AFileThatMovesToAnotherDirectoryIsNoLoss) {
  ASSERT_EQ(StopAgent(), 0);
  const std::string second = scratch() + "/second";
  ASSERT_EQ(::mkdir(second.c_str(), 0755), 0);
  settings["manifest-dir"] = "[" + manifests() + ", " + second + "]";
  settings["removal-settle"] = "6s";
  WriteText(File("p.yaml"), PodOf("p", "emptyDir: {}"));
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(WaitPhase("p", "Ready"));
  ASSERT_EQ(std::rename(File("p.yaml").c_str(), (second + "/p.yaml").c_str()), 0);
  ASSERT_TRUE(Says({"sources"}, "Pod default/p: moved: " + second + "/p.yaml has it now"))
      << Ctl({"sources"}).output;
  EXPECT_THAT(Ctl({"sources"}).output, Not(HasSubstr("goes")));
  EXPECT_THAT(Ctl({"explain", "p"}).output, Not(HasSubstr("it goes in")));
  const CommandResult accepted = Ctl({"source", "accept", "manifests:" + manifests(), "--dry-run"});
  EXPECT_THAT(accepted.output, HasSubstr("nothing goes"));
  ASSERT_TRUE(Eventually(std::chrono::seconds(20), [&] {
    return Ctl({"sources"}).output.find("moved") == std::string::npos;
  }));
  EXPECT_EQ(FindPod("p")->phase(), "Ready");
}

// The copy never was the pod; it was told as the loss of the pod, with its data.
TEST_F(WayBackTest, ACopyThatGoesFromAnotherDirectoryIsNoLoss) {
  ASSERT_EQ(StopAgent(), 0);
  const std::string second = scratch() + "/second";
  ASSERT_EQ(::mkdir(second.c_str(), 0755), 0);
  settings["manifest-dir"] = "[" + manifests() + ", " + second + "]";
  settings["removal-settle"] = "4s";
  WriteText(second + "/p.yaml", PodOf("p", "emptyDir: {}"));
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(WaitPhase("p", "Ready"));
  WriteText(File("copy.yaml"), PodOf("p", "emptyDir: {}"));
  ASSERT_TRUE(Says({"sources"}, "was there first"));
  ASSERT_EQ(::unlink(File("copy.yaml").c_str()), 0);
  ASSERT_TRUE(Says({"sources"}, "Pod default/p: moved: " + second + "/p.yaml has it"))
      << Ctl({"sources"}).output;
  EXPECT_THAT(Ctl({"sources"}).output, Not(HasSubstr("goes")));
  EXPECT_THAT(Ctl({"explain", "p"}).output, Not(HasSubstr("it goes in")));
}

// A person who has mistyped the name was told that nothing goes.
TEST_F(WayBackTest, ASourceThatIsUnknownIsNoSourceInADryRunEither) {
  for (const char* verb : {"accept", "forget"}) {
    const CommandResult wrong = Ctl({"source", verb, "manifests:/nowhere", "--dry-run"});
    EXPECT_EQ(wrong.exit_status, 3) << wrong.output;
    EXPECT_THAT(wrong.output, HasSubstr("no source manifests:/nowhere"));
    EXPECT_THAT(wrong.output, HasSubstr("manifests:" + manifests())) << "what there is";
  }
  const CommandResult configured =
      Ctl({"source", "forget", "manifests:" + manifests(), "--dry-run"});
  EXPECT_NE(configured.exit_status, 0);
  EXPECT_THAT(configured.output, HasSubstr("source accept"));
}

// Once its claim was bound, a volume was known by its PersistentVolume's name alone.
TEST_F(WayBackTest, AVolumeIsKnownByItsNameInThePodToo) {
  ApplyRecycledVolume();
  ApplyOk(kClaim);
  ApplyOk(PodOf("p", "persistentVolumeClaim: {claimName: data}"));
  ASSERT_TRUE(WaitPhase("p", "Ready"));
  for (const std::string name : {"v", "scratch"}) {
    const CommandResult described = Ctl({"describe", "volume", "p/" + name});
    EXPECT_EQ(described.exit_status, 0) << described.output;
    EXPECT_THAT(described.output, HasSubstr("scratch"));
    EXPECT_THAT(described.output, HasSubstr("/v")) << "where its container has it";
    EXPECT_EQ(Ctl({"retry", "p", name}).exit_status, 0) << Ctl({"retry", "p", name}).output;
  }
  EXPECT_EQ(Ctl({"describe", "volume", "p/none"}).exit_status, 3);
}

// "complete" beside INCOMPLETE, and the data that goes was left out.
TEST_F(WayBackTest, ExplainSaysOfThePodsOwnSourceWhatSourcesSays) {
  WriteText(File("p.yaml"), PodOf("p", "emptyDir: {}"));
  WriteText(File("q.yaml"), PodOf("q", "emptyDir: {}"));
  ASSERT_TRUE(WaitPhase("p", "Ready"));
  ASSERT_TRUE(WaitPhase("q", "Ready"));
  WriteText(File("q.yaml"), "kind: [");
  ASSERT_TRUE(
      Says({"explain", "p"}, "source manifests:" + manifests() + ": INCOMPLETE: " + File("q.yaml")))
      << Ctl({"explain", "p"}).output;
  EXPECT_THAT(Ctl({"explain", "p"}).output, Not(HasSubstr("complete;")));
  WriteText(File("q.yaml"), PodOf("q", "emptyDir: {}"));
  ASSERT_TRUE(Eventually(kPatience, [&] {
    return Ctl({"explain", "p"}).output.find("INCOMPLETE") == std::string::npos;
  }));
  ASSERT_EQ(::unlink(File("p.yaml").c_str()), 0);
  EXPECT_TRUE(Says({"explain", "p"}, "the data on disk of its volumes goes with it: v"));
}

TEST_F(WayBackTest, AFileThatIsNotReadForItsNameIsNamed) {
  WriteText(File("p.yaml"), PodOf("p", "emptyDir: {}"));
  ASSERT_TRUE(WaitPhase("p", "Ready"));
  EXPECT_THAT(Ctl({"sources"}).output, Not(HasSubstr("not read")));
  ASSERT_EQ(std::rename(File("p.yaml").c_str(), File("renamed.txt").c_str()), 0);
  EXPECT_TRUE(Says({"sources"}, "1 file is not read")) << Ctl({"sources"}).output;
  EXPECT_THAT(Ctl({"sources"}).output, HasSubstr(": renamed.txt"));
}

TEST_F(WayBackTest, AnApplyThatWouldChangeAPodsVolumesExitsAsARefusedManifest) {
  ApplyOk(PodOf("p", "emptyDir: {}"));
  const std::string file = scratch() + "/p.yaml";
  WriteText(file, PodOf("p", "hostPath: {path: /tmp}"));
  EXPECT_EQ(Ctl({"apply", "-f", file}).exit_status, 7);
}

TEST_F(WayBackTest, APodThatWaitsForItsPredecessorMakesNoSourceUnhealthy) {
  ApplyOk(PodOf("p", "emptyDir: {}"));
  ASSERT_TRUE(WaitPhase("p", "Ready"));
  Sleeper consumer;
  ASSERT_TRUE(Hold("p", consumer.pid()).ok());
  const std::string file = scratch() + "/p.yaml";
  WriteText(file, Replaced(PodOf("p", "hostPath: {path: /tmp}"), "uid: uid-p", "uid: uid-q"));
  const CommandResult applied = Ctl({"apply", "--replace", "-f", file});
  ASSERT_EQ(applied.exit_status, 0) << applied.output;
  ASSERT_TRUE(WaitPhase("p", "Terminating"));
  bool waits = false;
  const v1::GetSourcesResponse sources = Sources();
  for (const v1::Source& source : sources.sources()) {
    EXPECT_TRUE(source.healthy()) << source.ShortDebugString();
    waits = waits || source.problems_size() > 0;
  }
  EXPECT_TRUE(waits) << "or nothing was tried here";
}

TEST_F(WayBackTest, SeveralNamesAreDeletedByOneCall) {
  ApplyOk(PodOf("a", "emptyDir: {}") + "---\n" + PodOf("b", "emptyDir: {}"));
  const CommandResult deleted = Ctl({"delete", "pod", "a", "nobody", "b"});
  EXPECT_EQ(deleted.exit_status, 3) << deleted.output;
  EXPECT_THAT(deleted.output, HasSubstr("pod a deleted\n"));
  EXPECT_THAT(deleted.output, HasSubstr("pod b deleted\n"));
  EXPECT_TRUE(WaitGone("a") && WaitGone("b"));
}

TEST_F(WayBackTest, APodIsNoYoungerAfterAStartOfTheAgent) {
  ApplyOk(PodOf("p", "emptyDir: {}"));
  ASSERT_TRUE(WaitPhase("p", "Ready"));
  const int64_t created = FindPod("p")->created_unix_ms();
  ASSERT_NE(created, 0);
  ASSERT_EQ(StopAgent(), 0);
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(WaitPhase("p", "Ready"));
  EXPECT_EQ(FindPod("p")->created_unix_ms(), created);
}

TEST_F(WayBackTest, CheckConfigTakesItsFileAsAWord) {
  const std::string file = scratch() + "/other.yaml";
  WriteText(file, "root: " + scratch() + "/elsewhere\nworker: " + VolumedWorkerPath() + "\n");
  const CommandResult checked = RunCommand({VolumedPath(), "check-config", file});
  EXPECT_THAT(checked.output, HasSubstr("root: " + scratch() + "/elsewhere"));
  EXPECT_NE(RunCommand({VolumedPath(), "check-config", scratch() + "/no.yaml"}).exit_status, 0);
}

}  // namespace
}  // namespace volumed::way_back_test
