// Volumes of the real daemon as a CSI driver: a CO has them made, staged, published and taken away
// over the socket, and between any two of its calls the daemon is killed.
#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "csi.grpc.pb.h"
#include "integration/agent/agent_fixture.h"
#include "integration/loop_device.h"

namespace volumed::own_volumes_test {
namespace {

namespace fs = std::filesystem;
using ::csi::v1::Controller;
using ::csi::v1::Node;
using ::csi::v1::VolumeCapability;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kBlock = 4096;  // of a loop device with direct I/O

class OwnVolumesTest : public AgentTest {
 protected:
  // The pool has a filesystem of its own, whatever the directory for temporary files lies on.
  void SetUp() override {
    AgentTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
    ASSERT_TRUE(MakeImage(scratch() + "/disk", 256 * kMiB));
    disk_ = std::make_unique<LoopDevice>(scratch() + "/disk");
    ASSERT_TRUE(disk_->valid());
    const CommandResult made = RunCommand({"mkfs.ext4", "-q", disk_->path()});
    ASSERT_EQ(made.exit_status, 0) << made.output;
    fs::create_directory(pool());
    ASSERT_EQ(::mount(disk_->path().c_str(), pool().c_str(), "ext4", 0, nullptr), 0);
    fs::create_directories(staging());
    fs::create_directories(co() + "/pod");
    settings["pool"] = "{fast: " + pool() + "}";
    settings["csi-serve"] = endpoint();
    settings["csi-target-roots"] = "[" + co() + "]";
    settings["node-name"] = "n1";
  }
  void TearDown() override {
    if (!disk_) return AgentTest::TearDown();
    KillAgent();
    for (const char* place : {"/pod/v", "/stage"}) ::umount2((co() + place).c_str(), MNT_DETACH);
    for (const std::string& loop : Loops()) (void)RunCommand({"losetup", "-d", loop});
    ::umount2(pool().c_str(), MNT_DETACH);
    disk_.reset();
    AgentTest::TearDown();
  }

  std::string pool() const { return scratch() + "/pool"; }
  std::string endpoint() const { return scratch() + "/csi.sock"; }
  std::string co() const { return scratch() + "/co"; }
  std::string staging() const { return co() + "/stage"; }
  std::string target() const { return co() + "/pod/v"; }

  // The loop devices on the pool's files.
  std::vector<std::string> Loops() const {
    std::vector<std::string> loops;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator("/sys/block", error)) {
      const std::string file = ReadText(entry.path() / "loop/backing_file");
      if (!file.starts_with(pool() + "/")) continue;
      loops.push_back("/dev/" + entry.path().filename().string());
    }
    return loops;
  }
  size_t VolumesInPool() const {
    size_t count = 0;
    for ([[maybe_unused]] const auto& volume : fs::directory_iterator(pool() + "/volumes")) ++count;
    return count;
  }
  // "" if nothing of any volume is on the node.
  std::string LeftOnNode() const {
    std::string left;
    for (const std::string& mount : MountsBelow(co())) left += mount + "\n";
    if (Exists(target())) left += target() + "\n";
    if (!Exists(staging())) left += "the CO's own directory is gone\n";
    // A loop device goes when whoever looks at it at that moment has closed it.
    if (!Eventually(kPatience, [this] { return Loops().empty(); })) left += "loop devices\n";
    return left;
  }

  void Restart() {
    KillAgent();
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  }

  // ---- calls ----

  template <typename Service, typename Request, typename Response>
  using Method = grpc::Status (Service::Stub::*)(grpc::ClientContext*, const Request&, Response*);

