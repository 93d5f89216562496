// The Node service over volumes that are directories of the pool: staged, published, measured, made
// larger and taken away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "unit/csidriver/node_fixture.h"

namespace volumed {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;

class NodeTreesTest : public NodeFixture {
 protected:
  NodeTreesTest() { node_.CountProjects(kPoolPath); }

  static ::csi::v1::CreateVolumeRequest TreeRequest(const std::string& name) {
    ::csi::v1::CreateVolumeRequest request = CreateRequest(name);
    (*request.mutable_parameters())["backend"] = "directory";
    return request;
  }
  std::string CreateTree(const std::string& name) { return Create(TreeRequest(name)).volume_id(); }
  void StageAndPublish(const std::string& id) {
    ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
    ASSERT_EQ(PublishIt(id), StatusCode::OK) << message_;
  }
};

TEST_F(NodeTreesTest, ADirectoryIsBoundAtTheCosPlacesAndLeavesNothingThere) {
  const std::string id = CreateTree("a");
  for (int i = 0; i < 2; ++i) ASSERT_NO_FATAL_FAILURE(StageAndPublish(id));
  EXPECT_EQ(ThereIs(kStaging), "files");
  EXPECT_EQ(ThereIs(kTarget), "files");
  node_.AddFile(kTarget + "/note", "kept");
  EXPECT_EQ(node_.Find(kPoolPath + "/volumes/" + id + "/data/note").content, "kept");
  EXPECT_EQ(Delete(id), StatusCode::FAILED_PRECONDITION);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
    ASSERT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  }
  EXPECT_EQ(ThereIs(kStaging), "");
  EXPECT_FALSE(node_.Exists(kTarget));
  EXPECT_TRUE(node_.Exists(kStaging));
  EXPECT_EQ(Delete(id), StatusCode::OK) << message_;
  EXPECT_FALSE(node_.Exists(kPoolPath + "/volumes/" + id));
}

TEST_F(NodeTreesTest, ANewAgentGoesOnWithWhatTheOneBeforeHasPublished) {
  const std::string id = CreateTree("a");
  ASSERT_NO_FATAL_FAILURE(StageAndPublish(id));
  RestartNode();
  ASSERT_NO_FATAL_FAILURE(StageAndPublish(id));
  RestartNode();
  ASSERT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
  RestartNode();
  ASSERT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(ThereIs(kStaging), "");
  EXPECT_EQ(Delete(id), StatusCode::OK) << message_;
}

TEST_F(NodeTreesTest, TheDirectoryOfAnotherVolumeAtItsPlaceIsNotTakenForIt) {
  const std::string id = CreateTree("a");
  const std::string other = CreateTree("b");
  ASSERT_EQ(StageIt(other), StatusCode::OK) << message_;
  EXPECT_EQ(StageIt(id), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ThereIs(kStaging), "files");
  ASSERT_EQ(UnstageIt(other), StatusCode::OK) << message_;
  EXPECT_EQ(StageIt(id), StatusCode::OK) << message_;
}

TEST_F(NodeTreesTest, ItsFiguresAreThoseOfItsLimitAndGrowWithIt) {
  const std::string id = CreateTree("a");
  ASSERT_NO_FATAL_FAILURE(StageAndPublish(id));
  const auto total = [&](const std::string& path) -> int64_t {
    ::csi::v1::NodeGetVolumeStatsRequest request;
    request.set_volume_id(id);
    request.set_volume_path(path);
    ::csi::v1::NodeGetVolumeStatsResponse response;
    EXPECT_EQ(CodeOf(request, &response), StatusCode::OK) << message_;
    return response.usage_size() == 0 ? 0 : response.usage(0).total();
  };
  EXPECT_EQ(total(kStaging), 16 * kMiB);
  EXPECT_EQ(total(kTarget), 16 * kMiB);
  ::csi::v1::ControllerExpandVolumeRequest expand;
  expand.set_volume_id(id);
  expand.mutable_capacity_range()->set_required_bytes(32 * kMiB);
  ::csi::v1::ControllerExpandVolumeResponse expanded;
  ASSERT_EQ(CodeOf(expand, &expanded), StatusCode::OK) << message_;
  ::csi::v1::NodeExpandVolumeRequest grow;
  grow.set_volume_id(id);
  grow.set_volume_path(kTarget);
  ::csi::v1::NodeExpandVolumeResponse grown;
  EXPECT_EQ(CodeOf(grow, &grown), StatusCode::OK) << message_;
  EXPECT_EQ(total(kTarget), 32 * kMiB);
}

TEST_F(NodeTreesTest, ABlockVolumeAFilesystemAndMountFlagsAreRefused) {
  ::csi::v1::CreateVolumeRequest block = TreeRequest("block");
  *block.mutable_volume_capabilities(0) = Block();
  EXPECT_EQ(CreateCode(block), StatusCode::INVALID_ARGUMENT);
  ::csi::v1::CreateVolumeRequest xfs = TreeRequest("xfs");
  *xfs.mutable_volume_capabilities(0) = Mount("xfs");
  EXPECT_EQ(CreateCode(xfs), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(message_, HasSubstr("the filesystem of the pool"));
  const std::string id = CreateTree("a");
  EXPECT_EQ(StageIt(id, WithFlag("noatime")), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ThereIs(kStaging), "");
}

}  // namespace
}  // namespace volumed
