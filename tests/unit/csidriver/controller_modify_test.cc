// The Controller service: what can be changed of a volume that is there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <utility>

#include "unit/csidriver/controller_fixture.h"

namespace volumed {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;

constexpr char kDirectIo[] = "directIO";
constexpr char kReadAhead[] = "readAheadKiB";

class ControllerModifyTest : public ControllerFixture {
 protected:
  // As whoever stages the volume has it opened.
  OpenedVolume Opened(const std::string& id) {
    return Must(volumes_->Open(id, /*read_only=*/false, {}));
  }
  // What the kernel says of the one loop device that there is.
  bool IsDirect() { return Loops().at(0).direct_io; }
  int64_t ReadAhead() { return node_.Device(Loops().at(0).path).loop->read_ahead_kib; }
};

TEST_F(ControllerModifyTest, AVolumeInUseIsChangedWhereItIsAndHasThatAtEveryAttach) {
  const std::string id = CreateNamed("a");
  EXPECT_TRUE(Opened(id).direct_io) << "as the kernel can";
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(Modify(id, {{kDirectIo, "false"}}), StatusCode::OK) << message_;
    EXPECT_FALSE(IsDirect());
  }
  EXPECT_EQ(RecordedOf(id), (StringMap{{kDirectIo, "false"}}));
  ASSERT_TRUE(volumes_->Close(id, {}).ok());
  RestartDriver();
  EXPECT_FALSE(Opened(id).direct_io);
  EXPECT_FALSE(IsDirect());
  ASSERT_EQ(Modify(id, {{kDirectIo, "true"}}), StatusCode::OK) << message_;
  EXPECT_TRUE(IsDirect());
  EXPECT_EQ(Modify(id, {}), StatusCode::OK) << "what is not named stays: " << message_;
  EXPECT_EQ(RecordedOf(id), (StringMap{{kDirectIo, "true"}}));
}

TEST_F(ControllerModifyTest, TheReadAheadIsSetWhereTheVolumeIsAndAtEveryAttach) {
  const std::string id = CreateNamed("a");
  Opened(id);
  ASSERT_EQ(Modify(id, {{kReadAhead, "512"}}), StatusCode::OK) << message_;
  EXPECT_EQ(ReadAhead(), 512);
  EXPECT_TRUE(IsDirect()) << "what is not named stays";
  ASSERT_TRUE(volumes_->Close(id, {}).ok());
  RestartDriver();
  EXPECT_TRUE(Opened(id).direct_io);
  EXPECT_EQ(ReadAhead(), 512);
  ASSERT_EQ(Modify(id, {{kReadAhead, "0"}, {kDirectIo, "false"}}), StatusCode::OK) << message_;
  EXPECT_EQ(ReadAhead(), 0);
  EXPECT_FALSE(IsDirect());
}