  // A connection of its own, as the daemon's socket is another one after each start.
  template <typename Service, typename Request, typename Response>
  grpc::Status CallOnce(Method<Service, Request, Response> method, const Request& request,
                        Response* response) const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
    const auto stub = Service::NewStub(grpc::CreateCustomChannel(
        "unix://" + endpoint(), grpc::InsecureChannelCredentials(), arguments));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    return (*stub.*method)(&context, request, response);
  }
  // "", or the error. It is tried again as a CO does it: a daemon that has just been started has no
  // open pool for a moment, and a worker of the killed one may be at the volume still.
  template <typename Service, typename Request, typename Response>
  std::string Call(Method<Service, Request, Response> method, const Request& request,
                   Response* response) const {
    grpc::Status status;
    (void)Eventually(kPatience, [&] {
      status = CallOnce<Service>(method, request, response);
      return status.error_code() != grpc::StatusCode::UNAVAILABLE &&
             status.error_code() != grpc::StatusCode::ABORTED;
    });
    if (status.ok()) return "";
    return std::to_string(status.error_code()) + ": " + status.error_message();
  }

  static VolumeCapability CapabilityOf(bool is_block) {
    VolumeCapability capability;
    if (is_block) {
      capability.mutable_block();
    } else {
      capability.mutable_mount()->set_fs_type("ext4");
    }
    capability.mutable_access_mode()->set_mode(VolumeCapability::AccessMode::SINGLE_NODE_WRITER);
    return capability;
  }
  // The id; "" if it was refused.
  std::string Create(const std::string& name, bool is_block) const {
    ::csi::v1::CreateVolumeRequest request;
    request.set_name(name);
    request.mutable_capacity_range()->set_required_bytes(32 * kMiB);
    *request.add_volume_capabilities() = CapabilityOf(is_block);
    ::csi::v1::CreateVolumeResponse response;
    EXPECT_EQ(Call<Controller>(&Controller::Stub::CreateVolume, request, &response), "");
    return response.volume().volume_id();
  }
  std::string Delete(const std::string& id) const {
    ::csi::v1::DeleteVolumeRequest request;
    request.set_volume_id(id);
    ::csi::v1::DeleteVolumeResponse response;
    return Call<Controller>(&Controller::Stub::DeleteVolume, request, &response);
  }
  ::csi::v1::NodeStageVolumeRequest StageRequest(const std::string& id, bool is_block) const {
    ::csi::v1::NodeStageVolumeRequest request;
    request.set_volume_id(id);
    request.set_staging_target_path(staging());
    *request.mutable_volume_capability() = CapabilityOf(is_block);
    return request;
  }
  std::string Stage(const std::string& id, bool is_block) const {
    ::csi::v1::NodeStageVolumeResponse response;
    return Call<Node>(&Node::Stub::NodeStageVolume, StageRequest(id, is_block), &response);
  }
  ::csi::v1::NodePublishVolumeRequest PublishRequest(const std::string& id, bool is_block) const {
    ::csi::v1::NodePublishVolumeRequest request;
    request.set_volume_id(id);
    request.set_staging_target_path(staging());
    request.set_target_path(target());
    *request.mutable_volume_capability() = CapabilityOf(is_block);
    return request;
  }
  std::string Publish(const std::string& id, bool is_block) const {
    ::csi::v1::NodePublishVolumeResponse response;
    return Call<Node>(&Node::Stub::NodePublishVolume, PublishRequest(id, is_block), &response);
  }
  std::string Unpublish(const std::string& id) const {
    ::csi::v1::NodeUnpublishVolumeRequest request;
    request.set_volume_id(id);
    request.set_target_path(target());
    ::csi::v1::NodeUnpublishVolumeResponse response;
    return Call<Node>(&Node::Stub::NodeUnpublishVolume, request, &response);
  }
  std::string Unstage(const std::string& id) const {
    ::csi::v1::NodeUnstageVolumeRequest request;
    request.set_volume_id(id);
    request.set_staging_target_path(staging());
    ::csi::v1::NodeUnstageVolumeResponse response;
    return Call<Node>(&Node::Stub::NodeUnstageVolume, request, &response);
  }
  // Of the volume at its target; -1 if it is not found there.
  int64_t TotalBytes(const std::string& id) const {
    ::csi::v1::NodeGetVolumeStatsRequest request;
    request.set_volume_id(id);
    request.set_volume_path(target());
    ::csi::v1::NodeGetVolumeStatsResponse response;
    const std::string error = Call<Node>(&Node::Stub::NodeGetVolumeStats, request, &response);
    return error.empty() && response.usage_size() > 0 ? response.usage(0).total() : -1;
  }

