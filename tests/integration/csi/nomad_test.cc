// Nomad as the orchestrator of the real daemon: the calls of its servers and of its client in their
// order, with their paths, their socket and their three tries, and the settings of examples/nomad.
// The daemon is killed between the calls, between the tries of one, and amid them.
// Source: hashicorp/nomad of August 2026, client/pluginmanager/csimanager/volume.go and
// client/allocrunner/taskrunner/plugin_supervisor_hook.go.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "integration/csi/own_volumes_fixture.h"
#include "places.h"

namespace volumed::nomad_test {
namespace {

namespace fs = std::filesystem;
using ::csi::v1::Controller;
using ::csi::v1::Identity;
using ::csi::v1::Node;
using ControllerCan = ::csi::v1::ControllerServiceCapability::RPC;
using NodeCan = ::csi::v1::NodeServiceCapability::RPC;

constexpr const char* kNode = "n1";  // as the fixture calls it
constexpr const char* kWrites = "rw-file-system-single-node-writer";
constexpr const char* kReads = "ro-file-system-single-node-writer";
constexpr int kTries = 3;
constexpr Milliseconds kPauseOfFirstTry(100);

// What an allocation wants of a volume. Nomad's directories are named so.
struct Claim {
  std::string volume;
  std::string allocation;
  std::string usage;
};

using Step = std::function<std::string()>;  // "", or the error

class NomadTest : public OwnVolumesFixture {
 protected:
  NomadTest() : OwnVolumesFixture("xfs", 2048 * kMiB) {}

