#include "operation/volume_record_keeper.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <vector>

#include "fakes/memory_record_store.h"
#include "unit/operation/recording_parts.h"
#include "unit/operation/usual_errors.h"

namespace volumed {
namespace {

const Error kStoreDown = Error::NotApplied(Code::kUnavailable, "store is down");

class VolumeRecordKeeperTest : public ::testing::Test {
 protected:
  PodVolumeRecord Facts() const {
    PodVolumeRecord facts;
    facts.key = key_;
    facts.plugin_name = "kubernetes.io/empty-dir";
    facts.volume_json = "{}";
    return facts;
  }
  // What a new agent would find.
  std::optional<PodVolumeRecord> Stored() const {
    const auto row = store_.Find(kPodVolumeRecordKind, RecordKey(key_));
    if (!row) return std::nullopt;
    return DecodePodVolumeRecord(*row).value();
  }
  uint64_t Begin(VolumeEvent call) {
    const auto attempt = keeper_.BeginCall(Facts(), call);
    EXPECT_TRUE(attempt.ok()) << attempt.error().ToString();
    return attempt.ok() ? *attempt : 0;
  }
  void SetUp_() {
    ASSERT_TRUE(keeper_.EndCall(key_, Begin(VolumeEvent::kSetUp), CallAnswer::kDone).ok());
  }

