// Calls by hand that change something: what their rows say, and whom they keep out until what they
// have done is known.
#include "csi/csi_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/manual_clock.h"
#include "csi.pb.h"
#include "csi/csi_names.h"
#include "csi/rpc/csi_outcome.h"
#include "fakes/memory_record_store.h"

namespace volumed {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kDriver = "disk.example.com";

class CsiCommandTest : public testing::Test {
 protected:
  static ::csi::v1::NodeStageVolumeRequest Stage(const std::string& path = "/k/stage") {
    ::csi::v1::NodeStageVolumeRequest request;
    request.set_volume_id("vol-1");
    request.set_staging_target_path(path);
    (*request.mutable_secrets())["password"] = "hunter2";
    (*request.mutable_volume_context())["token"] = "hunter2";
    request.mutable_volume_capability()->mutable_mount()->add_mount_flags("password=hunter2");
    return request;
  }
  static ::csi::v1::NodeUnstageVolumeRequest Unstage(const std::string& path = "/k/stage") {
    ::csi::v1::NodeUnstageVolumeRequest request;
    request.set_volume_id("vol-1");
    request.set_staging_target_path(path);
    return request;
  }
  static CsiCommandRecord Command(const google::protobuf::Message& request) {
    return CsiCommandOf(kDriver, *CsiMethodOf(request.GetDescriptor()), request, 1'767'323'045'678);
  }
  // The whole call, which ends so; returns whether nothing of it is open.
  bool Made(const google::protobuf::Message& request, const Status& answer) {
    const CsiCommandRecord command = Command(request);
    const Status begun = commands_.Begin(command);
    EXPECT_TRUE(begun.ok()) << begun.error().ToString();
    EXPECT_TRUE(commands_.Write(command).ok());
    return commands_.End(command, answer);
  }
  static Status Open() { return Error::MaybeApplied(Code::kDeadlineExceeded, "no answer"); }
  static Status Refusal(Code code) { return Error::NotApplied(code, "no"); }
  Status Operation(const google::protobuf::Message& request) {
    const auto pass = commands_.AdmitOperation(kDriver, request);
    return pass.ok() ? OkStatus() : Status(pass.error());
  }
  size_t Rows() { return store_.Load(kCsiCommandRecordKind)->records.size(); }

  ManualClock clock_;
  Logger log_{LogOptions{.target = LogOptions::Target::kCallback, .callback = {}}, clock_};
  MemoryRecordStore store_;
  CsiCommands commands_{store_, log_};
};

TEST_F(CsiCommandTest, ARowHasWhatIsNeededAndNoSecret) {
  const CsiCommandRecord command = Command(Stage());
  const Record row = EncodeRecord(command);
  EXPECT_EQ(row.kind, "csi-command");
  EXPECT_EQ(row.key, "kubernetes.io/csi/disk.example.com^vol-1");
  EXPECT_THAT(row.bytes, HasSubstr("/k/stage"));
  EXPECT_THAT(row.bytes, Not(HasSubstr("hunter2")));
  const Result<CsiCommandRecord> read = DecodeCsiCommandRecord(row);
  ASSERT_TRUE(read.ok()) << read.error().ToString();
  EXPECT_EQ(*read, command);
}

TEST_F(CsiCommandTest, ARowOfAnUnknownRpcOrUnderAnotherKeyCannotBeRead) {
  CsiCommandRecord command = Command(Stage());
  Record row = EncodeRecord(command);
  row.key += "x";
  EXPECT_EQ(DecodeCsiCommandRecord(row).error().code(), Code::kDataLoss);
  row = EncodeRecord(command);
  const size_t at = row.bytes.find("NodeStageVolume");
  row.bytes.replace(at, 4, "Xode");
  EXPECT_EQ(DecodeCsiCommandRecord(row).error().code(), Code::kDataLoss);
}

TEST_F(CsiCommandTest, WhatIsNoVolumesHasAKeyOfItsRpc) {
  ::csi::v1::CreateVolumeRequest create;
  create.set_name("pvc-1");
  EXPECT_EQ(EncodeRecord(Command(create)).key, "CreateVolume/disk.example.com^pvc-1");
  ::csi::v1::CreateSnapshotRequest snapshot;
  snapshot.set_name("pvc-1");
  EXPECT_EQ(EncodeRecord(Command(snapshot)).key, "CreateSnapshot/disk.example.com^pvc-1");
  EXPECT_EQ(CsiCommandKey(kDriver, *FindCsiMethod("NodeStageVolume"),
                          ::csi::v1::NodeStageVolumeRequest()),
            std::nullopt);
}

TEST_F(CsiCommandTest, WhileItRunsNeitherOperationsNorOtherCallsAreMadeAboutTheVolume) {
  const CsiCommandRecord command = Command(Stage());
  ASSERT_TRUE(commands_.Begin(command).ok());
  const Status operation = Operation(Unstage());
  ASSERT_FALSE(operation.ok());
  EXPECT_EQ(operation.error().code(), Code::kUnavailable);
  EXPECT_FALSE(operation.error().maybe_applied());
  EXPECT_THAT(operation.error().message(), HasSubstr("NodeStageVolume by hand is under way"));
  EXPECT_FALSE(commands_.Begin(Command(Unstage())).ok());
  ::csi::v1::NodeUnstageVolumeRequest other = Unstage();
  other.set_volume_id("vol-2");
  EXPECT_TRUE(Operation(other).ok());
  ::csi::v1::NodeGetVolumeStatsRequest question;
  question.set_volume_id("vol-1");
  EXPECT_TRUE(Operation(question).ok()) << "it changes nothing";
  EXPECT_TRUE(commands_.End(command, OkStatus()));
  EXPECT_TRUE(Operation(Unstage()).ok());
}

TEST_F(CsiCommandTest, WhileAnOperationCallsTheDriverNoCallByHandBegins) {
  {
    const auto pass = commands_.AdmitOperation(kDriver, Unstage());
    ASSERT_TRUE(pass.ok());
    const auto second = commands_.AdmitOperation(kDriver, Unstage());
    ASSERT_TRUE(second.ok());
    const Status refused = commands_.Begin(Command(Stage()));
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code(), Code::kUnavailable);
  }
  EXPECT_TRUE(commands_.Begin(Command(Stage())).ok());
}

