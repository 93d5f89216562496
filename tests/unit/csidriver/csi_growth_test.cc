// Volumes that a CO makes larger: by the controller and then on the node, or on the node alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "csidriver/csi_volume_wish.h"
#include "csidriver/node_rpcs.h"
#include "unit/csidriver/controller_fixture.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;
using Capability = ::csi::v1::VolumeCapability;
using Modes = Capability::AccessMode;
using grpc::StatusCode;

const std::string kCo = "/srv/co";
const std::string kStagedAt = kCo + "/stage";
const std::string kPublishedAt = kCo + "/pod-a/v";
constexpr int64_t kXfsBytes = 300 * kMiB;  // of which mkfs.xfs makes one

class CsiGrowthTest : public ControllerFixture {
 protected:
  CsiGrowthTest() {
    node_.AddDirectory(kStagedAt);
    node_.AddDirectory(kCo + "/pod-a");
    ServeBoth(CsiProfile::kCentral);
  }
  void ServeBoth(CsiProfile profile) {
    Serve(profile);
    AddNodeRpcs(*handlers_, {scheduler_, kernel_, *volumes_, *operations_, *devices_},
                {.driver = kDriver,
                 .node = kThisNode,
                 .target_roots = {kCo},
                 .most_volumes = 0,
                 .stats_deadline = std::chrono::seconds(10),
                 .grows_storage = profile == CsiProfile::kNode});
    ASSERT_TRUE(handlers_->Check().ok());
  }

  std::string CreateXfs() {
    ::csi::v1::CreateVolumeRequest request = CreateRequest("xfs", kXfsBytes);
    *request.mutable_volume_capabilities(0) = Mount("xfs");
    return Create(request).volume_id();
  }
  std::string CreateBlock() {
    ::csi::v1::CreateVolumeRequest request = CreateRequest("block");
    *request.mutable_volume_capabilities(0) = Block();
    return Create(request).volume_id();
  }
  StatusCode StageIt(const std::string& id, const Capability& capability = Mount()) {
    ::csi::v1::NodeStageVolumeRequest request;
    request.set_volume_id(id);
    request.set_staging_target_path(kStagedAt);
    *request.mutable_volume_capability() = capability;
    ::csi::v1::NodeStageVolumeResponse response;
    return CodeOf(request, &response);
  }
  StatusCode UnstageIt(const std::string& id) {
    ::csi::v1::NodeUnstageVolumeRequest request;
    request.set_volume_id(id);
    request.set_staging_target_path(kStagedAt);
    ::csi::v1::NodeUnstageVolumeResponse response;
    return CodeOf(request, &response);
  }
  StatusCode PublishIt(const std::string& id, const Capability& capability = Mount()) {
    ::csi::v1::NodePublishVolumeRequest request;
    request.set_volume_id(id);
    request.set_staging_target_path(kStagedAt);
    request.set_target_path(kPublishedAt);
    *request.mutable_volume_capability() = capability;
    ::csi::v1::NodePublishVolumeResponse response;
    return CodeOf(request, &response);
  }
  StatusCode UnpublishIt(const std::string& id) {
    ::csi::v1::NodeUnpublishVolumeRequest request;
    request.set_volume_id(id);
    request.set_target_path(kPublishedAt);
    ::csi::v1::NodeUnpublishVolumeResponse response;
    return CodeOf(request, &response);
  }
  static ::csi::v1::ControllerExpandVolumeRequest ExpandRequestOf(const std::string& id,
                                                                  int64_t bytes,
                                                                  int64_t limit = 0) {
    ::csi::v1::ControllerExpandVolumeRequest request;
    request.set_volume_id(id);
    request.mutable_capacity_range()->set_required_bytes(bytes);
    request.mutable_capacity_range()->set_limit_bytes(limit);
    return request;
  }
  StatusCode Expand(const ::csi::v1::ControllerExpandVolumeRequest& request) {
    expanded_.Clear();
    return CodeOf(request, &expanded_);
  }
  StatusCode Expand(const std::string& id, int64_t bytes) {
    return Expand(ExpandRequestOf(id, bytes));
  }
  // `bytes` of 0: the call says no size.
  static ::csi::v1::NodeExpandVolumeRequest NodeExpandRequestOf(const std::string& id,
                                                                const std::string& path,
                                                                int64_t bytes) {
    ::csi::v1::NodeExpandVolumeRequest request;
    request.set_volume_id(id);
    request.set_volume_path(path);
    if (bytes != 0) request.mutable_capacity_range()->set_required_bytes(bytes);
    return request;
  }
  StatusCode NodeExpandIt(const std::string& id, const std::string& path, int64_t bytes = 0) {
    node_expanded_.Clear();
    return CodeOf(NodeExpandRequestOf(id, path, bytes), &node_expanded_);
  }

