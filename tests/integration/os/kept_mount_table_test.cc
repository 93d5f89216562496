// The kept mount table against a fresh reading of mountinfo, by events and by poll.
#include "os/kept_mount_table.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "integration/os/kept_mount_table_fixture.h"
#include "os/kernel_features.h"
#include "os/mount_table.h"
#include "os/statmount.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr unsigned kMoveMountBeneath = 0x200;  // MOVE_MOUNT_BENEATH, Linux 6.5

struct Way {
  const char* name;
  std::vector<std::string> masked;
  MountTableSource source;

  friend void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }
};

class EveryWayTest : public KeptMountTableTest, public ::testing::WithParamInterface<Way> {
 protected:
  void SetUp() override {
    MountNamespaceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const KernelFeatures features = ProbeKernelFeatures({}).value();
    if (ByEvents() && !(features.mount_events && features.statmount)) {
      GTEST_SKIP() << "skipped: needs mount-events and statmount (Linux 6.15)";
    }
    Open(GetParam().masked);
  }
  bool ByEvents() const { return GetParam().source == MountTableSource::kEvents; }
  // Nothing was lost, so the table was read whole just once.
  void ExpectReadOnce() {
    if (ByEvents()) {
      EXPECT_EQ(table_->stats().full_reads, 1u);
    }
  }
};

INSTANTIATE_TEST_SUITE_P(
    Ways, EveryWayTest,
    ::testing::Values(Way{"Events", {}, MountTableSource::kEvents},
                      Way{"NoEvents", {"mount-events"}, MountTableSource::kPoll},
                      Way{"NoStatmount", {"statmount"}, MountTableSource::kPoll}),
    [](const auto& way) { return std::string(way.param.name); });

TEST_P(EveryWayTest, SaysWhereItsKnowledgeComesFromAndWhy) {
  const MountTableStats stats = table_->stats();
  EXPECT_EQ(stats.source, GetParam().source);
  EXPECT_EQ(table_->event_fd() >= 0, ByEvents());
  if (ByEvents()) {
    EXPECT_EQ(stats.why_poll, "");
  } else {
    // A kernel that lacks both names the first.
    const bool lacks_events = !ProbeKernelFeatures({}).value().mount_events;
    const std::string why = lacks_events ? "mount-events" : GetParam().masked[0];
    EXPECT_THAT(stats.why_poll, HasSubstr(why));
  }
  EXPECT_EQ(stats.mounts, ReadMountTable()->size());
  EXPECT_EQ(stats.full_reads, 1u);
  EXPECT_EQ(stats.updates, 0u);
}

TEST_P(EveryWayTest, EveryFieldOfEveryMountIsMountinfos) {
  Directory("with space\\and\nmore");
  Tmpfs("with space\\and\nmore");
  Directory("sub");
  Directory("sub/of the root");
  Directory("bound");
  Bind("sub/of the root", "bound");
  Directory("flags");
  ASSERT_EQ(::mount("a source", At("flags").c_str(), "tmpfs",
                    MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME | MS_NODIRATIME |
                        MS_SYNCHRONOUS | MS_DIRSYNC | MS_LAZYTIME,
                    "size=1m,mode=0700"),
            0);
  Directory("strict");
  ASSERT_EQ(
      ::mount("none", At("strict").c_str(), "tmpfs", MS_STRICTATIME | 256 /*NOSYMFOLLOW*/, nullptr),
      0);
  Directory("proc");
  ASSERT_EQ(::mount("proc", At("proc").c_str(), "proc", 0, nullptr), 0);
  Directory("shared");
  Tmpfs("shared");
  Change("shared", MS_SHARED);
  Directory("slave");
  Bind("shared", "slave");
  Change("slave", MS_SLAVE);
  Directory("both");
  Bind("slave", "both");
  Change("both", MS_SHARED);
  Directory("unbindable");
  Tmpfs("unbindable");
  Change("unbindable", MS_UNBINDABLE);
  ExpectFresh("/");
  ExpectFresh(scratch());
  ExpectReadOnce();
}

