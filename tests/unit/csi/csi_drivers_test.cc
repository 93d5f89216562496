// CsiDrivers and CsiDriver: what is known of drivers, how they are, and how they come back.
#include "csi/csi_drivers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "unit/csi/registered_driver_fixture.h"

namespace volumed {
namespace {

using CsiDriversTest = RegisteredDriverFixture;

TEST_F(CsiDriversTest, WhatADriverSaysOfItselfIsKnownOnceItIsRegistered) {
  RegisterWell();
  const Result<CsiDriverFacts> facts = drivers_->FactsOf(kName);
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts->node_id, "node-a");
  EXPECT_EQ(facts->endpoint, kEndpoint);
  EXPECT_EQ(facts->vendor_version, "2.1");
  EXPECT_EQ(facts->version, "1.0.0");
  EXPECT_EQ(facts->max_volumes, 16);
  EXPECT_TRUE(facts->HasNode(::csi::v1::NodeServiceCapability::RPC::STAGE_UNSTAGE_VOLUME));
  EXPECT_TRUE(facts->controller_capabilities.empty());
  EXPECT_EQ(facts->topology.at("example.com/zone"), "z1");
  EXPECT_EQ(State(), CsiDriverState::kReady);
  EXPECT_EQ(drivers_->WhyAway(kName), "");
  EXPECT_FALSE(drivers_->LaneOf(kName).closed);
  EXPECT_EQ(Count(DriverEvent::kRegistered), 1);
  EXPECT_EQ(Count(DriverEvent::kFactsChanged), 1);
}

TEST_F(CsiDriversTest, AMisspelledDriverWasNotToldFromOneThatIsNotThere) {
  const auto process = Serve();
  ASSERT_TRUE(Register()->ok());
  EXPECT_EQ(drivers_->FactsOf("disk.example.cmo").error().message(),
            "driver name disk.example.cmo not found in the list of registered CSI drivers; did you "
            "mean disk.example.com?");
  EXPECT_EQ(drivers_->WhyNoProvisioner("dsik.example.com"),
            "no CSI driver dsik.example.com has registered (see `volumectl get drivers`); did you "
            "mean disk.example.com?");
}

TEST_F(CsiDriversTest, ADriverThatWasNeverSeenIsUnavailableByKubeletsWords) {
  const Result<CsiDriverFacts> facts = drivers_->FactsOf("other.example.com");
  ASSERT_FALSE(facts.ok());
  EXPECT_EQ(facts.error().code(), Code::kUnavailable);
  EXPECT_EQ(facts.error().message(),
            "driver name other.example.com not found in the list of registered CSI drivers");
  EXPECT_TRUE(drivers_->LaneOf("other.example.com").closed);
  EXPECT_TRUE(drivers_->LaneOf("other.example.com").closed_to_teardown);
  EXPECT_EQ(drivers_->Find("other.example.com"), nullptr);
}

TEST_F(CsiDriversTest, TheRowIsWrittenBeforeTheDriverIsUsedAndOnlyIfItSaysSomethingNew) {
  process_ = Serve();
  drivers_->Register({kName, "/s", kEndpoint, *drivers_->PlaceOf(kEndpoint), "1.0.0"},
                     [](const Status&) {});
  while (drivers_->LaneOf(kName).closed && scheduler_.RunOne()) {
    if (!drivers_->LaneOf(kName).closed) {
      EXPECT_TRUE(store_.Find(kCsiDriverRecordKind, kName).has_value());
    }
  }
  ASSERT_FALSE(drivers_->LaneOf(kName).closed);
  const uint64_t writes = store_.calls();
  EXPECT_EQ(writes, 1u);
  dialer_.Kill(process_);
  process_ = Serve();
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(State(), CsiDriverState::kReady);
  // The socket by which it registered is a row's field; it came back by itself, and nothing is new.
  EXPECT_EQ(store_.calls(), writes);
}

TEST_F(CsiDriversTest, ADriverWhoseRowCannotBeWrittenIsNotUsed) {
  process_ = Serve();
  store_.FailNext(Error::NotApplied(Code::kResourceExhausted, "disk full"));
  const std::optional<Status> status = Register();
  ASSERT_TRUE(status.has_value());
  ASSERT_FALSE(status->ok());
  EXPECT_NE(status->error().message().find("disk full"), std::string::npos);
  EXPECT_TRUE(drivers_->LaneOf(kName).closed);
  EXPECT_EQ(drivers_->Find(kName), nullptr);
}

// It was refused until the records were accepted and the agent was started anew; and whoever waited
// for the driver was told that nobody knows it.
TEST_F(CsiDriversTest, ADriverWhoseRowIsDamagedRegistersAndItsRowIsWrittenAnew) {
  RegisterWell();
  store_.Corrupt(kCsiDriverRecordKind, kName, "its checksum is wrong");
  store_.RenewKind(kCsiDriverRecordKind);
  Restart();
  const Result<CsiDriverFacts> facts = drivers_->FactsOf(kName);
  ASSERT_FALSE(facts.ok());
  EXPECT_EQ(facts.error().message(),
            "driver name disk.example.com not found in the list of registered CSI drivers: its "
            "record csi-driver/disk.example.com cannot be read (its checksum is wrong), and is "
            "written anew when the driver registers (see `volumectl records`)");
  EXPECT_EQ(drivers_->WhyAway(kName), facts.error().message());
  const std::optional<Status> status = Register();
  ASSERT_TRUE(status.has_value());
  EXPECT_TRUE(status->ok()) << status->error().ToString();
  EXPECT_EQ(State(), CsiDriverState::kReady);
  EXPECT_TRUE(store_.Find(kCsiDriverRecordKind, kName).has_value());
  Restart();
  EXPECT_TRUE(drivers_->FactsOf(kName).ok());
}

TEST_F(CsiDriversTest, ARestoredDriverIsKnownAndGoneUntilItRegisters) {
  RegisterWell();
  Restart();
  ASSERT_TRUE(drivers_->FactsOf(kName).ok());
  EXPECT_EQ(drivers_->FactsOf(kName)->node_id, "node-a");
  EXPECT_EQ(State(), CsiDriverState::kGone);
  EXPECT_TRUE(drivers_->LaneOf(kName).closed);
  EXPECT_EQ(drivers_->WhyAway(kName).find("CSI driver disk.example.com is gone since "), 0u);
  EXPECT_NE(drivers_->WhyAway(kName).find("has not registered since the agent started"),
            std::string::npos);
  ASSERT_TRUE(Register().has_value());
  EXPECT_EQ(State(), CsiDriverState::kReady);
}

TEST_F(CsiDriversTest, ARestoredDriverThatNobodyRegistersIsDialledToTakeVolumesAway) {
  RegisterWell();
  Restart();
  scheduler_.RunFor(seconds(5));
  EXPECT_TRUE(drivers_->LaneOf(kName).closed_to_teardown);
  scheduler_.RunFor(seconds(10));
  EXPECT_FALSE(drivers_->LaneOf(kName).closed_to_teardown);
  EXPECT_TRUE(drivers_->LaneOf(kName).closed);
  EXPECT_EQ(State(), CsiDriverState::kUnregistered);
}

TEST_F(CsiDriversTest, ADriverThatDiesIsGoneAtOnceAndItsLaneIsClosed) {
  RegisterWell();
  dialer_.Kill(process_);
  scheduler_.RunFor(milliseconds(1));
  EXPECT_EQ(State(), CsiDriverState::kGone);
  EXPECT_TRUE(drivers_->LaneOf(kName).closed);
  EXPECT_TRUE(drivers_->LaneOf(kName).closed_to_teardown);
  EXPECT_EQ(Count(DriverEvent::kAway), 1);
}

TEST_F(CsiDriversTest, ACallToADriverThatIsAwayIsNotSentAndSaysWhy) {
  RegisterWell();
  dialer_.Kill(process_);
  scheduler_.RunFor(seconds(1));
  const auto answer = CallStage();
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), Code::kUnavailable);
  EXPECT_EQ(answer.error().outcome(), Outcome::kNotApplied);
  EXPECT_TRUE(answer.error().IsAbout(kCsiNeverSent));
  EXPECT_NE(answer.error().message().find("nobody listens at /kubelet/plugins/disk/csi.sock"),
            std::string::npos)
      << answer.error().message();
}

