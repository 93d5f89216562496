#include "csidriver/csi_admission.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "base/manual_clock.h"

namespace volumed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class CsiAdmissionTest : public testing::Test {
 protected:
  // How many of `tries` calls are let in, one after the other.
  int LetIn(CsiAdmission& admission, const CsiPeer& peer, int tries) {
    int in = 0;
    for (int i = 0; i < tries; ++i) {
      const Status entered = admission.Enter(peer);
      if (!entered.ok()) {
        EXPECT_EQ(entered.error().code(), Code::kUnavailable);
        EXPECT_FALSE(entered.error().maybe_applied());
        continue;
      }
      ++in;
      admission.Leave(peer);
    }
    return in;
  }
  ManualClock clock_;
  const CsiPeer kubelet_{.uid = 0, .pid = 10};
};

TEST_F(CsiAdmissionTest, AsManyCallsGoOnAsMay) {
  CsiAdmission admission(clock_, {.calls = 2, .rate = 100});
  ASSERT_TRUE(admission.Enter(kubelet_).ok());
  ASSERT_TRUE(admission.Enter({.uid = 0, .pid = 11}).ok());
  const Status third = admission.Enter(kubelet_);
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.error().code(), Code::kUnavailable);
  EXPECT_NE(third.error().message().find("2 calls go on"), std::string::npos);
  EXPECT_EQ(admission.calls(), 2U) << "one that is refused does not count";
  admission.Leave(kubelet_);
  EXPECT_TRUE(admission.Enter(kubelet_).ok());
}

TEST_F(CsiAdmissionTest, AsManyStreamsGoOnAsMayBesidesOtherCalls) {
  CsiAdmission admission(clock_, {.calls = 8, .rate = 100, .streams = 1});
  ASSERT_TRUE(admission.EnterStream(kubelet_).ok());
  const Status second = admission.EnterStream(kubelet_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), Code::kUnavailable);
  EXPECT_NE(second.error().message().find("1 calls that answer by a stream"), std::string::npos);
  EXPECT_TRUE(admission.Enter(kubelet_).ok());
  admission.LeaveStream(kubelet_);
  EXPECT_TRUE(admission.EnterStream(kubelet_).ok());
}

// Calls of a member of csi-serve-group that he did not take had all places, and root's Probe was
// answered Unavailable.
TEST_F(CsiAdmissionTest, CallsOfUsersLeavePlacesForRootAndForEachOther) {
  CsiAdmission admission(clock_, {.calls = 8, .rate = 100, .streams = 4});
  const CsiPeer first{.uid = 990, .pid = 1};
  const CsiPeer second{.uid = 991, .pid = 2};
  const auto enter = [&](const CsiPeer& peer) {
    int in = 0;
    while (in < 100 && admission.Enter(peer).ok()) ++in;
    return in;
  };
  EXPECT_EQ(enter(first), 4);
  EXPECT_EQ(enter(second), 2);
  EXPECT_EQ(enter({.uid = 992, .pid = 3}), 0);
  EXPECT_EQ(enter(kubelet_), 2);
  admission.Leave(first);
  EXPECT_FALSE(admission.Enter(CsiPeer{.uid = 990, .pid = 9}).ok() && admission.Enter(second).ok())
      << "one place is one call";
  int streams = 0;
  while (streams < 100 && admission.EnterStream(first).ok()) ++streams;
  EXPECT_EQ(streams, 2);
  EXPECT_TRUE(admission.EnterStream(kubelet_).ok());
}

TEST_F(CsiAdmissionTest, APeerBeginsAsManyInASecondAsItMay) {
  CsiAdmission admission(clock_, {.calls = 64, .rate = 10});
  EXPECT_EQ(LetIn(admission, kubelet_, 25), 10);
  clock_.Advance(milliseconds(110));
  EXPECT_EQ(LetIn(admission, kubelet_, 25), 1);
  clock_.Advance(milliseconds(550));
  EXPECT_EQ(LetIn(admission, kubelet_, 25), 5);
  clock_.Advance(milliseconds(50));
  EXPECT_EQ(LetIn(admission, kubelet_, 25), 1) << "the half of the time before counts";
  clock_.Advance(seconds(3600));
  EXPECT_EQ(LetIn(admission, kubelet_, 25), 10) << "an hour of silence is worth no more";
}

TEST_F(CsiAdmissionTest, APeerHasHisOwnRateAndAUserNoMoreByManyProcesses) {
  CsiAdmission admission(clock_, {.calls = 64, .rate = 10});
  EXPECT_EQ(LetIn(admission, kubelet_, 25), 10);
  EXPECT_EQ(LetIn(admission, {.uid = 0, .pid = 11}, 25), 10) << "another process of root's";
  EXPECT_EQ(LetIn(admission, {.uid = 990, .pid = 12}, 25), 10);
  EXPECT_EQ(LetIn(admission, {.uid = 990, .pid = 13}, 25), 0);
  EXPECT_EQ(LetIn(admission, CsiPeer(), 25), 10) << "those who are not known are one";
  EXPECT_EQ(LetIn(admission, CsiPeer(), 25), 0);
}

TEST_F(CsiAdmissionTest, ManyPeersMakeNoNewOneOfOneThatCallsAllTheTime) {
  CsiAdmission admission(clock_, {.calls = 64, .rate = 10});
  for (pid_t pid = 1000; pid < 1300; ++pid) {
    EXPECT_EQ(LetIn(admission, {.uid = 0, .pid = pid}, 1), 1);
    clock_.Advance(milliseconds(20));
    LetIn(admission, kubelet_, 3);
  }
  EXPECT_LE(LetIn(admission, kubelet_, 25), 1) << "a new peer would begin ten";
}

TEST_F(CsiAdmissionTest, WhatOneCallChangesNoOtherDoes) {
  CsiAdmission admission(clock_, CsiLimits());
  ASSERT_TRUE(admission.Take("volume_id v").ok());
  const Status second = admission.Take("volume_id v");
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), Code::kAborted);
  EXPECT_NE(second.error().message().find("volume_id v"), std::string::npos);
  EXPECT_TRUE(admission.Take("volume_id w").ok());
  admission.Release("volume_id v");
  EXPECT_TRUE(admission.Take("volume_id v").ok());
}

}  // namespace
}  // namespace volumed