TEST_P(EveryWayTest, FollowsMountsUnmountsAndMountsOverMounts) {
  EXPECT_THAT(PointsBelow(scratch()), ElementsAre(scratch()));
  Directory("a");
  Directory("a-b");
  Tmpfs("a");
  Tmpfs("a-b");
  Directory("a/in");
  Tmpfs("a/in");
  EXPECT_THAT(PointsBelow(At("a")), ElementsAre(At("a"), At("a/in")));
  Tmpfs("a");  // over both
  EXPECT_THAT(PointsBelow(At("a")), ElementsAre(At("a"), At("a/in"), At("a")));
  ExpectFresh(scratch());
  Unmount("a");
  EXPECT_THAT(PointsBelow(At("a")), ElementsAre(At("a"), At("a/in")));
  Unmount("a", MNT_DETACH);
  EXPECT_THAT(PointsBelow(At("a")), IsEmpty());
  EXPECT_THAT(PointsBelow(scratch()), ElementsAre(scratch(), At("a-b")));
  EXPECT_THAT(PointsBelow(At("no/such")), IsEmpty());
  ExpectFresh("/");
  ExpectReadOnce();
  EXPECT_EQ(table_->stats().mounts, ReadMountTable()->size());
  EXPECT_GT(table_->stats().updates, 0u);
}

TEST_P(EveryWayTest, TheWatchIsToldOfMountsThatWentBelowItsPathAndOfNoOthers) {
  Directory("watched");
  Directory("watched/a");
  Directory("watched/b");
  Directory("beside");
  Tmpfs("watched/a");
  Tmpfs("watched/b");
  Tmpfs("beside");
  Below(scratch());
  EXPECT_THAT(gone_, IsEmpty());
  Unmount("watched/a");
  Unmount("beside");
  // What the event loop does when it is told that something happened.
  ByEvents() ? table_->TakeEvents() : table_->CatchUpNow();
  EXPECT_THAT(gone_, ElementsAre(At("watched/a")));
  Unmount("watched/b");
  Below(scratch());
  EXPECT_THAT(gone_, ElementsAre(At("watched/a"), At("watched/b"))) << "a question does it, too";
}

TEST_P(EveryWayTest, TheWatchIsToldOfMountsThatComeGoAndMoveElsewhere) {
  for (const char* name : {"watched", "watched/a", "beside", "moved"}) Directory(name);
  const auto take = [&] { ByEvents() ? table_->TakeEvents() : table_->CatchUpNow(); };
  take();
  EXPECT_THAT(elsewhere_, IsEmpty()) << "what was there at first is no news";
  Tmpfs("watched/a");
  Tmpfs("beside");
  take();
  EXPECT_THAT(elsewhere_, ElementsAre(At("beside")));
  ASSERT_EQ(::mount(At("beside").c_str(), At("moved").c_str(), nullptr, MS_MOVE, nullptr), 0);
  take();
  EXPECT_THAT(elsewhere_, ElementsAre(At("beside"), At("beside"), At("moved")));
  Unmount("moved");
  take();
  EXPECT_THAT(elsewhere_, ElementsAre(At("beside"), At("beside"), At("moved"), At("moved")));
  EXPECT_THAT(gone_, IsEmpty());
}

TEST_P(EveryWayTest, WhatLiesOverAPathIsKnownWithoutCatchingUp) {
  for (const char* name : {"root", "root/a", "root/b"}) Directory(name);
  Tmpfs("root/a");
  Below(scratch());
  const auto around = [&](const std::string& name) {
    return Points(table_->LastKnown({.around = At(name)}, At("root")));
  };
  EXPECT_THAT(around("root/a"), ElementsAre(At("root/a")));
  EXPECT_THAT(around("root/a/x/y"), ElementsAre(At("root/a")));
  EXPECT_THAT(around("root/b"), IsEmpty());
  EXPECT_THAT(around("root"), IsEmpty()) << "nor the mounts that the directory itself lies on";
  Tmpfs("root/b");
  EXPECT_THAT(around("root/b"), IsEmpty()) << "nobody has taken events";
  Below(scratch());
  EXPECT_THAT(around("root/b"), ElementsAre(At("root/b")));
}

TEST_P(EveryWayTest, ADescriptorSaysThatTheTableHasChanged) {
  Directory("watched");
  const int fd = ByEvents() ? table_->event_fd() : table_->change_fd();
  const short events = ByEvents() ? POLLIN : POLLPRI;
  const auto says = [fd, events] {
    pollfd wait = {fd, events, 0};
    return ::poll(&wait, 1, 0) == 1;
  };
  ByEvents() ? table_->TakeEvents() : static_cast<void>(says());
  EXPECT_FALSE(says());
  Tmpfs("watched");
  // A question by poll has a descriptor of its own, and takes nothing from this one.
  if (!ByEvents()) Below(scratch());
  EXPECT_TRUE(says());
}