  // ---- what is in a volume ----

  // Through to the disk; "" if it cannot be written.
  std::string WriteVolume(bool is_block, const std::string& text) const {
    const std::string path = is_block ? target() : target() + "/note";
    const int flags = is_block ? O_RDWR | O_CLOEXEC : O_RDWR | O_CREAT | O_CLOEXEC;
    const Descriptor file(::open(path.c_str(), flags, 0600));
    if (!file.valid()) return "";
    std::string block(static_cast<size_t>(kBlock), '\0');
    block.replace(0, text.size(), text);
    const ssize_t written = ::pwrite(file.get(), block.data(), block.size(), 0);
    return written == kBlock && ::fsync(file.get()) == 0 ? text : "";
  }
  std::string ReadVolume(bool is_block) const {
    const std::string path = is_block ? target() : target() + "/note";
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.valid()) return "";
    std::string block(static_cast<size_t>(kBlock), '\0');
    if (::pread(file.get(), block.data(), block.size(), 0) != kBlock) return "";
    return block.c_str();
  }
  void ExpectAtTarget(bool is_block) const {
    struct stat info {};
    ASSERT_EQ(::stat(target().c_str(), &info), 0);
    EXPECT_EQ(S_ISBLK(info.st_mode), is_block);
    EXPECT_EQ(S_ISDIR(info.st_mode), !is_block);
  }

  // Each call is made by one daemon, and again by the next.
  void StageAndPublish(const std::string& id, bool is_block) {
    ASSERT_EQ(Stage(id, is_block), "");
    ASSERT_NO_FATAL_FAILURE(Restart());
    ASSERT_EQ(Stage(id, is_block), "");
    ASSERT_EQ(Publish(id, is_block), "");
    ASSERT_NO_FATAL_FAILURE(ExpectAtTarget(is_block));
  }
  void UnpublishAndUnstage(const std::string& id) {
    ASSERT_EQ(Unpublish(id), "");
    EXPECT_FALSE(Exists(target()));
    ASSERT_NO_FATAL_FAILURE(Restart());
    ASSERT_EQ(Unpublish(id), "");
    ASSERT_EQ(Unstage(id), "");
    ASSERT_NO_FATAL_FAILURE(Restart());
    ASSERT_EQ(Unstage(id), "");
    EXPECT_EQ(LeftOnNode(), "");
  }
  void Live(bool is_block) {
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    const std::string id = Create("a volume", is_block);
    ASSERT_NE(id, "");
    ASSERT_NO_FATAL_FAILURE(Restart());
    EXPECT_EQ(Create("a volume", is_block), id);
    EXPECT_EQ(VolumesInPool(), 1u);

    ASSERT_NO_FATAL_FAILURE(StageAndPublish(id, is_block));
    ASSERT_EQ(WriteVolume(is_block, "kept"), "kept");
    ASSERT_NO_FATAL_FAILURE(Restart());
    EXPECT_EQ(ReadVolume(is_block), "kept") << "of a daemon that was killed";
    EXPECT_EQ(Publish(id, is_block), "");
    EXPECT_EQ(Loops().size(), 1u);
    const int64_t total = TotalBytes(id);
    EXPECT_LE(total, 32 * kMiB);
    EXPECT_GE(total, is_block ? 32 * kMiB : 16 * kMiB) << "less what the filesystem needs";
    EXPECT_NE(Unstage(id), "") << "the target has it";
    EXPECT_NE(Delete(id), "") << "the node has it";
    EXPECT_EQ(ReadVolume(is_block), "kept");
    ASSERT_NO_FATAL_FAILURE(UnpublishAndUnstage(id));
    EXPECT_EQ(TotalBytes(id), -1);

    ASSERT_NO_FATAL_FAILURE(StageAndPublish(id, is_block));
    EXPECT_EQ(ReadVolume(is_block), "kept") << "of the volume that was unstaged";
    ASSERT_NO_FATAL_FAILURE(UnpublishAndUnstage(id));
    EXPECT_EQ(Delete(id), "");
    ASSERT_NO_FATAL_FAILURE(Restart());
    EXPECT_EQ(Delete(id), "");
    EXPECT_EQ(VolumesInPool(), 0u);
  }

  std::unique_ptr<LoopDevice> disk_;
};

