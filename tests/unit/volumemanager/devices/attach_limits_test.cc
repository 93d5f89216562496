// The slots that a node has for volumes.
#include "unit/volumemanager/devices/attached_fixture.h"

namespace volumed {
namespace {

using std::chrono::seconds;

class AttachLimitsTest : public AttachedTest {
 protected:
  void SetUp() override {
    attach->limits = {{"storage-limits-fake", 2}, {"storage-limits-other", 0}};
    StartAgent();
  }
  static std::string Volumes() {
    return Volume("one") + Volume("two") + Volume("three") + Volume("four");
  }
  static std::string TwoPods() { return Volumes() + User("a", "one") + User("b", "two"); }
};

TEST_F(AttachLimitsTest, TheNextPodIsRefusedAtOnceAndToldWhoHasTheSlots) {
  Deliver(TwoPods() + User("c", "two"));
  EXPECT_EQ(Phase("a") + Phase("b") + Phase("c"), "ReadyReadyReady");  // two pods in one slot
  Deliver(TwoPods() + User("c", "two") + User("d", "three"));
  EXPECT_EQ(operations().Count("attach"), 2u);
  EXPECT_EQ(StepOf("d"), "CheckAttachLimits");
  EXPECT_EQ(ViewOf("d").problem->code, "ResourceExhausted");
  EXPECT_EQ(ViewOf("d").problem->message,
            "the node takes at most 2 volumes of limit \"storage-limits-fake\" at once: slot 1 has "
            "volume one (pod default/a), slot 2 has volume two (pods default/b, default/c)");
  EXPECT_EQ(ViewOf("d").device_state, "Detached");
  EXPECT_EQ(Events("d VolumeAttachmentLimitExceeded"), 1);
  Pass(seconds(600));
  EXPECT_EQ(Events("d VolumeAttachmentLimitExceeded"), 1);
  EXPECT_EQ(operations().Count("attach"), 2u);
}

TEST_F(AttachLimitsTest, AFreedSlotWakesTheOneThatWaitedLongest) {
  Deliver(TwoPods());
  Deliver(TwoPods() + User("d", "three"));  // after "four" by name
  Deliver(TwoPods() + User("d", "three") + User("e", "four"));
  EXPECT_NE(ViewOf("e").problem->message.find("; 1 wait longer"), std::string::npos);
  (void)Done();
  Deliver(Volumes() + User("b", "two") + User("d", "three") + User("e", "four"));
  EXPECT_EQ(Phase("d"), "Ready");
  EXPECT_EQ(StepOf("e"), "CheckAttachLimits");
  EXPECT_NE(ViewOf("e").problem->message.find("volume three (pod default/d)"), std::string::npos);
  Deliver(Volumes() + User("d", "three") + User("e", "four"));
  EXPECT_EQ(Phase("e"), "Ready");
}

TEST_F(AttachLimitsTest, ALimitThatIsRaisedWakesWhoWaits) {
  Deliver(TwoPods());
  Deliver(TwoPods() + User("c", "three"));
  EXPECT_EQ(StepOf("c"), "CheckAttachLimits");
  attach->limits["storage-limits-fake"] = 3;
  Pass(seconds(600));
  EXPECT_NE(Phase("c"), "Ready") << "nobody has said so";
  manager().events().AttachLimitsChanged();
  Settle();
  EXPECT_EQ(Phase("c"), "Ready");
}

TEST_F(AttachLimitsTest, OneThatWaitsNoMoreHoldsNobodyBack) {
  Deliver(TwoPods());
  Deliver(TwoPods() + User("d", "three"));
  Deliver(TwoPods() + User("d", "three") + User("e", "four"));
  Deliver(TwoPods() + User("e", "four"));
  Deliver(Volumes() + User("b", "two") + User("e", "four"));
  EXPECT_EQ(Phase("e"), "Ready");
}

// Each of those that waited was looked at whenever a slot became free.
TEST_F(AttachLimitsTest, AFreedSlotIsNoWorkForThoseWhoseTurnItIsNot) {
  std::string volumes = Volumes();
  std::string waiting;
  for (int i = 0; i < 40; ++i) {
    const std::string name = "v" + std::to_string(i);
    volumes += Volume(name);
    waiting += User("w" + std::to_string(i), name);
  }
  Deliver(volumes + User("a", "one") + User("b", "two"));
  Deliver(volumes + User("a", "one") + User("b", "two") + waiting);
  EXPECT_EQ(operations().Count("attach"), 2u);
  attach->limits_asked = 0;
  Deliver(volumes + User("b", "two") + waiting);
  EXPECT_EQ(operations().Count("attach"), 3u);
  EXPECT_LE(attach->limits_asked, 10);
  // Two at once, and then all: each free slot is taken.
  attach->limits["storage-limits-fake"] = 4;
  manager().events().AttachLimitsChanged();
  Settle();
  EXPECT_EQ(operations().Count("attach"), 5u);
  attach->limits.erase("storage-limits-fake");
  manager().events().AttachLimitsChanged();
  Settle();
  EXPECT_EQ(operations().Count("attach"), 42u);
}

TEST_F(AttachLimitsTest, ASlotIsTakenUntilTheDetachIsDone) {
  Deliver(TwoPods());
  operations().FailNext("detach", OperationKey(Device("one")),
                        Error::NotApplied(Code::kUnavailable, "busy"), 3);
  Deliver(Volumes() + User("b", "two") + User("d", "three"));
  EXPECT_NE(ViewOf("d").problem->message.find("volume one (no pod; it is being detached)"),
            std::string::npos)
      << ViewOf("d").problem->message;
  Pass(seconds(30));
  EXPECT_EQ(Phase("d"), "Ready");
}

TEST_F(AttachLimitsTest, AnAttachThatFailsGivesItsSlotBack) {
  attach->limits = {{"storage-limits-fake", 1}};
  operations().FailNext("attach", OperationKey(Device("one")),
                        Error::NotApplied(Code::kInvalidArgument, "no such volume"), 99);
  Deliver(Volumes() + User("a", "one"));
  Deliver(Volumes() + User("a", "one") + User("b", "two"));
  EXPECT_EQ(Phase("b"), "Ready");
  Pass(seconds(300));
  EXPECT_EQ(StepOf("a"), "CheckAttachLimits");
}

TEST_F(AttachLimitsTest, WhatIsFoundAtStartHasItsSlot) {
  Deliver(Volumes());  // their claims are bound
  LeaveDevice("one", VolumeState::kAttached);
  LeaveDevice("two", VolumeState::kDeviceMounted);
  node.attached = {Device("one"), Device("two")};
  Restart();
  attach->limits = {{"storage-limits-fake", 1}};
  Deliver(TwoPods() + User("d", "three"));
  EXPECT_EQ(Phase("a") + Phase("b"), "ReadyReady");  // the limit is of new ones
  EXPECT_EQ(StepOf("d"), "CheckAttachLimits");
}

TEST_F(AttachLimitsTest, APluginThatCannotBeUsedHereSaysSo) {
  attach->limits_error = Error::NotApplied(Code::kFailedPrecondition, "no initiator");
  Deliver(Volumes() + User("a", "one"));
  EXPECT_EQ(operations().Count("attach"), 0u);
  EXPECT_EQ(ViewOf("a").problem->message, "attach limits of test.io/array: no initiator");
}

TEST_F(AttachLimitsTest, AKeyWithoutALimitIsUnlimited) {
  attach->limits = {{"storage-limits-other", 0}};
  Deliver(TwoPods() + User("d", "three") + User("e", "four"));
  EXPECT_EQ(operations().Count("attach"), 4u);
}

}  // namespace
}  // namespace volumed
