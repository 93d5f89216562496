// Which directory a manifest directory is, on real filesystems.
#include <sys/mount.h>

#include <optional>
#include <string>

#include "integration/agent/agent_fixture.h"
#include "integration/loop_device.h"

namespace volumed::manifest_directory_test {
namespace {

constexpr int64_t kDiskBytes = int64_t{300} << 20;  // btrfs needs some room

class ManifestDirectoryTest : public AgentTest {
 protected:
  void TearDown() override {
    AgentTest::TearDown();
    disk_.reset();
  }
  static std::string PodOf(const std::string& name) {
    return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", uid: uid-" + name +
           "}\nspec:\n  containers: [{name: c, image: x, volumeMounts: [{name: d, mountPath: "
           "/d}]}]\n  volumes: [{name: d, emptyDir: {}}]\n";
  }
  void MountAsManifests(const std::string& subvolume) {
    const std::string options = "subvol=/" + subvolume;
    ASSERT_EQ(::mount(disk_->path().c_str(), manifests().c_str(), "btrfs", 0, options.c_str()), 0);
  }

  std::optional<LoopDevice> disk_;
};

// A snapshot has the UUID, the inode number and the birth of what it was taken of.
TEST_F(ManifestDirectoryTest, ASnapshotThatIsMountedInItsPlaceIsAnotherDirectory) {
  if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
  ASSERT_TRUE(MakeImage(scratch() + "/disk.img", kDiskBytes));
  disk_.emplace(scratch() + "/disk.img");
  ASSERT_TRUE(disk_->valid());
  if (RunCommand({"mkfs.btrfs", "-q", disk_->path()}).exit_status != 0) {
    GTEST_SKIP() << "skipped: needs btrfs-progs";
  }
  const std::string top = scratch() + "/top";
  ASSERT_EQ(RunCommand({"mkdir", "-p", top, manifests()}).exit_status, 0);
  if (::mount(disk_->path().c_str(), top.c_str(), "btrfs", 0, nullptr) != 0) {
    GTEST_SKIP() << "skipped: the kernel has no btrfs";
  }
  ASSERT_EQ(RunCommand({"btrfs", "subvolume", "create", top + "/now"}).exit_status, 0);
  ASSERT_NO_FATAL_FAILURE(MountAsManifests("now"));
  settings["removal-settle"] = "1s";
  WriteText(manifests() + "/one.yaml", PodOf("one"));
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(WaitPhase("one", "Ready"));
  ASSERT_EQ(RunCommand({"btrfs", "subvolume", "snapshot", top + "/now", top + "/old"}).exit_status,
            0);
  WriteText(manifests() + "/two.yaml", PodOf("two"));
  ASSERT_TRUE(WaitPhase("two", "Ready"));
  const std::string data = VolumePath("uid-two", "empty-dir", "d") + "/data";
  WriteText(data, "kept");
  ASSERT_EQ(StopAgent(), 0);
  ASSERT_EQ(::umount2(manifests().c_str(), 0), 0);
  ASSERT_NO_FATAL_FAILURE(MountAsManifests("old"));
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const CommandResult sources = Ctl({"sources"});
  EXPECT_NE(sources.output.find("INCOMPLETE"), std::string::npos) << sources.output;
  EXPECT_NE(HttpGet("/metrics")
                .find("volumed_source_incomplete{source=\"manifests:" + manifests() + "\"} 1"),
            std::string::npos);
  EXPECT_FALSE(WaitGone("two", Milliseconds(3000))) << Ctl({"sources"}).output;
  EXPECT_EQ(ReadText(data), "kept");
  ASSERT_EQ(StopAgent(), 0);
  // The directory itself is known again.
  ASSERT_EQ(::umount2(manifests().c_str(), 0), 0);
  ASSERT_NO_FATAL_FAILURE(MountAsManifests("now"));
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  EXPECT_EQ(Ctl({"sources"}).output.find("INCOMPLETE"), std::string::npos)
      << Ctl({"sources"}).output;
}

}  // namespace
}  // namespace volumed::manifest_directory_test