  void SetUp() override {
    OwnVolumesFixture::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (const char* key : {"csi-serve", "csi-target-roots", "pool"}) settings.erase(key);
    std::istringstream lines(Here(ReadText(SourcePath("examples/nomad/volumed.yaml"))));
    for (std::string line; std::getline(lines, line);) {
      const size_t colon = line.find(": ");
      if (!line.starts_with('#')) settings[line.substr(0, colon)] = line.substr(colon + 2);
    }
    fs::create_directories(fs::path(endpoint()).parent_path());
    ::setenv("CSI_ENDPOINT", ("unix://" + endpoint()).c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("CSI_ENDPOINT");
    OwnVolumesFixture::TearDown();
  }

  // The same text with the directories of this test.
  std::string Here(std::string text) const {
    return Replaced(Replaced(std::move(text), "/opt/nomad/data", scratch() + "/nomad"), "/srv/fast",
                    pool());
  }
  std::string endpoint() const override {
    return Here("/opt/nomad/data/client/csi/plugins/1f0b6a52-93ce-4b0e-8f63-0c1d1f6a2011/csi.sock");
  }
  // What the job says.
  std::string co() const override {
    const std::string job = ReadText(SourcePath("examples/nomad/plugin.nomad.hcl"));
    const std::string key = "stage_publish_base_dir = \"";
    const size_t begin = job.find(key) + key.size();
    return Here(job.substr(begin, job.find('"', begin) - begin));
  }
  std::string staging(int n = 0) const override {
    const Claim& claim = claims_.at(static_cast<size_t>(n));
    return co() + "/staging/default/" + claim.volume + "/" + claim.usage;
  }
  std::string target(int n = 0) const override {
    const Claim& claim = claims_.at(static_cast<size_t>(n));
    return co() + "/per-alloc/" + claim.allocation + "/" + claim.volume + "/" + claim.usage;
  }
  static bool IsMountPoint(const std::string& path) { return !MountsBelow(path).empty(); }

  // "", or the error of the last try.
  template <typename Service, typename Request, typename Response>
  std::string Try(CsiMethodOfStub<Service, Request, Response> method, const Request& request,
                  Response* response) {
    grpc::Status status;
    for (int i = 0; i < kTries; ++i) {
      if (i > 0) {
        std::this_thread::sleep_for(kPauseOfFirstTry * (1 << (i - 1)));
        if (between_tries_) between_tries_();
      }
      ++tries_;
      status = CallOnce<Service>(method, request, response);
      if (status.ok()) return "";
      if (status.error_code() != grpc::StatusCode::UNAVAILABLE &&
          status.error_code() != grpc::StatusCode::RESOURCE_EXHAUSTED &&
          status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED) {
        break;
      }
    }
    return std::to_string(status.error_code()) + ": " + status.error_message();
  }

  // What the supervisor and the fingerprints of a client ask: when a plugin comes, and every 30 s.
  void Fingerprint() const {
    ASSERT_TRUE(Eventually(kPatience, [this] {
      ::csi::v1::ProbeResponse probe;
      return CallOnce<Identity>(&Identity::Stub::Probe, ::csi::v1::ProbeRequest(), &probe).ok() &&
             (!probe.has_ready() || probe.ready().value());
    }));
    ::csi::v1::GetPluginInfoResponse info;
    ASSERT_EQ(
        Call<Identity>(&Identity::Stub::GetPluginInfo, ::csi::v1::GetPluginInfoRequest(), &info),
        "");
    EXPECT_EQ(info.name(), "pool.volumed.io");
    ::csi::v1::NodeGetInfoResponse node;
    ASSERT_EQ(Call<Node>(&Node::Stub::NodeGetInfo, ::csi::v1::NodeGetInfoRequest(), &node), "");
    EXPECT_EQ(node.node_id(), kNode);
    ::csi::v1::ControllerGetCapabilitiesResponse controller;
    ASSERT_EQ(Call<Controller>(&Controller::Stub::ControllerGetCapabilities,
                               ::csi::v1::ControllerGetCapabilitiesRequest(), &controller),
              "");
    std::set<int> can;
    for (const auto& capability : controller.capabilities()) can.insert(capability.rpc().type());
    for (const int needed :
         {ControllerCan::CREATE_DELETE_VOLUME, ControllerCan::PUBLISH_UNPUBLISH_VOLUME,
          ControllerCan::EXPAND_VOLUME, ControllerCan::CREATE_DELETE_SNAPSHOT,
          ControllerCan::LIST_SNAPSHOTS}) {
      EXPECT_TRUE(can.contains(needed)) << needed;
    }
    ::csi::v1::NodeGetCapabilitiesResponse on_node;
    ASSERT_EQ(Call<Node>(&Node::Stub::NodeGetCapabilities, ::csi::v1::NodeGetCapabilitiesRequest(),
                         &on_node),
              "");
    can.clear();
    for (const auto& capability : on_node.capabilities()) can.insert(capability.rpc().type());
    EXPECT_TRUE(can.contains(NodeCan::STAGE_UNSTAGE_VOLUME));
  }
  void StartPlugin() {
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ASSERT_NO_FATAL_FAILURE(Fingerprint());
  }
  void RestartPlugin() {
    KillAgent();
    ASSERT_NO_FATAL_FAILURE(StartPlugin());
  }

  // ---- the calls for an allocation ----

  std::string Attach(const std::string& id) {
    ::csi::v1::ControllerPublishVolumeRequest request;
    request.set_volume_id(id);
    request.set_node_id(kNode);
    *request.mutable_volume_capability() = CapabilityOf(/*is_block=*/false);
    ::csi::v1::ControllerPublishVolumeResponse response;
    return Try<Controller>(&Controller::Stub::ControllerPublishVolume, request, &response);
  }
  std::string Detach(const std::string& id) {
    ::csi::v1::ControllerUnpublishVolumeRequest request;
    request.set_volume_id(id);
    request.set_node_id(kNode);
    ::csi::v1::ControllerUnpublishVolumeResponse response;
    return Try<Controller>(&Controller::Stub::ControllerUnpublishVolume, request, &response);
  }
  // A path that is a mount point already is taken as it is.
  std::string StageOnce(const std::string& id, int n) {
    fs::create_directories(staging(n));
    if (IsMountPoint(staging(n))) return "";
    ::csi::v1::NodeStageVolumeResponse response;
    return Try<Node>(&Node::Stub::NodeStageVolume, StageRequest(id, /*is_block=*/false, n),
                     &response);
  }
  std::string PublishOnce(const std::string& id, int n) {
    fs::create_directories(fs::path(target(n)).parent_path());
    if (IsMountPoint(target(n))) return "";
    ::csi::v1::NodePublishVolumeRequest request = PublishRequest(id, /*is_block=*/false, n);
    request.set_readonly(claims_.at(static_cast<size_t>(n)).usage == kReads);
    ::csi::v1::NodePublishVolumeResponse response;
    return Try<Node>(&Node::Stub::NodePublishVolume, request, &response);
  }
  std::string UnpublishOnce(const std::string& id, int n) {
    ::csi::v1::NodeUnpublishVolumeRequest request;
    request.set_volume_id(id);
    request.set_target_path(target(n));
    ::csi::v1::NodeUnpublishVolumeResponse response;
    std::string error = Try<Node>(&Node::Stub::NodeUnpublishVolume, request, &response);
    (void)::rmdir(target(n).c_str());  // as a client removes what a plugin leaves
    return error;
  }
  std::string UnstageOnce(const std::string& id, int n) {
    ::csi::v1::NodeUnstageVolumeRequest request;
    request.set_volume_id(id);
    request.set_staging_target_path(staging(n));
    ::csi::v1::NodeUnstageVolumeResponse response;
    return Try<Node>(&Node::Stub::NodeUnstageVolume, request, &response);
  }
  // An allocation comes; "", or the error for which it fails.
  std::string Place(const std::string& id, int n) {
    std::string error = Attach(id);
    if (error.empty()) error = StageOnce(id, n);
    if (error.empty()) error = PublishOnce(id, n);
    if (error.empty()) placed_.insert(n);
    return error;
  }
  // It goes, or has failed. The client unstages what it knows no other user of, and the server
  // detaches what no other allocation of the node has.
  std::string Remove(const std::string& id, int n) {
    std::string error = UnpublishOnce(id, n);
    if (!error.empty()) return error;
    placed_.erase(n);
    const Claim& gone = claims_.at(static_cast<size_t>(n));
    bool is_used_so = false;
    bool is_used = false;
    for (const int other : placed_) {
      const Claim& claim = claims_.at(static_cast<size_t>(other));
      if (claim.volume != gone.volume) continue;
      is_used = true;
      is_used_so = is_used_so || claim.usage == gone.usage;
    }
    if (!is_used_so) error = UnstageOnce(id, n);
    if (error.empty() && !is_used) error = Detach(id);
    return error;
  }
  // As the job's policy repeats it.
  bool PlaceInTheEnd(const std::string& id, int n) {
    return Eventually(kPatience, [&] {
      if (Place(id, n).empty()) return true;
      (void)Remove(id, n);
      return false;
    });
  }
  bool RemoveInTheEnd(const std::string& id, int n) {
    return Eventually(kPatience, [&] { return Remove(id, n).empty(); });
  }

  // The first two are of allocations that follow each other; the third reads beside them.
  std::vector<Claim> claims_ = {{"database", "0c1d1f6a-0001", kWrites},
                                {"database", "0c1d1f6a-0002", kWrites},
                                {"database", "0c1d1f6a-0003", kReads}};
  std::set<int> placed_;                 // what the client remembers
  std::function<void()> between_tries_;  // before each try but the first
  int tries_ = 0;
};

TEST_F(NomadTest, AnAllocationHasItsVolumeOverAKillBetweenAnyTwoCalls) {
  ASSERT_NO_FATAL_FAILURE(StartPlugin());
  const std::string id = Create("database", /*is_block=*/false);
  ASSERT_NE(id, "");
  ASSERT_NO_FATAL_FAILURE(RestartPlugin());
  for (const Step& call : {Step([&] { return Attach(id); }), Step([&] { return StageOnce(id, 0); }),
                           Step([&] { return PublishOnce(id, 0); })}) {
    ASSERT_TRUE(Eventually(kPatience, [&] { return call().empty(); }));
    ASSERT_NO_FATAL_FAILURE(RestartPlugin());
  }
  ASSERT_TRUE(IsMountPoint(target())) << "what a client looks at that was started again";
  ASSERT_EQ(WriteVolume(/*is_block=*/false, "kept"), "kept");
  EXPECT_TRUE(PlaceInTheEnd(id, 0)) << "what is there is used again";
  EXPECT_NE(Delete(id), "") << "an allocation has it";
  EXPECT_EQ(ReadVolume(/*is_block=*/false), "kept");
  EXPECT_EQ(Loops().size(), 1u);

  for (const Step& call :
       {Step([&] { return UnpublishOnce(id, 0); }), Step([&] { return UnstageOnce(id, 0); }),
        Step([&] { return Detach(id); })}) {
    ASSERT_TRUE(Eventually(kPatience, [&] { return call().empty(); }));
    ASSERT_NO_FATAL_FAILURE(RestartPlugin());
  }
  placed_.clear();
  EXPECT_EQ(LeftOnNode(), "");

  ASSERT_TRUE(PlaceInTheEnd(id, 1));
  EXPECT_EQ(ReadVolume(/*is_block=*/false, 1), "kept") << "of the next allocation";
  ASSERT_TRUE(RemoveInTheEnd(id, 1));
  EXPECT_EQ(LeftOnNode(), "");
  EXPECT_EQ(Delete(id), "");
  ASSERT_NO_FATAL_FAILURE(RestartPlugin());
  EXPECT_EQ(Delete(id), "") << "a server repeats it";
  EXPECT_EQ(VolumesInPool(), 0u);
}

TEST_F(NomadTest, ACallWhoseFirstTryFindsNoDaemonIsDoneByALaterOne) {
  ASSERT_NO_FATAL_FAILURE(StartPlugin());
  const std::string id = Create("database", /*is_block=*/false);
  const std::vector<Step> calls = {
      [&] { return Attach(id); },         [&] { return StageOnce(id, 0); },
      [&] { return PublishOnce(id, 0); }, [&] { return UnpublishOnce(id, 0); },
      [&] { return UnstageOnce(id, 0); }, [&] { return Detach(id); }};
  for (size_t i = 0; i < calls.size(); ++i) {
    KillAgent();
    bool is_back = false;
    between_tries_ = [&] {
      if (std::exchange(is_back, true)) return;
      ASSERT_NO_FATAL_FAILURE(StartPlugin());
    };
    tries_ = 0;
    EXPECT_TRUE(Eventually(kPatience, [&] { return calls[i]().empty(); })) << i;
    EXPECT_GT(tries_, 1) << i;
    ASSERT_TRUE(is_back);
    EXPECT_EQ(IsMountPoint(staging()), i > 0 && i < 4) << i;
    EXPECT_EQ(IsMountPoint(target()), i == 2) << i;
  }
  between_tries_ = nullptr;
  EXPECT_EQ(LeftOnNode(), "");
  EXPECT_EQ(Delete(id), "");
  EXPECT_EQ(VolumesInPool(), 0u);
}

TEST_F(NomadTest, AKillAmidAPlacementIsMendedByTheNextOne) {
  ASSERT_NO_FATAL_FAILURE(StartPlugin());
  const std::string id = Create("database", /*is_block=*/false);
  std::string before;
  for (int i = 0; i < 6; ++i) {
    std::thread client([&] { (void)Place(id, 0); });
    std::this_thread::sleep_for(Milliseconds(12 * i));
    KillAgent();
    client.join();
    ASSERT_NO_FATAL_FAILURE(StartPlugin());
    ASSERT_TRUE(PlaceInTheEnd(id, 0)) << i;
    EXPECT_EQ(Loops().size(), 1u) << i;
    EXPECT_EQ(ReadVolume(/*is_block=*/false), before) << i;
    before = "written in round " + std::to_string(i);
    EXPECT_EQ(WriteVolume(/*is_block=*/false, before), before);

    std::thread leaving([&] { (void)Remove(id, 0); });
    std::this_thread::sleep_for(Milliseconds(8 * i));
    KillAgent();
    leaving.join();
    ASSERT_NO_FATAL_FAILURE(StartPlugin());
    ASSERT_TRUE(RemoveInTheEnd(id, 0)) << i;
    EXPECT_EQ(LeftOnNode(), "") << i;
  }
  EXPECT_EQ(Delete(id), "");
  EXPECT_EQ(VolumesInPool(), 0u);
}

TEST_F(NomadTest, AnotherUsageOfAVolumeIsRefusedUntilTheFirstIsGone) {
  ASSERT_NO_FATAL_FAILURE(StartPlugin());
  const std::string id = Create("database", /*is_block=*/false);
  ASSERT_TRUE(PlaceInTheEnd(id, 0));
  ASSERT_EQ(WriteVolume(/*is_block=*/false, "kept"), "kept");
  const std::string error = Place(id, 2);
  EXPECT_TRUE(error.starts_with("9: ")) << error << " is not FAILED_PRECONDITION";
  EXPECT_NE(error.find(staging(0)), std::string::npos) << error << " does not say where it is";
  EXPECT_EQ(Remove(id, 2), "") << "of an allocation that has failed";
  EXPECT_EQ(ReadVolume(/*is_block=*/false), "kept");
  ASSERT_TRUE(RemoveInTheEnd(id, 0));
  ASSERT_TRUE(PlaceInTheEnd(id, 2));
  EXPECT_EQ(ReadVolume(/*is_block=*/false, 2), "kept");
  EXPECT_EQ(WriteVolume(/*is_block=*/false, "other", 2), "") << "it only reads";
  ASSERT_TRUE(RemoveInTheEnd(id, 2));
  EXPECT_EQ(LeftOnNode(), "");
  EXPECT_EQ(Delete(id), "");
}

// A client that was started again remembers no usage, and takes the staging of one allocation that
// goes for the last.
TEST_F(NomadTest, AnAllocationKeepsItsVolumeFromAClientThatHasForgottenIt) {
  ASSERT_NO_FATAL_FAILURE(StartPlugin());
  const std::string id = Create("database", /*is_block=*/false);
  ASSERT_TRUE(PlaceInTheEnd(id, 0));
  ASSERT_TRUE(PlaceInTheEnd(id, 1));
  ASSERT_EQ(WriteVolume(/*is_block=*/false, "kept"), "kept");
  ASSERT_NO_FATAL_FAILURE(RestartPlugin());
  placed_.clear();
  std::string error;
  ASSERT_TRUE(Eventually(kPatience,
                         [&] {
                           error = Remove(id, 1);
                           return error.starts_with("9: ");
                         }))
      << error << " is not FAILED_PRECONDITION";
  EXPECT_FALSE(Exists(target(1)));
  EXPECT_EQ(ReadVolume(/*is_block=*/false), "kept");
  EXPECT_EQ(WriteVolume(/*is_block=*/false, "written later"), "written later");
  ASSERT_TRUE(RemoveInTheEnd(id, 0));
  EXPECT_EQ(LeftOnNode(), "");
  EXPECT_EQ(Delete(id), "");
}

TEST_F(NomadTest, ASnapshotOfAVolumeInUseBecomesAVolumeAndTheVolumeGrows) {
  ASSERT_NO_FATAL_FAILURE(StartPlugin());
  const std::string id = Create("database", /*is_block=*/false);
  ASSERT_TRUE(PlaceInTheEnd(id, 0));
  ASSERT_EQ(WriteVolume(/*is_block=*/false, "before"), "before");
  ::csi::v1::CreateSnapshotRequest cut;
  cut.set_name("before-the-change");
  cut.set_source_volume_id(id);
  ::csi::v1::CreateSnapshotResponse made;
  ASSERT_EQ(Try<Controller>(&Controller::Stub::CreateSnapshot, cut, &made), "");
  ASSERT_TRUE(made.snapshot().ready_to_use());
  ASSERT_EQ(WriteVolume(/*is_block=*/false, "after"), "after");

  ::csi::v1::CreateVolumeRequest wish;
  wish.set_name("restored");
  wish.mutable_capacity_range()->set_required_bytes(32 * kMiB);
  *wish.add_volume_capabilities() = CapabilityOf(/*is_block=*/false);
  wish.mutable_volume_content_source()->mutable_snapshot()->set_snapshot_id(
      made.snapshot().snapshot_id());
  ::csi::v1::CreateVolumeResponse restored;
  ASSERT_EQ(Try<Controller>(&Controller::Stub::CreateVolume, wish, &restored), "");
  claims_[2] = {"restored", "0c1d1f6a-0004", kWrites};
  const std::string copy = restored.volume().volume_id();
  ASSERT_TRUE(PlaceInTheEnd(copy, 2));
  EXPECT_EQ(ReadVolume(/*is_block=*/false, 2), "before");
  EXPECT_EQ(ReadVolume(/*is_block=*/false, 0), "after");

  const int64_t size = TotalBytes(id);
  ::csi::v1::ControllerExpandVolumeRequest grow;
  grow.set_volume_id(id);
  grow.mutable_capacity_range()->set_required_bytes(64 * kMiB);
  *grow.mutable_volume_capability() = CapabilityOf(/*is_block=*/false);
  ::csi::v1::ControllerExpandVolumeResponse grown;
  const std::string refused =
      Try<Controller>(&Controller::Stub::ControllerExpandVolume, grow, &grown);
  const bool can_grow = refused.find("CAP_SYS_RESOURCE") == std::string::npos;
  if (!can_grow) {
    std::cout << "growth in use: skipped: needs CAP_SYS_RESOURCE, as the volume is an ext4\n";
  } else {
    ASSERT_EQ(refused, "");
    ASSERT_TRUE(grown.node_expansion_required());
  }
  ::csi::v1::NodeExpandVolumeRequest on_node;
  on_node.set_volume_id(id);
  on_node.set_volume_path(target());
  on_node.set_staging_target_path(staging());
  *on_node.mutable_capacity_range() = grow.capacity_range();
  *on_node.mutable_volume_capability() = CapabilityOf(/*is_block=*/false);
  ::csi::v1::NodeExpandVolumeResponse answer;
  if (can_grow) {
    ASSERT_EQ(Try<Node>(&Node::Stub::NodeExpandVolume, on_node, &answer), "");
    EXPECT_GT(TotalBytes(id), size + 16 * kMiB);
  }

  ASSERT_TRUE(RemoveInTheEnd(id, 0));
  ASSERT_TRUE(RemoveInTheEnd(copy, 2));
  EXPECT_EQ(LeftOnNode(), "");
  ::csi::v1::DeleteSnapshotRequest gone;
  gone.set_snapshot_id(made.snapshot().snapshot_id());
  ::csi::v1::DeleteSnapshotResponse nothing;
  EXPECT_EQ(Try<Controller>(&Controller::Stub::DeleteSnapshot, gone, &nothing), "");
  EXPECT_EQ(Delete(id), "");
  EXPECT_EQ(Delete(copy), "");
  EXPECT_TRUE(Eventually(kPatience, [this] { return VolumesInPool() + CutsInPool() == 0; }));
}

}  // namespace
}  // namespace volumed::nomad_test