TEST_F(CsiDriversTest, ADriverThatComesBackAtTheSamePathIsUsedWithinAQuarterOfASecond) {
  RegisterWell();
  scheduler_.RunFor(minutes(1));
  dialer_.Kill(process_);
  scheduler_.RunFor(milliseconds(30));
  process_ = Serve();  // nobody tells of it
  const std::optional<Duration> time = TimeUntilOpen();
  ASSERT_TRUE(time.has_value());
  EXPECT_LE(*time, milliseconds(250));
}

TEST_F(CsiDriversTest, ADriverThatWasAwayForLongIsDialledAtOnceWhenItsSocketIsMade) {
  RegisterWell();
  dialer_.Kill(process_);
  scheduler_.RunFor(minutes(10));
  process_ = Serve();
  drivers_->EndpointChanged(kEndpoint);
  const std::optional<Duration> time = TimeUntilOpen();
  ASSERT_TRUE(time.has_value());
  EXPECT_EQ(*time, Duration::zero());
}

TEST_F(CsiDriversTest, ASocketAtWhichSomebodyListensALittleLaterIsFound) {
  RegisterWell();
  dialer_.Kill(process_);
  scheduler_.RunFor(minutes(10));
  dialer_.Bind(kEndpoint);
  drivers_->EndpointChanged(kEndpoint);
  scheduler_.RunFor(milliseconds(20));
  process_ = Serve();
  const std::optional<Duration> time = TimeUntilOpen();
  ASSERT_TRUE(time.has_value());
  EXPECT_LE(*time, milliseconds(250));
}

