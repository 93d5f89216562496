// Block volumes of CSI drivers that do right: a driver binds its device for each pod, and unmounts
// that bind by a plain umount(2), which nothing of the daemon may keep from it.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "integration/csi/csi_agent_fixture.h"
#include "integration/loop_device.h"

namespace volumed::block_volume_test {
namespace {

constexpr const char* kDriver = "disks.example.com";

class BlockVolumeTest : public CsiAgentTest {
 protected:
  void SetUp() override {
    CsiAgentTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
    volume_ = VolumeOf("disk", kDriver);
    volume_.block = true;
  }
  void TearDown() override {
    driver_.reset();
    CsiAgentTest::TearDown();
  }

  // The volume's claim and PersistentVolume go, and come anew with the other mode.
  void ComeAnewAs(bool block) {
    ASSERT_TRUE(Delete("PersistentVolumeClaim", "disk").ok());
    ASSERT_TRUE(Delete("PersistentVolume", "disk").ok());
    ASSERT_TRUE(Eventually(kPatience, [&] {
      return Ctl({"get", "pv", "disk"}).exit_status != 0;
    })) << Ctl({"describe", "pv", "disk"}).output;
    volume_.block = block;
    ASSERT_NO_FATAL_FAILURE(ApplyOk(Storage(volume_)));
  }
  void Begin(bool attaches) {
    CsiFakeOptions options = OptionsOf(kDriver);
    if (attaches) options.controller_capabilities = {"PUBLISH_UNPUBLISH_VOLUME"};
    driver_ = std::make_unique<CsiFakeDriver>(options);
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ASSERT_NO_FATAL_FAILURE(ApplyOk(DriverObject(kDriver, attaches) + Storage(volume_)));
  }
  void Add(const std::string& pod) {
    ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn(pod, {volume_})));
    ASSERT_TRUE(WaitPhase(pod, "Ready")) << Explain(pod);
  }
  void Remove(const std::string& pod) {
    ASSERT_TRUE(Delete("Pod", pod).ok());
    EXPECT_TRUE(WaitGone(pod, Milliseconds(10000))) << Explain(pod);
  }
  // Where a pod finds the device.
  std::string LinkOf(const std::string& pod) const {
    return root() + "/pods/uid-" + pod + "/volumeDevices/kubernetes.io~csi/disk";
  }
  std::string PublishedAt(const std::string& pod) const {
    return root() + "/plugins/kubernetes.io/csi/volumeDevices/publish/disk/uid-" + pod;
  }
  std::string Device() const {
    return LoopDeviceOf(OptionsOf(kDriver).directory + "/volumes/h-disk/image");
  }
  void ExpectDeviceOf(const std::string& pod) {
    struct stat link {};
    struct stat own {};
    ASSERT_EQ(::stat(LinkOf(pod).c_str(), &link), 0);
    ASSERT_EQ(::stat(Device().c_str(), &own), 0);
    EXPECT_TRUE(S_ISBLK(link.st_mode));
    EXPECT_EQ(link.st_rdev, own.st_rdev);
    EXPECT_EQ(MountsBelow(PublishedAt(pod)).size(), 1u);
  }
  void ExpectNothingLeft() {
    EXPECT_EQ(LeftOvers(), "");
    EXPECT_TRUE(Eventually(kPatience, [&] { return CsiLeftOvers().empty(); })) << CsiLeftOvers();
    EXPECT_TRUE(Eventually(kPatience, [&] { return Device().empty(); })) << Device();
    for (const std::string& violation : ViolationsOf(LogOf(kDriver))) ADD_FAILURE() << violation;
    // The device is flushed when no path of the driver leads to it any more.
    EXPECT_EQ(ReadText(log_path()).find("may not all be on its device"), std::string::npos);
  }

  CsiTestVolume volume_;
  std::unique_ptr<CsiFakeDriver> driver_;
};

