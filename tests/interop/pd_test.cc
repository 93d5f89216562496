// The persistent disk driver of tests/interop/pd by itself: what tests of volumed rely on, over
// kills of its node server and of its cloud, between calls and in the middle of one; csi-sanity
// against it; and what a kubelet's plugin manager makes of its registrar.
#include <signal.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "integration/mount_namespace_fixture.h"
#include "interop/pd_client.h"
#include "interop/pd_harness.h"
#include "pluginregistration.grpc.pb.h"

namespace volumed::pd_test {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kGib = int64_t{1} << 30;

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void WriteTo(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  EXPECT_TRUE(file.good()) << path;
}

bool Eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

class PdTest : public MountNamespaceTest {
 protected:
  void SetUp() override {
    MountNamespaceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (const std::string why = PdDriver::WhyNot(); !why.empty()) GTEST_SKIP() << why;
    for (const char* name : {"pd", "root", "staging", "pods"}) {
      ASSERT_EQ(::mkdir((scratch() + "/" + name).c_str(), 0755), 0);
    }
    pd_ = std::make_unique<PdDriver>(PdDriver::Settings{
        .scratch = scratch() + "/pd", .kubelet_root = scratch() + "/root", .nodes = {"n1", "n2"}});
    client_ = std::make_unique<PdClient>(pd_->cloud_socket(), pd_->node_socket(), pd_->NodeId());
  }
  void TearDown() override {
    if (pd_ != nullptr && HasFailure()) std::cerr << pd_->Logs();
    pd_.reset();
    MountNamespaceTest::TearDown();
  }

  std::string Staging() const { return scratch() + "/staging/data"; }
  std::string Target() const { return scratch() + "/pods/data"; }
  std::string Kept() const { return TextOf(Target() + "/kept.txt"); }
  int64_t FilesystemBytes() const {
    struct statfs stat {};
    if (::statfs(Target().c_str(), &stat) != 0) return -1;
    return static_cast<int64_t>(stat.f_blocks) * stat.f_bsize;
  }

  // From a disk's making to its deletion; `between` is called before and after each call, and each
  // call is made a second time, as a caller does that has lost the answer.
  void WholeLife(const std::function<void()>& between) {
    std::string handle;
    const auto twice = [&](const std::string& what, const std::function<grpc::Status()>& call) {
      for (int time = 1; time <= 2; ++time) {
        ASSERT_NO_FATAL_FAILURE(between());
        const grpc::Status status = call();
        ASSERT_TRUE(status.ok()) << what << ", time " << time << ": " << status.error_message();
      }
    };
    twice("CreateVolume", [&] { return client_->Create("data", &handle); });
    ASSERT_EQ(handle, PdDriver::HandleOf("data"));
    twice("ControllerPublishVolume", [&] { return client_->Attach(handle); });
    ASSERT_EQ(pd_->Attached().size(), 1u);
    twice("NodeStageVolume", [&] { return client_->Stage(handle, Staging()); });
    twice("NodePublishVolume", [&] { return client_->Publish(handle, Staging(), Target()); });
    WriteTo(Target() + "/kept.txt", "kept");
    EXPECT_LT(FilesystemBytes(), kGib);
    twice("ControllerExpandVolume", [&] { return client_->Grow(handle, 2 * kGib); });
    twice("NodeExpandVolume", [&] { return client_->GrowOnNode(handle, Target(), 2 * kGib); });
    EXPECT_GT(FilesystemBytes(), kGib + kGib / 2);
    EXPECT_EQ(Kept(), "kept");
    twice("NodeUnpublishVolume", [&] { return client_->Unpublish(handle, Target()); });
    twice("NodeUnstageVolume", [&] { return client_->Unstage(handle, Staging()); });
    twice("ControllerUnpublishVolume", [&] { return client_->Detach(handle); });
    EXPECT_EQ(pd_->Attached(), std::vector<std::string>{});
    twice("DeleteVolume", [&] { return client_->Delete(handle); });
    EXPECT_EQ(pd_->DetachedInUse(), 0);
  }