TEST_F(ControllerModifyTest, AReadAheadThatTheKernelDoesNotTakeIsNotOnRecordEither) {
  const std::string id = CreateNamed("a");
  Opened(id);
  // Pages of 64 KiB.
  node_.FailNext(ConfigureLoop::kName, EINVAL, Outcome::kNotApplied);
  EXPECT_EQ(Modify(id, {{kReadAhead, "4"}}), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(RecordedOf(id), StringMap{});
  EXPECT_EQ(ReadAhead(), 128);
}

TEST_F(ControllerModifyTest, ADeviceThatIsOpenIsTunedWhenItIsOpenedAgain) {
  const std::string id = CreateNamed("a");
  Opened(id);
  // The agent ended between the row and the effect.
  node_.FailNext(ConfigureLoop::kName, Error::MaybeApplied(Code::kUnavailable, "the worker died"));
  EXPECT_EQ(Modify(id, {{kDirectIo, "false"}}), StatusCode::UNAVAILABLE);
  EXPECT_EQ(RecordedOf(id), (StringMap{{kDirectIo, "false"}}));
  EXPECT_TRUE(IsDirect());
  EXPECT_FALSE(Opened(id).direct_io);
  EXPECT_FALSE(IsDirect());
}

TEST_F(ControllerModifyTest, AVolumeIsMadeAsItIsAskedFor) {
  ::csi::v1::CreateVolumeRequest request = CreateRequest("a");
  (*request.mutable_mutable_parameters())[kDirectIo] = "false";
  const std::string id = Create(request).volume_id();
  EXPECT_EQ(RecordedOf(id), (StringMap{{kDirectIo, "false"}}));
  EXPECT_FALSE(Opened(id).direct_io);
  ASSERT_EQ(Modify(id, {{kDirectIo, "true"}}), StatusCode::OK) << message_;
  EXPECT_EQ(Create(request).volume_id(), id) << "the same call again";
  EXPECT_EQ(RecordedOf(id), (StringMap{{kDirectIo, "true"}}));
}

TEST_F(ControllerModifyTest, WhatCannotBeSetIsRefusedWithTheReasonAndNothingIsChanged) {
  const std::string id = CreateNamed("a");
  Opened(id);
  const std::pair<StringMap, std::string> refused[] = {
      {{{kDirectIo, "false"}, {"XXX_FakeKey", "1"}}, "is not known"},
      {{{kDirectIo, "false"}, {"readAheadKiB", "130"}}, "a multiple of 4"},
      {{{"readAheadKiB", "512"}, {"readBps", "1"}}, "above 1, or 0"},
      {{{"readAheadKiB", "512"}, {"XXX_FakeKey", "1"}}, "is not known"},
      {{{kDirectIo, "maybe"}}, "true or false"}};
  for (const auto& [changes, why] : refused) {
    EXPECT_EQ(Modify(id, changes), StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(message_, HasSubstr(why));
  }
  EXPECT_EQ(RecordedOf(id), StringMap{});
  EXPECT_TRUE(IsDirect());
  EXPECT_EQ(ReadAhead(), 128);
  EXPECT_EQ(Modify("non-existing-volume-id", {{"XXX_FakeKey", "1"}}), StatusCode::NOT_FOUND);
}

TEST_F(ControllerModifyTest, WhatTheFilesystemOfThePoolCannotDoIsNotOnRecordEither) {
  const std::string id = CreateNamed("a");
  ASSERT_EQ(Modify(id, {{kDirectIo, "false"}}), StatusCode::OK) << message_;
  Opened(id);
  node_.FailNext(ConfigureLoop::kName, EINVAL, Outcome::kNotApplied);
  EXPECT_EQ(Modify(id, {{kDirectIo, "true"}}), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(RecordedOf(id), (StringMap{{kDirectIo, "false"}}));
  EXPECT_FALSE(IsDirect());
}

TEST_F(ControllerModifyTest, ACapabilityIsConfirmedWithTheParametersThatTheVolumeHas) {
  const std::string id = CreateNamed("a");
  ::csi::v1::ValidateVolumeCapabilitiesRequest request;
  request.set_volume_id(id);
  *request.add_volume_capabilities() = Mount();
  (*request.mutable_mutable_parameters())[kDirectIo] = "false";
  ::csi::v1::ValidateVolumeCapabilitiesResponse response;
  ASSERT_EQ(CodeOf(request, &response), StatusCode::OK) << message_;
  EXPECT_FALSE(response.has_confirmed());
  EXPECT_THAT(response.message(), HasSubstr("directIO"));
  ASSERT_EQ(Modify(id, {{kDirectIo, "false"}}), StatusCode::OK) << message_;
  ASSERT_EQ(CodeOf(request, &response), StatusCode::OK) << message_;
  EXPECT_EQ(response.confirmed().mutable_parameters().at(kDirectIo), "false");
}

TEST_F(ControllerModifyTest, ADriverOfItsNodeModifiesNothing) {
  Serve(CsiProfile::kNode);
  EXPECT_EQ(Modify(CreateNamed("a"), {}), StatusCode::UNIMPLEMENTED);
}

}  // namespace
}  // namespace volumed