  int64_t CapacityOf(const std::string& id) { return Must(volumes_->Find(id)).capacity_bytes; }
  // The device of the one volume that is open.
  FakeDevice Device() { return node_.Device(Loops().at(0).path); }

  ::csi::v1::ControllerExpandVolumeResponse expanded_;
  ::csi::v1::NodeExpandVolumeResponse node_expanded_;
};

// ---- what is asked for --------------------------------------------------------------------------

TEST_F(CsiGrowthTest, TheSizeIsWhatIsAskedForAndWithinTheLimitOrItIsRefused) {
  PoolVolumeRecord volume;
  volume.capacity_bytes = 16 * kMiB;
  const auto ask = [&volume](int64_t required, int64_t limit) {
    ::csi::v1::CapacityRange range;
    range.set_required_bytes(required);
    range.set_limit_bytes(limit);
    return ParseCsiGrowth(range, volume);
  };
  const auto code = [&ask](int64_t required, int64_t limit) {
    const auto size = ask(required, limit);
    return size.ok() ? Code::kUnknown : size.error().code();
  };
  EXPECT_EQ(Must(ask(0, 0)), 16 * kMiB);
  EXPECT_EQ(Must(ask(8 * kMiB, 16 * kMiB)), 16 * kMiB);
  EXPECT_EQ(Must(ask(32 * kMiB, 32 * kMiB)), 32 * kMiB);
  EXPECT_EQ(Must(ask(32 * kMiB - 1, 0)), 32 * kMiB);
  EXPECT_EQ(code(-1, 0), Code::kInvalidArgument);
  EXPECT_EQ(code(0, -1), Code::kInvalidArgument);
  EXPECT_EQ(code(32 * kMiB, 24 * kMiB), Code::kInvalidArgument);
  EXPECT_EQ(code(0, 8 * kMiB), Code::kOutOfRange) << "it does not become smaller";
  EXPECT_EQ(code(32 * kMiB - 1, 32 * kMiB - 1), Code::kOutOfRange) << "it has whole blocks";
  // Its file may have that size already.
  volume.target_bytes = 64 * kMiB;
  EXPECT_EQ(Must(ask(32 * kMiB, 0)), 64 * kMiB);
  EXPECT_EQ(code(32 * kMiB, 48 * kMiB), Code::kOutOfRange);
  EXPECT_EQ(Must(ask(16 * kMiB, 0)), 16 * kMiB);
}

// ---- the controller -----------------------------------------------------------------------------

TEST_F(CsiGrowthTest, AVolumeGetsExactlyWhatIsAskedForAndNeverLess) {
  const std::string id = CreateNamed("a");
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(Expand(id, 32 * kMiB), StatusCode::OK) << message_;
    EXPECT_EQ(expanded_.capacity_bytes(), 32 * kMiB);
    EXPECT_TRUE(expanded_.node_expansion_required());
  }
  EXPECT_EQ(Expand(id, 16 * kMiB), StatusCode::OK) << message_;
  EXPECT_EQ(expanded_.capacity_bytes(), 32 * kMiB);
  EXPECT_EQ(CapacityOf(id), 32 * kMiB);
}

