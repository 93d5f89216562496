// Places of the configuration that do not answer when the agent starts, and mounts that come and go
// over directories that the agent works in: each keeps its own part down, and nothing else.
#include <sys/mount.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>

#include "integration/agent/agent_fixture.h"
#include "integration/hangfs/hangfs_mount.h"
#include "places.h"

namespace volumed::dead_places_test {
namespace {

namespace fs = std::filesystem;

constexpr Milliseconds kSoon = std::chrono::seconds(8);

std::string PodText(const std::string& name) {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", uid: uid-" + name +
         "}\nspec:\n  terminationGracePeriodSeconds: 0\n"
         "  containers: [{name: main, image: i, volumeMounts: [{name: data, mountPath: /d}]}]\n"
         "  volumes: [{name: data, emptyDir: {}}]\n";
}

class PlacesTest : public AgentTest {
 protected:
  void TearDown() override {
    hangfs_.reset();  // heals first: what waits for it lets go
    AgentTest::TearDown();
  }
  // A filesystem that is mounted there and does not answer from now on.
  void MountDead(const std::string& place) {
    hangfs_ = std::make_unique<HangfsMount>(HangfsPath(), place, scratch() + "/control");
    if (!hangfs_->mounted()) GTEST_SKIP() << "skipped: needs /dev/fuse";
    hangfs_->Die();
  }
  void Unmount() { hangfs_.reset(); }
  v1::Source SourceOf(const std::string& directory) {
    const v1::GetSourcesResponse sources = Sources();
    for (const v1::Source& source : sources.sources()) {
      if (source.name() == "manifests:" + directory) return source;
    }
    return {};
  }
  bool WaitIncomplete(const std::string& directory, const std::string& why) {
    return Eventually(kSoon, [&] {
      return SourceOf(directory).incomplete_because().find(why) != std::string::npos;
    });
  }
  bool WaitInOrder(const std::string& directory) {
    return Eventually(kPatience, [&] {
      const v1::Source source = SourceOf(directory);
      return source.complete() && source.incomplete_because().empty();
    });
  }
  // What check-config says of the configuration of the agent that runs.
  CommandResult CheckConfig() const {
    return RunCommand(
        {"timeout", "20", VolumedPath(), "check-config", "--config", scratch() + "/config.yaml"});
  }

 private:
  std::unique_ptr<HangfsMount> hangfs_;
};

// ---- at the start -------------------------------------------------------------------------------

struct DeadPlace {
  std::string key;    // of the configuration
  std::string below;  // the dead mount
  std::string part;   // as `volumectl status` calls it
};

class DeadPlaceTest : public PlacesTest, public ::testing::WithParamInterface<DeadPlace> {
 protected:
  std::string far() const { return scratch() + "/far"; }
  std::string place() const { return far() + GetParam().below; }
};

INSTANTIATE_TEST_SUITE_P(Places, DeadPlaceTest,
                         ::testing::Values(DeadPlace{"host-path-root", "", "host-path-root"},
                                           DeadPlace{"volume-plugin-dir", "", "volume-plugin-dir"},
                                           DeadPlace{"machine-id-file", "/file", "machine-id-file"},
                                           DeadPlace{"pv-recycler-pod-template-filepath-nfs",
                                                     "/file", "recycler of nfs volumes"}),
                         [](const auto& param) {
                           std::string name = param.param.key;
                           std::erase(name, '-');
                           return name;
                         });

// The agent did not come up at all: no socket, no line in its log.
TEST_P(DeadPlaceTest, AtTheStartKeepsNothingElseDownIsNamedAndHeals) {
  fs::create_directory(far());
  ASSERT_NO_FATAL_FAILURE(MountDead(far()));
  if (IsSkipped()) return;
  settings[GetParam().key] = place();
  ASSERT_NO_FATAL_FAILURE(StartAgent());
  ASSERT_TRUE(Eventually(kPatience, [&] { return Ctl({"get", "pods"}).exit_status == 0; }));
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodText("web")));
  EXPECT_TRUE(WaitPhase("web", "Ready")) << Ctl({"explain", "web"}).output;
  const std::string why = place() + " does not answer";
  EXPECT_TRUE(Eventually(kSoon, [&] { return FailedParts().find(why) != std::string::npos; }))
      << FailedParts();
  EXPECT_NE(FailedParts().find(GetParam().part), std::string::npos) << FailedParts();
  EXPECT_NE(HttpGet("/readyz").find(why), std::string::npos) << HttpGet("/readyz");
  EXPECT_NE(ReadText(log_path()).find(why), std::string::npos);
  const CommandResult checked = CheckConfig();
  EXPECT_EQ(checked.exit_status, 1) << checked.output;
  EXPECT_NE(checked.output.find(GetParam().key + ": " + why), std::string::npos) << checked.output;
  Unmount();
  EXPECT_TRUE(Eventually(kPatience, [&] { return FailedParts().find(why) == std::string::npos; }))
      << FailedParts();
}