TEST_F(CsiDriversTest, ADriverThatStaysAwayIsDialledEveryFiveSecondsAtMost) {
  RegisterWell();
  dialer_.Kill(process_);
  scheduler_.RunFor(minutes(1));
  const int before = dialer_.opened(kEndpoint);
  scheduler_.RunFor(minutes(10));
  const int tries = dialer_.opened(kEndpoint) - before;
  EXPECT_GE(tries, 119);
  EXPECT_LE(tries, 121);
}

TEST_F(CsiDriversTest, ADriverThatFlapsAThousandTimesIsUsableWithinASecondEachTime) {
  RegisterWell();
  std::vector<Duration> times;
  for (int i = 0; i < 1000; ++i) {
    dialer_.Kill(process_);
    scheduler_.RunFor(milliseconds(i % 40));
    process_ = Serve();
    drivers_->EndpointChanged(kEndpoint);
    const std::optional<Duration> time = TimeUntilOpen();
    ASSERT_TRUE(time.has_value());
    times.push_back(*time);
  }
  std::sort(times.begin(), times.end());
  EXPECT_LE(times[989], seconds(1));
  scheduler_.RunFor(seconds(10));
  // The one that is used, and none of those that went.
  EXPECT_EQ(dialer_.callers(), 1);
}

TEST_F(CsiDriversTest, AListenerThatTakesConnectionsAndBreaksThemOffIsNotDialledAllTheTime) {
  RegisterWell();
  const int before = dialer_.dialled();
  for (int i = 0; i < 6000; ++i) {
    dialer_.BreakConnections(process_);
    scheduler_.RunFor(milliseconds(10));
  }
  // A minute: 50, 100 .. 3200 ms, then every 5 s.
  EXPECT_LE(dialer_.dialled() - before, 25);
}

