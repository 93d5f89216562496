// Records that are lost while pods have volumes of a driver: what the next start finds mounted, and
// on no record, is kept from everybody else.
#include <sys/mount.h>

#include <filesystem>
#include <string>

#include "integration/csi/csi_agent_fixture.h"

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

}  // namespace
}  // namespace volumed::lost_records_test
