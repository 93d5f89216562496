// What only a table that is kept by events can get wrong: a queue that runs full, and what no event
// tells of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poll.h>
#include <sys/mount.h>
#include <algorithm>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "integration/os/kept_mount_table_fixture.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Source: fs.fanotify.max_queued_events.
constexpr int kQueuedEvents = 16384;

class KeptMountTableEventsTest : public KeptMountTableTest {
 protected:
  void SetUp() override {
    MountNamespaceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const KernelFeatures features = ProbeKernelFeatures({}).value();
    if (!features.mount_events || !features.statmount) {
      GTEST_SKIP() << "skipped: needs mount-events and statmount (Linux 6.15)";
    }
    Open({});
    ASSERT_EQ(table_->stats().source, MountTableSource::kEvents);
    Directory("a");
    Directory("b");
  }
  // Two events each.
  void Churn(int times) {
    for (int i = 0; i < times; ++i) {
      Bind("a", "b");
      Unmount("b");
    }
  }
  bool EventsWait() const {
    pollfd poll_of = {table_->event_fd(), POLLIN, 0};
    return ::poll(&poll_of, 1, 0) == 1;
  }
};

TEST_F(KeptMountTableEventsTest, AQueueThatRanFullIsMendedByOneFullReading) {
  Churn(kQueuedEvents / 2 + 100);
  Tmpfs("b");  // its event is lost
  EXPECT_THAT(PointsBelow(At("b")), ElementsAre(At("b")));
  EXPECT_EQ(table_->stats().full_reads, 2u);
  EXPECT_FALSE(EventsWait());
  ExpectFresh("/");
  Unmount("b");  // and from then on events count again
  EXPECT_THAT(PointsBelow(At("b")), IsEmpty());
  ExpectFresh("/");
  EXPECT_EQ(table_->stats().full_reads, 2u);
}

TEST_F(KeptMountTableEventsTest, ALostEventThatIsTakenBetweenQuestionsIsMendedByTheNextQuestion) {
  Churn(kQueuedEvents / 2 + 100);
  Tmpfs("b");
  while (EventsWait()) table_->TakeEvents();
  EXPECT_EQ(table_->stats().full_reads, 1u);
  EXPECT_THAT(PointsBelow(At("b")), ElementsAre(At("b")));
  EXPECT_EQ(table_->stats().full_reads, 2u);
}

TEST_F(KeptMountTableEventsTest, EventsThatAreTakenAsTheyComeAreNotLost) {
  for (int round = 0; round < 10; ++round) {
    Churn(kQueuedEvents / 16);
    while (EventsWait()) table_->TakeEvents();
  }
  Tmpfs("b");
  while (EventsWait()) table_->TakeEvents();
  EXPECT_EQ(table_->stats().mounts, ReadMountTable()->size());
  ExpectFresh("/");
  EXPECT_EQ(table_->stats().full_reads, 1u);
}

TEST_F(KeptMountTableEventsTest, ARenameAboveAMountIsNoticedWhereItWas) {
  Directory("a/m");
  Tmpfs("a/m");
  ExpectFresh(At("a"));
  ASSERT_EQ(::rename(At("a").c_str(), At("c").c_str()), 0);
  EXPECT_THAT(PointsBelow(At("a")), IsEmpty());
  // From then on it is known where it went.
  EXPECT_THAT(PointsBelow(At("c")), ElementsAre(At("c/m")));
  ExpectFresh("/");
  EXPECT_EQ(table_->stats().full_reads, 1u);
}

// The mount was missed there until the table was read whole again, which may be never.
TEST_F(KeptMountTableEventsTest, AMountWhoseDirectoryWasRenamedAndCameBackWasMissed) {
  Directory("a/m");
  Tmpfs("a/m");
  ExpectFresh(At("a"));
  ASSERT_EQ(::rename(At("a").c_str(), At("c").c_str()), 0);
  EXPECT_THAT(PointsBelow(At("a")), IsEmpty());
  ASSERT_EQ(::rename(At("c").c_str(), At("a").c_str()), 0);
  EXPECT_THAT(PointsBelow(At("a")), ElementsAre(At("a/m")));
  ExpectFresh("/");
  ASSERT_EQ(::umount(At("a/m").c_str()), 0);
  EXPECT_THAT(PointsBelow(At("a")), IsEmpty());
  EXPECT_EQ(table_->stats().full_reads, 1u);
}

// Where many are was asked for with a pause, in which each was missed that had come back: whoever
// staged them again mounted them over themselves.
TEST_F(KeptMountTableEventsTest,
       ManyMountsWhoseDirectoryWasRenamedAndCameBackWereMissedForAMoment) {
  constexpr int kMounts = 100;
  for (int i = 0; i < kMounts; ++i) {
    const std::string point = "a/" + std::to_string(i);
    Directory(point);
    Tmpfs(point);
  }
  ExpectFresh("/");
  for (int round = 0; round < 5; ++round) {
    ASSERT_EQ(::rename(At("a").c_str(), At("c").c_str()), 0);
    EXPECT_THAT(PointsBelow(At("a")), IsEmpty());
    ASSERT_EQ(::rename(At("c").c_str(), At("a").c_str()), 0);
    EXPECT_THAT(PointsBelow(At("a")), SizeIs(kMounts)) << round;
  }
  EXPECT_EQ(table_->stats().full_reads, 1u);
}

// The one below was found at its old place alone, as nobody had asked for it, and so what was
// mounted on it seemed to be hidden.
TEST_F(KeptMountTableEventsTest, AMountThatWasRenamedAlongWithTheOneThatItIsOnIsFoundUponThat) {
  Directory("a/disk");
  Tmpfs("a/disk");
  Directory("a/disk/m");
  ExpectFresh("/");
  ASSERT_EQ(::rename(At("a").c_str(), At("c").c_str()), 0);
  Tmpfs("c/disk/m");
  const std::vector<MountEntry> around = *table_->Find({.around = At("c/disk/m/f")});
  const auto is_disk = [this](const MountEntry& mount) {
    return mount.mount_point == At("c/disk");
  };
  EXPECT_TRUE(std::any_of(around.begin(), around.end(), is_disk));
  const uint64_t reads = table_->stats().full_reads;
  EXPECT_THAT(PointsBelow(At("c/disk")), SizeIs(2));
  EXPECT_EQ(table_->stats().full_reads, reads);
}

TEST_F(KeptMountTableEventsTest, ManyOptionsFitIntoAnAnswer) {
  std::string lower;
  for (int i = 0; i < 40; ++i) {
    const std::string name = "a/" + std::string(60, 'x') + std::to_string(i);
    Directory(name);
    lower += (lower.empty() ? "" : ":") + At(name);
  }
  const std::string options = "lowerdir=" + lower;
  ASSERT_LT(options.size(), 4096u);
  ASSERT_GT(options.size(), 2048u);
  ASSERT_EQ(::mount("overlay", At("b").c_str(), "overlay", MS_RDONLY, options.c_str()), 0)
      << std::strerror(errno);
  ExpectFresh(At("b"));
}

}  // namespace
}  // namespace volumed