TEST_F(CsiDriversTest, AnotherProcessAtThePathIsUsedEvenIfTheConnectionToTheOldOneIsStillGood) {
  RegisterWell();
  auto fresh = Serve();
  drivers_->EndpointChanged(kEndpoint);
  scheduler_.RunFor(seconds(1));
  const int before = process_->calls("NodeStageVolume");
  ASSERT_TRUE(CallStage().ok());
  EXPECT_EQ(fresh->calls("NodeStageVolume"), 1);
  EXPECT_EQ(process_->calls("NodeStageVolume"), before);
  EXPECT_EQ(Count(DriverEvent::kAway), 0);
}

TEST_F(CsiDriversTest, AnEventAtTheSameSocketDialsNothing) {
  RegisterWell();
  const int before = dialer_.dialled();
  drivers_->EndpointChanged(kEndpoint);
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(dialer_.dialled(), before);
}

TEST_F(CsiDriversTest, WhatADriverCanDoIsAskedAnewWhenItComesBack) {
  RegisterWell();
  dialer_.Kill(process_);
  scheduler_.RunFor(seconds(1));
  process_ = Serve();
  process_->Answer("NodeGetCapabilities", ::csi::v1::NodeGetCapabilitiesResponse());
  ASSERT_TRUE(TimeUntilOpen().has_value());
  EXPECT_TRUE(drivers_->FactsOf(kName)->node_capabilities.empty());
  scheduler_.RunFor(milliseconds(1));
  EXPECT_EQ(Count(DriverEvent::kFactsChanged), 2);
  const auto row = store_.Find(kCsiDriverRecordKind, kName);
  ASSERT_TRUE(row.has_value());
  EXPECT_TRUE(DecodeCsiDriverRecord(*row)->facts.node_capabilities.empty());
}

TEST_F(CsiDriversTest, ADriverThatCallsTheNodeOtherwiseWhileVolumesAreAttachedOnlyTakesThemAway) {
  RegisterWell();
  has_attached_ = true;
  dialer_.Kill(process_);
  scheduler_.RunFor(seconds(1));
  process_ = Serve(kEndpoint, kName, "node-b");
  scheduler_.RunFor(seconds(10));
  EXPECT_EQ(State(), CsiDriverState::kOtherNode);
  EXPECT_TRUE(drivers_->LaneOf(kName).closed);
  EXPECT_FALSE(drivers_->LaneOf(kName).closed_to_teardown);
  const std::string why = drivers_->WhyAway(kName);
  EXPECT_NE(why.find("calls this node \"node-b\""), std::string::npos) << why;
  EXPECT_NE(why.find("attached as \"node-a\""), std::string::npos) << why;
  EXPECT_EQ(drivers_->FactsOf(kName)->node_id, "node-a");
  // Also over a restart of the agent.
  Restart();
  ASSERT_TRUE(Register().has_value());
  EXPECT_EQ(State(), CsiDriverState::kOtherNode);
  has_attached_ = false;
  drivers_->VolumesDetached(kName);
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(State(), CsiDriverState::kReady);
  EXPECT_EQ(drivers_->FactsOf(kName)->node_id, "node-b");
}

TEST_F(CsiDriversTest, ADriverThatCallsTheNodeOtherwiseIsUsedIfNothingIsAttached) {
  RegisterWell();
  dialer_.Kill(process_);
  scheduler_.RunFor(seconds(1));
  process_ = Serve(kEndpoint, kName, "node-b");
  ASSERT_TRUE(TimeUntilOpen().has_value());
  EXPECT_EQ(drivers_->FactsOf(kName)->node_id, "node-b");
}

TEST_F(CsiDriversTest, ADriverIsRegisteredOnlyOnceItIsReady) {
  process_ = Serve();
  ::csi::v1::ProbeResponse not_ready;
  not_ready.mutable_ready()->set_value(false);
  process_->Answer("Probe", not_ready);
  EXPECT_FALSE(Register(kName, kEndpoint, seconds(3)).has_value());
  EXPECT_EQ(drivers_->LastError(kName), "it says that it is not ready");
  process_->Answer("Probe", ::csi::v1::ProbeResponse());
  scheduler_.RunFor(seconds(2));
  EXPECT_EQ(State(), CsiDriverState::kReady);
}

