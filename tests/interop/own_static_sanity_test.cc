// Devices that an administrator has listed, asked by csi-sanity: they are volumes of the driver
// that nobody makes, so a proxy (tests/interop/csi-static) stands where the suite calls
// CreateVolume and DeleteVolume. What a listed device cannot have the driver itself refuses, case
// by case.
#include <gtest/gtest.h>

#include <csignal>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "interop/own_sanity_fixture.h"
#include "interop/pd_harness.h"

namespace volumed::own_static_sanity_test {
namespace {

constexpr char kProxy[] = "csi-static";
// One that has been attached more than the node takes, and one to spare.
constexpr size_t kDevices = 5;
// Of the 103 cases of csi-sanity 5.6.0; one of them is pending in every run.
constexpr char kOfListed[] = "85 Passed | 17 Failed | 1 Pending | 0 Skipped";
// Nothing of a device is made here: no snapshot, no clone, no throttle; and it is a volume before
// the suite gives it a name, and after that.
constexpr char kRefused[] =
    R"(Controller Service [Controller Server], CreateVolume, should create volume from an existing source snapshot: code = FailedPrecondition desc = volume VOLUME is the device DEVICE, of which this pool makes no snapshots
Controller Service [Controller Server], CreateVolume, should create volume from an existing source volume: code = InvalidArgument desc = volume VOLUME is listed in the configuration, and is not copied
Controller Service [Controller Server], CreateVolume, should create volume with a volume attribute class: code = InvalidArgument desc = mutable parameter "directIO" cannot be set: a volume of backend static has no loop device
Controller Service [Controller Server], ListVolumes, check the presence of new volumes and absence of deleted ones in the volume list: Expected <int>: 5 to equal <int>: 6
CreateSnapshot [Controller Server], should fail when requesting to create a snapshot with already existing name and different source volume ID: code = FailedPrecondition desc = volume VOLUME is the device DEVICE, of which this pool makes no snapshots
CreateSnapshot [Controller Server], should succeed when creating a snapshot with accessibility requirements: code = FailedPrecondition desc = volume VOLUME is the device DEVICE, of which this pool makes no snapshots
CreateSnapshot [Controller Server], should succeed when creating snapshot with maximum-length name: code = FailedPrecondition desc = volume VOLUME is the device DEVICE, of which this pool makes no snapshots
CreateSnapshot [Controller Server], should succeed when requesting to create a snapshot with already existing name and same source volume ID: code = FailedPrecondition desc = volume VOLUME is the device DEVICE, of which this pool makes no snapshots
DeleteSnapshot [Controller Server], should return appropriate values (no optional values added): code = FailedPrecondition desc = volume VOLUME is the device DEVICE, of which this pool makes no snapshots
GetSnapshot [Controller Server], should return snapshot that match the specified snapshot id: code = FailedPrecondition desc = volume VOLUME is the device DEVICE, of which this pool makes no snapshots
ListSnapshots [Controller Server], check the presence of new snapshots in the snapshot list: code = FailedPrecondition desc = volume VOLUME is the device DEVICE, of which this pool makes no snapshots
ListSnapshots [Controller Server], should return next token when a limited number of entries are requested: code = FailedPrecondition desc = volume VOLUME is the device DEVICE, of which this pool makes no snapshots
ListSnapshots [Controller Server], should return snapshots that match the specified snapshot id: code = FailedPrecondition desc = volume VOLUME is the device DEVICE, of which this pool makes no snapshots
ListSnapshots [Controller Server], should return snapshots that match the specified source volume id: code = FailedPrecondition desc = volume VOLUME is the device DEVICE, of which this pool makes no snapshots
ModifyVolume [Controller Server], should fail to modify a volume created with a volume attribute class if new mutable parameters are not supported by volume: code = InvalidArgument desc = mutable parameter "directIO" cannot be set: a volume of backend static has no loop device
ModifyVolume [Controller Server], should modify a volume created with a volume attribute class: code = InvalidArgument desc = mutable parameter "directIO" cannot be set: a volume of backend static has no loop device
ModifyVolume [Controller Server], should modify a volume created without a volume attribute class: code = InvalidArgument desc = mutable parameter "directIO" cannot be set: a volume of backend static has no loop device
)";

class OwnStaticSanityTest : public OwnSanityFixture {
 protected:
  OwnStaticSanityTest() {
    class_parameters_ = "{}\n";
    // What is listed neither grows nor has a size that one could wish for.
    volume_bytes_ = grown_bytes_ = 512 * kMiB;
  }
  void SetUp() override {
    OwnSanityFixture::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const std::string why = WhyNoPeer(kProxy);
    if (!why.empty()) GTEST_SKIP() << why;
    for (size_t n = 0; n < kDevices; ++n) {
      const std::string file = scratch() + "/device-" + std::to_string(n);
      ASSERT_TRUE(MakeImage(file, volume_bytes_));
      devices_.emplace_back(file);
      ASSERT_TRUE(devices_.back().valid());
    }
    // The others are blank.
    for (const auto& [n, filesystem] : {std::pair{0, "ext4"}, {1, "xfs"}, {2, "btrfs"}}) {
      const CommandResult made =
          RunCommand({std::string("mkfs.") + filesystem, "-q", devices_[n].path()});
      ASSERT_EQ(made.exit_status, 0) << made.output;
    }
  }
  void TearDown() override {
    proxy_.End(SIGKILL);
    OwnSanityFixture::TearDown();
  }