TEST_F(CsiCommandTest, TheRowGoesWhenTheOutcomeIsKnown) {
  EXPECT_TRUE(Made(Stage(), OkStatus()));
  EXPECT_TRUE(Made(Stage(), Refusal(Code::kInvalidArgument)));
  EXPECT_EQ(Rows(), 0u);
  EXPECT_FALSE(commands_.HasOf(kDriver));
}

TEST_F(CsiCommandTest, AfterAnOpenOutcomeOnlyTheSameAboutTheSamePlaceOrItsInverseMayFollow) {
  EXPECT_FALSE(Made(Stage(), Open()));
  EXPECT_EQ(Rows(), 1u);
  EXPECT_TRUE(commands_.HasOf(kDriver));
  const Status operation = Operation(Stage());
  ASSERT_FALSE(operation.ok());
  EXPECT_EQ(operation.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(operation.error().message(),
              HasSubstr("NodeStageVolume by hand has an open outcome: make it again, or "
                        "NodeUnstageVolume, by hand"));
  EXPECT_FALSE(commands_.CheckCommand(Command(Unstage("/k/elsewhere"))).ok());
  ::csi::v1::NodePublishVolumeRequest publish;
  publish.set_volume_id("vol-1");
  EXPECT_FALSE(commands_.CheckCommand(Command(publish)).ok());
  EXPECT_TRUE(commands_.CheckCommand(Command(Stage())).ok());
  EXPECT_TRUE(Made(Unstage(), OkStatus()));
  EXPECT_EQ(Rows(), 0u);
  EXPECT_TRUE(Operation(Stage()).ok());
}

TEST_F(CsiCommandTest, TheRefusalOfACallForAnotherPlaceAdvisedWhatWasJustDone) {
  EXPECT_FALSE(Made(Stage("/k/stage"), Open()));
  const Status elsewhere = commands_.CheckCommand(Command(Unstage("/k/elsewhere")));
  ASSERT_FALSE(elsewhere.ok());
  EXPECT_EQ(elsewhere.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(elsewhere.error().message(), HasSubstr("this call is about another place"));
  EXPECT_THAT(elsewhere.error().message(),
              HasSubstr("with the staging_target_path \"/k/stage\" that it had"));
  // Whoever makes another call learns the place too, and none is made up where there is none.
  EXPECT_THAT(Operation(Stage()).error().message(), HasSubstr("\"/k/stage\" that it had"));
  ::csi::v1::ControllerExpandVolumeRequest expand;
  expand.set_volume_id("vol-2");
  EXPECT_FALSE(Made(expand, Open()));
  EXPECT_THAT(Operation(expand).error().message(), Not(HasSubstr("that it had")));
}

TEST_F(CsiCommandTest, TheAdviceForAnOpenOutcomeCouldNotBeFollowedWhileAnythingHadTheVolume) {
  EXPECT_FALSE(commands_.IsOpen(Command(Stage())));
  EXPECT_FALSE(Made(Stage(), Open()));
  EXPECT_TRUE(commands_.IsOpen(Command(Stage())));
  const std::vector<std::string> open = commands_.OpenOf(kDriver);
  ASSERT_EQ(open.size(), 1u);
  EXPECT_THAT(open[0], HasSubstr("NodeStageVolume by hand of \"vol-1\""));
  const Status operation = Operation(Stage());
  ASSERT_FALSE(operation.ok());
  EXPECT_THAT(operation.error().message(), HasSubstr("`volumectl delete pv NAME --force`"));
}

TEST_F(CsiCommandTest, ARefusalSaysNothingOfAnEarlierCallThatCanBeTakenBack) {
  EXPECT_FALSE(Made(Stage(), Open()));
  EXPECT_FALSE(Made(Stage(), Refusal(Code::kInvalidArgument)));
  EXPECT_FALSE(Made(Stage(), Refusal(Code::kNotFound)));
  EXPECT_FALSE(
      Made(Unstage(), Status(Error::NotApplied(Code::kNotFound, "no").About(kCsiNeverSent))));
  EXPECT_EQ(Rows(), 1u);
  EXPECT_TRUE(Made(Unstage(), Refusal(Code::kNotFound))) << "it knows no such volume";
  EXPECT_EQ(Rows(), 0u);
}

TEST_F(CsiCommandTest, ARefusalSettlesWhatNothingTakesBack) {
  ::csi::v1::ControllerExpandVolumeRequest expand;
  expand.set_volume_id("vol-1");
  EXPECT_FALSE(Made(expand, Open()));
  EXPECT_TRUE(Made(expand, Refusal(Code::kOutOfRange)));
  EXPECT_EQ(Rows(), 0u);
}

// Whoever forgot the secrets of the second call ended the first, and a claim was given what the
// driver was deleting.
TEST_F(CsiCommandTest, ARefusalOfADriverThatHasNotLookedEndedAnOpenDeletion) {
  ::csi::v1::DeleteVolumeRequest remove;
  remove.set_volume_id("vol-1");
  EXPECT_FALSE(Made(remove, Open()));
  for (const Code code :
       {Code::kPermissionDenied, Code::kUnauthenticated, Code::kInvalidArgument}) {
    EXPECT_FALSE(Made(remove, Refusal(code)));
    EXPECT_EQ(commands_.OpenDeletions().size(), 1u);
  }
  EXPECT_TRUE(Made(remove, Refusal(Code::kFailedPrecondition))) << "it is in use, and stays";
  EXPECT_TRUE(commands_.OpenDeletions().empty());
  ::csi::v1::ControllerExpandVolumeRequest expand;
  expand.set_volume_id("vol-1");
  EXPECT_FALSE(Made(expand, Open()));
  EXPECT_FALSE(Made(expand, Refusal(Code::kUnauthenticated)));
}

TEST_F(CsiCommandTest, WhatAnEarlierRunBeganIsOpenAfterARestart) {
  ASSERT_TRUE(commands_.Begin(Command(Stage())).ok());
  ASSERT_TRUE(commands_.Write(Command(Stage())).ok());
  CsiCommands next(store_, log_);
  next.Restore(*store_.Load(kCsiCommandRecordKind));
  EXPECT_TRUE(next.HasOf(kDriver));
  const auto refused = next.AdmitOperation(kDriver, Stage());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
  EXPECT_FALSE(next.CheckCommand(Command(Unstage("/k/elsewhere"))).ok());
  ASSERT_TRUE(next.Begin(Command(Unstage())).ok());
  ASSERT_TRUE(next.Write(Command(Unstage())).ok());
  EXPECT_TRUE(next.End(Command(Unstage()), OkStatus()));
  EXPECT_EQ(Rows(), 0u);
  EXPECT_TRUE(next.AdmitOperation(kDriver, Stage()).ok());
}

TEST_F(CsiCommandTest, ARowThatCannotBeReadKeepsTheVolumeFromEverybody) {
  EXPECT_FALSE(Made(Stage(), Open()));
  store_.Corrupt(kCsiCommandRecordKind, CsiUniqueName(kDriver, "vol-1").str(), "a bit has turned");
  CsiCommands next(store_, log_);
  next.Restore(*store_.Load(kCsiCommandRecordKind));
  EXPECT_TRUE(next.HasOf(kDriver));
  const auto refused = next.AdmitOperation(kDriver, Unstage());
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("a bit has turned"));
  EXPECT_FALSE(next.Begin(Command(Stage())).ok());
  EXPECT_FALSE(next.Begin(Command(Unstage())).ok());
}

TEST_F(CsiCommandTest, ARowThatCannotBeWrittenKeepsTheCallFromBeingSent) {
  const CsiCommandRecord command = Command(Stage());
  ASSERT_TRUE(commands_.Begin(command).ok());
  store_.FailNext(Error::NotApplied(Code::kResourceExhausted, "disk is full"));
  const Status written = commands_.Write(command);
  ASSERT_FALSE(written.ok());
  EXPECT_TRUE(commands_.End(command, written));
  EXPECT_TRUE(Operation(Stage()).ok());
}

TEST_F(CsiCommandTest, ARowThatCannotBeRemovedLeavesTheOutcomeOpen) {
  const CsiCommandRecord command = Command(Stage());
  ASSERT_TRUE(commands_.Begin(command).ok());
  ASSERT_TRUE(commands_.Write(command).ok());
  store_.FailNext(Error::NotApplied(Code::kResourceExhausted, "disk is full"));
  EXPECT_FALSE(commands_.End(command, OkStatus()));
  EXPECT_FALSE(Operation(Stage()).ok());
  EXPECT_TRUE(Made(Stage(), OkStatus()));
}

}  // namespace
}  // namespace volumed
