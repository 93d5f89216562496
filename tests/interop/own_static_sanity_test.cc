// Devices that an administrator has listed, asked by csi-sanity: they are volumes of the driver
// that nobody makes, so a proxy (tests/interop/csi-static) stands where the suite calls
// CreateVolume, DeleteVolume and ListVolumes. What is made of them the driver itself makes.
#include <gtest/gtest.h>

#include <csignal>
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
constexpr char kAll[] = "102 Passed | 0 Failed | 1 Pending | 0 Skipped";

class OwnStaticSanityTest : public OwnSanityFixture {
 protected:
  OwnStaticSanityTest() {
    class_parameters_ = "{}\n";
    // A device has no other mutable parameter.
    changes_ = "readAheadKiB: \"512\"\n";
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
  void ExpectAll(std::vector<std::string> flags) {
    flags.insert(flags.begin(), "--csi.endpoint=" + proxied());
    ExpectSanity(flags, kAll);
    EXPECT_EQ(MountsBelow(scratch() + "/stage").size() + MountsBelow(scratch() + "/mount").size(),
              0u);
  }

  std::vector<LoopDevice> devices_;
  PeerProcess proxy_;
};

TEST_F(OwnStaticSanityTest, FilesystemsOfListedDevicesPassEachCase) {
  ASSERT_NO_FATAL_FAILURE(StartListed("static-volumes"));
  const std::vector<std::string> before = OnDevices();
  ExpectAll({});
  const std::vector<std::string> after = OnDevices();
  for (size_t n = 0; n < kDevices; ++n) {
    // A blank one has got a filesystem, if it was among those that were staged.
    const bool was_formatted = before[n].empty() && after[n].find("ext4") != std::string::npos;
    EXPECT_TRUE(was_formatted || after[n] == before[n]) << before[n] << after[n];
  }
}

TEST_F(OwnStaticSanityTest, RawListedDevicesPassEachCase) {
  ASSERT_NO_FATAL_FAILURE(StartListed("static-block-volumes"));
  const std::vector<std::string> before = OnDevices();
  ExpectAll({"--csi.testvolumeaccesstype=block"});
  EXPECT_EQ(OnDevices(), before);
}

}  // namespace
}  // namespace volumed::own_static_sanity_test