  const PodVolumeKey key_ = Key("uid-1", "data");
  ManualClock clock_;
  LogLines log_;
  Logger logger_{log_.Options(), clock_};
  RecordingObserver observer_;
  MemoryRecordStore store_;
  VolumeRecordKeeper keeper_{store_, clock_, logger_, observer_, BootId("boot-a")};
};

TEST_F(VolumeRecordKeeperTest, WritesTheIntentThenTheRestingStateThenNothing) {
  const uint64_t up = Begin(VolumeEvent::kSetUp);
  ASSERT_TRUE(Stored());
  EXPECT_EQ(Stored()->state, VolumeState::kSettingUp);
  EXPECT_EQ(Stored()->boot_id, BootId("boot-a"));
  ASSERT_TRUE(keeper_.EndCall(key_, up, CallAnswer::kDone).ok());
  EXPECT_EQ(Stored()->state, VolumeState::kSetUp);

  const uint64_t down = Begin(VolumeEvent::kTearDown);
  EXPECT_EQ(Stored()->state, VolumeState::kTearingDown);
  ASSERT_TRUE(keeper_.EndCall(key_, down, CallAnswer::kDone).ok());
  EXPECT_EQ(Stored(), std::nullopt);
  EXPECT_EQ(keeper_.Find(key_), std::nullopt);

  const std::vector<RecordingObserver::Assigned> expected = {
      {key_, VolumeState::kSettingUp, false},
      {key_, VolumeState::kSetUp, false},
      {key_, VolumeState::kTearingDown, false},
      {key_, VolumeState::kNotSetUp, false}};
  EXPECT_EQ(observer_.assigned, expected);
}

TEST_F(VolumeRecordKeeperTest, ACallIsOnRecordWithTheTimeAtWhichItBegan) {
  const int64_t begun = clock_.WallUnixMillis();
  const uint64_t up = Begin(VolumeEvent::kSetUp);
  clock_.Advance(std::chrono::seconds(7));
  ASSERT_TRUE(keeper_.EndCall(key_, up, CallAnswer::kDone).ok());
  EXPECT_EQ(Stored()->started_at_unix_ms, begun);
  Begin(VolumeEvent::kTearDown);
  EXPECT_EQ(Stored()->started_at_unix_ms, begun + 7000);
}

TEST_F(VolumeRecordKeeperTest, NotAppliedLeadsBackAndMaybeAppliedStays) {
  ASSERT_TRUE(keeper_.EndCall(key_, Begin(VolumeEvent::kSetUp), CallAnswer::kNotApplied).ok());
  EXPECT_EQ(Stored(), std::nullopt);

  ASSERT_TRUE(keeper_.EndCall(key_, Begin(VolumeEvent::kSetUp), CallAnswer::kMaybeApplied).ok());
  EXPECT_EQ(Stored()->state, VolumeState::kSettingUp);
  EXPECT_TRUE(Stored()->uncertain);
  // The second call did nothing; the first one may have.
  ASSERT_TRUE(keeper_.EndCall(key_, Begin(VolumeEvent::kSetUp), CallAnswer::kNotApplied).ok());
  EXPECT_EQ(Stored()->state, VolumeState::kSettingUp);
  EXPECT_TRUE(Stored()->uncertain);
  // Only a call that was done makes it certain.
  SetUp_();
  EXPECT_FALSE(Stored()->uncertain);
}

TEST_F(VolumeRecordKeeperTest, TheAnswerOfACallThatWasGivenUpMovesNothing) {
  const uint64_t old_call = Begin(VolumeEvent::kSetUp);
  const uint64_t new_call = Begin(VolumeEvent::kTearDown);
  const Status late = keeper_.EndCall(key_, old_call, CallAnswer::kDone);
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code(), Code::kAborted);
  EXPECT_EQ(Stored()->state, VolumeState::kTearingDown);
  ASSERT_TRUE(keeper_.EndCall(key_, new_call, CallAnswer::kDone).ok());
  // Not even when the volume is gone and a new one has come.
  Begin(VolumeEvent::kSetUp);
  EXPECT_FALSE(keeper_.EndCall(key_, old_call, CallAnswer::kNotApplied).ok());
  EXPECT_FALSE(keeper_.EndCall(key_, new_call, CallAnswer::kDone).ok());
  EXPECT_EQ(Stored()->state, VolumeState::kSettingUp);
}

TEST_F(VolumeRecordKeeperTest, AttemptsGoOnAfterARestart) {
  const uint64_t before = Begin(VolumeEvent::kSetUp);
  VolumeRecordKeeper next(store_, clock_, logger_, observer_, BootId("boot-a"));
  next.Restore(*Stored());
  EXPECT_TRUE(next.Find(key_)->uncertain);
  const auto after = next.BeginCall(Facts(), VolumeEvent::kSetUp);
  ASSERT_TRUE(after.ok());
  EXPECT_GT(*after, before);
}

TEST_F(VolumeRecordKeeperTest, WithoutItsIntentACallIsNotMade) {
  store_.FailNext(kStoreDown);
  const auto attempt = keeper_.BeginCall(Facts(), VolumeEvent::kSetUp);
  ASSERT_FALSE(attempt.ok());
  EXPECT_FALSE(attempt.error().maybe_applied());
  EXPECT_EQ(keeper_.Find(key_), std::nullopt);
  EXPECT_TRUE(observer_.assigned.empty());
}

TEST_F(VolumeRecordKeeperTest, AnImpossibleCallIsRefusedWithItsReason) {
  const auto attempt = keeper_.BeginCall(Facts(), VolumeEvent::kRemount);
  ASSERT_FALSE(attempt.ok());
  EXPECT_EQ(attempt.error().code(), Code::kFailedPrecondition);
  EXPECT_NE(attempt.error().message().find("NotSetUp"), std::string::npos);
  EXPECT_EQ(store_.calls(), 0u);
}

TEST_F(VolumeRecordKeeperTest, AnOutcomeThatCannotBeWrittenLeavesTheCallUncertain) {
  const uint64_t attempt = Begin(VolumeEvent::kSetUp);
  store_.FailNext(kStoreDown);
  const Status ended = keeper_.EndCall(key_, attempt, CallAnswer::kDone);
  ASSERT_FALSE(ended.ok());
  EXPECT_TRUE(ended.error().maybe_applied());
  EXPECT_EQ(Stored()->state, VolumeState::kSettingUp);
  EXPECT_EQ(keeper_.Find(key_)->state, VolumeState::kSettingUp);
  EXPECT_TRUE(keeper_.Find(key_)->uncertain);
}

TEST_F(VolumeRecordKeeperTest, AFullDiskStopsNoTeardownOfAVolumeWithARow) {
  SetUp_();
  store_.FailNext(kDiskFull, 2);
  const auto attempt = keeper_.BeginCall(Facts(), VolumeEvent::kTearDown);
  ASSERT_TRUE(attempt.ok()) << attempt.error().ToString();
  EXPECT_EQ(Stored()->state, VolumeState::kSetUp);  // the last durable intent
  ASSERT_TRUE(keeper_.EndCall(key_, *attempt, CallAnswer::kDone).ok());
  EXPECT_EQ(keeper_.Find(key_), std::nullopt);
  EXPECT_EQ(log_.Count("goes on although"), 1);  // rate-limited
  // Once there is room, the row goes with its pod.
  ASSERT_TRUE(Stored());
  ASSERT_TRUE(keeper_.ForgetPod(key_.pod).ok());
  EXPECT_EQ(Stored(), std::nullopt);
}

TEST_F(VolumeRecordKeeperTest, AFullDiskStopsSetUpAndTheTeardownOfWhatHasNoRow) {
  store_.FailNext(kDiskFull, 2);
  EXPECT_EQ(keeper_.BeginCall(Facts(), VolumeEvent::kSetUp).error().code(),
            Code::kResourceExhausted);
  EXPECT_EQ(keeper_.BeginCall(Facts(), VolumeEvent::kTearDown).error().code(),
            Code::kResourceExhausted);
}

TEST_F(VolumeRecordKeeperTest, ADiskThatTakesNoWritesStopsNoTeardownOfAVolumeWithARow) {
  for (const int sys_errno : {EROFS, EIO}) {
    SetUp_();
    const Error failure =
        Error::FromParts(Code::kUnavailable, Outcome::kMaybeApplied, sys_errno, "write the log");
    store_.FailNext(failure, 2);
    const auto attempt = keeper_.BeginCall(Facts(), VolumeEvent::kTearDown);
    ASSERT_TRUE(attempt.ok()) << attempt.error().ToString();
    EXPECT_EQ(Stored()->state, VolumeState::kSetUp);
    ASSERT_TRUE(keeper_.EndCall(key_, *attempt, CallAnswer::kDone).ok());
    EXPECT_EQ(keeper_.Find(key_), std::nullopt);
    // The row goes with its pod, which cannot go before.
    store_.FailNext(failure);
    EXPECT_FALSE(keeper_.ForgetPod(key_.pod).ok());
    ASSERT_TRUE(keeper_.ForgetPod(key_.pod).ok());
    EXPECT_EQ(Stored(), std::nullopt);
  }
}

TEST_F(VolumeRecordKeeperTest, ABrokenStoreStopsATeardown) {
  SetUp_();
  store_.FailNext(kStoreDown);
  EXPECT_FALSE(keeper_.BeginCall(Facts(), VolumeEvent::kTearDown).ok());
  EXPECT_EQ(keeper_.Find(key_)->state, VolumeState::kSetUp);
}

TEST_F(VolumeRecordKeeperTest, WhatWasFoundWithoutARecordStaysUncertainUntilItIsTornDown) {
  ASSERT_TRUE(keeper_.EndCall(key_, Begin(VolumeEvent::kTearDown), CallAnswer::kNotApplied).ok());
  EXPECT_EQ(Stored()->state, VolumeState::kTearingDown);
  EXPECT_TRUE(Stored()->uncertain);
  ASSERT_TRUE(keeper_.EndCall(key_, Begin(VolumeEvent::kTearDown), CallAnswer::kDone).ok());
  EXPECT_EQ(Stored(), std::nullopt);
}

TEST_F(VolumeRecordKeeperTest, ATeardownKeepsWhatTheRecordKnows) {
  SetUp_();
  PodVolumeRecord name_only;
  name_only.key = key_;
  ASSERT_TRUE(keeper_.BeginCall(name_only, VolumeEvent::kTearDown).ok());
  EXPECT_EQ(Stored()->plugin_name, "kubernetes.io/empty-dir");
  EXPECT_EQ(Stored()->volume_json, "{}");
}

TEST_F(VolumeRecordKeeperTest, ARemountThatChangesNothingWritesNothing) {
  SetUp_();
  const uint64_t writes = store_.calls();
  ASSERT_TRUE(keeper_.EndCall(key_, Begin(VolumeEvent::kRemount), CallAnswer::kDone).ok());
  EXPECT_EQ(store_.calls(), writes);
  ASSERT_TRUE(keeper_.EndCall(key_, Begin(VolumeEvent::kRemount), CallAnswer::kNotApplied).ok());
  EXPECT_EQ(store_.calls(), writes);
  EXPECT_EQ(keeper_.Find(key_)->state, VolumeState::kSetUp);
  // Other facts are written before the effect.
  PodVolumeRecord facts = Facts();
  facts.sub_paths = {{"app", 1}};
  ASSERT_TRUE(keeper_.BeginCall(facts, VolumeEvent::kRemount).ok());
  EXPECT_EQ(Stored()->sub_paths.size(), 1u);
  EXPECT_EQ(Stored()->state, VolumeState::kSetUp);
}

// A row of an older program tells of no storage, and the one that is not written tells no less.
TEST_F(VolumeRecordKeeperTest, AFullDiskKeepsStorageOffTheRecordOnlyIfNoneWasOnIt) {
  SetUp_();
  const auto remount = [this](const std::string& device) {
    const uint64_t attempt = Begin(VolumeEvent::kRemount);
    store_.FailNext(kDiskFull);
    return keeper_.EndCall({.key = key_, .attempt = attempt, .storage = {.own = {device}}});
  };
  EXPECT_TRUE(remount("dev:8:1").ok());
  EXPECT_EQ(keeper_.Find(key_)->storage.own, std::vector<std::string>{"dev:8:1"});
  EXPECT_FALSE(keeper_.Find(key_)->uncertain);
  const Status other = remount("dev:8:2");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code(), Code::kResourceExhausted);
  EXPECT_EQ(keeper_.Find(key_)->storage.own, std::vector<std::string>{"dev:8:1"});
  EXPECT_TRUE(keeper_.Find(key_)->uncertain);
}

TEST_F(VolumeRecordKeeperTest, APodWithAVolumeIsNotForgotten) {
  SetUp_();
  const Status forgotten = keeper_.ForgetPod(key_.pod);
  ASSERT_FALSE(forgotten.ok());
  EXPECT_NE(forgotten.error().message().find("\"data\" is still SetUp"), std::string::npos);
  EXPECT_EQ(keeper_.FindOfPod(key_.pod).size(), 1u);
  EXPECT_TRUE(keeper_.FindOfPod(PodUid("uid-0")).empty());
}

}  // namespace
}  // namespace volumed
