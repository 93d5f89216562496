// A deletion that was answered holds, whatever happens to the agent right after the answer.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>

#include "integration/agent/agent_fixture.h"

namespace volumed::delete_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kRounds = 12;
constexpr int kNotFound = 3;
constexpr int kInvalid = 7;

std::string PodOfADirectory(const std::string& name) {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", uid: uid-" + name +
         "}\nspec:\n  volumes: [{name: data, emptyDir: {}}]\n"
         "  containers: [{name: c, image: x, volumeMounts: [{name: data, mountPath: /d}]}]\n";
}

class DeleteTest : public AgentTest {
 protected:
  // Pods p0, p1, ... and a ConfigMap, as one file for `apply -f` and `delete -f`.
  std::string FileOfPods(int pods) {
    std::string text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata: {a: b}\n";
    for (int i = 0; i < pods; ++i) text += "---\n" + PodOfADirectory("p" + std::to_string(i));
    const std::string file = scratch() + "/objects.yaml";
    WriteText(file, text);
    return file;
  }
  void ApplyPods(const std::string& file, int pods) {
    const CommandResult applied = Ctl({"apply", "-f", file});
    ASSERT_EQ(applied.exit_status, 0) << applied.output;
    for (int i = 0; i < pods; ++i) ASSERT_TRUE(WaitPhase("p" + std::to_string(i), "Ready"));
  }
};

TEST_F(DeleteTest, APodOfAManifestDirectoryStaysAwayAfterAKillRightAfterTheAnswer) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  for (int round = 0; round < kRounds; ++round) {
    const std::string name = "p" + std::to_string(round);
    WriteText(manifests() + "/" + name + ".yaml", PodOfADirectory(name));
    ASSERT_TRUE(WaitPhase(name, "Ready")) << Ctl({"explain", name}).output;
    const grpc::Status deleted = Delete("Pod", name);
    KillAgent();
    ASSERT_TRUE(deleted.ok()) << deleted.error_message();
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ASSERT_TRUE(WaitPhase(name, "Refused")) << name << ": " << Ctl({"explain", name}).output;
    EXPECT_FALSE(Exists(root() + "/pods/uid-" + name));
  }
  // With its manifest the command goes too.
  for (int round = 0; round < kRounds; ++round) {
    ASSERT_EQ(::unlink((manifests() + "/p" + std::to_string(round) + ".yaml").c_str()), 0);
  }
  ASSERT_TRUE(Eventually(kPatience, [&] { return LeftOvers().empty(); })) << LeftOvers();
}

TEST_F(DeleteTest, WhatAFileNamesGoesInOneCallAndStaysAwayAfterAKillRightAfterTheAnswer) {
  constexpr int kPods = 40;  // more than one task takes
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const std::string file = FileOfPods(kPods);
  ASSERT_NO_FATAL_FAILURE(ApplyPods(file, kPods));
  const CommandResult deleted = Ctl({"delete", "-f", file});
  KillAgent();
  EXPECT_EQ(deleted.exit_status, 0) << deleted.output;
  EXPECT_THAT(deleted.output, HasSubstr("Pod p0 deleted\n"));
  EXPECT_THAT(deleted.output, HasSubstr("Pod p39 deleted\n"));
  EXPECT_THAT(deleted.output, HasSubstr("ConfigMap app deleted\n"));
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(Eventually(kPatience, [&] { return LeftOvers().empty(); })) << LeftOvers();
  for (int i = 0; i < kPods; ++i) EXPECT_TRUE(WaitGone("p" + std::to_string(i)));
  EXPECT_EQ(Ctl({"get", "configmap", "app"}).exit_status, kNotFound);
}

TEST_F(DeleteTest, OneObjectThatIsNotThereKeepsNoOtherOfItsFile) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const std::string file = FileOfPods(3);
  ASSERT_NO_FATAL_FAILURE(ApplyPods(file, 3));
  ASSERT_EQ(Ctl({"delete", "pod", "p1"}).exit_status, 0);
  ASSERT_TRUE(WaitGone("p1"));
  const CommandResult deleted = Ctl({"delete", "-f", file});
  EXPECT_EQ(deleted.exit_status, kNotFound) << deleted.output;
  EXPECT_THAT(deleted.output, HasSubstr("Pod p0 deleted\n"));
  EXPECT_THAT(deleted.output, Not(HasSubstr("Pod p1 deleted\n")));
  EXPECT_THAT(deleted.output, HasSubstr("Pod p2 deleted\n"));
  EXPECT_TRUE(WaitGone("p0"));
  EXPECT_TRUE(WaitGone("p2"));
  const CommandResult again = Ctl({"delete", "-f", file, "--ignore-not-found"});
  EXPECT_EQ(again.exit_status, 0) << again.output;
}

// A file is read whole before anything goes: half of a list would be gone otherwise.
TEST_F(DeleteTest, AFileWithAnObjectWithoutANameDeletesNothing) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const std::string file = FileOfPods(2);
  ASSERT_NO_FATAL_FAILURE(ApplyPods(file, 2));
  WriteText(file, PodOfADirectory("p0") + "---\nkind: Pod\nmetadata: {}\n");
  const CommandResult deleted = Ctl({"delete", "-f", file});
  EXPECT_EQ(deleted.exit_status, kInvalid) << deleted.output;
  EXPECT_THAT(deleted.output, HasSubstr("no metadata.name"));
  EXPECT_EQ(FindPod("p0")->phase(), "Ready");
}

}  // namespace
}  // namespace volumed::delete_test