TEST_F(CsiDriversTest, WhatTheSpecificationForbidsIsRefusedAndTheTextSaysWhat) {
  struct Case {
    std::string node_id;
    std::string text;
  };
  for (const Case& c : {Case{"", "empty node_id"}, Case{std::string(257, 'n'), "257 bytes"}}) {
    process_ = Serve(kEndpoint, kName, c.node_id);
    const std::optional<Status> status = Register();
    ASSERT_TRUE(status.has_value());
    ASSERT_FALSE(status->ok());
    EXPECT_EQ(status->error().code(), Code::kInvalidArgument);
    EXPECT_NE(status->error().message().find(c.text), std::string::npos)
        << status->error().message();
  }
  process_ = Serve(kEndpoint, kName, std::string(256, 'n'));
  ASSERT_TRUE(Register().has_value());
  EXPECT_EQ(State(), CsiDriverState::kReady);
}

TEST_F(CsiDriversTest, ADriverThatCallsItselfOtherwiseIsRefused) {
  process_ = Serve(kEndpoint, "other.example.com");
  const std::optional<Status> status = Register();
  ASSERT_TRUE(status.has_value());
  ASSERT_FALSE(status->ok());
  EXPECT_NE(status->error().message().find("calls itself \"other.example.com\""), std::string::npos)
      << status->error().message();
  EXPECT_EQ(drivers_->Find(kName), nullptr);
  EXPECT_EQ(dialer_.callers(), 0);
}

TEST_F(CsiDriversTest, TopologyThatOthersContradictKeepsADriverFromBeingUsed) {
  process_ = Serve();
  merged_ = Error::NotApplied(Code::kInvalidArgument, "detected topology value collision");
  const std::optional<Status> status = Register();
  ASSERT_TRUE(status.has_value());
  ASSERT_FALSE(status->ok());
  EXPECT_TRUE(drivers_->LaneOf(kName).closed);
  EXPECT_FALSE(store_.Find(kCsiDriverRecordKind, kName).has_value());
}

TEST_F(CsiDriversTest, ADriverThatHangsInNodeGetInfoIsGivenUpAfterTwoMinutes) {
  process_ = Serve();
  process_->Hang("NodeGetInfo");
  EXPECT_FALSE(Register(kName, kEndpoint, seconds(119)).has_value());
  std::optional<Status> told;
  drivers_->Register({kName, "/s", kEndpoint, *drivers_->PlaceOf(kEndpoint), "1.0.0"},
                     [&](const Status& status) { told = status; });
  scheduler_.RunFor(seconds(121));
  ASSERT_TRUE(told.has_value());
  ASSERT_FALSE(told->ok());
  EXPECT_EQ(told->error().code(), Code::kDeadlineExceeded);
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(dialer_.callers(), 0);
}

TEST_F(CsiDriversTest, AListenerThatNeverSpeaksIsGivenUpAfterTenSeconds) {
  process_ = Serve();
  process_->accepts = false;
  const std::optional<Status> status = Register(kName, kEndpoint, seconds(11));
  ASSERT_TRUE(status.has_value());
  ASSERT_FALSE(status->ok());
  EXPECT_EQ(status->error().code(), Code::kDeadlineExceeded);
}

TEST_F(CsiDriversTest, ADriverThatIsUnregisteredStillTakesVolumesAwayAndSetsUpNone) {
  RegisterWell();
  drivers_->Unregister(kName);
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(State(), CsiDriverState::kUnregistered);
  EXPECT_TRUE(drivers_->LaneOf(kName).closed);
  EXPECT_FALSE(drivers_->LaneOf(kName).closed_to_teardown);
  EXPECT_TRUE(CallStage().ok());  // who asks decides what for
  ASSERT_TRUE(drivers_->FactsOf(kName).ok());
  dialer_.Kill(process_);
  scheduler_.RunFor(seconds(1));
  EXPECT_TRUE(drivers_->LaneOf(kName).closed_to_teardown);
}

