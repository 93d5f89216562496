// The real daemon as a CSI driver with a pool of its own, for tests: a CO's calls over the socket,
// and what is in its volumes.
#pragma once

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
#include <system_error>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "csi.grpc.pb.h"
#include "integration/agent/agent_fixture.h"
#include "integration/loop_device.h"

namespace volumed {

class OwnVolumesFixture : public AgentTest {
 protected:
  static constexpr int64_t kMiB = int64_t{1} << 20;
  static constexpr int64_t kBlock = 4096;  // of a loop device with direct I/O
  static constexpr int kPlaces = 3;        // of a CO, for as many volumes at a time

  explicit OwnVolumesFixture(std::string pool_filesystem = "ext4", int64_t pool_bytes = 256 * kMiB)
      : pool_filesystem_(std::move(pool_filesystem)), pool_bytes_(pool_bytes) {}

  // The pool has a filesystem of its own, whatever the directory for temporary files lies on.
  void SetUp() override {
    AgentTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
    ASSERT_TRUE(MakeImage(scratch() + "/disk", pool_bytes_));
    disk_ = std::make_unique<LoopDevice>(scratch() + "/disk");
    ASSERT_TRUE(disk_->valid());
    const CommandResult made = RunCommand({"mkfs." + pool_filesystem_, "-q", disk_->path()});
    ASSERT_EQ(made.exit_status, 0) << made.output;
    std::filesystem::create_directory(pool());
    ASSERT_EQ(::mount(disk_->path().c_str(), pool().c_str(), pool_filesystem_.c_str(), 0, nullptr),
              0);
    for (int n = 0; n < kPlaces; ++n) {
      std::filesystem::create_directories(staging(n));
      std::filesystem::create_directories(std::filesystem::path(target(n)).parent_path());
    }
    settings["pool"] = "{fast: " + pool() + "}";
    settings["csi-serve"] = endpoint();
    settings["csi-target-roots"] = "[" + co() + "]";
    settings["node-name"] = "n1";
  }
  void TearDown() override {
    if (!disk_) return AgentTest::TearDown();
    KillAgent();
    for (int n = 0; n < kPlaces; ++n) {
      for (const std::string& place : {target(n), staging(n)}) ::umount2(place.c_str(), MNT_DETACH);
    }
    for (const std::string& loop : Loops()) (void)RunCommand({"losetup", "-d", loop});
    ::umount2(pool().c_str(), MNT_DETACH);
    disk_.reset();
    AgentTest::TearDown();
  }

  std::string pool() const { return scratch() + "/pool"; }
  const std::string& disk() const { return disk_->path(); }  // on which the pool is
  // The CO's own ways may be others.
  virtual std::string endpoint() const { return scratch() + "/csi.sock"; }
  virtual std::string co() const { return scratch() + "/co"; }
  // Where the CO has its n-th volume.
  virtual std::string staging(int n = 0) const { return co() + "/stage-" + std::to_string(n); }
  virtual std::string target(int n = 0) const { return co() + "/pod-" + std::to_string(n) + "/v"; }

