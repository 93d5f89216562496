#include "volumehost/event_log.h"

#include <gtest/gtest.h>

#include "base/manual_clock.h"

namespace volumed {
namespace {

using std::chrono::seconds;

const PodUid kPod("u1");

TEST(EventLogTest, KeepsAnEventWithItsTime) {
  ManualClock clock;
  EventLog log(clock);
  log.RecordPodEvent(kPod, EventType::kWarning, "FailedMount", "no");
  const auto events = log.Snapshot(kPod);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0], (PodEvent{EventType::kWarning, "FailedMount", "no", 1,
                                 ManualClock::kStartUnixMillis, ManualClock::kStartUnixMillis}));
}

TEST(EventLogTest, CountsTheSameEventUp) {
  ManualClock clock;
  EventLog log(clock);
  log.RecordPodEvent(kPod, EventType::kWarning, "FailedMount", "no");
  clock.Advance(seconds(5));
  log.RecordPodEvent(kPod, EventType::kWarning, "FailedMount", "no");
  const auto events = log.Snapshot(kPod);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].count, 2u);
  EXPECT_EQ(events[0].last_unix_ms - events[0].first_unix_ms, 5000);
}

TEST(EventLogTest, DifferentTypesReasonsAndMessagesAreDifferentEvents) {
  ManualClock clock;
  EventLog log(clock);
  log.RecordPodEvent(kPod, EventType::kWarning, "A", "m");
  log.RecordPodEvent(kPod, EventType::kNormal, "A", "m");
  log.RecordPodEvent(kPod, EventType::kWarning, "B", "m");
  log.RecordPodEvent(kPod, EventType::kWarning, "A", "n");
  EXPECT_EQ(log.Snapshot(kPod).size(), 4u);
}

TEST(EventLogTest, ARepeatedEventBecomesTheNewest) {
  ManualClock clock;
  EventLog log(clock);
  log.RecordPodEvent(kPod, EventType::kNormal, "A", "");
  log.RecordPodEvent(kPod, EventType::kNormal, "B", "");
  log.RecordPodEvent(kPod, EventType::kNormal, "A", "");
  const auto events = log.Snapshot(kPod);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].reason, "B");
  EXPECT_EQ(events[1].reason, "A");
}

TEST(EventLogTest, DropsTheOldestOfAPodBeyondItsLimit) {
  ManualClock clock;
  EventLog log(clock, 2);
  for (const char* reason : {"A", "B", "C"}) {
    log.RecordPodEvent(kPod, EventType::kNormal, reason, "");
  }
  const auto events = log.Snapshot(kPod);
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

TEST(EventLogTest, ForgetsAPodWhenTold) {
  ManualClock clock;
  EventLog log(clock);
  log.RecordPodEvent(kPod, EventType::kNormal, "R", "");
  log.ForgetPod(kPod);
  EXPECT_TRUE(log.Snapshot(kPod).empty());
}

TEST(EventLogTest, NamesTypesAsKubernetesDoes) {
  EXPECT_EQ(EventTypeName(EventType::kNormal), "Normal");
  EXPECT_EQ(EventTypeName(EventType::kWarning), "Warning");
}

}  // namespace
}  // namespace volumed