TEST_F(PlacesTest, ADeadMountAtTheSocketKeepsNothingElseDownAndTheSocketComesOnceItIsGone) {
  const std::string far = scratch() + "/far";
  fs::create_directory(far);
  WriteText(manifests() + "/web.yaml", PodText("web"));
  ASSERT_NO_FATAL_FAILURE(MountDead(far));
  if (IsSkipped()) return;
  settings["socket"] = far + "/volumed.sock";
  ASSERT_NO_FATAL_FAILURE(StartAgent());
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return HttpGet("/readyz").find("control socket: " + far + "/volumed.sock does not answer") !=
           std::string::npos;
  })) << HttpGet("/readyz");
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return Exists(VolumePath("uid-web", "empty-dir", "data"));
  })) << ReadText(log_path());
  Unmount();
  EXPECT_TRUE(WaitReady()) << HttpGet("/readyz");
  EXPECT_EQ(
      RunCommand({VolumectlPath(), "--socket", settings["socket"], "get", "pods"}).exit_status, 0);
}

TEST_F(PlacesTest, ADeadManifestDirectoryAtTheStartIsIncompleteKeepsNoOtherAndIsReadOnceItAnswers) {
  const std::string far = scratch() + "/far";
  fs::create_directory(far);
  WriteText(far + "/behind.yaml", PodText("behind"));
  WriteText(manifests() + "/web.yaml", PodText("web"));
  settings["manifest-dir"] = "[" + manifests() + ", " + far + "]";
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(WaitPhase("behind", "Ready"));
  StopAgent();
  ASSERT_NO_FATAL_FAILURE(MountDead(far));
  if (IsSkipped()) return;
  WriteText(manifests() + "/late.yaml", PodText("late"));
  ASSERT_NO_FATAL_FAILURE(StartAgent());
  EXPECT_TRUE(WaitPhase("late", "Ready")) << ReadText(log_path());
  EXPECT_TRUE(WaitIncomplete(far, far + " does not answer")) << Ctl({"sources"}).output;
  EXPECT_TRUE(WaitPhase("behind", "Ready")) << "it is held";
  const CommandResult checked = CheckConfig();
  EXPECT_NE(checked.output.find("manifest-dir: " + far + " does not answer"), std::string::npos)
      << checked.output;
  Unmount();
  WriteText(far + "/more.yaml", PodText("more"));
  EXPECT_TRUE(WaitInOrder(far)) << Ctl({"sources"}).output;
  EXPECT_TRUE(WaitPhase("more", "Ready")) << ReadText(log_path());
  EXPECT_TRUE(WaitPhase("behind", "Ready"));
}

// No pod of the node was handled.
TEST_F(PlacesTest, ADeadMountOverAPodsDirectoryAtTheStartConcernsThatPodAlone) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodText("covered") + "---\n" + PodText("other")));
  ASSERT_TRUE(WaitPhase("covered", "Ready"));
  ASSERT_TRUE(WaitPhase("other", "Ready"));
  WriteText(VolumePath("uid-covered", "empty-dir", "data") + "/kept", "bytes");
  StopAgent();
  const std::string directory = root() + "/pods/uid-covered";
  ASSERT_NO_FATAL_FAILURE(MountDead(directory));
  if (IsSkipped()) return;
  const auto start = std::chrono::steady_clock::now();
  ASSERT_NO_FATAL_FAILURE(StartAgent());
  ASSERT_TRUE(Eventually(kPatience, [&] { return Ctl({"get", "pods"}).exit_status == 0; }));
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodText("fresh")));
  EXPECT_TRUE(WaitPhase("fresh", "Ready", kSoon)) << Ctl({"explain", "fresh"}).output;
  EXPECT_TRUE(WaitPhase("other", "Ready", kSoon)) << Ctl({"explain", "other"}).output;
  EXPECT_LT(Since(start), kSoon);
  const std::string explained = Ctl({"explain", "covered"}).output;
  EXPECT_NE(explained.find("is mounted over its directory " + directory), std::string::npos)
      << explained;
  Unmount();
  EXPECT_TRUE(WaitPhase("covered", "Ready")) << Ctl({"explain", "covered"}).output;
  EXPECT_EQ(ReadText(VolumePath("uid-covered", "empty-dir", "data") + "/kept"), "bytes");
}

