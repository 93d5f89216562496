// Attaching and detaching by the driver's controller: what each answer means, what is on record,
// and what the driver's list proves.
#include "csi/csi_attach.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "unit/csi/attach_fixture.h"

namespace volumed {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

const std::vector<Code> kAllCodes = {
    Code::kCancelled,        Code::kUnknown,           Code::kInvalidArgument,
    Code::kDeadlineExceeded, Code::kNotFound,          Code::kAlreadyExists,
    Code::kPermissionDenied, Code::kResourceExhausted, Code::kFailedPrecondition,
    Code::kAborted,          Code::kOutOfRange,        Code::kUnimplemented,
    Code::kInternal,         Code::kUnavailable,       Code::kDataLoss,
    Code::kUnauthenticated};
const std::set<Code> kMaybe = {Code::kCancelled,         Code::kUnknown, Code::kDeadlineExceeded,
                               Code::kResourceExhausted, Code::kAborted, Code::kInternal,
                               Code::kUnavailable,       Code::kDataLoss};

class CsiAttachTest : public CsiAttachFixture {
 protected:
  // What a driver said is not so.
  static std::string Said(const std::string& what) {
    return "driver disk.example.com said that " + what;
  }
};

TEST_F(CsiAttachTest, TheControllerIsAskedForThisNodeAndItsAnswerIsOnRecord) {
  ServeAttacher();
  const Result<std::string> attached = Attach();
  ASSERT_TRUE(attached.ok()) << attached.error().ToString();
  EXPECT_EQ(*attached, AttachmentName());
  ASSERT_EQ(published_.size(), 1u);
  EXPECT_EQ(published_[0].volume_id(), kHandle);
  EXPECT_EQ(published_[0].node_id(), "node-a");
  EXPECT_EQ(published_[0].volume_context().at("tier"), "gold");
  EXPECT_FALSE(published_[0].readonly());
  ASSERT_TRUE(Row());
  EXPECT_EQ(Row()->attach_way, AttachWay::kByController);
  EXPECT_EQ(Row()->node_id, "node-a");
  EXPECT_THAT(Row()->publish_context, ElementsAre(Pair("devicePath", "/dev/sdx")));
}

TEST_F(CsiAttachTest, TheWayAndTheNodeAreOnRecordBeforeTheControllerIsCalled) {
  ServeAttacher();
  ASSERT_TRUE(Attach().ok());
  ASSERT_TRUE(row_at_call_);
  EXPECT_EQ(row_at_call_->attach_way, AttachWay::kByController);
  EXPECT_EQ(row_at_call_->node_id, "node-a");
  EXPECT_THAT(row_at_call_->publish_context, IsEmpty());
}

TEST_F(CsiAttachTest, WithoutARecordOfTheWayNothingIsSent) {
  ServeAttacher();
  const auto attacher = attaching_->NewAttacher(std::make_unique<NoStager>());
  // No call is on record, so none may be made.
  const auto attached = attacher->Attach(Spec(), NodeName("node"), CallOptions());
  ASSERT_FALSE(attached.ok());
  EXPECT_EQ(attached.error().outcome(), Outcome::kNotApplied);
  EXPECT_THAT(published_, IsEmpty());
}

TEST_F(CsiAttachTest, AnAnswerThatCannotBeWrittenDownIsMaybeApplied) {
  const auto process = ServeAttacher();
  process->Handle("ControllerPublishVolume", [this](const google::protobuf::Message&) {
    store_.FailNext(Error::NotApplied(Code::kResourceExhausted, "disk full"));
    auto answer = std::make_unique<::csi::v1::ControllerPublishVolumeResponse>();
    (*answer->mutable_publish_context())["lun"] = "7";
    return CsiChannel::AnyAnswer(std::move(answer));
  });
  const auto attached = Attach();
  ASSERT_FALSE(attached.ok());
  EXPECT_TRUE(attached.error().maybe_applied());
  EXPECT_THAT(attached.error().message(), HasSubstr("disk full"));
  ASSERT_TRUE(Row());
  EXPECT_TRUE(Row()->uncertain);
}

TEST_F(CsiAttachTest, EachCodeOfControllerPublishHasItsOutcomeAndWhatMayBeThereIsTakenBack) {
  const auto process = ServeAttacher();
  for (const Code code : kAllCodes) {
    SCOPED_TRACE(CodeName(code));
    Published(*process, {});
    Fails(*process, "ControllerPublishVolume", code);
    const auto attached = Attach();
    ASSERT_FALSE(attached.ok());
    EXPECT_EQ(attached.error().code(), code);
    EXPECT_EQ(attached.error().maybe_applied(), kMaybe.contains(code));
    EXPECT_THAT(attached.error().message(), HasSubstr("ControllerPublishVolume"));
    EXPECT_THAT(attached.error().message(), HasSubstr("the array says no"));
    if (!kMaybe.contains(code)) {
      EXPECT_FALSE(Row()) << "nothing is there, so no way is kept";
      continue;
    }
    ASSERT_TRUE(Row());
    EXPECT_TRUE(Row()->uncertain);
    EXPECT_EQ(Row()->attach_way, AttachWay::kByController);
    unpublished_.clear();
    ASSERT_TRUE(Detach().ok());
    ASSERT_EQ(unpublished_.size(), 1u);
    EXPECT_EQ(unpublished_[0].node_id(), "node-a");
    EXPECT_FALSE(Row());
  }
}

TEST_F(CsiAttachTest, AnAttachOfWhichNothingIsKnownIsRepeatedAsItWas) {
  const auto process = ServeAttacher();
  Fails(*process, "ControllerPublishVolume", Code::kInternal);
  ASSERT_FALSE(Attach().ok());
  Published(*process, {{"lun", "3"}});
  ASSERT_TRUE(Attach().ok());
  EXPECT_EQ(published_.back().node_id(), "node-a");
  EXPECT_FALSE(Row()->uncertain);
  EXPECT_THAT(Row()->publish_context, ElementsAre(Pair("lun", "3")));
}

TEST_F(CsiAttachTest, EachCodeOfControllerUnpublishHasItsOutcomeAndNotFoundIsDone) {
  const auto process = ServeAttacher();
  for (const Code code : kAllCodes) {
    SCOPED_TRACE(CodeName(code));
    Published(*process, {});
    ASSERT_TRUE(Attach().ok());
    Fails(*process, "ControllerUnpublishVolume", code);
    const Status detached = Detach();
    if (code == Code::kNotFound) {
      EXPECT_TRUE(detached.ok());
      EXPECT_FALSE(Row());
      continue;
    }
    ASSERT_FALSE(detached.ok());
    EXPECT_EQ(detached.error().code(), code);
    EXPECT_EQ(detached.error().maybe_applied(), kMaybe.contains(code));
    ASSERT_TRUE(Row());
    EXPECT_EQ(Row()->node_id, "node-a");
    Published(*process, {});
    EXPECT_TRUE(Detach().ok());
    EXPECT_FALSE(Row());
  }
}

// By a record that had forgotten the mount.
TEST_F(CsiAttachTest, ADiskWasDetachedUnderItsStagingMount) {
  const auto process = ServeAttacher();
  ASSERT_TRUE(Attach().ok());
  const std::string staging = CsiStagingPath(paths_, kName, kHandle).Display();
  kernel_.AddMount("ext4", "/dev/sda", staging);
  const Status detached = Detach();
  ASSERT_FALSE(detached.ok());
  EXPECT_EQ(detached.error().code(), Code::kFailedPrecondition);
  EXPECT_FALSE(detached.error().maybe_applied());
  EXPECT_THAT(detached.error().message(), HasSubstr(staging + " is still mounted"));
  EXPECT_EQ(Calls(process, "ControllerUnpublishVolume"), 0);
  kernel_.UnmountBelow(staging);
  EXPECT_TRUE(Detach().ok());
}

TEST_F(CsiAttachTest, ADriverThatIsAwayIsNotSentAnythingAndKeepsTheRecord) {
  const auto process = ServeAttacher();
  ASSERT_TRUE(Attach().ok());
  dialer_.Kill(process);
  scheduler_.RunFor(seconds(1));
  const Status detached = Detach();
  ASSERT_FALSE(detached.ok());
  EXPECT_TRUE(detached.error().IsAbout(kCsiNeverSent));
  EXPECT_FALSE(detached.error().maybe_applied());
  EXPECT_EQ(Row()->attach_way, AttachWay::kByController);
}

TEST_F(CsiAttachTest, TheContextAndTheWaySurviveARestart) {
  const auto process = ServeAttacher();
  ASSERT_TRUE(Attach().ok());
  RestartAgent();
  const auto record = devices_->Find(CsiUniqueName(kName, kHandle));
  ASSERT_TRUE(record);
  EXPECT_THAT(record->publish_context, ElementsAre(Pair("devicePath", "/dev/sdx")));
  const auto waited = WaitForAttach();
  ASSERT_TRUE(waited.ok()) << waited.error().ToString();
  EXPECT_EQ(*waited, AttachmentName());
  EXPECT_EQ(Calls(process, "ControllerPublishVolume"), 1) << "a restart costs no call";
  EXPECT_THAT(Row()->publish_context, ElementsAre(Pair("devicePath", "/dev/sdx")));
}

TEST_F(CsiAttachTest, AnAgentThatDiedInTheCallDetachesByTheWayThatItHadBegun) {
  const auto process = ServeAttacher();
  Fails(*process, "ControllerPublishVolume", Code::kDeadlineExceeded);
  ASSERT_FALSE(Attach().ok());
  RestartAgent();
  Published(*process, {});
  Setting(CsiAttach::kObjects);
  ASSERT_TRUE(Detach().ok());
  ASSERT_EQ(unpublished_.size(), 1u);
  EXPECT_EQ(unpublished_[0].volume_id(), kHandle);
  EXPECT_EQ(unpublished_[0].node_id(), "node-a");
}

TEST_F(CsiAttachTest, TheDetachNamesTheNodeAsItWasCalledWhenTheVolumeWasAttached) {
  const auto process = ServeAttacher();
  ASSERT_TRUE(Attach().ok());
  NodeInfo(*process, "node-b");
  drivers_->Refresh(kName);
  scheduler_.RunFor(seconds(1));
  ASSERT_EQ(drivers_->FactsOf(kName)->node_id, "node-b");
  ASSERT_TRUE(Detach().ok());
  ASSERT_EQ(unpublished_.size(), 1u);
  EXPECT_EQ(unpublished_[0].node_id(), "node-a");
}

TEST_F(CsiAttachTest, AnUncertainAttachIsNotRepeatedForANodeOfAnotherName) {
  const auto process = ServeAttacher();
  Fails(*process, "ControllerPublishVolume", Code::kUnavailable);
  ASSERT_FALSE(Attach().ok());
  NodeInfo(*process, "node-b");
  drivers_->Refresh(kName);
  scheduler_.RunFor(seconds(1));
  Published(*process, {});
  const auto again = Attach();
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(again.error().message(), HasSubstr("\"node-a\""));
  EXPECT_THAT(again.error().message(), HasSubstr("\"node-b\""));
  EXPECT_THAT(published_, IsEmpty());
}

TEST_F(CsiAttachTest, ANodeThatTheDriverDoesNotKnowLetsItBeAskedHowItIsCalled) {
  const auto process = ServeAttacher();
  Fails(*process, "ControllerPublishVolume", Code::kNotFound, "no such node");
  const int before = Calls(process, "NodeGetInfo");
  ASSERT_FALSE(Attach().ok());
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(Calls(process, "NodeGetInfo"), before + 1);
}

TEST_F(CsiAttachTest, WithoutAControllerAndWithoutObjectsTheAttachIsRefusedAndNeverLeftOut) {
  ServeController({});
  const auto attached = Attach();
  ASSERT_FALSE(attached.ok());
  EXPECT_EQ(attached.error().code(), Code::kFailedPrecondition);
  EXPECT_FALSE(attached.error().maybe_applied());
  EXPECT_THAT(attached.error().message(),
              HasSubstr("needs an attacher: no source has VolumeAttachments, and the driver serves "
                        "no controller here"));
  EXPECT_FALSE(Row());
}

// It had just made the volume, and the text said that there is none.
TEST_F(CsiAttachTest, AControllerThatCannotAttachWasSaidNotToBeThere) {
  ServeController({ControllerCapability::CREATE_DELETE_VOLUME});
  const auto attached = Attach();
  ASSERT_FALSE(attached.ok());
  EXPECT_EQ(attached.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(
      attached.error().message(),
      AllOf(HasSubstr("its controller cannot attach (it has no PUBLISH_UNPUBLISH_VOLUME)"),
            HasSubstr(std::string("apply a CSIDriver ") + kName + " with attachRequired: false"),
            Not(HasSubstr("serves no controller"))));
  EXPECT_FALSE(Row());
}

TEST_F(CsiAttachTest, ADriverThatWasNeverSeenIsWaitedFor) {
  const auto attached = Attach();
  ASSERT_FALSE(attached.ok());
  EXPECT_EQ(attached.error().code(), Code::kUnavailable);
}

// ---- Secrets ----

TEST_F(CsiAttachTest, TheSecretGoesToBothCallsAndIsOnNoRecord) {
  ServeAttacher();
  PutSecret();
  ASSERT_TRUE(Attach(SpecWithSecret()).ok());
  ASSERT_EQ(published_.size(), 1u);
  EXPECT_EQ(published_[0].secrets().at("password"), kSecretValue);
  for (const Record& row : store_.All()) {
    EXPECT_EQ(row.bytes.find(kSecretValue), std::string::npos) << row.kind;
  }
  ASSERT_TRUE(Detach(SpecWithSecret()).ok());
  ASSERT_EQ(unpublished_.size(), 1u);
  EXPECT_EQ(unpublished_[0].secrets().at("password"), kSecretValue);
}

TEST_F(CsiAttachTest, ASecretThatIsNotThereIsWaitedForAndNothingIsSentWithoutIt) {
  ServeAttacher();
  const auto attached = Attach(SpecWithSecret());
  ASSERT_FALSE(attached.ok());
  EXPECT_EQ(attached.error().code(), Code::kUnavailable);
  EXPECT_FALSE(attached.error().maybe_applied());
  EXPECT_THAT(attached.error().message(), HasSubstr("storage/attach"));
  EXPECT_THAT(published_, IsEmpty());
  PutSecret();
  ASSERT_TRUE(Attach(SpecWithSecret()).ok());
  parts_.secrets.clear();
  const Status detached = Detach(SpecWithSecret());
  ASSERT_FALSE(detached.ok());
  EXPECT_EQ(detached.error().code(), Code::kUnavailable);
  EXPECT_THAT(unpublished_, IsEmpty());
}

TEST_F(CsiAttachTest, ARecordThatIsOfAnotherVolumeDetachesNothing) {
  ServeAttacher();
  ASSERT_TRUE(Attach().ok());
  const auto detacher = attaching_->NewDetacher(std::make_unique<NoUnstager>());
  const Status detached = detacher->DetachRecorded(Spec("vol-2"), CsiVolumeName(kName, kHandle),
                                                   NodeName("node"), CallOptions());
  ASSERT_FALSE(detached.ok());
  EXPECT_EQ(detached.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(unpublished_, IsEmpty());
}

// ---- Proofs ----

TEST_F(CsiAttachTest, ThatItIsAttachedAndListedWithoutThisNodeIsALie) {
  const auto process = ServeLister();
  Lists(*process, {{kHandle, {"node-z"}}});
  const auto attached = Attach();
  ASSERT_FALSE(attached.ok());
  EXPECT_EQ(attached.error().code(), Code::kInternal);
  EXPECT_TRUE(attached.error().maybe_applied());
  EXPECT_THAT(attached.error().message(),
              HasSubstr(Said("volume vol-1 is attached to node node-a")));
  EXPECT_THAT(lies_, ElementsAre("disk.example.com ControllerPublishVolume"));
  EXPECT_TRUE(Row()->uncertain);
  Lists(*process, {{kHandle, {"node-z", "node-a"}}});
  EXPECT_TRUE(Attach().ok());
}

TEST_F(CsiAttachTest, ThatItIsDetachedAndStillListedIsALieUntilTheListShowsIt) {
  const auto process = ServeLister();
  Lists(*process, {{kHandle, {"node-a"}}});
  ASSERT_TRUE(Attach().ok());
  scheduler_.RunFor(minutes(1));
  for (int i = 0; i < 3; ++i) {
    // Also at once: who has lied is asked each time.
    const Status detached = Detach();
    ASSERT_FALSE(detached.ok());
    EXPECT_EQ(detached.error().code(), Code::kInternal);
    EXPECT_TRUE(detached.error().maybe_applied());
    EXPECT_THAT(detached.error().message(),
                HasSubstr(Said("volume vol-1 is detached from node node-a")));
  }
  EXPECT_EQ(lies_.size(), 3u);
  Lists(*process, {{kHandle, {}}});
  EXPECT_TRUE(Detach().ok());
  EXPECT_FALSE(Row());
}

TEST_F(CsiAttachTest, WhoHasLiedIsNotBelievedWhileItDoesNotListItsVolumes) {
  const auto process = ServeLister();
  Lists(*process, {{kHandle, {"node-a"}}});
  ASSERT_TRUE(Attach().ok());
  scheduler_.RunFor(minutes(1));
  ASSERT_FALSE(Detach().ok());
  Fails(*process, "ListVolumes", Code::kInternal);
  const Status detached = Detach();
  ASSERT_FALSE(detached.ok());
  EXPECT_EQ(detached.error().code(), Code::kUnavailable);
  EXPECT_TRUE(detached.error().maybe_applied());
}

TEST_F(CsiAttachTest, AVolumeThatIsNotListedAndAListThatFailsProveNothing) {
  const auto process = ServeLister();
  Lists(*process, {{"another", {"node-z"}}});
  EXPECT_TRUE(Attach().ok());
  scheduler_.RunFor(minutes(1));
  Fails(*process, "ListVolumes", Code::kInternal);
  EXPECT_TRUE(Detach().ok());
  EXPECT_THAT(lies_, IsEmpty());
}

TEST_F(CsiAttachTest, ADriverIsAskedForItsListOnceInHalfAMinute) {
  const auto process = ServeLister();
  Lists(*process, {{kHandle, {"node-a"}}, {"vol-2", {"node-a"}}, {"vol-3", {"node-a"}}});
  ASSERT_TRUE(Attach().ok());
  ASSERT_TRUE(Attach(Spec("vol-2")).ok());
  EXPECT_EQ(Calls(process, "ListVolumes"), 1);
  scheduler_.RunFor(seconds(31));
  ASSERT_TRUE(Attach(Spec("vol-3")).ok());
  EXPECT_EQ(Calls(process, "ListVolumes"), 2);
}

TEST_F(CsiAttachTest, ADriverThatDoesNotSayWhereItsVolumesAreIsNotAskedForAList) {
  const auto process = ServeAttacher();
  ASSERT_TRUE(Attach().ok());
  EXPECT_THAT(AreAttached({Spec()}), ElementsAre(true));
  ASSERT_TRUE(Detach().ok());
  EXPECT_EQ(Calls(process, "ListVolumes"), 0);
}

// ---- Are they attached? ----

TEST_F(CsiAttachTest, WhatTheDriverListsWithoutThisNodeIsNotAttachedAnyMore) {
  const auto process = ServeLister();
  Lists(*process, {{kHandle, {"node-a"}}, {"vol-2", {"node-a"}}});
  ASSERT_TRUE(Attach().ok());
  ASSERT_TRUE(Attach(Spec("vol-2")).ok());
  ASSERT_TRUE(Attach(Spec("vol-3")).ok());
  scheduler_.RunFor(minutes(1));
  Lists(*process, {{kHandle, {"node-z"}}, {"vol-2", {"node-a"}}});
  const std::vector<VolumeSpec> all = {Spec(), Spec("vol-2"), Spec("vol-3"), Spec("unrecorded")};
  EXPECT_THAT(AreAttached(all), ElementsAre(false, true, true, true));
  // The same is said again until the driver may be asked anew.
  EXPECT_THAT(AreAttached(all), ElementsAre(false, true, true, true));
  EXPECT_EQ(Calls(process, "ListVolumes"), 2);
}

TEST_F(CsiAttachTest, AListOfManyPagesIsReadToTheEndOfTheQuestion) {
  const auto process = ServeLister();
  ASSERT_TRUE(Attach().ok());
  scheduler_.RunFor(minutes(1));
  process->Handle("ListVolumes", [](const google::protobuf::Message& request) {
    const auto& token = static_cast<const ::csi::v1::ListVolumesRequest&>(request).starting_token();
    auto answer = std::make_unique<::csi::v1::ListVolumesResponse>();
    auto* entry = answer->add_entries();
    entry->mutable_volume()->set_volume_id(token == "2" ? kHandle : "other-" + token);
    entry->mutable_status();
    answer->set_next_token(token.empty() ? "1" : token == "1" ? "2" : "more");
    return CsiChannel::AnyAnswer(std::move(answer));
  });
  const int before = Calls(process, "ListVolumes");
  EXPECT_THAT(AreAttached({Spec()}), ElementsAre(false));
  EXPECT_EQ(Calls(process, "ListVolumes"), before + 3);
}

TEST_F(CsiAttachTest, AListWithoutAnEndIsGivenUpAndProvesNothing) {
  const auto process = ServeLister();
  ASSERT_TRUE(Attach().ok());
  scheduler_.RunFor(minutes(1));
  ::csi::v1::ListVolumesResponse answer;
  answer.set_next_token("again");
  process->Answer("ListVolumes", answer);
  EXPECT_THAT(AreAttached({Spec()}), ElementsAre(true));
  EXPECT_LE(Calls(process, "ListVolumes"), 101);
}

TEST_F(CsiAttachTest, ADriverThatIsAwayIsNotAskedAndItsVolumesCountAsAttached) {
  const auto process = ServeLister();
  Lists(*process, {{kHandle, {"node-a"}}});
  ASSERT_TRUE(Attach().ok());
  scheduler_.RunFor(minutes(1));
  dialer_.Kill(process);
  scheduler_.RunFor(seconds(1));
  const int before = Calls(process, "ListVolumes");
  EXPECT_THAT(AreAttached({Spec()}), ElementsAre(true));
  EXPECT_EQ(Calls(process, "ListVolumes"), before);
}

TEST_F(CsiAttachTest, ADriverThatHangsCostsFiveSecondsAndHidesNoOther) {
  constexpr const char* kOther = "file.example.com";
  const auto process = ServeLister();
  const auto other = ServeLister(kOther, "/kubelet/plugins/file/csi.sock");
  ASSERT_TRUE(Attach().ok());
  ASSERT_TRUE(Attach(Spec("vol-2", kOther)).ok());
  scheduler_.RunFor(minutes(1));
  process->Hang("ListVolumes");
  Lists(*other, {{"vol-2", {"node-z"}}});
  const TimePoint begun = clock_.Now();
  EXPECT_THAT(AreAttached({Spec(), Spec("vol-2", kOther)}), ElementsAre(true, false));
  EXPECT_LE(clock_.Now() - begun, seconds(6));
}

TEST(RunSideBySide, AllHaveEndedWhenItReturnsHoweverFewThreadsThereAre) {
  ManualClock clock;
  SimulatedScheduler scheduler(3, clock);
  int runs = 0;
  std::vector<std::function<void()>> tasks(20, [&runs] { ++runs; });
  // None of the scheduler's threads has begun by then.
  RunSideBySide(scheduler, std::move(tasks));
  EXPECT_EQ(runs, 20);
  scheduler.RunFor(milliseconds(1));
  EXPECT_EQ(runs, 20);
  RunSideBySide(scheduler, {});
}

}  // namespace
}  // namespace volumed
