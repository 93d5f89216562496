// What the Node service says of the health of volumes and of the storage behind them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "csidriver/volume_health.h"
#include "unit/csidriver/node_fixture.h"

namespace volumed {
namespace {

using ::csi::v1::NodeGetStorageHealthRequest;
using ::csi::v1::NodeGetStorageHealthResponse;
using ::csi::v1::NodeGetVolumeHealthRequest;
using ::csi::v1::NodeGetVolumeHealthResponse;
using grpc::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class NodeHealthTest : public NodeFixture {
 protected:
  NodeHealthTest() {
    Serve(CsiProfile::kCentral, CsiServeLevel::k1_13);
    AddNode();
  }

  StatusCode Health(const std::string& id, const std::string& target = "") {
    NodeGetVolumeHealthRequest request;
    request.set_volume_id(id);
    request.set_volume_publish_path(target);
    response_.Clear();
    return CodeOf(request, &response_);
  }
  // The reasons that are told.
  std::vector<std::string> ReasonsOf(const std::string& id, const std::string& target = "") {
    EXPECT_EQ(Health(id, target), StatusCode::OK) << message_;
    EXPECT_EQ(response_.volume_health().volume_id(), id);
    std::vector<std::string> reasons;
    for (const auto& entry : response_.volume_health().health_statuses()) {
      reasons.push_back(entry.reason());
    }
    return reasons;
  }
  void HaveBoth(const std::string& id, const Capability& capability = Mount()) {
    ASSERT_EQ(StageIt(id, capability), StatusCode::OK) << message_;
    ASSERT_EQ(PublishIt(id, capability), StatusCode::OK) << message_;
  }

  NodeGetVolumeHealthResponse response_;
};

TEST_F(NodeHealthTest, ItsNodeAnnouncesItFromItsLevelOn) {
  using Rpc = ::csi::v1::NodeServiceCapability::RPC;
  const auto has = handlers_->Capabilities().node;
  EXPECT_THAT(has, ::testing::IsSupersetOf({Rpc::GET_VOLUME_HEALTH, Rpc::GET_STORAGE_HEALTH}));
}

TEST_F(NodeHealthTest, AVolumeIsWellWhereverItIsAndIfItIsNowhere) {
  const std::string id = CreateNamed("a");
  EXPECT_THAT(ReasonsOf(id), IsEmpty());
  EXPECT_TRUE(response_.has_volume_health());
  ASSERT_NO_FATAL_FAILURE(HaveBoth(id));
  EXPECT_THAT(ReasonsOf(id), IsEmpty());
  EXPECT_THAT(ReasonsOf(id, kTarget), IsEmpty());
  EXPECT_THAT(ReasonsOf(id, kOtherTarget), IsEmpty()) << "it was never there";
}

TEST_F(NodeHealthTest, ADeviceIsWellThoughNothingIsMountedWhereItIsStaged) {
  const std::string id = CreateBlock("raw");
  ASSERT_NO_FATAL_FAILURE(HaveBoth(id, Block()));
  EXPECT_THAT(ReasonsOf(id, kTarget), IsEmpty());
}

TEST_F(NodeHealthTest, AVolumeThatThereIsNotIsNotFound) {
  EXPECT_EQ(Health(""), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Health("no-id"), StatusCode::NOT_FOUND);
  EXPECT_EQ(Health(kIdOfAnotherPool), StatusCode::FAILED_PRECONDITION);
}

TEST_F(NodeHealthTest, AMountThatWasTakenAwayByHandIsMissed) {
  const std::string id = CreateNamed("a");
  ASSERT_NO_FATAL_FAILURE(HaveBoth(id));
  node_.UnmountBelow(kTarget);
  EXPECT_THAT(ReasonsOf(id), IsEmpty()) << "nobody has named the place";
  EXPECT_THAT(ReasonsOf(id, kTarget), ElementsAre("MountLost"));
  EXPECT_EQ(response_.volume_health().health_statuses(0).status(), ::csi::v1::INACCESSIBLE);
  node_.UnmountBelow(kStaging);
  EXPECT_THAT(ReasonsOf(id, kTarget), ElementsAre("MountLost"))
      << "no two conditions have the same status and reason";
  EXPECT_THAT(response_.volume_health().health_statuses(0).message(), HasSubstr(kStaging));
  EXPECT_THAT(response_.volume_health().health_statuses(0).message(), HasSubstr(kTarget));
}

// The mount table has no word of it, and nothing was told.
TEST_F(NodeHealthTest, AFilesystemThatTheKernelHasShutDownIsToldThoughTheMountTableIsSilent) {
  const std::string id = CreateNamed("a");
  ASSERT_NO_FATAL_FAILURE(HaveBoth(id));
  node_.FailNext("Stat", EIO, Outcome::kNotApplied);
  EXPECT_THAT(ReasonsOf(id, kTarget), ElementsAre("ReadOnly"));
  EXPECT_EQ(response_.volume_health().health_statuses(0).status(), ::csi::v1::DEGRADED);
  EXPECT_THAT(response_.volume_health().health_statuses(0).message(), HasSubstr("shut it down"));
  EXPECT_THAT(ReasonsOf(id, kTarget), IsEmpty()) << "it was mounted anew";
}

TEST_F(NodeHealthTest, AFilesystemThatAnswersNothingKeepsItsHealthFromNobody) {
  const std::string id = CreateNamed("a");
  ASSERT_NO_FATAL_FAILURE(HaveBoth(id));
  node_.Hang(kStaging);
  EXPECT_THAT(ReasonsOf(id, kTarget), IsEmpty());
}

TEST_F(NodeHealthTest, AVolumeWhoseFileIsGoneHasLostItsData) {
  const std::string id = CreateNamed("a");
  node_.Remove(kPoolPath + "/volumes/" + id + "/image");
  EXPECT_THAT(ReasonsOf(id), ElementsAre("FileLost"));
}

TEST_F(NodeHealthTest, ThePoolsOfTheNodeAreItsStorage) {
  NodeGetStorageHealthResponse response;
  ASSERT_EQ(CodeOf(NodeGetStorageHealthRequest(), &response), StatusCode::OK) << message_;
  EXPECT_EQ(response.backend_health_size(), 0);
  node_.Rename(kPoolPath, "/srv/elsewhere");
  node_.AddDirectory(kPoolPath);
  ASSERT_EQ(CodeOf(NodeGetStorageHealthRequest(), &response), StatusCode::OK) << message_;
  ASSERT_EQ(response.backend_health_size(), 1);
  EXPECT_EQ(response.backend_health(0).status(), ::csi::v1::STORAGE_UNREACHABLE);
  EXPECT_EQ(response.backend_health(0).reason(), "PoolUnreachable");
  EXPECT_THAT(response.backend_health(0).message(), HasSubstr("pool fast"));
}

TEST(VolumeHealthTest, WhatIsWrongWithTwoPoolsIsOneConditionThatNamesBoth) {
  PoolHealth is_short;
  is_short.is_short = true;
  NodeGetStorageHealthResponse response;
  TellStorageHealth("fast", is_short, response);
  TellStorageHealth("well", PoolHealth{}, response);
  TellStorageHealth("slow", is_short, response);
  ASSERT_EQ(response.backend_health_size(), 1);
  EXPECT_EQ(response.backend_health(0).status(), ::csi::v1::STORAGE_DEGRADED);
  EXPECT_THAT(response.backend_health(0).message(), HasSubstr("pool fast"));
  EXPECT_THAT(response.backend_health(0).message(), HasSubstr("pool slow"));
}

TEST(VolumeHealthTest, AVolumeOfAPoolThatIsShortIsDegraded) {
  PoolVolumeRecord volume;
  volume.id = "v-1";
  volume.pool = "fast";
  PoolHealth pool;
  pool.is_short = true;
  pool.lost["v-1"] = "its file is missing";
  pool.lost["v-2"] = "another one's";
  ::csi::v1::VolumeHealth health;
  TellVolumeHealth(volume, pool, health);
  ASSERT_EQ(health.health_statuses_size(), 2);
  EXPECT_EQ(health.health_statuses(0).status(), ::csi::v1::DATA_LOSS);
  EXPECT_EQ(health.health_statuses(0).message(), "its file is missing");
  EXPECT_EQ(health.health_statuses(1).status(), ::csi::v1::DEGRADED);
  EXPECT_EQ(health.health_statuses(1).reason(), "PoolShort");
}

TEST(VolumeHealthTest, ADirectoryWithoutItsLimitIsDegradedAndNotLost) {
  PoolVolumeRecord volume;
  volume.id = "v-1";
  volume.pool = "fast";
  PoolHealth pool;
  pool.unbounded["v-1"] = "it is of project 7";
  ::csi::v1::VolumeHealth health;
  TellVolumeHealth(volume, pool, health);
  ASSERT_EQ(health.health_statuses_size(), 1);
  EXPECT_EQ(health.health_statuses(0).status(), ::csi::v1::DEGRADED);
  EXPECT_EQ(health.health_statuses(0).reason(), "LimitLost");
  EXPECT_THAT(health.health_statuses(0).message(), HasSubstr("it is of project 7"));
}

}  // namespace
}  // namespace volumed