// The daemon held the device by the driver's bind of it: NodeUnpublishVolume got EBUSY for ever.
TEST_F(BlockVolumeTest, ADriverUnmountsItsBindWhileTheDaemonHoldsTheDevice) {
  ASSERT_NO_FATAL_FAILURE(Begin(/*attaches=*/false));
  ASSERT_NO_FATAL_FAILURE(Add("a"));
  ASSERT_NO_FATAL_FAILURE(ExpectDeviceOf("a"));
  {
    const Descriptor device(::open(LinkOf("a").c_str(), O_WRONLY | O_CLOEXEC));
    ASSERT_TRUE(device.valid());
    ASSERT_EQ(::pwrite(device.get(), "text", 4, 0), 4);
  }
  ASSERT_NO_FATAL_FAILURE(Add("b"));
  ASSERT_NO_FATAL_FAILURE(ExpectDeviceOf("b"));
  ASSERT_NO_FATAL_FAILURE(Remove("a"));
  ASSERT_NO_FATAL_FAILURE(ExpectDeviceOf("b"));
  ASSERT_NO_FATAL_FAILURE(Remove("b"));
  EXPECT_EQ(CountOf(kDriver, "NodeUnpublishVolume"), 2);
  ExpectNothingLeft();
  // A pod is gone when nothing of it is left; its device leaves the node after that.
  EXPECT_EQ(CountOf(kDriver, "NodeUnstageVolume"), 1);
  EXPECT_EQ(ReadText(OptionsOf(kDriver).directory + "/volumes/h-disk/image").substr(0, 4), "text");
}

// A daemon that is started again opens the device again, of a pod that it is told of and of one
// that goes meanwhile.
TEST_F(BlockVolumeTest, ADriverUnmountsItsBindAfterTheDaemonWasStartedAgain) {
  ASSERT_NO_FATAL_FAILURE(Begin(/*attaches=*/false));
  ASSERT_NO_FATAL_FAILURE(Add("a"));
  ASSERT_NO_FATAL_FAILURE(Add("b"));
  ASSERT_NO_FATAL_FAILURE(KillAgent());
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
  ASSERT_TRUE(WaitPhase("b", "Ready")) << Explain("b");
  EXPECT_EQ(CountOf(kDriver, "NodePublishVolume"), 2);
  ASSERT_NO_FATAL_FAILURE(ExpectDeviceOf("a"));
  ASSERT_NO_FATAL_FAILURE(Remove("a"));
  ASSERT_NO_FATAL_FAILURE(Remove("b"));
  ExpectNothingLeft();
}

// An unstage that had failed was forgotten when a PersistentVolume of the other mode came with the
// same handle, and the disk was detached while it was still mounted.
TEST_F(BlockVolumeTest, ADiskWasDetachedUnderTheMountOfAVolumeWithItsHandle) {
  volume_.block = false;
  ASSERT_NO_FATAL_FAILURE(Begin(/*attaches=*/true));
  ASSERT_NO_FATAL_FAILURE(Add("m"));
  driver_->Script(R"([{"rpc": "NodeUnstageVolume", "code": 13, "message": "not yet"}])");
  ASSERT_NO_FATAL_FAILURE(Remove("m"));
  ASSERT_TRUE(Eventually(kPatience, [&] { return CountOf(kDriver, "NodeUnstageVolume") > 0; }));
  ASSERT_NO_FATAL_FAILURE(ComeAnewAs(/*block=*/true));
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("nb", {volume_})));
  EXPECT_TRUE(WaitSays("nb", "has to leave that place first")) << Explain("nb");
  EXPECT_TRUE(WaitSays("nb", "not yet")) << Explain("nb");
  EXPECT_EQ(CountOf(kDriver, "NodeStageVolume"), 1);
  EXPECT_EQ(CountOf(kDriver, "ControllerUnpublishVolume"), 0);
  driver_->Script("[]");
  ASSERT_TRUE(WaitPhase("nb", "Ready", Milliseconds(60000))) << Explain("nb");
  EXPECT_EQ(CountOf(kDriver, "NodeStageVolume"), 2);
  ASSERT_NO_FATAL_FAILURE(Remove("nb"));
  EXPECT_TRUE(
      Eventually(kPatience, [&] { return CountOf(kDriver, "ControllerUnpublishVolume") == 1; }));
  ExpectNothingLeft();
}

TEST_F(BlockVolumeTest, AnAttachedDeviceIsDetachedOnceNobodyHasIt) {
  ASSERT_NO_FATAL_FAILURE(Begin(/*attaches=*/true));
  ASSERT_NO_FATAL_FAILURE(Add("a"));
  ASSERT_NO_FATAL_FAILURE(ExpectDeviceOf("a"));
  ASSERT_NO_FATAL_FAILURE(Remove("a"));
  EXPECT_TRUE(
      Eventually(kPatience, [&] { return CountOf(kDriver, "ControllerUnpublishVolume") == 1; }));
  ExpectNothingLeft();
}

}  // namespace
}  // namespace volumed::block_volume_test
