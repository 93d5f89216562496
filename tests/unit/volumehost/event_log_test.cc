#include "volumehost/event_log.h"

#include <gtest/gtest.h>

#include "base/manual_clock.h"

namespace volumed {
namespace {

using std::chrono::seconds;

const PodUid kPodOfEvents("u1");
const ObjectKey kDisk{ObjectKind::kPersistentVolume, "", "disk"};

TEST(EventLogTest, KeepsAnEventWithItsTime) {
  ManualClock clock;
  EventLog log(clock);
  log.RecordPodEvent(kPodOfEvents, EventType::kWarning, "FailedMount", "no");
  const auto events = log.Snapshot(kPodOfEvents);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0], (KeptEvent{EventType::kWarning, "FailedMount", "no", 1,
                                  ManualClock::kStartUnixMillis, ManualClock::kStartUnixMillis}));
}

TEST(EventLogTest, CountsTheSameEventUp) {
  ManualClock clock;
  EventLog log(clock);
  log.RecordPodEvent(kPodOfEvents, EventType::kWarning, "FailedMount", "no");
  clock.Advance(seconds(5));
  log.RecordPodEvent(kPodOfEvents, EventType::kWarning, "FailedMount", "no");
  const auto events = log.Snapshot(kPodOfEvents);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].count, 2u);
  EXPECT_EQ(events[0].last_unix_ms - events[0].first_unix_ms, 5000);
}

TEST(EventLogTest, DifferentTypesReasonsAndMessagesAreDifferentEvents) {
  ManualClock clock;
  EventLog log(clock);
  log.RecordPodEvent(kPodOfEvents, EventType::kWarning, "A", "m");
  log.RecordPodEvent(kPodOfEvents, EventType::kNormal, "A", "m");
  log.RecordPodEvent(kPodOfEvents, EventType::kWarning, "B", "m");
  log.RecordPodEvent(kPodOfEvents, EventType::kWarning, "A", "n");
  EXPECT_EQ(log.Snapshot(kPodOfEvents).size(), 4u);
}

TEST(EventLogTest, ARepeatedEventBecomesTheNewest) {
  ManualClock clock;
  EventLog log(clock);
  log.RecordPodEvent(kPodOfEvents, EventType::kNormal, "A", "");
  log.RecordPodEvent(kPodOfEvents, EventType::kNormal, "B", "");
  log.RecordPodEvent(kPodOfEvents, EventType::kNormal, "A", "");
  const auto events = log.Snapshot(kPodOfEvents);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].reason, "B");
  EXPECT_EQ(events[1].reason, "A");
}

TEST(EventLogTest, DropsTheOldestOfAPodBeyondItsLimit) {
  ManualClock clock;
  EventLog log(clock, 2);
  for (const char* reason : {"A", "B", "C"}) {
    log.RecordPodEvent(kPodOfEvents, EventType::kNormal, reason, "");
  }
  const auto events = log.Snapshot(kPodOfEvents);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].reason, "B");
}

TEST(EventLogTest, ForgetsThePodThatWasSilentLongest) {
  ManualClock clock;
  EventLog log(clock, 8, 2);
  log.RecordPodEvent(PodUid("a"), EventType::kNormal, "R", "");
  log.RecordPodEvent(PodUid("b"), EventType::kNormal, "R", "");
  log.RecordPodEvent(PodUid("a"), EventType::kNormal, "R", "");
  log.RecordPodEvent(PodUid("c"), EventType::kNormal, "R", "");
  EXPECT_EQ(log.Snapshot(PodUid("a")).size(), 1u);
  EXPECT_TRUE(log.Snapshot(PodUid("b")).empty());
  EXPECT_EQ(log.Snapshot(PodUid("c")).size(), 1u);
}

TEST(EventLogTest, ForgetsASubjectWhenTold) {
  ManualClock clock;
  EventLog log(clock);
  log.RecordPodEvent(kPodOfEvents, EventType::kNormal, "R", "");
  log.RecordVolumeEvent("disk", EventType::kNormal, "R", "");
  log.Forget(kPodOfEvents);
  EXPECT_TRUE(log.Snapshot(kPodOfEvents).empty());
  EXPECT_EQ(log.Snapshot(kDisk).size(), 1u);
  log.Forget(kDisk);
  EXPECT_TRUE(log.Snapshot(kDisk).empty());
}