TEST_F(CsiDriversTest, AnUnregisteredDriverThatIsGoneIsDialledForAWhileAndThenOnlyAtAnEvent) {
  RegisterWell();
  drivers_->Unregister(kName);
  dialer_.Kill(process_);
  scheduler_.RunFor(minutes(1));
  EXPECT_NE(drivers_->WhyAway(kName).find("; the driver and its registrar have to be started"),
            std::string::npos)
      << drivers_->WhyAway(kName);
  const int before = dialer_.opened(kEndpoint);
  scheduler_.RunFor(minutes(10));
  EXPECT_EQ(dialer_.opened(kEndpoint), before);
  process_ = Serve();
  drivers_->EndpointChanged(kEndpoint);
  scheduler_.RunFor(seconds(1));
  EXPECT_FALSE(drivers_->LaneOf(kName).closed_to_teardown);
}

TEST_F(CsiDriversTest, ARpcThatADriverHasNotIsAReasonToAskAnewWhatItCanDo) {
  RegisterWell();
  const int before = process_->calls("NodeGetCapabilities");
  process_->Fail("NodeStageVolume", Code::kUnimplemented, "no");
  for (int i = 0; i < 10; ++i) ASSERT_FALSE(CallStage().ok());
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(process_->calls("NodeGetCapabilities"), before + 1);
}

// ---- What went wrong before ----

TEST_F(CsiDriversTest, TheErrorsOfTheTimeBeforeADriverWasConnectedAreForgottenWithThat) {
  RegisterWell();
  Restart();
  EXPECT_NE(drivers_->LastError(kName), "");
  ASSERT_TRUE(Register().has_value());
  EXPECT_EQ(State(), CsiDriverState::kReady);
  EXPECT_EQ(drivers_->LastError(kName), "");
  process_->Fail("Probe", Code::kFailedPrecondition, "a helper is missing");
  scheduler_.RunFor(minutes(1));
  EXPECT_GT(drivers_->Find(kName)->health().last_error_unix_ms, 0);
}

TEST_F(CsiDriversTest, OfTooManyDriversTheUnregisteredOneThatWasUsedLongestAgoIsForgotten) {
  settings_.most_drivers = 2;
  Restart();
  for (const std::string name : {"a.example.com", "b.example.com", "c.example.com"}) {
    Serve("/kubelet/plugins/" + name, name);
    ASSERT_TRUE(Register(name, "/kubelet/plugins/" + name).has_value());
    if (name != "b.example.com") continue;
    drivers_->Unregister("a.example.com");
    dialer_.Remove("/kubelet/plugins/a.example.com");
    scheduler_.RunFor(seconds(1));
    // A connection that is there keeps it too.
    EXPECT_NE(drivers_->Find("a.example.com"), nullptr);
    drivers_.reset();
    Restart();
    dialer_.Bind("/kubelet/plugins/a.example.com");
    ASSERT_TRUE(Register("b.example.com", "/kubelet/plugins/b.example.com").has_value());
  }
  EXPECT_EQ(drivers_->Find("a.example.com"), nullptr);
  EXPECT_NE(drivers_->Find("b.example.com"), nullptr);
  EXPECT_NE(drivers_->Find("c.example.com"), nullptr);
  EXPECT_FALSE(store_.Find(kCsiDriverRecordKind, "a.example.com").has_value());
  EXPECT_EQ(released_, (std::vector<std::string>{"a.example.com"}));
}