TEST_F(CsiGrowthTest, WhatTheControllerCannotDoChangesNothing) {
  const std::string id = CreateNamed("a");
  EXPECT_EQ(Expand("some-fake-volume-id", 32 * kMiB), StatusCode::NOT_FOUND);
  EXPECT_EQ(Expand("v-00000000-0123456789abcdef01234567", 32 * kMiB),
            StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(Expand(ExpandRequestOf(id, 0, 8 * kMiB)), StatusCode::OUT_OF_RANGE);
  auto as_block = ExpandRequestOf(id, 32 * kMiB);
  *as_block.mutable_volume_capability() = Block();
  EXPECT_EQ(Expand(as_block), StatusCode::INVALID_ARGUMENT);
  auto as_xfs = ExpandRequestOf(id, 32 * kMiB);
  *as_xfs.mutable_volume_capability() = Mount("xfs");
  EXPECT_EQ(Expand(as_xfs), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(CapacityOf(id), 16 * kMiB);
}

// D14: the stub of a node has no CAP_SYS_RESOURCE. The plugin's own place has nothing here.
TEST_F(CsiGrowthTest, AnExtThatIsStagedIsNotGrownByHalfAndGrowsWhenItIsStagedAgain) {
  const std::string id = CreateNamed("a");
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(Expand(id, 32 * kMiB), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("CAP_SYS_RESOURCE"));
  EXPECT_EQ(CapacityOf(id), 16 * kMiB);
  EXPECT_EQ(Device().identity.size_bytes, 16 * kMiB);
  EXPECT_EQ(Expand(id, 16 * kMiB), StatusCode::OK) << "which it has: " << message_;
  ASSERT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  ASSERT_EQ(Expand(id, 32 * kMiB), StatusCode::OK) << message_;
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(Device().fs_bytes, 32 * kMiB);
  EXPECT_EQ(NodeExpandIt(id, kStagedAt, 32 * kMiB), StatusCode::OK) << message_;
  EXPECT_EQ(node_expanded_.capacity_bytes(), 32 * kMiB);
}

// ---- the node -----------------------------------------------------------------------------------

TEST_F(CsiGrowthTest, AnXfsGrowsInUseByThePathWhereItIsPublishedOrStaged) {
  const std::string id = CreateXfs();
  ASSERT_EQ(StageIt(id, Mount("xfs")), StatusCode::OK) << message_;
  ASSERT_EQ(PublishIt(id, Mount("xfs")), StatusCode::OK) << message_;
  int64_t bytes = kXfsBytes;
  for (const std::string& path : {kPublishedAt, kStagedAt, kCo + "//stage/"}) {
    bytes += 16 * kMiB;
    ASSERT_EQ(Expand(id, bytes), StatusCode::OK) << message_;
    EXPECT_LT(Device().fs_bytes, bytes) << "the node has yet to follow";
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(NodeExpandIt(id, path, i == 0 ? bytes : 0), StatusCode::OK) << message_;
      EXPECT_EQ(node_expanded_.capacity_bytes(), bytes);
      EXPECT_EQ(Device().fs_bytes, bytes);
    }
  }
  // What is on record of how it is staged is as it was.
  EXPECT_EQ(StageIt(id, Mount("xfs")), StatusCode::OK) << message_;
  EXPECT_EQ(PublishIt(id, Mount("xfs")), StatusCode::OK) << message_;
}

// An agent that is killed amid the growth leaves it open. A kubelet publishes the volume again
// before it asks for the growth again, and was refused for ever: "not staged wholly".
TEST_F(CsiGrowthTest, AVolumeWhoseGrowthWasCutOffWasNotPublishedAnyMore) {
  const std::string id = CreateXfs();
  ASSERT_EQ(StageIt(id, Mount("xfs")), StatusCode::OK) << message_;
  ASSERT_EQ(Expand(id, 2 * kXfsBytes), StatusCode::OK) << message_;
  node_.FailNext("GrowFilesystem", Error::MaybeApplied(Code::kUnavailable, "the worker is gone"));
  EXPECT_NE(NodeExpandIt(id, kStagedAt, 2 * kXfsBytes), StatusCode::OK);
  EXPECT_EQ(PublishIt(id, Mount("xfs")), StatusCode::OK) << message_;
  EXPECT_EQ(NodeExpandIt(id, kPublishedAt, 2 * kXfsBytes), StatusCode::OK) << message_;
  EXPECT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(UnstageIt(id), StatusCode::OK) << message_;
}

// So was a block volume, and one for a single writer, after the mend of that.
TEST_F(CsiGrowthTest, ABlockVolumeWhoseGrowthWasCutOffWasNotPublishedAnyMore) {
  const std::string id = CreateBlock();
  ASSERT_EQ(StageIt(id, Block()), StatusCode::OK) << message_;
  ASSERT_EQ(Expand(id, 32 * kMiB), StatusCode::OK) << message_;
  node_.FailNext("ProbeDevice", Error::MaybeApplied(Code::kUnavailable, "the worker is gone"));
  EXPECT_NE(NodeExpandIt(id, kStagedAt, 32 * kMiB), StatusCode::OK);
  EXPECT_EQ(PublishIt(id, Block()), StatusCode::OK) << message_;
  EXPECT_EQ(NodeExpandIt(id, kPublishedAt, 32 * kMiB), StatusCode::OK) << message_;
  EXPECT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(UnstageIt(id), StatusCode::OK) << message_;
}

TEST_F(CsiGrowthTest, AVolumeOfOneWriterWhoseGrowthWasCutOffWasNotPublishedAnyMore) {
  const std::string id = CreateXfs();
  Capability one = Mount("xfs");
  one.mutable_access_mode()->set_mode(
      ::csi::v1::VolumeCapability::AccessMode::SINGLE_NODE_SINGLE_WRITER);
  ASSERT_EQ(StageIt(id, one), StatusCode::OK) << message_;
  ASSERT_EQ(Expand(id, 2 * kXfsBytes), StatusCode::OK) << message_;
  node_.FailNext("GrowFilesystem", Error::MaybeApplied(Code::kUnavailable, "the worker is gone"));
  EXPECT_NE(NodeExpandIt(id, kStagedAt, 2 * kXfsBytes), StatusCode::OK);
  EXPECT_EQ(PublishIt(id, one), StatusCode::OK) << message_;
  EXPECT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(UnstageIt(id), StatusCode::OK) << message_;
}

TEST_F(CsiGrowthTest, ABlockVolumeGrowsAsADevice) {
  const std::string id = CreateBlock();
  ASSERT_EQ(StageIt(id, Block()), StatusCode::OK) << message_;
  ASSERT_EQ(PublishIt(id, Block()), StatusCode::OK) << message_;
  ASSERT_EQ(Expand(id, 32 * kMiB), StatusCode::OK) << message_;
  for (const std::string& path : {kPublishedAt, kStagedAt}) {
    EXPECT_EQ(NodeExpandIt(id, path, 32 * kMiB), StatusCode::OK) << message_;
    EXPECT_EQ(node_expanded_.capacity_bytes(), 32 * kMiB);
  }
  EXPECT_EQ(Device().identity.size_bytes, 32 * kMiB);
}

TEST_F(CsiGrowthTest, TheVolumeIsLookedForBeforeThePathAndThePathBeforeTheSize) {
  const std::string id = CreateXfs();
  EXPECT_EQ(NodeExpandIt("some-fake-volume-id", "some/path"), StatusCode::NOT_FOUND);
  EXPECT_EQ(NodeExpandIt(id, kStagedAt), StatusCode::NOT_FOUND) << "it is not staged";
  ASSERT_EQ(StageIt(id, Mount("xfs")), StatusCode::OK) << message_;
  EXPECT_EQ(NodeExpandIt(id, "some/path"), StatusCode::NOT_FOUND);
  EXPECT_EQ(NodeExpandIt(id, kPublishedAt, 2 * kXfsBytes), StatusCode::NOT_FOUND);
  EXPECT_EQ(NodeExpandIt(id, kStagedAt, 2 * kXfsBytes), StatusCode::OUT_OF_RANGE)
      << "the controller makes it larger";
  EXPECT_EQ(CapacityOf(id), kXfsBytes);
  auto as_block = NodeExpandRequestOf(id, kStagedAt, kXfsBytes);
  *as_block.mutable_volume_capability() = Block();
  EXPECT_EQ(CodeOf(as_block, &node_expanded_), StatusCode::INVALID_ARGUMENT);
}

TEST_F(CsiGrowthTest, AFilesystemThatIsStagedForReadersDoesNotGrow) {
  const std::string id = CreateXfs();
  ASSERT_EQ(StageIt(id, Mount("xfs")), StatusCode::OK) << message_;
  ASSERT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  Capability readers = Mount("xfs");
  readers.mutable_access_mode()->set_mode(Modes::SINGLE_NODE_READER_ONLY);
  ASSERT_EQ(StageIt(id, readers), StatusCode::OK) << message_;
  EXPECT_EQ(NodeExpandIt(id, kStagedAt), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("only reads"));
}

// ---- a driver of its node -----------------------------------------------------------------------

TEST_F(CsiGrowthTest, WithoutAControllerTheNodeAsksThePoolItself) {
  ServeBoth(CsiProfile::kNode);
  const std::string id = CreateXfs();
  ASSERT_EQ(StageIt(id, Mount("xfs")), StatusCode::OK) << message_;
  EXPECT_EQ(Expand(id, 2 * kXfsBytes), StatusCode::UNIMPLEMENTED);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(NodeExpandIt(id, kStagedAt, 2 * kXfsBytes), StatusCode::OK) << message_;
    EXPECT_EQ(node_expanded_.capacity_bytes(), 2 * kXfsBytes);
  }
  EXPECT_EQ(CapacityOf(id), 2 * kXfsBytes);
  EXPECT_EQ(Device().fs_bytes, 2 * kXfsBytes);
}