TEST_F(OwnVolumesTest, AVolumeWithFilesLivesOverAKillBetweenAnyTwoCalls) {
  ASSERT_NO_FATAL_FAILURE(Live(/*is_block=*/false));
}

TEST_F(OwnVolumesTest, ABlockVolumeLivesOverAKillBetweenAnyTwoCalls) {
  ASSERT_NO_FATAL_FAILURE(Live(/*is_block=*/true));
}

// The same call to the next daemon goes on with what the killed one had begun.
TEST_F(OwnVolumesTest, AKillAmidACallIsMendedByTheSameCall) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  for (const bool is_block : {false, true}) {
    const std::string id = Create(is_block ? "raw" : "files", is_block);
    ASSERT_NE(id, "");
    std::string before;
    for (int i = 0; i < 4; ++i) {
      std::thread amid_stage([&] {
        ::csi::v1::NodeStageVolumeResponse response;
        (void)CallOnce<Node>(&Node::Stub::NodeStageVolume, StageRequest(id, is_block), &response);
      });
      std::this_thread::sleep_for(Milliseconds(15 * i));
      KillAgent();
      amid_stage.join();
      ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
      ASSERT_EQ(Stage(id, is_block), "") << i;
      std::thread amid_publish([&] {
        ::csi::v1::NodePublishVolumeResponse response;
        (void)CallOnce<Node>(&Node::Stub::NodePublishVolume, PublishRequest(id, is_block),
                             &response);
      });
      std::this_thread::sleep_for(Milliseconds(5 * i));
      KillAgent();
      amid_publish.join();
      ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
      ASSERT_EQ(Publish(id, is_block), "") << i;
      ASSERT_NO_FATAL_FAILURE(ExpectAtTarget(is_block));
      EXPECT_EQ(Loops().size(), 1u);
      const std::string text = "written in round " + std::to_string(i);
      EXPECT_EQ(ReadVolume(is_block), before) << i;
      EXPECT_EQ(WriteVolume(is_block, text), text);
      before = text;
      ASSERT_EQ(Unpublish(id), "") << i;
      ASSERT_EQ(Unstage(id), "") << i;
      EXPECT_EQ(LeftOnNode(), "") << i;
    }
    EXPECT_EQ(Delete(id), "");
  }
  EXPECT_EQ(VolumesInPool(), 0u);
}

TEST_F(OwnVolumesTest, TheNodeSaysWhereItIsAndRefusesPlacesThatAreNotACos) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ::csi::v1::NodeGetInfoResponse info;
  ASSERT_EQ(Call<Node>(&Node::Stub::NodeGetInfo, ::csi::v1::NodeGetInfoRequest(), &info), "");
  EXPECT_EQ(info.node_id(), "n1");
  const auto& segments = info.accessible_topology().segments();
  const auto segment = segments.find("topology.pool.volumed.io/node");
  ASSERT_NE(segment, segments.end());
  EXPECT_EQ(segment->second, "n1");

  const std::string id = Create("a volume", /*is_block=*/false);
  for (const std::string& path : {scratch() + "/elsewhere", co(), co() + "/../elsewhere"}) {
    fs::create_directories(scratch() + "/elsewhere");
    ::csi::v1::NodeStageVolumeRequest request = StageRequest(id, /*is_block=*/false);
    request.set_staging_target_path(path);
    ::csi::v1::NodeStageVolumeResponse response;
    EXPECT_EQ(CallOnce<Node>(&Node::Stub::NodeStageVolume, request, &response).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT)
        << path;
  }
  EXPECT_TRUE(MountsBelow(scratch() + "/elsewhere").empty());
  EXPECT_EQ(Loops().size(), 0u);
  EXPECT_EQ(Delete(id), "");
}

}  // namespace
}  // namespace volumed::own_volumes_test