  // The loop devices on the pool's files.
  std::vector<std::string> Loops() const {
    std::vector<std::string> loops;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/sys/block", error)) {
      const std::string file = ReadText(entry.path() / "loop/backing_file");
      if (!file.starts_with(pool() + "/")) continue;
      loops.push_back("/dev/" + entry.path().filename().string());
    }
    return loops;
  }
  size_t VolumesInPool() const { return EntriesIn(pool() + "/volumes"); }
  size_t CutsInPool() const { return EntriesIn(pool() + "/cuts"); }
  static size_t EntriesIn(const std::string& directory) {
    size_t count = 0;
    std::error_code error;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory, error))
      ++count;
    return count;
  }
  // "" if nothing of any volume is on the node.
  std::string LeftOnNode() const {
    std::string left;
    for (const std::string& mount : MountsBelow(co())) left += mount + "\n";
    for (int n = 0; n < kPlaces; ++n) {
      if (Exists(target(n))) left += target(n) + "\n";
      if (!Exists(staging(n))) left += "the CO's own directory is gone\n";
    }
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
  using CsiMethodOfStub = grpc::Status (Service::Stub::*)(grpc::ClientContext*, const Request&,
                                                          Response*);

  // A connection of its own, as the daemon's socket is another one after each start.
  template <typename Service, typename Request, typename Response>
  grpc::Status CallOnce(CsiMethodOfStub<Service, Request, Response> method, const Request& request,
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
  std::string Call(CsiMethodOfStub<Service, Request, Response> method, const Request& request,
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

  static ::csi::v1::VolumeCapability CapabilityOf(bool is_block) {
    ::csi::v1::VolumeCapability capability;
    if (is_block) {
      capability.mutable_block();
    } else {
      capability.mutable_mount()->set_fs_type("ext4");
    }
    capability.mutable_access_mode()->set_mode(
        ::csi::v1::VolumeCapability::AccessMode::SINGLE_NODE_WRITER);
    return capability;
  }
  // The id; "" if it was refused.
  std::string Create(const std::string& name, bool is_block) const {
    ::csi::v1::CreateVolumeRequest request;
    request.set_name(name);
    request.mutable_capacity_range()->set_required_bytes(32 * kMiB);
    *request.add_volume_capabilities() = CapabilityOf(is_block);
    ::csi::v1::CreateVolumeResponse response;
    EXPECT_EQ(
        Call<::csi::v1::Controller>(&::csi::v1::Controller::Stub::CreateVolume, request, &response),
        "");
    return response.volume().volume_id();
  }
  std::string Delete(const std::string& id) const {
    ::csi::v1::DeleteVolumeRequest request;
    request.set_volume_id(id);
    ::csi::v1::DeleteVolumeResponse response;
    return Call<::csi::v1::Controller>(&::csi::v1::Controller::Stub::DeleteVolume, request,
                                       &response);
  }
  ::csi::v1::NodeStageVolumeRequest StageRequest(const std::string& id, bool is_block,
                                                 int n = 0) const {
    ::csi::v1::NodeStageVolumeRequest request;
    request.set_volume_id(id);
    request.set_staging_target_path(staging(n));
    *request.mutable_volume_capability() = CapabilityOf(is_block);
    return request;
  }
  std::string Stage(const std::string& id, bool is_block, int n = 0) const {
    ::csi::v1::NodeStageVolumeResponse response;
    return Call<::csi::v1::Node>(&::csi::v1::Node::Stub::NodeStageVolume,
                                 StageRequest(id, is_block, n), &response);
  }
  ::csi::v1::NodePublishVolumeRequest PublishRequest(const std::string& id, bool is_block,
                                                     int n = 0) const {
    ::csi::v1::NodePublishVolumeRequest request;
    request.set_volume_id(id);
    request.set_staging_target_path(staging(n));
    request.set_target_path(target(n));
    *request.mutable_volume_capability() = CapabilityOf(is_block);
    return request;
  }
  std::string Publish(const std::string& id, bool is_block, int n = 0) const {
    ::csi::v1::NodePublishVolumeResponse response;
    return Call<::csi::v1::Node>(&::csi::v1::Node::Stub::NodePublishVolume,
                                 PublishRequest(id, is_block, n), &response);
  }
  std::string Unpublish(const std::string& id, int n = 0) const {
    ::csi::v1::NodeUnpublishVolumeRequest request;
    request.set_volume_id(id);
    request.set_target_path(target(n));
    ::csi::v1::NodeUnpublishVolumeResponse response;
    return Call<::csi::v1::Node>(&::csi::v1::Node::Stub::NodeUnpublishVolume, request, &response);
  }
  std::string Unstage(const std::string& id, int n = 0) const {
    ::csi::v1::NodeUnstageVolumeRequest request;
    request.set_volume_id(id);
    request.set_staging_target_path(staging(n));
    ::csi::v1::NodeUnstageVolumeResponse response;
    return Call<::csi::v1::Node>(&::csi::v1::Node::Stub::NodeUnstageVolume, request, &response);
  }
  // Of the volume at its target; -1 if it is not found there.
  int64_t TotalBytes(const std::string& id) const {
    ::csi::v1::NodeGetVolumeStatsRequest request;
    request.set_volume_id(id);
    request.set_volume_path(target());
    ::csi::v1::NodeGetVolumeStatsResponse response;
    const std::string error =
        Call<::csi::v1::Node>(&::csi::v1::Node::Stub::NodeGetVolumeStats, request, &response);
    return error.empty() && response.usage_size() > 0 ? response.usage(0).total() : -1;
  }

  // ---- what is in a volume ----

  // Through to the disk; "" if it cannot be written.
  std::string WriteVolume(bool is_block, const std::string& text, int n = 0) const {
    const std::string path = is_block ? target(n) : target(n) + "/note";
    const int flags = is_block ? O_RDWR | O_CLOEXEC : O_RDWR | O_CREAT | O_CLOEXEC;
    const Descriptor file(::open(path.c_str(), flags, 0600));
    if (!file.valid()) return "";
    std::string block(static_cast<size_t>(kBlock), '\0');
    block.replace(0, text.size(), text);
    const ssize_t written = ::pwrite(file.get(), block.data(), block.size(), 0);
    return written == kBlock && ::fsync(file.get()) == 0 ? text : "";
  }
  std::string ReadVolume(bool is_block, int n = 0) const {
    const std::string path = is_block ? target(n) : target(n) + "/note";
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

  std::unique_ptr<LoopDevice> disk_;

 private:
  const std::string pool_filesystem_;
  const int64_t pool_bytes_;
};

}  // namespace volumed
