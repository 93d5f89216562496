// CsiDrivers and CsiDriver: what is known of a driver that registers, and what keeps one from being
// used.
#include "csi/csi_drivers.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

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

TEST_F(CsiDriversTest, ARpcThatADriverHasNotIsAReasonToAskAnewWhatItCanDo) {
  RegisterWell();
  const int before = process_->calls("NodeGetCapabilities");
  process_->Fail("NodeStageVolume", Code::kUnimplemented, "no");
  for (int i = 0; i < 10; ++i) ASSERT_FALSE(CallStage().ok());
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(process_->calls("NodeGetCapabilities"), before + 1);
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
