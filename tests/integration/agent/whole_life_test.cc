// A pod's whole life, with and without what newer kernels have, and across clean stops.
#include <algorithm>
#include <filesystem>
#include <iostream>

#include "integration/agent/example_pod.h"

namespace volumed::whole_life_test {
namespace {

class WholeLifeTest : public ExamplePodTest {
 protected:
  // The configMap's subPath is bound from the version that is published now.
  bool SubPathIsOfThePublishedVersion() const {
    const std::filesystem::path volume =
        root() +
        "/pods/6f0c1f0a-5d0e-4c5b-9d55-0d7a4c2b9e11/volumes/kubernetes.io~configmap/config";
    std::error_code error;
    const std::string version = std::filesystem::read_symlink(volume / "..data", error).string();
    for (const std::string& mount : MountsBelow(root())) {
      if (mount.find("/volume-subpaths/config/main/") == std::string::npos) continue;
      return !error && mount.find("/" + version + "/") != std::string::npos &&
             mount.find("//deleted") == std::string::npos;
    }
    return false;
  }

  void LiveAndLeave() {
    ASSERT_NO_FATAL_FAILURE(ApplyOk(ExampleObjects("hello") + "\n---\n" + ExamplePod(host_path())));
    ASSERT_TRUE(WaitPhase("web", "Ready")) << Ctl({"explain", "web"}).output;
    ASSERT_TRUE(Eventually(kPatience, [&] { return ExampleProblem("hello").empty(); }))
        << ExampleProblem("hello");
    WriteForeignFiles("kept");
    ASSERT_NO_FATAL_FAILURE(ApplyOk(ExampleObjects("changed")));
    ASSERT_TRUE(Eventually(kPatience, [&] { return ExampleProblem("changed").empty(); }))
        << ExampleProblem("changed");
    // The content is there before the subPath of the configMap is bound anew, from the new version.
    ASSERT_TRUE(Eventually(kPatience, [&] { return SubPathIsOfThePublishedVersion(); }));
    const std::vector<std::string> mounts = MountsBelow(root());
    ASSERT_EQ(StopAgent(), 0);
    EXPECT_EQ(MountsBelow(root()), mounts) << "a clean stop leaves mounts";
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ASSERT_TRUE(Eventually(kPatience, [&] { return ExampleProblem("changed").empty(); }))
        << ExampleProblem("changed");
    EXPECT_EQ(MountsBelow(root()), mounts) << "a restart moves nothing";
    EXPECT_EQ(ForeignProblem("kept"), "");
    const CommandResult oci = Ctl({"oci", "web", "main"});
    EXPECT_EQ(oci.exit_status, 0) << oci.output;
    EXPECT_NE(oci.output.find("/etc/nginx.conf"), std::string::npos) << oci.output;
    ASSERT_TRUE(Delete("Pod", "web").ok());
    ASSERT_TRUE(WaitGone("web")) << Ctl({"explain", "web"}).output;
    EXPECT_EQ(LeftOvers(), "");
    EXPECT_TRUE(Exists(host_path()));
  }
};

TEST_F(WholeLifeTest, WithAllThatThisKernelHas) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  LiveAndLeave();
  const v1::GetStatusResponse status = AgentStatus();
  const v1::MountTable& table = status.mount_table();
  if (!status.kernel_features().at("mount-events") || !status.kernel_features().at("statmount")) {
    EXPECT_EQ(table.source(), "poll");
    return;
  }
  EXPECT_EQ(table.source(), "events") << table.why_poll();
  EXPECT_GT(table.mounts(), 0u);
  // Nobody asked for mounts since the start: the agent took the workers' events as they came.
  EXPECT_GT(table.updates(), 0u);
  EXPECT_EQ(table.full_reads(), 1u);
}

TEST_F(WholeLifeTest, WithEveryNewerKernelFeatureMasked) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  std::string all;
  const v1::GetStatusResponse unmasked = AgentStatus();
  for (const auto& [feature, present] : unmasked.kernel_features()) {
    all += (all.empty() ? "[" : ", ") + feature;
  }
  ASSERT_EQ(StopAgent(), 0);
  settings["mask-kernel-feature"] = all + "]";
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const v1::GetStatusResponse status = AgentStatus();
  EXPECT_FALSE(status.kernel_features().empty());
  for (const auto& [feature, present] : status.kernel_features()) EXPECT_FALSE(present) << feature;
  EXPECT_EQ(status.mount_table().source(), "poll");
  EXPECT_NE(status.mount_table().why_poll(), "");
  LiveAndLeave();
}

TEST_F(WholeLifeTest, ManyPodsComeAndGo) {
  constexpr int kPods = 40;
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  std::string manifest = ExampleObjects("hello");
  for (int i = 0; i < kPods; ++i) {
    const std::string id = std::to_string(i);
    manifest += "\n---\n" +
                Replaced(Replaced(ExamplePod(host_path()), "name: web\n", "name: web-" + id + "\n"),
                         kExampleUid, "uid-" + id);
  }
  auto start = std::chrono::steady_clock::now();
  ASSERT_NO_FATAL_FAILURE(ApplyOk(manifest));
  for (int i = 0; i < kPods; ++i) ASSERT_TRUE(WaitPhase("web-" + std::to_string(i), "Ready"));
  std::cout << kPods << " pods of 7 volumes ready in " << Since(start).count() << " ms\n";
  start = std::chrono::steady_clock::now();
  for (int i = 0; i < kPods; ++i) ASSERT_TRUE(Delete("Pod", "web-" + std::to_string(i)).ok());
  for (int i = 0; i < kPods; ++i) ASSERT_TRUE(WaitGone("web-" + std::to_string(i)));
  std::cout << kPods << " pods gone in " << Since(start).count() << " ms\n";
  EXPECT_EQ(LeftOvers(), "");
}

}  // namespace
}  // namespace volumed::whole_life_test
