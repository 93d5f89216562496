// The fake CSI driver's own volumes, on real mounts and loop devices: what it makes, what it takes
// away, and that its lies are what they say. No daemon is in it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "csi.pb.h"
#include "csi/rpc/csi_channel.h"
#include "fakes/csi_fake_driver.h"
#include "fakes/csi_fake_log.h"
#include "fakes/csi_fake_process.h"
#include "integration/loop_device.h"
#include "integration/mount_namespace_fixture.h"

namespace volumed {
namespace {

namespace fs = std::filesystem;
namespace v1 = ::csi::v1;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
constexpr int64_t kMi = int64_t{1} << 20;

class CsiFakeMountsTest : public MountNamespaceTest {
 protected:
  void SetUp() override {
    MountNamespaceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    options_.directory = scratch() + "/driver";
    options_.endpoint = scratch() + "/csi.sock";
    options_.log = scratch() + "/log";
    options_.node_capabilities = {"STAGE_UNSTAGE_VOLUME", "GET_VOLUME_STATS", "EXPAND_VOLUME"};
    for (const char* directory : {"/stage", "/stage2", "/pods"}) {
      fs::create_directory(scratch() + directory);
    }
  }
  void TearDown() override {
    channel_.reset();
    driver_.reset();
    process_.reset();
    if (!scratch().empty()) CsiFakeWorld::Clear(options_.directory);
    MountNamespaceTest::TearDown();
  }

  void Begin() {
    driver_.reset();  // its end takes the socket along
    driver_ = std::make_unique<CsiFakeDriver>(options_);
    Connect();
  }
  void Connect() {
    CsiChannelOptions options;
    options.driver = "fake";
    options.socket = options_.endpoint;
    auto channel = CsiChannel::Create(options, clock_, watch_);
    ASSERT_TRUE(channel.ok()) << channel.error().ToString();
    channel_ = std::move(channel).value();
  }
  template <typename Response>
  std::string Ask(const google::protobuf::Message& request) {
    const auto answer = channel_->Call<Response>(request, {});
    return answer.ok() ? "" : answer.error().ToString();
  }
  static void Use(v1::VolumeCapability* capability, bool block) {
    if (block) {
      capability->mutable_block();
    } else {
      capability->mutable_mount();
    }
  }
  std::string Stage(bool block = false, const std::string& volume = "v1") {
    v1::NodeStageVolumeRequest request;
    request.set_volume_id(volume);
    request.set_staging_target_path(staging());
    Use(request.mutable_volume_capability(), block);
    return Ask<v1::NodeStageVolumeResponse>(request);
  }
  std::string Publish(const std::string& pod, bool block = false, bool readonly = false) {
    v1::NodePublishVolumeRequest request;
    request.set_volume_id("v1");
    request.set_staging_target_path(staging());
    request.set_target_path(Target(pod));
    request.set_readonly(readonly);
    Use(request.mutable_volume_capability(), block);
    return Ask<v1::NodePublishVolumeResponse>(request);
  }
  std::string Unpublish(const std::string& pod) {
    v1::NodeUnpublishVolumeRequest request;
    request.set_volume_id("v1");
    request.set_target_path(Target(pod));
    return Ask<v1::NodeUnpublishVolumeResponse>(request);
  }
  std::string Unstage() {
    v1::NodeUnstageVolumeRequest request;
    request.set_volume_id("v1");
    request.set_staging_target_path(staging());
    return Ask<v1::NodeUnstageVolumeResponse>(request);
  }
  Result<v1::NodeExpandVolumeResponse> Expand(int64_t bytes) {
    v1::NodeExpandVolumeRequest request;
    request.set_volume_id("v1");
    request.set_volume_path(Target("a"));
    request.mutable_capacity_range()->set_required_bytes(bytes);
    return channel_->Call<v1::NodeExpandVolumeResponse>(request, {});
  }
  Result<v1::NodeGetVolumeStatsResponse> Stats() {
    v1::NodeGetVolumeStatsRequest request;
    request.set_volume_id("v1");
    request.set_volume_path(Target("a"));
    return channel_->Call<v1::NodeGetVolumeStatsResponse>(request, {});
  }
  std::string staging() const { return scratch() + "/stage"; }
  std::string Target(const std::string& pod) const { return scratch() + "/pods/" + pod; }
  static bool IsWritable(const std::string& path) {
    struct statvfs info {};
    return ::statvfs(path.c_str(), &info) == 0 && (info.f_flag & ST_RDONLY) == 0;
  }
  std::string Violations() const {
    std::string all;
    for (const std::string& text : ViolationsOf(ReadCsiFakeLog(options_.log))) all += text + "\n";
    return all;
  }

