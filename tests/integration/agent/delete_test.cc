// A deletion that was answered holds, whatever happens to the agent right after the answer.
#include <unistd.h>

#include <algorithm>

#include "integration/agent/agent_fixture.h"

namespace volumed {
namespace {

constexpr int kRounds = 12;

std::string PodOfADirectory(const std::string& name) {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", uid: uid-" + name +
         "}\nspec:\n  volumes: [{name: data, emptyDir: {}}]\n"
         "  containers: [{name: c, image: x, volumeMounts: [{name: data, mountPath: /d}]}]\n";
}

class DeleteTest : public AgentTest {};

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

}  // namespace
}  // namespace volumed