// Each of its effects held up the worker that all pods share, until it was killed.
TEST_F(PlacesTest, ADeadMountOverAPodsDirectoryHoldsNoOtherPodUpWhileTheAgentRuns) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodText("covered")));
  ASSERT_TRUE(WaitPhase("covered", "Ready"));
  ASSERT_NO_FATAL_FAILURE(MountDead(root() + "/pods/uid-covered"));
  if (IsSkipped()) return;
  ASSERT_TRUE(Delete("Pod", "covered").ok());
  for (const char* name : {"one", "two", "three"}) {
    ASSERT_NO_FATAL_FAILURE(ApplyOk(PodText(name)));
    EXPECT_TRUE(WaitPhase(name, "Ready", kSoon)) << Ctl({"explain", name}).output;
  }
  EXPECT_TRUE(FindPod("covered").has_value());
  Unmount();
  EXPECT_TRUE(WaitGone("covered")) << Ctl({"explain", "covered"}).output;
}

// ---- while the agent runs -----------------------------------------------------------------------

class MountedOverTest : public PlacesTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    PlacesTest::SetUp();
    if (*GetParam() != 0) settings["mask-kernel-feature"] = GetParam();
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, MountedOverTest, ::testing::Values("", "mount-events"),
                         [](const auto& param) {
                           return std::string(*param.param == 0 ? "ByEvents" : "ByPoll");
                         });

// It was noticed by a restart alone.
TEST_P(MountedOverTest, AManifestDirectoryIsAnotherOneUntilItIsUnmountedAgain) {
  WriteText(manifests() + "/web.yaml", PodText("web"));
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(WaitPhase("web", "Ready"));
  ASSERT_EQ(::mount("over", manifests().c_str(), "tmpfs", 0, nullptr), 0);
  EXPECT_TRUE(WaitIncomplete(manifests(), "another one than the known one"))
      << Ctl({"sources"}).output;
  WriteText(manifests() + "/late.yaml", PodText("late"));
  EXPECT_TRUE(WaitPhase("late", "Ready")) << Ctl({"sources"}).output;
  EXPECT_TRUE(WaitPhase("web", "Ready"));
  ASSERT_EQ(::umount2(manifests().c_str(), 0), 0);
  EXPECT_TRUE(WaitInOrder(manifests())) << Ctl({"sources"}).output;
  WriteText(manifests() + "/last.yaml", PodText("last"));
  EXPECT_TRUE(WaitPhase("last", "Ready")) << Ctl({"sources"}).output;
  EXPECT_TRUE(WaitPhase("web", "Ready"));
}

TEST_P(MountedOverTest, ADirectoryAboveWhatALinkLeadsToCountsToo) {
  fs::create_directories(scratch() + "/disk/manifests");
  fs::create_directory_symlink("disk/manifests", scratch() + "/link");
  settings["manifest-dir"] = scratch() + "/link";
  WriteText(scratch() + "/link/web.yaml", PodText("web"));
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(WaitPhase("web", "Ready"));
  const std::string disk = scratch() + "/disk";
  ASSERT_EQ(::mount("over", disk.c_str(), "tmpfs", 0, nullptr), 0);
  EXPECT_TRUE(WaitIncomplete(scratch() + "/link", "No such file")) << Ctl({"sources"}).output;
  EXPECT_TRUE(WaitPhase("web", "Ready"));
  ASSERT_EQ(::umount2(disk.c_str(), 0), 0);
  EXPECT_TRUE(WaitInOrder(scratch() + "/link")) << Ctl({"sources"}).output;
}

}  // namespace
}  // namespace volumed::dead_places_test