TEST_P(EveryWayTest, AMovedMountTakesAlongWhatIsMountedBelowIt) {
  for (const char* name : {"from", "to"}) Directory(name);
  Tmpfs("from");
  Directory("from/x");
  Tmpfs("from/x");
  Directory("from/x/y");
  Tmpfs("from/x/y");
  EXPECT_EQ(PointsBelow(At("from")).size(), 3u);
  ASSERT_EQ(::mount(At("from").c_str(), At("to").c_str(), nullptr, MS_MOVE, nullptr), 0);
  // First of all what was moved along: a question about the old place would find it out.
  EXPECT_THAT(PointsBelow(At("to/x")), ElementsAre(At("to/x"), At("to/x/y")));
  EXPECT_THAT(PointsBelow(At("from")), IsEmpty());
  ExpectFresh(At("to"));
  // Moved and moved back between two questions.
  ASSERT_EQ(::mount(At("to").c_str(), At("from").c_str(), nullptr, MS_MOVE, nullptr), 0);
  Unmount("from/x/y");
  ASSERT_EQ(::mount(At("from").c_str(), At("to").c_str(), nullptr, MS_MOVE, nullptr), 0);
  EXPECT_THAT(PointsBelow(At("to")), ElementsAre(At("to"), At("to/x")));
  ExpectFresh("/");
  ExpectReadOnce();
}

TEST_P(EveryWayTest, FlagsThatChangeWithoutAnEventAreTheNewOnes) {
  Directory("m");
  Tmpfs("m");
  ExpectFresh(At("m"));
  Change("m", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID);
  EXPECT_TRUE(Below(At("m")).at(0).read_only());
  ExpectFresh(At("m"));
  mount_attr attributes = {};
  attributes.attr_clr = MOUNT_ATTR_RDONLY;
  attributes.attr_set = MOUNT_ATTR_NOEXEC;
  ASSERT_EQ(::mount_setattr(AT_FDCWD, At("m").c_str(), 0, &attributes, sizeof(attributes)), 0);
  EXPECT_FALSE(Below(At("m")).at(0).read_only());
  ExpectFresh(At("m"));
  Change("m", MS_REMOUNT, "size=2m");
  ExpectFresh(At("m"));
  ExpectReadOnce();
}