TEST(EventLogTest, TheTenthMessageOfOneReasonIsCombinedWithWhatFollows) {
  ManualClock clock;
  EventLog log(clock);
  for (int i = 1; i <= 12; ++i) {
    log.RecordPodEvent(kPodOfEvents, EventType::kWarning, "FailedMount",
                       "try " + std::to_string(i));
    clock.Advance(seconds(60));
  }
  auto events = log.Snapshot(kPodOfEvents);
  ASSERT_EQ(events.size(), 10u);
  EXPECT_EQ(events[8].message, "try 9");
  EXPECT_EQ(events[9].message, "(combined from similar events): try 12");
  EXPECT_EQ(events[9].count, 3u);
  log.RecordPodEvent(kPodOfEvents, EventType::kWarning, "Other", "try 1");
  EXPECT_EQ(log.Snapshot(kPodOfEvents).back().message, "try 1")
      << "another reason counts for itself";
  clock.Advance(seconds(601));
  log.RecordPodEvent(kPodOfEvents, EventType::kWarning, "FailedMount", "after a pause");
  EXPECT_EQ(log.Snapshot(kPodOfEvents).back().message, "after a pause");
}

TEST(EventLogTest, TellsWhatCameAfterASequenceNumber) {
  ManualClock clock;
  EventLog log(clock);
  log.RecordPodEvent(PodUid("b"), EventType::kNormal, "A", "");
  log.RecordPodEvent(kPodOfEvents, EventType::kNormal, "B", "");
  const auto all = log.Since(0);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].subject, EventSubject(PodUid("b")));
  EXPECT_TRUE(log.Since(all[1].sequence).empty());
  log.RecordPodEvent(PodUid("b"), EventType::kNormal, "A", "");
  const auto more = log.Since(all[1].sequence);
  ASSERT_EQ(more.size(), 1u);
  EXPECT_EQ(more[0].event.count, 2u);
}

TEST(EventLogTest, CallsListenersUntilTheyGo) {
  ManualClock clock;
  EventLog log(clock);
  int called = 0;
  const uint64_t id = log.AddListener([&] {
    ++called;
    EXPECT_FALSE(log.Since(0).empty()) << "the event is there by then";
  });
  log.RecordPodEvent(kPodOfEvents, EventType::kNormal, "A", "");
  log.RemoveListener(id);
  log.RecordPodEvent(kPodOfEvents, EventType::kNormal, "A", "");
  EXPECT_EQ(called, 1);
}

TEST(EventLogTest, ObjectsHaveEventsOfTheirOwn) {
  ManualClock clock;
  EventLog log(clock);
  const ObjectKey claim{ObjectKind::kPersistentVolumeClaim, "prod", "disk"};
  log.RecordVolumeEvent("disk", EventType::kNormal, "VolumeRecycled", "Volume recycled");
  log.RecordVolumeEvent("disk", EventType::kNormal, "VolumeRecycled", "Volume recycled");
  log.RecordObjectEvent(claim, EventType::kNormal, "FailedBinding", "none");
  ASSERT_EQ(log.Snapshot(kDisk).size(), 1u);
  EXPECT_EQ(log.Snapshot(kDisk)[0].count, 2u);
  EXPECT_EQ(log.Snapshot(claim)[0].reason, "FailedBinding");
  EXPECT_TRUE(log.Snapshot(PodUid("disk")).empty());
  EXPECT_TRUE(log.Snapshot(ObjectKey{claim.kind, "default", "disk"}).empty());
  const auto all = log.Since(0);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].subject, EventSubject(kDisk));
  EXPECT_EQ(all[1].subject, EventSubject(claim));
}

TEST(EventLogTest, ObjectsAndPodsShareOneBound) {
  ManualClock clock;
  EventLog log(clock, 2, 2);
  for (int i = 0; i < 3; ++i) {
    log.RecordVolumeEvent("disk", EventType::kNormal, "R", std::to_string(i));
  }
  EXPECT_EQ(log.Snapshot(kDisk).size(), 2u);
  log.RecordPodEvent(PodUid("a"), EventType::kNormal, "R", "");
  log.RecordPodEvent(PodUid("b"), EventType::kNormal, "R", "");
  EXPECT_TRUE(log.Snapshot(kDisk).empty());
}

TEST(EventLogTest, TheNodesEventsAreNeverForgotten) {
  ManualClock clock;
  EventLog log(clock, 8, 2);
  log.RecordNodeEvent(EventType::kWarning, "R", "m");
  for (const char* pod : {"a", "b", "c"}) {
    log.RecordPodEvent(PodUid(pod), EventType::kNormal, "R", "");
  }
  ASSERT_EQ(log.NodeSnapshot().size(), 1u);
  EXPECT_EQ(log.NodeSnapshot()[0].message, "m");
  EXPECT_EQ(log.Snapshot(PodUid("c")).size(), 1u);
}

TEST(EventLogTest, NamesTypesAsKubernetesDoes) {
  EXPECT_EQ(EventTypeName(EventType::kNormal), "Normal");
  EXPECT_EQ(EventTypeName(EventType::kWarning), "Warning");
}

}  // namespace
}  // namespace volumed
