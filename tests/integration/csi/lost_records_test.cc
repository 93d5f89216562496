// Records that are lost while pods have volumes of a driver: what the next start finds mounted, and
// on no record, is kept from everybody else.
#include <sys/mount.h>

#include <filesystem>
#include <string>
#include <vector>

#include "integration/csi/csi_agent_fixture.h"
#include "integration/loop_device.h"

namespace volumed::lost_records_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDriver = "lost.example.com";

class LostRecordsTest : public CsiAgentTest {
 protected:
  void SetUp() override {
    CsiAgentTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    fs::create_directories(manifests());
    driver_ = std::make_unique<CsiFakeProcess>(OptionsOf(kDriver));
    ASSERT_TRUE(driver_->Start());
  }
  void TearDown() override {
    driver_.reset();
    CsiAgentTest::TearDown();
  }

  std::string ManifestOf(const std::string& pod) const { return manifests() + "/" + pod + ".yaml"; }
  // The agent ends, and with it what it knows; `gone` is in no manifest any more, and `come` is.
  void LoseRecords(const std::string& gone, const std::string& come) {
    ASSERT_NO_FATAL_FAILURE(KillAgent());
    fs::remove_all(root() + "/volumed/records");
    fs::remove(root() + "/volumed/records.number");
    fs::remove(ManifestOf(gone));
    WriteText(ManifestOf(come), PodOn(come, {volume_}));
    ASSERT_NO_FATAL_FAILURE(StartAgent());
  }

  // The agent ends, and all that it knows is lost: its records, and what was applied.
  void LoseEverything(const std::string& gone) {
    ASSERT_NO_FATAL_FAILURE(KillAgent());
    fs::remove_all(root() + "/volumed/records");
    fs::remove(root() + "/volumed/records.number");
    std::vector<fs::path> objects;
    for (const auto& entry : fs::directory_iterator(root() + "/volumed/objects")) {
      if (entry.is_regular_file()) objects.push_back(entry.path());
    }
    for (const fs::path& object : objects) fs::remove(object);
    fs::remove(ManifestOf(gone));
  }

  CsiTestVolume volume_ = VolumeOf("v", kDriver);
  std::unique_ptr<CsiFakeProcess> driver_;
};

// The other pod was Ready at once.
TEST_F(LostRecordsTest, APodsReadWriteOncePodVolumeIsGivenToNoOtherPodWhileItIsMounted) {
  volume_.access_mode = "ReadWriteOncePod";
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ApplyOk(DriverObject(kDriver, false) + Storage(volume_));
  WriteText(ManifestOf("one"), PodOn("one", {volume_}));
  ASSERT_TRUE(WaitPhase("one", "Ready")) << Explain("one");
  const std::string target = TargetOf("one", "v");
  ASSERT_EQ(MountsBelow(target).size(), 1u);

  ASSERT_NO_FATAL_FAILURE(LoseRecords("one", "two"));
  EXPECT_TRUE(WaitSays("two", "is mounted in pod uid-one, of which no record tells: " + target))
      << Explain("two");
  EXPECT_EQ(MountsBelow(target).size(), 1u);
  EXPECT_TRUE(MountsBelow(TargetOf("two", "v")).empty());

  ASSERT_EQ(::umount(target.c_str()), 0);
  EXPECT_TRUE(RetryUntilPhase("two", "Ready")) << Explain("two");
}

// The driver was called to stage it, and made a filesystem on it, while a process wrote to it.
TEST_F(LostRecordsTest, ADeviceThatALostPodHasRawWasGivenToAnotherVolumeOfItsHandle) {
  if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
  volume_.block = true;
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ApplyOk(DriverObject(kDriver, false) + Storage(volume_));
  WriteText(ManifestOf("one"), PodOn("one", {volume_}));
  ASSERT_TRUE(WaitPhase("one", "Ready")) << Explain("one");
  const std::string devices = root() + "/plugins/kubernetes.io/csi/volumeDevices";
  const std::string target = devices + "/publish/v/uid-one";
  ASSERT_EQ(MountsBelow(target).size(), 1u);

  ASSERT_NO_FATAL_FAILURE(LoseEverything("one"));
  // As if the agent had ended before it bound the device for the pod.
  ASSERT_EQ(::umount((devices + "/v/dev/uid-one").c_str()), 0);
  volume_.block = false;
  WriteText(ManifestOf("two"), PodOn("two", {volume_}));
  ASSERT_NO_FATAL_FAILURE(StartAgent());
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return Ctl({"status", "-o", "json"}).output.find("device of volume") != std::string::npos;
  }));
  ApplyOk(DriverObject(kDriver, false) + Storage(volume_));
  EXPECT_TRUE(WaitSays("two", "is mounted in pod uid-one, of which no record tells: " + target))
      << Explain("two");
  EXPECT_EQ(CountOf(kDriver, "NodeStageVolume"), 1);
  EXPECT_EQ(MountsBelow(target).size(), 1u);
}

}  // namespace
}  // namespace volumed::lost_records_test