  std::string proxied() const { return scratch() + "/proxied.sock"; }

  // With the devices as volumes of one kind, and the proxy before it.
  void StartListed(const std::string& setting) {
    std::string list;
    for (size_t n = 0; n < kDevices; ++n) {
      list += (n > 0 ? ", " : "") + ("d" + std::to_string(n)) + ": " + devices_[n].path();
    }
    settings[setting] = "{" + list + "}";
    ASSERT_NO_FATAL_FAILURE(StartDriver("central"));
    ASSERT_TRUE(Eventually(kPatience, [this] {
      return CountOf("a listed device is a volume") == kDevices;
    })) << FailedParts();
    const std::string said = scratch() + "/proxy.log";
    ASSERT_TRUE(proxy_.Start({PeerPath(kProxy), "--driver", endpoint(), "--listen", proxied(),
                              "--devices", std::to_string(kDevices)},
                             said, said));
    ASSERT_TRUE(Eventually(kPatience, [this] { return Exists(proxied()) || !proxy_.Runs(); }));
    ASSERT_TRUE(proxy_.Runs()) << ReadText(said);
  }
  size_t CountOf(const std::string& words) const {
    const std::string log = ReadText(log_path());
    size_t count = 0;
    for (size_t at = log.find(words); at != std::string::npos; at = log.find(words, at + 1))
      ++count;
    return count;
  }
  // What is on the n-th device: the UUID of its filesystem, and the kind; "" if it is blank.
  std::string OnDevice(size_t n) const {
    return RunCommand(
               {"blkid", "-p", "-o", "value", "-s", "UUID", "-s", "TYPE", devices_[n].path()})
        .output;
  }
  std::vector<std::string> OnDevices() const {
    std::vector<std::string> all;
    for (size_t n = 0; n < kDevices; ++n) all.push_back(OnDevice(n));
    return all;
  }
  // Which volume and which device it was is another one in each run.
  static std::string WithoutNames(std::string cases) {
    cases = std::regex_replace(cases, std::regex("v-[0-9a-f]{8}-[0-9a-f]{24}"), "VOLUME");
    return std::regex_replace(cases, std::regex("/dev/loop[0-9]+"), "DEVICE");
  }
  void ExpectRefusals(const std::vector<std::string>& more) {
    std::vector<std::string> flags = {"--csi.endpoint=" + proxied()};
    flags.insert(flags.end(), more.begin(), more.end());
    const Outcome outcome = RunSanity(flags);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.words, kOfListed);
    EXPECT_EQ(WithoutNames(outcome.failed), kRefused);
    EXPECT_EQ(outcome.skipped, "");
    EXPECT_EQ(MountsBelow(scratch() + "/stage").size() + MountsBelow(scratch() + "/mount").size(),
              0u);
    ExpectNothingLeft();
  }

  std::vector<LoopDevice> devices_;
  PeerProcess proxy_;
};

TEST_F(OwnStaticSanityTest, FilesystemsOfListedDevicesAreRefusedNothingButWhatIsForMadeVolumes) {
  ASSERT_NO_FATAL_FAILURE(StartListed("static-volumes"));
  const std::vector<std::string> before = OnDevices();
  ExpectRefusals({});
  const std::vector<std::string> after = OnDevices();
  for (size_t n = 0; n < kDevices; ++n) {
    // A blank one has got a filesystem, if it was among those that were staged.
    const bool was_formatted = before[n].empty() && after[n].find("ext4") != std::string::npos;
    EXPECT_TRUE(was_formatted || after[n] == before[n]) << before[n] << after[n];
  }
}

TEST_F(OwnStaticSanityTest, RawListedDevicesAreRefusedNothingButWhatIsForMadeVolumes) {
  ASSERT_NO_FATAL_FAILURE(StartListed("static-block-volumes"));
  const std::vector<std::string> before = OnDevices();
  ExpectRefusals({"--csi.testvolumeaccesstype=block"});
  EXPECT_EQ(OnDevices(), before);
}

}  // namespace
}  // namespace volumed::own_static_sanity_test
