// The Controller service: which node is to have a volume.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "csidriver/csi_capability_wish.h"
#include "unit/csidriver/controller_fixture.h"

namespace volumed {
namespace {

using ::csi::v1::ControllerPublishVolumeRequest;
using ::testing::HasSubstr;
using Modes = ::csi::v1::VolumeCapability::AccessMode;
using grpc::StatusCode;

class ControllerPublishTest : public ControllerFixture {
 protected:
  ControllerPublishTest() {
    settings_.other_nodes = {"n2"};
    Serve();
  }
  static ControllerPublishVolumeRequest WithMode(ControllerPublishVolumeRequest request,
                                                 CsiAccessMode mode) {
    request.mutable_volume_capability()->mutable_access_mode()->set_mode(mode);
    return request;
  }
  std::vector<PoolLease> LeasesOf(const std::string& id) { return Must(volumes_->Find(id)).leases; }
};

TEST_F(ControllerPublishTest, ALifeIsTheSameWithEachCallTwice) {
  const std::string id = CreateNamed("a");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(PublishCode(PublishRequest(id)), StatusCode::OK) << message_;
  }
  EXPECT_EQ(Delete(id), StatusCode::FAILED_PRECONDITION) << "a node has it";
  RestartDriver();
  EXPECT_EQ(LeasesOf(id).size(), 1u);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Unpublish(id), StatusCode::OK) << message_;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Delete(id), StatusCode::OK) << message_;
  EXPECT_EQ(Unpublish(id), StatusCode::OK) << "of a volume that is gone";
}

TEST_F(ControllerPublishTest, AnUnknownVolumeOrNodeIsNotFound) {
  const std::string id = CreateNamed("a");
  EXPECT_EQ(PublishCode(PublishRequest(id, "some-fake-node-id")), StatusCode::NOT_FOUND);
  EXPECT_EQ(PublishCode(PublishRequest("some-fake-volume-id")), StatusCode::NOT_FOUND);
  EXPECT_EQ(PublishCode(PublishRequest("v-00000000-0123456789abcdef01234567")),
            StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(Unpublish(id, "some-fake-node-id"), StatusCode::OK) << message_;
  EXPECT_EQ(Unpublish("some-fake-volume-id"), StatusCode::OK) << message_;
  EXPECT_EQ(Unpublish("v-00000000-0123456789abcdef01234567"), StatusCode::FAILED_PRECONDITION);
  EXPECT_TRUE(LeasesOf(id).empty());
}

TEST_F(ControllerPublishTest, TheSameNodeWithAnotherReadonlyOrModeAlreadyExists) {
  const std::string id = CreateNamed("a");
  ASSERT_EQ(PublishCode(PublishRequest(id)), StatusCode::OK) << message_;
  EXPECT_EQ(PublishCode(PublishRequest(id, kThisNode, true)), StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(PublishCode(WithMode(PublishRequest(id), Modes::SINGLE_NODE_READER_ONLY)),
            StatusCode::ALREADY_EXISTS);
}

TEST_F(ControllerPublishTest, AnotherNodeGetsItOnlyInAModeForSeveral) {
  const std::string id = CreateNamed("a");
  ASSERT_EQ(PublishCode(PublishRequest(id)), StatusCode::OK) << message_;
  EXPECT_EQ(PublishCode(PublishRequest(id, "n2")), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("\"node\" has it"));
  ASSERT_EQ(Unpublish(id, ""), StatusCode::OK) << message_;
  const CsiAccessMode many = Modes::MULTI_NODE_MULTI_WRITER;
  EXPECT_EQ(PublishCode(WithMode(PublishRequest(id), many)), StatusCode::OK) << message_;
  EXPECT_EQ(PublishCode(WithMode(PublishRequest(id, "n2"), many)), StatusCode::OK) << message_;
  EXPECT_EQ(LeasesOf(id).size(), 2u);
}

// The pool knows the modes by their numbers alone.
TEST_F(ControllerPublishTest, ThePoolTakesTheModesForWhatTheProtoSaysOfThem) {
  const auto* const modes = Modes::Mode_descriptor();
  for (int i = 0; i < modes->value_count(); ++i) {
    const int32_t number = modes->value(i)->number();
    const PoolLease there{"a", true, number, false};
    const PoolLease wanted{"b", true, number, false};
    EXPECT_EQ(WhyNotBeside(there, wanted).empty(),
              IsMultiNodeMode(static_cast<CsiAccessMode>(number)))
        << modes->value(i)->name();
  }
}

TEST_F(ControllerPublishTest, WhatIsBeyondTheVolumeIsAFailedPrecondition) {
  const std::string id = CreateNamed("a");
  ControllerPublishVolumeRequest block = PublishRequest(id);
  *block.mutable_volume_capability() = Block();
  EXPECT_EQ(PublishCode(block), StatusCode::FAILED_PRECONDITION);
  ControllerPublishVolumeRequest other_fs = PublishRequest(id);
  *other_fs.mutable_volume_capability() = Mount("xfs");
  EXPECT_EQ(PublishCode(other_fs), StatusCode::FAILED_PRECONDITION);
  ControllerPublishVolumeRequest bad_flag = PublishRequest(id);
  bad_flag.mutable_volume_capability()->mutable_mount()->add_mount_flags("loop");
  EXPECT_EQ(PublishCode(bad_flag), StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(LeasesOf(id).empty());
}

TEST_F(ControllerPublishTest, ANodeGetsNoMoreThanItsLimit) {
  settings_.most_volumes = 3;
  Serve();
  std::vector<std::string> ids;
  for (const char* name : {"a", "b", "c", "d"}) ids.push_back(CreateNamed(name));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(PublishCode(PublishRequest(ids[static_cast<size_t>(i)])), StatusCode::OK) << message_;
  }
  EXPECT_EQ(PublishCode(PublishRequest(ids[3])), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(PublishCode(PublishRequest(ids[0])), StatusCode::OK) << "which it has: " << message_;
  EXPECT_EQ(PublishCode(PublishRequest(ids[3], "n2")), StatusCode::OK) << message_;
}

}  // namespace
}  // namespace volumed