  RealClock clock_;
  CsiStateWatch watch_;
  CsiFakeOptions options_;
  std::unique_ptr<CsiFakeDriver> driver_;
  std::unique_ptr<CsiFakeProcess> process_;
  std::unique_ptr<CsiChannel> channel_;
};

TEST_F(CsiFakeMountsTest, AVolumeIsStagedOnceAndBoundForEachPod) {
  for (const char* volumes : {"tmpfs", "directory", "loop"}) {
    if (std::string(volumes) == "loop" && !HasLoopDevices()) continue;
    SCOPED_TRACE(volumes);
    options_.volumes = volumes;
    options_.directory = scratch() + "/" + volumes;
    ASSERT_NO_FATAL_FAILURE(Begin());
    ASSERT_EQ(Stage(), "");
    ASSERT_EQ(Stage(), "") << "it is the same call";
    EXPECT_EQ(LayersAt(staging()), 1);
    ASSERT_EQ(Publish("a"), "");
    ASSERT_EQ(Publish("a"), "");
    ASSERT_EQ(Publish("b", false, true), "");
    EXPECT_EQ(LayersAt(Target("a")), 1);
    std::ofstream(Target("a") + "/file") << "text";
    EXPECT_TRUE(fs::exists(Target("b") + "/file"));
    EXPECT_TRUE(IsWritable(Target("a")));
    EXPECT_FALSE(IsWritable(Target("b")));
    EXPECT_THAT(Unstage(), HasSubstr("is published at"));
    ASSERT_EQ(Unpublish("a"), "");
    ASSERT_EQ(Unpublish("b"), "");
    EXPECT_FALSE(fs::exists(Target("a")));
    ASSERT_EQ(Unstage(), "");
    EXPECT_EQ(LayersAt(staging()), 0);
    // Its content is there again.
    ASSERT_EQ(Stage(), "");
    EXPECT_TRUE(fs::exists(staging() + "/file"));
    ASSERT_EQ(Unstage(), "");
    CsiFakeWorld::Clear(options_.directory);
    EXPECT_EQ(LayersAt(options_.directory + "/volumes/v1/data"), 0);
    EXPECT_EQ(LoopDeviceOf(options_.directory + "/volumes/v1/image"), "");
  }
}

TEST_F(CsiFakeMountsTest, ABlockVolumeIsABindOfItsDevice) {
  if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
  ASSERT_NO_FATAL_FAILURE(Begin());
  ASSERT_EQ(Stage(true), "");
  ASSERT_EQ(Publish("a", true), "");
  struct stat info {};
  ASSERT_EQ(::stat(Target("a").c_str(), &info), 0);
  EXPECT_TRUE(S_ISBLK(info.st_mode));
  EXPECT_EQ(Stats()->usage(0).total(), 16 * kMi);
  EXPECT_EQ(Expand(32 * kMi)->capacity_bytes(), 32 * kMi);
  {
    const Descriptor device(::open(Target("a").c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_EQ(::lseek(device.get(), 0, SEEK_END), 32 * kMi);
  }
  ASSERT_EQ(Unpublish("a"), "");
  EXPECT_FALSE(fs::exists(Target("a")));
  EXPECT_NE(LoopDeviceOf(options_.directory + "/volumes/v1/image"), "");
  ASSERT_EQ(Unstage(), "");
  EXPECT_EQ(LoopDeviceOf(options_.directory + "/volumes/v1/image"), "");
}

TEST_F(CsiFakeMountsTest, AMountGrowsAndHasFigures) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  ASSERT_EQ(Stage(), "");
  ASSERT_EQ(Publish("a"), "");
  EXPECT_EQ(Stats()->usage(0).total(), 16 * kMi);
  driver_->Script(R"([{"rpc": "NodeExpandVolume", "times": 1, "effect": "none",
                       "answer": {"capacityBytes": "33554432"}}])");
  EXPECT_EQ(Expand(32 * kMi)->capacity_bytes(), 32 * kMi);
  EXPECT_EQ(Stats()->usage(0).total(), 16 * kMi) << "it has lied";
  EXPECT_EQ(Expand(32 * kMi)->capacity_bytes(), 32 * kMi);
  EXPECT_EQ(Stats()->usage(0).total(), 32 * kMi);
  EXPECT_EQ(Stats()->usage_size(), 2);
}

TEST_F(CsiFakeMountsTest, ItsLiesAreWhatTheySay) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  ASSERT_EQ(Stage(), "");
  const auto publish = [this](const std::string& effect, bool readonly = false) {
    driver_->Script(R"([{"rpc": "NodePublishVolume", "effect": ")" + effect + R"("}])");
    const std::string said = Publish("a", false, readonly);
    driver_->Script("[]");
    return said;
  };
  ASSERT_EQ(publish("no-mount"), "");
  EXPECT_TRUE(fs::is_directory(Target("a")));
  EXPECT_EQ(LayersAt(Target("a")), 0);
  ASSERT_EQ(publish("no-target"), "");
  EXPECT_FALSE(fs::exists(Target("a")));
  ASSERT_EQ(publish("elsewhere"), "");
  EXPECT_EQ(LayersAt(Target("a")), 0);
  EXPECT_EQ(LayersAt(options_.directory + "/volumes/v1/elsewhere"), 1);
  ASSERT_EQ(Unpublish("a"), "");
  EXPECT_EQ(LayersAt(options_.directory + "/volumes/v1/elsewhere"), 0);
  ASSERT_EQ(publish("writable", true), "");
  EXPECT_TRUE(IsWritable(Target("a")));
  ASSERT_EQ(Unpublish("a"), "");
  std::ofstream(staging() + "/mine") << "";
  ASSERT_EQ(publish("other-volume"), "");
  EXPECT_EQ(LayersAt(Target("a")), 1);
  EXPECT_FALSE(fs::exists(Target("a") + "/mine"));
  ASSERT_EQ(Unpublish("a"), "");