  std::unique_ptr<PdDriver> pd_;
  std::unique_ptr<PdClient> client_;
};

TEST_F(PdTest, AVolumeLivesFromItsMakingToItsDeletionAndGrowsInUse) {
  ASSERT_TRUE(pd_->Start()) << pd_->Logs();
  WholeLife([] {});
}

TEST_F(PdTest, ItsNodeServerMayBeKilledBetweenAnyTwoCalls) {
  ASSERT_TRUE(pd_->StartCloud()) << pd_->Logs();
  WholeLife([this] {
    pd_->KillNode();
    ASSERT_TRUE(pd_->StartNode()) << pd_->Logs();
  });
}

TEST_F(PdTest, ItsCloudForgetsNothingWhenItIsKilledBetweenAnyTwoCalls) {
  ASSERT_TRUE(pd_->StartNode()) << pd_->Logs();
  WholeLife([this] {
    pd_->KillCloud();
    ASSERT_TRUE(pd_->StartCloud()) << pd_->Logs();
  });
}

TEST_F(PdTest, ItsCloudKilledInTheMiddleOfACallLeavesNothingThatTheNextOneDoesNotMend) {
  std::mt19937 random(20261127);
  const std::string handle = PdDriver::HandleOf("data");
  std::string made;
  const std::vector<std::function<grpc::Status(bool)>> calls = {
      [&](bool wait) { return client_->Create("data", &made, wait); },
      [&](bool wait) { return client_->Attach(handle, wait); },
      [&](bool wait) { return client_->Grow(handle, 2 * kGib, wait); },
      [&](bool wait) { return client_->Detach(handle, wait); },
      [&](bool wait) { return client_->Delete(handle, wait); }};
  const std::vector<size_t> loops_after = {0, 1, 1, 0, 0};
  ASSERT_TRUE(pd_->StartCloud()) << pd_->Logs();
  for (int round = 0; round < 4; ++round) {
    for (size_t at = 0; at < calls.size(); ++at) {
      const auto pause =
          std::chrono::microseconds(std::uniform_int_distribution<>(0, 30'000)(random));
      std::thread cut([&] {
        std::this_thread::sleep_for(pause);
        pd_->KillCloud();
      });
      (void)calls[at](false);
      cut.join();
      ASSERT_TRUE(pd_->StartCloud()) << pd_->Logs();
      const grpc::Status status = calls[at](true);
      ASSERT_TRUE(status.ok()) << "call " << at << ": " << status.error_message();
      ASSERT_EQ(pd_->Attached().size(), loops_after[at]) << "call " << at;
    }
  }
  EXPECT_FALSE(fs::exists(scratch() + "/pd/cloud/disks/" + PdDriver::kZone + "/data"));
}

TEST_F(PdTest, ItsNodeServerDiesAtTheCallThatItIsToldOfBeforeItsEffectOrAfterIt) {
  ASSERT_TRUE(pd_->StartCloud()) << pd_->Logs();
  std::string handle;
  ASSERT_TRUE(client_->Create("data", &handle).ok());
  ASSERT_TRUE(client_->Attach(handle).ok());
  struct Step {
    const char* method;
    std::function<grpc::Status()> call;
    std::string place;
    bool is_mount;  // afterwards
  };
  const std::vector<Step> steps = {
      {"NodeStageVolume", [&] { return client_->Stage(handle, Staging()); }, Staging(), true},
      {"NodePublishVolume", [&] { return client_->Publish(handle, Staging(), Target()); }, Target(),
       true},
      {"NodeUnpublishVolume", [&] { return client_->Unpublish(handle, Target()); }, Target(),
       false},
      {"NodeUnstageVolume", [&] { return client_->Unstage(handle, Staging()); }, Staging(), false}};
  ASSERT_TRUE(pd_->StartNode()) << pd_->Logs();
  for (const PdDriver::When when : {PdDriver::When::kBefore, PdDriver::When::kAfter}) {
    for (const Step& step : steps) {
      pd_->SetTrap(step.method, when, PdDriver::Fate::kServerDies);
      EXPECT_EQ(step.call().error_code(), grpc::StatusCode::UNAVAILABLE);
      // Its sockets are closed before it has ended.
      EXPECT_TRUE(Eventually([&] { return !pd_->NodeRuns(); }));
      const bool is_mount =
          TextOf("/proc/self/mountinfo").find(" " + step.place + " ") != std::string::npos;
      EXPECT_EQ(is_mount, when == PdDriver::When::kAfter ? step.is_mount : !step.is_mount)
          << step.place;
      ASSERT_TRUE(pd_->StartNode()) << pd_->Logs();
      const grpc::Status status = step.call();
      ASSERT_TRUE(status.ok()) << status.error_message();
    }
  }
  ASSERT_TRUE(client_->Detach(handle).ok());
}

TEST_F(PdTest, ItHoldsTheCallThatItIsToldOfBeforeItsEffectOrAfterItUntilItIsReleased) {
  ASSERT_TRUE(pd_->StartCloud()) << pd_->Logs();
  const std::string image = scratch() + "/pd/cloud/disks/" + PdDriver::kZone + "/data";
  for (const PdDriver::When when : {PdDriver::When::kBefore, PdDriver::When::kAfter}) {
    pd_->SetTrap("CreateVolume", when, PdDriver::Fate::kHeld);
    std::string handle;
    std::future<grpc::Status> made =
        std::async(std::launch::async, [&] { return client_->Create("data", &handle); });
    EXPECT_TRUE(Eventually([&] { return pd_->Sprung(); }));
    EXPECT_EQ(fs::exists(image), when == PdDriver::When::kAfter);
    EXPECT_EQ(made.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
    pd_->Release();
    const grpc::Status status = made.get();
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_TRUE(fs::exists(image));
    ASSERT_TRUE(client_->Delete(handle).ok());
  }
}

TEST_F(PdTest, ADiskThatOneNodeWritesIsRefusedToAnother) {
  ASSERT_TRUE(pd_->Start()) << pd_->Logs();
  std::string handle;
  ASSERT_TRUE(client_->Create("data", &handle).ok());
  ASSERT_TRUE(client_->Attach(handle).ok());
  const grpc::Status refused = client_->AttachTo(handle, pd_->NodeId(1));
  EXPECT_FALSE(refused.ok());
  EXPECT_NE(refused.error_message().find("used by instance n1"), std::string::npos)
      << refused.error_message();
  ASSERT_TRUE(client_->Detach(handle).ok());
  // The controller keeps a caller away for a while after a refusal.
  EXPECT_TRUE(Eventually([&] { return client_->AttachTo(handle, pd_->NodeId(1)).ok(); }));
}

// Its cloud said of no disk who has it, so the driver listed attached volumes without their node.
TEST_F(PdTest, AnAttachedVolumeIsListedWithItsNodeAndADetachedOneWithout) {
  ASSERT_TRUE(pd_->StartCloud()) << pd_->Logs();
  std::string handle;
  ASSERT_TRUE(client_->Create("data", &handle).ok());
  const auto listed_with_node = [&] {
    csi::v1::ListVolumesResponse list;
    EXPECT_TRUE(client_->AskController(&PdClient::Controller::ListVolumes, {}, &list).ok());
    EXPECT_EQ(list.entries_size(), 1);
    for (const auto& entry : list.entries()) {
      EXPECT_EQ(entry.volume().volume_id(), handle);
      // The driver puts an empty name before each.
      for (const std::string& node : entry.status().published_node_ids()) {
        if (node == pd_->NodeId()) return true;
      }
    }
    return false;
  };
  EXPECT_FALSE(listed_with_node());
  ASSERT_TRUE(client_->Attach(handle).ok());
  EXPECT_TRUE(listed_with_node());
  ASSERT_TRUE(client_->Detach(handle).ok());
  EXPECT_FALSE(listed_with_node());
}

TEST_F(PdTest, ABlockVolumeIsTheDiskItself) {
  ASSERT_TRUE(pd_->Start()) << pd_->Logs();
  client_->capability = PdClient::Block();
  std::string handle;
  ASSERT_TRUE(client_->Create("data", &handle).ok());
  ASSERT_TRUE(client_->Attach(handle).ok());
  ASSERT_TRUE(client_->Stage(handle, Staging()).ok());
  const grpc::Status published = client_->Publish(handle, Staging(), Target());
  ASSERT_TRUE(published.ok()) << published.error_message();
  struct stat of_target {};
  struct stat of_loop {};
  ASSERT_EQ(::stat(Target().c_str(), &of_target), 0);
  const std::string loop = pd_->Attached().at(0);
  ASSERT_EQ(::stat(loop.substr(0, loop.find(' ')).c_str(), &of_loop), 0);
  EXPECT_TRUE(S_ISBLK(of_target.st_mode));
  EXPECT_EQ(of_target.st_rdev, of_loop.st_rdev);
  ASSERT_TRUE(client_->Unpublish(handle, Target()).ok());
  ASSERT_TRUE(client_->Unstage(handle, Staging()).ok());
  ASSERT_TRUE(client_->Detach(handle).ok());
}

TEST_F(PdTest, ASnapshotIsReadyAtTheSecondLookAndBecomesAnotherDisk) {
  ASSERT_TRUE(pd_->Start()) << pd_->Logs();
  std::string handle;
  ASSERT_TRUE(client_->Create("data", &handle).ok());
  csi::v1::CreateSnapshotRequest request;
  request.set_source_volume_id(handle);
  request.set_name("snap");
  csi::v1::CreateSnapshotResponse first, second;
  ASSERT_TRUE(client_->AskController(&PdClient::Controller::CreateSnapshot, request, &first).ok());
  EXPECT_FALSE(first.snapshot().ready_to_use());
  pd_->KillCloud();
  ASSERT_TRUE(pd_->StartCloud()) << pd_->Logs();
  ASSERT_TRUE(client_->AskController(&PdClient::Controller::CreateSnapshot, request, &second).ok());
  EXPECT_TRUE(second.snapshot().ready_to_use());
  csi::v1::CreateVolumeRequest restore;
  restore.set_name("restored");
  restore.mutable_capacity_range()->set_required_bytes(kGib);
  *restore.add_volume_capabilities() = client_->capability;
  restore.mutable_volume_content_source()->mutable_snapshot()->set_snapshot_id(
      second.snapshot().snapshot_id());
  csi::v1::CreateVolumeResponse restored;
  const grpc::Status status =
      client_->AskController(&PdClient::Controller::CreateVolume, restore, &restored);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(restored.volume().content_source().snapshot().snapshot_id(),
            second.snapshot().snapshot_id());
}

TEST_F(PdTest, ItsNodeNamesItsZoneAndItsLimitByTheMachinesType) {
  pd_ = std::make_unique<PdDriver>(PdDriver::Settings{.scratch = scratch() + "/pd",
                                                      .kubelet_root = scratch() + "/root",
                                                      .nodes = {"n1"},
                                                      .machine_type = "c4a-standard-1"});
  ASSERT_TRUE(pd_->StartNode()) << pd_->Logs();
  csi::v1::NodeGetInfoResponse info;
  ASSERT_TRUE(client_->AskNode(&PdClient::Node::NodeGetInfo, {}, &info).ok());
  EXPECT_EQ(info.node_id(), pd_->NodeId());
  EXPECT_EQ(info.max_volumes_per_node(), 7);
  EXPECT_EQ(info.accessible_topology().segments().at(PdDriver::kTopologyKey), PdDriver::kZone);
}

TEST_F(PdTest, ItsRegistrarSpeaksForTheDriverUntilItIsEndedAndLeavesItsSocketWhenKilled) {
  ASSERT_TRUE(pd_->StartNode() && pd_->StartRegistrar()) << pd_->Logs();
  pluginregistration::Registration::Stub stub(PdClient::Channel(pd_->registration_socket()));
  pluginregistration::PluginInfo info;
  ASSERT_TRUE(
      PdClient::Call(stub, &pluginregistration::Registration::Stub::GetInfo, {}, &info).ok());
  EXPECT_EQ(info.type(), "CSIPlugin");
  EXPECT_EQ(info.name(), PdDriver::kName);
  EXPECT_EQ(info.endpoint(), pd_->node_socket());
  pd_->KillRegistrar();
  EXPECT_TRUE(fs::exists(pd_->registration_socket()));
  ASSERT_TRUE(pd_->StartRegistrar()) << pd_->Logs();
  pd_->EndRegistrar();
  EXPECT_FALSE(fs::exists(pd_->registration_socket()));
}

TEST_F(PdTest, AKubeletsPluginManagerTakesItsRegistrarAndLetsItGo) {
  if (const std::string why = WhyNoPeer("csi-peer"); !why.empty()) GTEST_SKIP() << why;
  const std::string said = scratch() + "/verdicts";
  PeerProcess peer;
  ASSERT_TRUE(pd_->StartNode()) << pd_->Logs();
  ASSERT_TRUE(peer.Start({PeerPath("csi-peer"), "--registry", scratch() + "/root/plugins_registry"},
                         said, scratch() + "/peer.log"));
  ASSERT_TRUE(pd_->StartRegistrar()) << pd_->Logs();
  const std::string what = std::string(PdDriver::kName) + " " + pd_->node_socket();
  EXPECT_TRUE(Eventually([&] {
    return TextOf(said).find("REGISTER " + what + " [1.0.0]\n") != std::string::npos;
  })) << TextOf(said)
      << TextOf(scratch() + "/peer.log");
  EXPECT_NE(TextOf(said).find("VALIDATE " + what + " [1.0.0] <nil>\n"), std::string::npos);
  pd_->EndRegistrar();
  EXPECT_TRUE(Eventually([&] {
    return TextOf(said).find("DEREGISTER " + what + "\n") != std::string::npos;
  })) << TextOf(said);
}

// Left out is what the driver's own suite leaves out (expansion by a staged volume's path), what a
// disk of its default type cannot do (to be modified), and four tests with volume IDs that the
// suite makes up, which have no form that this driver takes. After a refused attachment the driver
// keeps the caller away for a while, and the suite cleans up at once.
TEST_F(PdTest, CsiSanityHasNothingAgainstIt) {
  if (const std::string why = WhyNoPeer("csi-sanity"); !why.empty()) GTEST_SKIP() << why;
  ASSERT_TRUE(pd_->StartCloud() && pd_->StartNode()) << pd_->Logs();
  const std::string report = scratch() + "/sanity.log";
  std::vector<std::string> command = {PeerPath("csi-sanity"),
                                      "--csi.endpoint=" + pd_->node_socket(),
                                      "--csi.controllerendpoint=" + pd_->cloud_socket(),
                                      "--csi.mountdir=" + scratch() + "/mount",
                                      "--csi.stagingdir=" + scratch() + "/stage",
                                      "--csi.testvolumesize=1073741824",
                                      "--csi.testvolumeexpandsize=2147483648",
                                      "--ginkgo.no-color"};
  for (const char* skipped :
       {"NodeExpandVolume.*should (work if node-expand is called after node-publish|fail when "
        "volume is not found)",
        "(ControllerPublishVolume|ValidateVolumeCapabilities).*should fail when the (requested "
        ")?volume does not exist",
        "CreateVolume.*should fail when the volume source volume is not found",
        "ControllerPublishVolume.*should fail when the volume is already published but is "
        "incompatible",
        "ModifyVolume.*should modify a volume created with"}) {
    command.push_back(std::string("--ginkgo.skip=") + skipped);
  }
  PeerProcess sanity;
  ASSERT_TRUE(sanity.Start(command, report, report));
  const int status = sanity.Wait();
  const std::string text = TextOf(report);
  const size_t ran = text.find("Ran ");
  ASSERT_NE(ran, std::string::npos) << text;
  EXPECT_EQ(status, 0) << text;
  RecordProperty("csi_sanity", text.substr(ran, text.find('\n', ran) - ran));
  EXPECT_EQ(pd_->Attached(), std::vector<std::string>{});
}

}  // namespace
}  // namespace volumed::pd_test
