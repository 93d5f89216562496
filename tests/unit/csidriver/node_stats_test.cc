// NodeGetVolumeStats: what is measured, where, and when it is not found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "unit/csidriver/node_fixture.h"

namespace volumed {
namespace {

using ::csi::v1::NodeGetVolumeStatsRequest;
using ::csi::v1::NodeGetVolumeStatsResponse;
using ::csi::v1::VolumeUsage;
using grpc::StatusCode;
using ::testing::HasSubstr;

class NodeStatsTest : public NodeFixture {
 protected:
  StatusCode Stats(const std::string& id, const std::string& path = kTarget) {
    NodeGetVolumeStatsRequest request;
    request.set_volume_id(id);
    request.set_volume_path(path);
    response_.Clear();
    return CodeOf(request, &response_);
  }
  void StageAndPublish(const std::string& id, const Capability& capability = Mount()) {
    ASSERT_EQ(StageIt(id, capability), StatusCode::OK) << message_;
    ASSERT_EQ(PublishIt(id, capability), StatusCode::OK) << message_;
  }

  NodeGetVolumeStatsResponse response_;
};

TEST_F(NodeStatsTest, AFilesystemIsMeasuredWhereItIsStagedAndWhereItIsPublished) {
  const std::string id = CreateNamed("a");
  ASSERT_NO_FATAL_FAILURE(StageAndPublish(id));
  node_.LimitFilesystem(kTarget, 8 * kMiB);
  for (const std::string& path : {kStaging, kTarget, kTarget + "/"}) {
    ASSERT_EQ(Stats(id, path), StatusCode::OK) << path << message_;
    ASSERT_GE(response_.usage_size(), 1) << path;
    EXPECT_EQ(response_.usage(0).unit(), VolumeUsage::BYTES);
    EXPECT_EQ(response_.usage(0).total(), 8 * kMiB);
    EXPECT_EQ(response_.usage(0).available() + response_.usage(0).used(), 8 * kMiB);
  }
}

TEST_F(NodeStatsTest, OfADeviceThereIsItsSize) {
  const std::string id = CreateBlock("raw");
  ASSERT_NO_FATAL_FAILURE(StageAndPublish(id, Block()));
  for (const std::string& path : {kStaging, kTarget}) {
    ASSERT_EQ(Stats(id, path), StatusCode::OK) << path << message_;
    ASSERT_EQ(response_.usage_size(), 1) << path;
    EXPECT_EQ(response_.usage(0).unit(), VolumeUsage::BYTES);
    EXPECT_EQ(response_.usage(0).total(), 16 * kMiB);
    EXPECT_EQ(response_.usage(0).used(), 0);
  }
}

// A kubelet's own bind, below its directory of the volume.
TEST_F(NodeStatsTest, ADeviceThatAKubeletHasBoundElsewhereIsMeasuredThereToo) {
  const std::string id = CreateBlock("raw");
  const std::string other = CreateBlock("other");
  node_.AddFile(kCo + "/stage-b/uid", "");
  EXPECT_EQ(Stats(id, kCo + "/stage-b/uid"), StatusCode::NOT_FOUND) << "it is nowhere";
  ASSERT_NO_FATAL_FAILURE(StageAndPublish(id, Block()));
  EXPECT_EQ(Stats(id, kCo + "/stage-b/uid"), StatusCode::NOT_FOUND) << "nothing is bound there";
  Must(node_.DoAside(BindMount{.source = {kTarget, ""}, .target = {kCo + "/stage-b/uid", ""}}));
  ASSERT_EQ(Stats(id, kCo + "/stage-b/uid"), StatusCode::OK) << message_;
  ASSERT_EQ(response_.usage_size(), 1);
  EXPECT_EQ(response_.usage(0).total(), 16 * kMiB);
  EXPECT_EQ(Stats(other, kCo + "/stage-b/uid"), StatusCode::NOT_FOUND) << "it is not staged";
  RestartNode();
  EXPECT_EQ(Stats(id, kCo + "/stage-b/uid"), StatusCode::OK) << message_;
}

TEST_F(NodeStatsTest, ADeviceThatIsAnotherVolumesIsNotMeasured) {
  const std::string id = CreateBlock("raw");
  ASSERT_NO_FATAL_FAILURE(StageAndPublish(id, Block()));
  const std::string other = CreateBlock("other");
  ASSERT_EQ(StageIt(other, Block(), kCo + "/stage-b"), StatusCode::OK) << message_;
  auto request = NodePublishRequest(other, Block(), kOtherTarget, /*read_only=*/false);
  request.set_staging_target_path(kCo + "/stage-b");
  ASSERT_EQ(PublishIt(request), StatusCode::OK) << message_;
  node_.AddFile(kCo + "/pod-a/uid", "");
  Must(node_.DoAside(BindMount{.source = {kOtherTarget, ""}, .target = {kCo + "/pod-a/uid", ""}}));
  EXPECT_EQ(Stats(id, kCo + "/pod-a/uid"), StatusCode::NOT_FOUND);
  EXPECT_THAT(message_, HasSubstr("another device"));
  EXPECT_EQ(Stats(other, kCo + "/pod-a/uid"), StatusCode::OK) << message_;
}

TEST_F(NodeStatsTest, WhereTheVolumeIsNotItIsNotFound) {
  const std::string id = CreateNamed("a");
  const std::string other = CreateNamed("b");
  EXPECT_EQ(Stats(id), StatusCode::NOT_FOUND) << "it is nowhere";
  ASSERT_NO_FATAL_FAILURE(StageAndPublish(id));
  EXPECT_EQ(Stats(id), StatusCode::OK) << message_;
  // The look-up of the volume goes before the path, so that none of these is INVALID_ARGUMENT.
  for (const std::string& path : {std::string("some/path"), std::string("/some/path"),
                                  std::string("/"), kTarget + "/..", kOtherTarget}) {
    EXPECT_EQ(Stats(id, path), StatusCode::NOT_FOUND) << path;
    EXPECT_EQ(Stats("some-fake-volume-id", path), StatusCode::NOT_FOUND) << path;
  }
  EXPECT_EQ(Stats(other), StatusCode::NOT_FOUND) << "another volume is there";
  EXPECT_EQ(Stats(kIdOfAnotherPool), StatusCode::FAILED_PRECONDITION);
  ASSERT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(Stats(id), StatusCode::NOT_FOUND) << "it has left";
}

// What is left at the place would be the disk of the node.
TEST_F(NodeStatsTest, ADirectoryThatAMountHasLeftIsNotMeasured) {
  const std::string id = CreateNamed("a");
  ASSERT_NO_FATAL_FAILURE(StageAndPublish(id));
  node_.UnmountBelow(kTarget);
  EXPECT_EQ(Stats(id), StatusCode::NOT_FOUND);
  EXPECT_THAT(message_, HasSubstr("by hand"));
}

TEST_F(NodeStatsTest, AFilesystemThatDoesNotAnswerIsNoneForTheCaller) {
  const std::string id = CreateNamed("a");
  ASSERT_NO_FATAL_FAILURE(StageAndPublish(id));
  node_.Hang(kTarget);
  EXPECT_EQ(Stats(id), StatusCode::DEADLINE_EXCEEDED) << message_;
  node_.Unhang(kTarget);
  EXPECT_EQ(Stats(id), StatusCode::OK) << message_;
}

TEST_F(NodeStatsTest, ANewAgentMeasuresWhatTheOneBeforeHasPublished) {
  const std::string id = CreateNamed("a");
  ASSERT_NO_FATAL_FAILURE(StageAndPublish(id));
  RestartNode();
  EXPECT_EQ(Stats(id), StatusCode::OK) << message_;
}

}  // namespace
}  // namespace volumed