// D14: a kubelet asks while the volume is staged, and never else.
TEST_F(CsiGrowthTest, WithoutAControllerAnExtThatCannotGrowInUseGrowsWhenItIsStagedAgain) {
  ServeBoth(CsiProfile::kNode);
  const std::string id = CreateNamed("a");
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  node_.ChangeDevice(Loops().at(0).path, [](FakeDevice& device) { device.grow_error = EPERM; });
  const int64_t before = Device().fs_bytes;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(NodeExpandIt(id, kStagedAt, 32 * kMiB), StatusCode::FAILED_PRECONDITION);
    EXPECT_THAT(message_, HasSubstr("CAP_SYS_RESOURCE"));
    EXPECT_EQ(Device().fs_bytes, before);
  }
  EXPECT_EQ(CapacityOf(id), 32 * kMiB);
  EXPECT_EQ(PublishIt(id), StatusCode::OK) << "it can be used as it is: " << message_;
  ASSERT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
  ASSERT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(Device().fs_bytes, 32 * kMiB);
  EXPECT_EQ(NodeExpandIt(id, kStagedAt, 32 * kMiB), StatusCode::OK) << message_;
  EXPECT_EQ(node_expanded_.capacity_bytes(), 32 * kMiB);
}

TEST_F(CsiGrowthTest, BothProfilesAnnounceGrowthOnTheNodeAndOneThatOfTheController) {
  using OfNode = ::csi::v1::NodeServiceCapability::RPC;
  using OfController = ::csi::v1::ControllerServiceCapability::RPC;
  for (const CsiProfile profile : {CsiProfile::kNode, CsiProfile::kCentral}) {
    ServeBoth(profile);
    const CsiCapabilities can = handlers_->Capabilities();
    EXPECT_EQ(can.expansion, ::csi::v1::PluginCapability::VolumeExpansion::ONLINE);
    EXPECT_THAT(can.node, ::testing::Contains(OfNode::EXPAND_VOLUME));
    EXPECT_EQ(::testing::Value(can.controller, ::testing::Contains(OfController::EXPAND_VOLUME)),
              profile == CsiProfile::kCentral);
  }
}

}  // namespace
}  // namespace volumed