  ASSERT_EQ(publish("two-layers"), "");
  EXPECT_EQ(LayersAt(Target("a")), 2);
  driver_->Script(R"([{"rpc": "NodeUnpublishVolume", "times": 1, "effect": "none"},
                      {"rpc": "NodeUnpublishVolume", "times": 1, "effect": "one-layer"},
                      {"rpc": "NodeUnpublishVolume", "times": 1, "effect": "leave-file"}])");
  ASSERT_EQ(Unpublish("a"), "");
  EXPECT_EQ(LayersAt(Target("a")), 2);
  ASSERT_EQ(Unpublish("a"), "");
  EXPECT_EQ(LayersAt(Target("a")), 1);
  ASSERT_EQ(Unpublish("a"), "");
  EXPECT_TRUE(fs::exists(Target("a") + "/left"));
  fs::remove(Target("a") + "/left");
  ASSERT_EQ(Unpublish("a"), "");
  EXPECT_EQ(Violations(), "");
}

TEST_F(CsiFakeMountsTest, LiesAboutABlockVolumeAreWhatTheySay) {
  if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
  ASSERT_NO_FATAL_FAILURE(Begin());
  ASSERT_EQ(Stage(true), "");
  for (const char* effect : {"file", "directory", "other-volume"}) {
    SCOPED_TRACE(effect);
    driver_->Script(std::string(R"([{"rpc": "NodePublishVolume", "effect": ")") + effect +
                    R"("}])");
    ASSERT_EQ(Publish("a", true), "");
    struct stat info {};
    struct stat own {};
    ASSERT_EQ(::stat(Target("a").c_str(), &info), 0);
    const std::string device = LoopDeviceOf(options_.directory + "/volumes/v1/image");
    ASSERT_EQ(::stat(device.c_str(), &own), 0);
    EXPECT_FALSE(S_ISBLK(info.st_mode) && info.st_rdev == own.st_rdev);
    ASSERT_EQ(Unpublish("a"), "");
  }
  EXPECT_EQ(Unstage(), "");
}

TEST_F(CsiFakeMountsTest, WithoutStagingTheVolumeItselfIsBound) {
  options_.node_capabilities = {};
  ASSERT_NO_FATAL_FAILURE(Begin());
  ASSERT_EQ(Publish("a"), "");
  EXPECT_EQ(LayersAt(Target("a")), 1);
  EXPECT_THAT(Stage(), HasSubstr("Unimplemented"));
  ASSERT_EQ(Unpublish("a"), "");
  EXPECT_THAT(Violations(), HasSubstr("without the capability STAGE_UNSTAGE_VOLUME"));
}

TEST_F(CsiFakeMountsTest, WhatADriverThatForgetsHasMountedStays) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  ASSERT_EQ(Stage(), "");
  ASSERT_EQ(Publish("a"), "");
  driver_->Tell(R"({"forget": true})");
  EXPECT_THAT(Unpublish("a"), HasSubstr("NotFound"));
  EXPECT_EQ(LayersAt(Target("a")), 1);
  EXPECT_THAT(Publish("b"), HasSubstr("NotFound"));
  ASSERT_EQ(Stage(), "");
  EXPECT_EQ(LayersAt(staging()), 1);
  ASSERT_EQ(Unpublish("a"), "");
  ASSERT_EQ(Unstage(), "");
}

TEST_F(CsiFakeMountsTest, AProcessThatDiesAfterTheEffectFindsItsMountsAgain) {
  process_ = std::make_unique<CsiFakeProcess>(options_);
  ASSERT_TRUE(process_->Start());
  ASSERT_NO_FATAL_FAILURE(Connect());
  process_->Script(R"([{"rpc": "NodeStageVolume", "die": "before"}])");
  EXPECT_THAT(Stage(), HasSubstr("Unavailable"));
  EXPECT_EQ(LayersAt(staging()), 0);
  ASSERT_TRUE(process_->WaitUntilDead());
  ASSERT_TRUE(process_->Start());
  channel_->Reconnect();
  process_->Script(R"([{"rpc": "NodeStageVolume", "die": "after"}])");
  EXPECT_THAT(Stage(), HasSubstr("Unavailable"));
  EXPECT_EQ(LayersAt(staging()), 1);
  ASSERT_TRUE(process_->WaitUntilDead());
  ASSERT_TRUE(process_->Start());
  channel_->Reconnect();
  EXPECT_EQ(Stage(), "");
  EXPECT_EQ(Publish("a"), "");
  EXPECT_EQ(Unpublish("a"), "");
  EXPECT_EQ(Unstage(), "");
  EXPECT_EQ(Violations(), "");
}

}  // namespace
}  // namespace volumed
