// What the Controller service says of the health of volumes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "unit/csidriver/controller_fixture.h"

namespace volumed {
namespace {

using ::csi::v1::ControllerGetVolumeHealthRequest;
using ::csi::v1::ControllerGetVolumeHealthResponse;
using ::csi::v1::ControllerListVolumeHealthRequest;
using ::csi::v1::ControllerListVolumeHealthResponse;
using grpc::StatusCode;
using ::testing::HasSubstr;

class ControllerHealthTest : public ControllerFixture {
 protected:
  ControllerHealthTest() { Serve(CsiProfile::kCentral, CsiServeLevel::k1_13); }

  StatusCode Health(const std::string& id) {
    ControllerGetVolumeHealthRequest request;
    request.set_volume_id(id);
    health_.Clear();
    return CodeOf(request, &health_);
  }
  StatusCode ListAiling(int32_t most = 0, const std::string& token = "") {
    ControllerListVolumeHealthRequest request;
    request.set_max_entries(most);
    request.set_starting_token(token);
    ailing_.Clear();
    return CodeOf(request, &ailing_);
  }
  void LoseFileOf(const std::string& id) { node_.Remove(kPoolPath + "/volumes/" + id + "/image"); }

  ControllerGetVolumeHealthResponse health_;
  ControllerListVolumeHealthResponse ailing_;
};

TEST_F(ControllerHealthTest, AVolumeInGoodHealthIsToldWithoutAnyCondition) {
  const std::string id = CreateNamed("a");
  ASSERT_EQ(Health(id), StatusCode::OK) << message_;
  EXPECT_TRUE(health_.has_volume_health());
  EXPECT_EQ(health_.volume_health().volume_id(), id);
  EXPECT_EQ(health_.volume_health().health_statuses_size(), 0);
  ASSERT_EQ(ListAiling(), StatusCode::OK) << message_;
  EXPECT_EQ(ailing_.entries_size(), 0);
}

TEST_F(ControllerHealthTest, AVolumeThatThereIsNotHasNoHealth) {
  EXPECT_EQ(Health(""), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Health("no-id"), StatusCode::NOT_FOUND);
  EXPECT_EQ(Health("v-00000000-0123456789abcdef01234567"), StatusCode::FAILED_PRECONDITION);
}

TEST_F(ControllerHealthTest, AVolumeWhoseFileIsGoneHasLostItsData) {
  const std::string lost = CreateNamed("a");
  CreateNamed("b");
  LoseFileOf(lost);
  ASSERT_EQ(Health(lost), StatusCode::OK) << message_;
  ASSERT_EQ(health_.volume_health().health_statuses_size(), 1);
  EXPECT_EQ(health_.volume_health().health_statuses(0).status(), ::csi::v1::DATA_LOSS);
  EXPECT_EQ(health_.volume_health().health_statuses(0).reason(), "FileLost");
  ASSERT_EQ(ListAiling(), StatusCode::OK) << message_;
  ASSERT_EQ(ailing_.entries_size(), 1) << "the other one is well";
  EXPECT_EQ(ailing_.entries(0).volume_id(), lost);
}

// The disk was unmounted: what is not found at its place is not gone.
TEST_F(ControllerHealthTest, AVolumeWhosePoolIsNotThereIsInaccessibleAndNotLost) {
  const std::string id = CreateNamed("a");
  node_.Rename(kPoolPath, "/srv/elsewhere");
  node_.AddDirectory(kPoolPath);
  ASSERT_EQ(Health(id), StatusCode::OK) << message_;
  ASSERT_EQ(health_.volume_health().health_statuses_size(), 1);
  EXPECT_EQ(health_.volume_health().health_statuses(0).status(), ::csi::v1::INACCESSIBLE);
  EXPECT_EQ(health_.volume_health().health_statuses(0).reason(), "PoolUnreachable");
  EXPECT_THAT(health_.volume_health().health_statuses(0).message(), HasSubstr("pool fast"));
}

// Each question took ten seconds.
TEST_F(ControllerHealthTest, APoolThatDoesNotAnswerIsToldAfterAFewSeconds) {
  const std::string id = CreateNamed("a");
  node_.Hang(kPoolPath);
  std::vector<Duration> waits;
  node_.SetHangHook(
      [&](const AnyRequest&, Deadline deadline) { waits.push_back(deadline.Remaining(clock_)); });
  ASSERT_EQ(ListAiling(), StatusCode::OK) << message_;
  ASSERT_EQ(ailing_.entries_size(), 1);
  EXPECT_EQ(ailing_.entries(0).health_statuses(0).reason(), "PoolUnreachable");
  ASSERT_EQ(waits.size(), 1u) << "it is asked once";
  EXPECT_LE(waits.front(), std::chrono::seconds(3));
  node_.Unhang(kPoolPath);
  ASSERT_EQ(ListAiling(), StatusCode::OK) << message_;
  EXPECT_EQ(ailing_.entries_size(), 0);
}

TEST_F(ControllerHealthTest, AVolumeWhoseFileWasCutShortHasLostItsData) {
  const std::string id = CreateNamed("a");
  const std::string image = kPoolPath + "/volumes/" + id + "/image";
  node_.Remove(image);
  node_.AddFile(image, "short");
  ASSERT_EQ(Health(id), StatusCode::OK) << message_;
  ASSERT_EQ(health_.volume_health().health_statuses_size(), 1);
  EXPECT_EQ(health_.volume_health().health_statuses(0).reason(), "FileLost");
  EXPECT_THAT(health_.volume_health().health_statuses(0).message(), HasSubstr("has 5 bytes"));
}

// It was not opened, cut or deleted, and its health was told as good.
TEST_F(ControllerHealthTest, AVolumeWhoseFileIsAnotherOneWasWell) {
  const std::string id = CreateNamed("a");
  const std::string image = kPoolPath + "/volumes/" + id + "/image";
  ASSERT_EQ(Health(id), StatusCode::OK) << message_;
  ASSERT_EQ(health_.volume_health().health_statuses_size(), 0);
  node_.Remove(image);
  Must(node_.DoAside(SetFileSize{
      .path = {image, ""}, .make = true, .bytes = Must(volumes_->Find(id)).capacity_bytes}));
  ASSERT_EQ(Health(id), StatusCode::OK) << message_;
  ASSERT_EQ(health_.volume_health().health_statuses_size(), 1);
  EXPECT_EQ(health_.volume_health().health_statuses(0).reason(), "FileLost");
  EXPECT_THAT(health_.volume_health().health_statuses(0).message(), HasSubstr("is another one"));
}

TEST_F(ControllerHealthTest, AVolumeOfAPoolThatOthersHaveFilledIsDegraded) {
  const std::string id = CreateNamed("a");
  node_.LimitFilesystem(kPoolPath, 8 * kMiB);
  ASSERT_EQ(Health(id), StatusCode::OK) << message_;
  ASSERT_EQ(health_.volume_health().health_statuses_size(), 1);
  EXPECT_EQ(health_.volume_health().health_statuses(0).status(), ::csi::v1::DEGRADED);
  EXPECT_EQ(health_.volume_health().health_statuses(0).reason(), "PoolShort");
}

TEST_F(ControllerHealthTest, EveryVolumeThatAilsIsListedOnceOverPages) {
  std::set<std::string> lost;
  for (const char* name : {"a", "b", "c"}) lost.insert(CreateNamed(name));
  CreateNamed("well");
  for (const std::string& id : lost) LoseFileOf(id);
  ASSERT_EQ(ListAiling(2), StatusCode::OK) << message_;
  ASSERT_EQ(ailing_.entries_size(), 2);
  EXPECT_NE(ailing_.next_token(), "");
  std::set<std::string> listed;
  for (const auto& entry : ailing_.entries()) listed.insert(entry.volume_id());
  ASSERT_EQ(ListAiling(2, ailing_.next_token()), StatusCode::OK) << message_;
  ASSERT_EQ(ailing_.entries_size(), 1);
  EXPECT_EQ(ailing_.next_token(), "");
  listed.insert(ailing_.entries(0).volume_id());
  EXPECT_EQ(listed, lost);
  EXPECT_EQ(ListAiling(0, "invalid-token"), StatusCode::ABORTED);
}

TEST_F(ControllerHealthTest, AnOlderLevelHasNoHealth) {
  Serve(CsiProfile::kCentral, CsiServeLevel::k1_12);
  EXPECT_EQ(Health(CreateNamed("a")), StatusCode::UNIMPLEMENTED);
}

}  // namespace
}  // namespace volumed