TEST_F(CsiDriversTest, ADriverThatHasLeftForGoodIsForgottenByCommandAndNoOther) {
  const auto forget = [this] {
    auto told = std::make_shared<std::optional<Status>>();
    drivers_->Forget(kName, [told](const Status& status) { *told = status; });
    scheduler_.RunFor(milliseconds(1));
    return told->has_value() && (*told)->ok() ? std::string("forgotten")
           : told->has_value()                ? (*told)->error().message()
                                              : std::string("nothing was told");
  };
  EXPECT_EQ(forget(), "there is no CSI driver disk.example.com");
  RegisterWell();
  EXPECT_NE(forget().find("is not forgotten: it is registered"), std::string::npos);
  has_volumes_ = true;
  EXPECT_NE(forget().find("; volumes of it are here"), std::string::npos)
      << "it was said once the registration had gone";
  has_volumes_ = false;
  drivers_->Unregister(kName);
  EXPECT_NE(forget().find("there is a connection to it"), std::string::npos);
  dialer_.Kill(process_);
  scheduler_.RunFor(seconds(1));
  has_volumes_ = true;
  EXPECT_NE(forget().find("volumes of it are here"), std::string::npos);
  has_volumes_ = false;
  store_.FailNext(Error::NotApplied(Code::kResourceExhausted, "disk full"));
  EXPECT_NE(forget().find("disk full"), std::string::npos);
  EXPECT_NE(drivers_->Find(kName), nullptr);
  EXPECT_TRUE(released_.empty());
  EXPECT_EQ(forget(), "forgotten");
  EXPECT_EQ(released_, (std::vector<std::string>{kName}));
  EXPECT_EQ(drivers_->Find(kName), nullptr);
  EXPECT_FALSE(store_.Find(kCsiDriverRecordKind, kName).has_value());
  // It may come again.
  RegisterWell();
  EXPECT_TRUE(store_.Find(kCsiDriverRecordKind, kName).has_value());
}

TEST_F(CsiDriversTest, WhyADeadDriverIsNotForgottenDidNotNameTheSocketThatItLeft) {
  RegisterWell();
  dialer_.Kill(process_);
  scheduler_.RunFor(seconds(1));
  const std::string socket = drivers_->Find(kName)->record().socket;
  ASSERT_FALSE(socket.empty());
  std::string refusal;
  drivers_->Forget(kName, [&refusal](const Status& status) {
    refusal = status.ok() ? "forgotten" : status.error().message();
  });
  scheduler_.RunFor(milliseconds(1));
  EXPECT_NE(refusal.find("it is registered by " + socket + ": end the driver, and remove"),
            std::string::npos)
      << refusal;
}

TEST_F(CsiDriversTest, ADriverWithVolumesIsNotForgotten) {
  settings_.most_drivers = 1;
  has_volumes_ = true;
  Restart();
  RegisterWell();
  Restart();
  Serve("/kubelet/b", "b.example.com");
  ASSERT_TRUE(Register("b.example.com", "/kubelet/b").has_value());
  EXPECT_NE(drivers_->Find(kName), nullptr);
}

TEST_F(CsiDriversTest, TheEndOfTheTableEndsWhatIsUnderWay) {
  RegisterWell();
  process_->Hang("NodeStageVolume");
  std::optional<Result<::csi::v1::NodeStageVolumeResponse>> answer;
  drivers_->Find(kName)->Start<::csi::v1::NodeStageVolumeResponse>(
      ::csi::v1::NodeStageVolumeRequest(), {Deadline::After(scheduler_.clock(), minutes(10))},
      [&](const auto& told) { answer = told; });
  scheduler_.RunFor(seconds(1));
  EXPECT_FALSE(answer.has_value());
  scheduler_.Post([&] { drivers_.reset(); });
  scheduler_.RunFor(seconds(1));
  ASSERT_TRUE(answer.has_value());
  ASSERT_FALSE(answer->ok());
  EXPECT_EQ(answer->error().code(), Code::kCancelled);
  EXPECT_EQ(dialer_.callers(), 0);
}

}  // namespace
}  // namespace volumed
