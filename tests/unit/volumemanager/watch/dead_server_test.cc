// What the manager shows of volumes whose server does not answer, and what it does when it does.
#include <gmock/gmock.h>

#include "unit/volumemanager/manager_fixture.h"

namespace volumed {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class DeadServerTest : public ManagerTest {
 protected:
  void SetUp() override {
    StartAgent();
    kernel.mount_points = {"/fake/one", "/fake/two"};
    Deliver(PodManifest("a", {"one: nfs: {server: nas, path: /1}"}) +
            PodManifest("b", {"two: nfs: {server: nas, path: /2}", "tmp: emptyDir: {}"}));
    ASSERT_EQ(Phase("a"), "Ready");
  }
  VolumeView Volume(const std::string& pod) { return View(pod).volumes.front(); }
};

TEST_F(DeadServerTest, AllItsVolumesAreStuckAndSayWhy) {
  kernel.server_is_dead = true;
  Pass(std::chrono::seconds(30));
  for (const std::string pod : {"a", "b"}) {
    const std::vector<VolumeView> volumes = View(pod).volumes;
    const auto found = std::find_if(volumes.begin(), volumes.end(), [](const VolumeView& volume) {
      return volume.plugin_name == "kubernetes.io/nfs";
    });
    ASSERT_NE(found, volumes.end());
    EXPECT_TRUE(found->stuck);
    ASSERT_TRUE(found->problem.has_value());
    EXPECT_EQ(found->problem->step, "Stuck");
    EXPECT_EQ(found->problem->who_must_act, "an administrator");
    EXPECT_THAT(found->problem->message, HasSubstr("NFS server nas does not answer since "));
    EXPECT_EQ(Phase(pod), "Ready") << "it has its volumes";
  }
  EXPECT_THAT(manager().ServersAnswering(), ElementsAre(Pair("nfs:nas", false)));
  EXPECT_THAT(host_parts.events, ElementsAre("a VolumeStuck", "b VolumeStuck"));
}

TEST_F(DeadServerTest, OthersAreNot) {
  kernel.server_is_dead = true;
  Pass(std::chrono::seconds(30));
  for (const VolumeView& volume : View("b").volumes) {
    EXPECT_EQ(volume.stuck, volume.plugin_name == "kubernetes.io/nfs") << volume.spec.str();
  }
}

// It showed mount's own words alone, which name no server.
TEST_F(DeadServerTest, AMountThatFailsNamesTheServerAndWhatIsKnownOfIt) {
  const Error timed_out = Error::NotApplied(
      Code::kUnknown, "the mount helper ended with status 32: mount.nfs: Connection timed out");
  for (const char* pod : {"c", "d"}) operations().FailNext("mount", Key(pod, "v"), timed_out, 99);
  const std::string pods = PodManifest("a", {"one: nfs: {server: nas, path: /1}"}) +
                           PodManifest("c", {"v: nfs: {server: nas, path: /3}"});
  Deliver(pods);
  EXPECT_THAT(Volume("c").problem->message,
              AllOf(HasSubstr("of NFS server nas, which answers for other volumes of this node: "),
                    HasSubstr("Connection timed out")));
  EXPECT_FALSE(Volume("c").stuck);
  kernel.server_is_dead = true;
  Pass(std::chrono::seconds(30));
  EXPECT_THAT(Volume("c").problem->message, AllOf(HasSubstr("NFS server nas does not answer since"),
                                                  HasSubstr("Connection timed out")));
  EXPECT_TRUE(Volume("c").stuck);

  Deliver(PodManifest("d", {"v: nfs: {server: nas, path: /3}"}));
  Pass(std::chrono::seconds(60));
  EXPECT_THAT(Volume("d").problem->message,
              HasSubstr("of NFS server nas, of which nothing else is mounted here"));
}

TEST_F(DeadServerTest, AMountThatTakesLongSaysForWhomItWaits) {
  operations().Hang(Key("c", "v"));
  Deliver(PodManifest("c", {"v: nfs: {server: nas, path: /3}"}));
  EXPECT_FALSE(Volume("c").problem.has_value());
  Pass(std::chrono::seconds(12));
  ASSERT_TRUE(Volume("c").problem.has_value());
  EXPECT_THAT(Volume("c").problem->message, HasSubstr("waits 12 s for NFS server nas"));
}

TEST_F(DeadServerTest, WhatFailedMeanwhileIsTriedAtOnceWhenItReturns) {
  kernel.server_is_dead = true;
  Pass(std::chrono::seconds(30));
  operations().FailNext("unmount", Key("a", "one"),
                        Error::MaybeApplied(Code::kDeadlineExceeded, "hangs"), 20);
  Deliver(PodManifest("b", {"two: nfs: {server: nas, path: /2}", "tmp: emptyDir: {}"}));
  Pass(std::chrono::minutes(10));
  ASSERT_EQ(Phase("a"), "Terminating");
  const VolumeView volume = Volume("a");
  ASSERT_TRUE(volume.problem.has_value());
  EXPECT_THAT(volume.problem->message, HasSubstr("NFS server nas does not answer since "));
  EXPECT_THAT(volume.problem->message, HasSubstr("; hangs"));
  EXPECT_GT(volume.problem->attempts, 1u);
  kernel.server_is_dead = false;
  const size_t before = operations().Count("unmount", Key("a", "one"));
  Pass(std::chrono::seconds(4));
  EXPECT_GT(operations().Count("unmount", Key("a", "one")), before) << "its back-off is over";
  EXPECT_FALSE(View("b").volumes.back().stuck);
  EXPECT_THAT(manager().ServersAnswering(), ElementsAre(Pair("nfs:nas", true)));
}

}  // namespace
}  // namespace volumed
