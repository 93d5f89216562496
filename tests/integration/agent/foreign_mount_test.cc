// Somebody else's mount in the directory of a pod that leaves: the pod stays, and goes as soon as
// that mount does.
#include <sys/mount.h>
#include <sys/stat.h>

#include <iostream>

#include "integration/agent/example_pod.h"

namespace volumed::foreign_mount_test {
namespace {

// By then the teardown is tried every eight seconds, or less often.
constexpr int kFailures = 5;
constexpr Milliseconds kAtOnce = std::chrono::seconds(3);

class ForeignMountTest : public ExamplePodTest,
                         public ::testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(Ways, ForeignMountTest, ::testing::Values("", "mount-events"),
                         [](const auto& param) {
                           return std::string(*param.param == 0 ? "ByEvents" : "ByPoll");
                         });

TEST_P(ForeignMountTest, ThatGoesFromALeavingPodsDirectoryWakesItsTeardown) {
  if (*GetParam() != 0) settings["mask-kernel-feature"] = GetParam();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(ExampleObjects("hello")));
  ASSERT_NO_FATAL_FAILURE(ApplyOk(ExamplePod(host_path())));
  ASSERT_TRUE(WaitPhase("web", "Ready")) << Ctl({"explain", "web"}).output;
  const std::string foreign = ExampleVolume("empty-dir", "data") + "/theirs";
  ASSERT_EQ(::mkdir(foreign.c_str(), 0755), 0);
  ASSERT_EQ(::mount("theirs", foreign.c_str(), "tmpfs", 0, nullptr), 0);
  ASSERT_TRUE(Delete("Pod", "web").ok());
  const auto attempts = [&] {
    const std::optional<v1::Pod> pod = FindPod("web");
    int most = 0;
    if (!pod) return most;
    for (const auto& problem : pod->problems())
      most = std::max(most, static_cast<int>(problem.attempts()));
    for (const auto& volume : pod->volumes()) {
      if (volume.has_problem())
        most = std::max(most, static_cast<int>(volume.problem().attempts()));
    }
    return most;
  };
  ASSERT_TRUE(Eventually(kPatience, [&] { return attempts() >= kFailures; }))
      << Ctl({"explain", "web"}).output;
  ASSERT_EQ(::umount(foreign.c_str()), 0);
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(WaitGone("web")) << Ctl({"explain", "web"}).output;
  std::cout << "gone " << Since(start).count() << " ms after the foreign mount" << std::endl;
  EXPECT_LT(Since(start), kAtOnce);
  EXPECT_EQ(LeftOvers(), "");
}

}  // namespace
}  // namespace volumed::foreign_mount_test