TEST_P(EveryWayTest, WhatNobodyIsToldOfIsNewByEventsAndOldByPoll) {
  Directory("m");
  Tmpfs("m");
  EXPECT_THAT(Below(At("m")).at(0).propagation, IsEmpty());
  Change("m", MS_SHARED);
  EXPECT_EQ(Below(At("m")).at(0).propagation.size(), ByEvents() ? 1u : 0u);
  const Descriptor root(::open(At("m").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const Descriptor context(::fspick(root.get(), "", FSPICK_CLOEXEC | FSPICK_EMPTY_PATH));
  ASSERT_EQ(::fsconfig(context.get(), FSCONFIG_SET_STRING, "size", "3m", 0), 0);
  ASSERT_EQ(::fsconfig(context.get(), FSCONFIG_CMD_RECONFIGURE, nullptr, nullptr, 0), 0);
  EXPECT_EQ(Texts(Below(At("m"))) == Fresh(At("m")), ByEvents());
  Directory("other");
  Tmpfs("other");  // announced: now by poll too
  ExpectFresh(At("m"));
}

TEST_P(EveryWayTest, AMountPutBeneathAnotherChangesTheParentOfThatOne) {
  Directory("m");
  Tmpfs("m");
  ExpectFresh(At("m"));
  const Descriptor tree(
      ::open_tree(AT_FDCWD, scratch().c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
  ASSERT_TRUE(tree.valid());
  if (::move_mount(tree.get(), "", AT_FDCWD, At("m").c_str(),
                   MOVE_MOUNT_F_EMPTY_PATH | kMoveMountBeneath) != 0) {
    GTEST_SKIP() << "skipped: needs MOVE_MOUNT_BENEATH (Linux 6.5)";
  }
  const std::vector<MountEntry> stack = Below(At("m"));
  ASSERT_EQ(stack.size(), 2u);
  ExpectFresh(At("m"));
  // The older one is on top, whatever the order of the table.
  EXPECT_EQ(MountSnapshot(stack).FindTop(At("m"))->source, "m");
  Unmount("m");
  EXPECT_EQ(MountSnapshot(Below(At("m"))).FindTop(At("m"))->source, "scratch");
  ExpectFresh(At("m"));
  ExpectReadOnce();
}

TEST_P(EveryWayTest, AMountPropagatedBySharingIsSeenInEveryCopy) {
  for (const char* name : {"a", "b"}) Directory(name);
  Tmpfs("a");
  Change("a", MS_SHARED);
  Bind("a", "b");
  Directory("a/in");
  Tmpfs("a/in");
  EXPECT_THAT(PointsBelow(At("b")), ElementsAre(At("b"), At("b/in")));
  ExpectFresh(scratch());
  Unmount("b/in");
  EXPECT_THAT(PointsBelow(At("a")), ElementsAre(At("a")));
  ExpectFresh(scratch());
  ExpectReadOnce();
}

TEST_P(EveryWayTest, AnAnswerHasWhatAnyThreadOrProcessHadDoneBeforeTheQuestion) {
  Directory("own");
  for (int i = 0; i < 300; ++i) {
    Tmpfs("own");
    ASSERT_EQ(Below(At("own")).size(), 1u) << "call " << i;
    Unmount("own");
    ASSERT_EQ(Below(At("own")).size(), 0u) << "call " << i;
  }
  const std::string target = At("own");
  std::thread([&] { ::mount("thread", target.c_str(), "tmpfs", 0, nullptr); }).join();
  EXPECT_EQ(Below(target).at(0).source, "thread");
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::mount("process", target.c_str(), "tmpfs", 0, nullptr) == 0 ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_EQ(Below(target).at(1).source, "process");
  ExpectReadOnce();
}

TEST_P(EveryWayTest, IsRightAfterTwoThousandBindsAmongOtherMountsAndQuestions) {
  constexpr int kBinds = 2000;
  Directory("source");
  Directory("pods");
  Directory("noise");
  for (int i = 0; i < kBinds; ++i) Directory("pods/" + std::to_string(i));
  std::atomic<bool> stop{false};
  std::atomic<int> bad{0};
  std::thread noise([&] {
    // So few that no event is lost.
    for (int i = 0; i < 3000 && !stop; ++i) {
      ::mount("noise", At("noise").c_str(), "tmpfs", 0, nullptr);
      ::umount2(At("noise").c_str(), 0);
    }
  });
  std::thread asker([&] {
    size_t before = 0;
    while (!stop) {
      const auto mounts = table_->Find({.below = At("pods")});
      // Binds only come, so an answer never has fewer than the one before.
      if (!mounts.ok() || mounts->size() < before) ++bad;
      if (mounts.ok()) before = mounts->size();
    }
  });
  for (int i = 0; i < kBinds; ++i) Bind("source", "pods/" + std::to_string(i));
  stop = true;
  noise.join();
  asker.join();
  EXPECT_EQ(bad, 0);
  EXPECT_EQ(Below(At("pods")).size(), static_cast<size_t>(kBinds));
  EXPECT_EQ(PointsBelow(At("pods/1999")).size(), 1u);
  ExpectFresh("/");
  for (int i = 0; i < kBinds; i += 2) Unmount("pods/" + std::to_string(i));
  EXPECT_EQ(Below(At("pods")).size(), static_cast<size_t>(kBinds / 2));
  ExpectFresh("/");
  ExpectReadOnce();
}

TEST_P(EveryWayTest, AnyThreadMayAsk) {
  Directory("m");
  Tmpfs("m");
  std::vector<std::string> answer;
  std::thread([&] {
    // In another mount namespace: the answer is still about the table's own.
    ASSERT_EQ(::unshare(CLONE_FS | CLONE_NEWNS), 0);
    ASSERT_EQ(::umount2(At("m").c_str(), 0), 0);
    answer = PointsBelow(At("m"));
  }).join();
  EXPECT_THAT(answer, ElementsAre(At("m")));
}

TEST_P(EveryWayTest, TheMountOfADescriptorIsFound) {
  Directory("m");
  Tmpfs("m");
  Directory("m/below");
  const Descriptor inside(::open(At("m/below").c_str(), O_PATH | O_CLOEXEC));
  auto found = FindMountOf(inside.get(), features_);
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ((*found)->mount_point, At("m"));
  EXPECT_FALSE((*found)->shared);
  Change("m", MS_SHARED);
  EXPECT_TRUE((*FindMountOf(inside.get(), features_))->shared);
  Unmount("m", MNT_DETACH);
  EXPECT_FALSE(FindMountOf(inside.get(), features_)->has_value());
}

}  // namespace
}  // namespace volumed
