// `volumectl apply --replace` on the real daemon, which is ended with kill -9 between the command
// and its end.
#include <filesystem>
#include <string>
#include <thread>

#include "integration/agent/agent_fixture.h"
#include "integration/agent/provisioned_claim.h"

namespace volumed::replace_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "web-it-node";

class ReplaceTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    settings["host-path-root"] = "[" + scratch() + "/volumes]";
    settings["enable-hostpath-provisioner"] = "true";
  }

  // A pod with the claim's volume, and an emptyDir of this name.
  static std::string PodText(const std::string& scratch) {
    return "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n"
           "  - {name: c, image: x, volumeMounts: [{name: data, mountPath: /p}, {name: " +
           scratch +
           ", mountPath: /s}]}\n  volumes:\n"
           "  - {name: data, persistentVolumeClaim: {claimName: data}}\n  - {name: " +
           scratch + ", emptyDir: {}}\n";
  }
  CommandResult ApplyPod(const std::string& volume, bool replace) {
    const std::string file = scratch() + "/pod.yaml";
    WriteText(file, PodText(volume));
    std::vector<std::string> words = {"apply", "-f", file};
    if (replace) words.emplace_back("--replace");
    return Ctl(words);
  }
  // A pod with the emptyDir "first" is ready, and has data.
  void StartWithData() {
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ApplyOk(ProvisionedClaim());
    ASSERT_EQ(ApplyPod("first", false).exit_status, 0);
    ASSERT_TRUE(WaitPhase(kName, "Ready")) << Ctl({"explain", "web"}).output;
    first_ = FindPod(kName)->uid();
    own_ = VolumePath(first_, "empty-dir", "first") + "/own";
    WriteText(own_, "of the pod");
    kept_ = fs::directory_iterator(scratch() + "/volumes")->path().string() + "/kept";
    WriteText(kept_, "of the claim");
  }
  void KillAndStart() {
    KillAgent();
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  }

  std::string first_, own_, kept_;
};

TEST_F(ReplaceTest, KilledBetweenTheCommandAndItsEndItReplacesThePodOnceItsConsumersAreGone) {
  ASSERT_NO_FATAL_FAILURE(StartWithData());
  Sleeper consumer;
  ASSERT_TRUE(Hold(kName, consumer.pid()).ok());
  const CommandResult refused = ApplyPod("second", false);
  EXPECT_NE(refused.exit_status, 0);
  EXPECT_NE(refused.output.find("spec.volumes: Forbidden: spec.volumes is immutable under the same "
                                "uid; `volumectl apply --replace` replaces the pod"),
            std::string::npos)
      << refused.output;
  EXPECT_NE(refused.output.find("the data of these volumes goes with it: first"),
            std::string::npos);

  const CommandResult replaced = ApplyPod("second", true);
  ASSERT_EQ(replaced.exit_status, 0) << replaced.output;
  EXPECT_NE(replaced.output.find("Pod default/web-it-node replaced"), std::string::npos);
  EXPECT_NE(replaced.output.find("goes with the pod " + first_), std::string::npos)
      << replaced.output;
  for (int kills = 0; kills < 3; ++kills) {
    ASSERT_NO_FATAL_FAILURE(KillAndStart());
    ASSERT_TRUE(WaitPhase(kName, "Terminating")) << Ctl({"explain", "web"}).output;
    EXPECT_EQ(FindPod(kName)->uid(), first_);
    EXPECT_EQ(ReadText(own_), "of the pod");
    EXPECT_EQ(ReadText(kept_), "of the claim");
  }
  const CommandResult explained = Ctl({"explain", "web"});
  EXPECT_NE(explained.output.find("it replaces the pod with the volumes of before by command"),
            std::string::npos)
      << explained.output;

  consumer.End();
  for (int kills = 1; kills <= 6; ++kills) {
    std::this_thread::sleep_for(Milliseconds(kills * 15));
    ASSERT_NO_FATAL_FAILURE(KillAndStart());
  }
  ASSERT_TRUE(WaitPhase(kName, "Ready")) << Ctl({"explain", "web"}).output;
  const std::string second = FindPod(kName)->uid();
  EXPECT_NE(second, first_);
  EXPECT_FALSE(Exists(root() + "/pods/" + first_));
  EXPECT_TRUE(Exists(VolumePath(second, "empty-dir", "second")));
  EXPECT_EQ(ReadText(kept_), "of the claim");
  EXPECT_EQ(ApplyPod("second", true).output, "Pod default/web-it-node unchanged\n");
}

TEST_F(ReplaceTest, ToDeleteThePodWhileItsSuccessorWaitsEndsBoth) {
  ASSERT_NO_FATAL_FAILURE(StartWithData());
  Sleeper consumer;
  ASSERT_TRUE(Hold(kName, consumer.pid()).ok());
  ASSERT_EQ(ApplyPod("second", true).exit_status, 0);
  ASSERT_TRUE(WaitPhase(kName, "Terminating"));
  ASSERT_EQ(Ctl({"delete", "pod", "web"}).exit_status, 0);
  ASSERT_NO_FATAL_FAILURE(KillAndStart());
  ASSERT_TRUE(WaitPhase(kName, "Terminating"));
  consumer.End();
  EXPECT_TRUE(WaitGone(kName)) << Ctl({"explain", "web"}).output;
  ASSERT_NO_FATAL_FAILURE(KillAndStart());
  EXPECT_FALSE(FindPod(kName).has_value());
  EXPECT_EQ(ReadText(kept_), "of the claim");
}

TEST_F(ReplaceTest, ToDeleteTheWaitingPodByItsUidLeavesNothingToCome) {
  ASSERT_NO_FATAL_FAILURE(StartWithData());
  Sleeper consumer;
  ASSERT_TRUE(Hold(kName, consumer.pid()).ok());
  v1::ApplyRequest request;
  request.set_file("test");
  request.set_manifest(PodText("second"));
  request.set_replace(true);
  v1::ApplyResponse response;
  grpc::ClientContext context;
  ASSERT_TRUE(NewStub()->Apply(&context, request, &response).ok());
  ASSERT_EQ(response.applied_size(), 1) << response.ShortDebugString();
  EXPECT_EQ(response.applied(0).result(), "replaced");
  EXPECT_EQ(response.applied(0).replaced_uid(), first_);
  ASSERT_TRUE(WaitPhase(kName, "Terminating"));
  const CommandResult deleted = Ctl({"delete", "pod", response.applied(0).object().uid()});
  ASSERT_EQ(deleted.exit_status, 0) << deleted.output;
  EXPECT_EQ(FindPod(kName)->phase(), "Terminating");
  consumer.End();
  EXPECT_TRUE(WaitGone(kName));
}

TEST_F(ReplaceTest, AnAppliedObjectHasAnAge) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ApplyOk(ProvisionedClaim());
  for (const char* kind : {"pvc", "sc"}) {
    const CommandResult shown = Ctl({"get", kind});
    EXPECT_EQ(shown.output.find("<unknown>"), std::string::npos) << shown.output;
  }
}

}  // namespace
}  // namespace volumed::replace_test
