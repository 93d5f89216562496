// The store on a filesystem that is really full. Needs CAP_SYS_ADMIN, for a tmpfs of its own.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/descriptor.h"
#include "records/sqlite_record_store.h"
#include "unit/records/temp_directory.h"

namespace volumed {
namespace {

using ::testing::SizeIs;

class FullDiskTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (unshare(CLONE_NEWNS) != 0) {
      if (errno == EPERM) GTEST_SKIP() << "skipped: needs CAP_SYS_ADMIN";
      FAIL() << std::strerror(errno);
    }
    ASSERT_EQ(mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    ASSERT_EQ(mount("tmpfs", temp_.path().c_str(), "tmpfs", 0, "size=16m"), 0);
    mounted_ = true;
  }
  void TearDown() override {
    if (mounted_) {
      EXPECT_EQ(umount2(temp_.path().c_str(), MNT_DETACH), 0);
    }
  }

  void Fill() {
    const Descriptor fd(open(Filler().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    ASSERT_TRUE(fd.valid());
    const std::string block(4096, 'f');
    while (write(fd.get(), block.data(), block.size()) > 0) {
    }
    ASSERT_EQ(errno, ENOSPC);
  }
  std::string Filler() const { return temp_.path() + "/filler"; }
  SqliteRecordStoreOptions Options() const {
    SqliteRecordStoreOptions options;
    options.directory = temp_.path() + "/records";
    return options;
  }

  TempDirectory temp_;
  bool mounted_ = false;
};

TEST_F(FullDiskTest, TeardownIsRecordedOnAFullDiskAndNewRowsReturnWithTheRoom) {
  auto opened = SqliteRecordStore::Open(Options());
  ASSERT_TRUE(opened.ok()) << opened.error().ToString();
  auto store = std::move(opened).value();
  constexpr int kRows = 200;
  const std::string bytes(1000, 'x');
  for (int i = 0; i < kRows; ++i) {
    ASSERT_TRUE(store->Put({"pod", std::to_string(i), 1, bytes}, Durability::kPowerLoss).ok());
  }
  ASSERT_NO_FATAL_FAILURE(Fill());

  // Rows until one is refused; the log may have room left in its last block.
  Status status;
  int added = 0;
  while (status.ok() && added < 10'000) {
    status = store->Put({"new", std::to_string(added++), 1, bytes}, Durability::kProcess);
  }
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Code::kResourceExhausted) << status.error().ToString();
  EXPECT_FALSE(status.error().maybe_applied());
  EXPECT_TRUE(store->on_ballast());
  for (int i = 0; i < kRows; ++i) {
    const std::string key = std::to_string(i);
    const Status update = store->Put({"pod", key, 2, bytes}, Durability::kPowerLoss);
    ASSERT_TRUE(update.ok()) << i << ": " << update.error().ToString();
    const Status removal = store->Remove("pod", key, Durability::kPowerLoss);
    ASSERT_TRUE(removal.ok()) << i << ": " << removal.error().ToString();
    EXPECT_FALSE(store->Put({"pod2", key, 1, bytes}, Durability::kProcess).ok());
  }
  EXPECT_THAT(store->Load("pod")->records, SizeIs(0));
  EXPECT_TRUE(store->on_ballast());

  // A restart on the full disk starts, and is still on ballast.
  store.reset();
  ASSERT_NO_FATAL_FAILURE(Fill());  // closing gave the log's space back
  auto again = SqliteRecordStore::Open(Options());
  ASSERT_TRUE(again.ok()) << again.error().ToString();
  store = std::move(again).value();
  EXPECT_TRUE(store->on_ballast());
  EXPECT_TRUE(store->Load("new").ok());

  const Status room = store->CheckRoom();
  ASSERT_FALSE(room.ok());
  EXPECT_EQ(room.error().code(), Code::kResourceExhausted);
  EXPECT_THAT(room.error().message(), ::testing::HasSubstr(temp_.path()));

  ASSERT_EQ(unlink(Filler().c_str()), 0);
  EXPECT_TRUE(store->CheckRoom().ok());
  EXPECT_FALSE(store->on_ballast());
  EXPECT_TRUE(store->Put({"pod", "back", 1, bytes}, Durability::kPowerLoss).ok());
  EXPECT_FALSE(store->on_ballast());
}

// A debt is a new row of a pod that leaves. It was refused with the rows of new pods, and the pod
// was Terminating for ever.
TEST_F(FullDiskTest, ANewRowThatTeardownNeedsWasRefusedTheRoomThatWasKeptForIt) {
  SqliteRecordStoreOptions options = Options();
  options.teardown_kinds = {"debt", "reservation/reclaim"};
  auto opened = SqliteRecordStore::Open(options);
  ASSERT_TRUE(opened.ok()) << opened.error().ToString();
  auto store = std::move(opened).value();
  ASSERT_NO_FATAL_FAILURE(Fill());
  const std::string bytes(1000, 'x');
  Status status;
  for (int i = 0; status.ok() && i < 10'000; ++i) {
    status = store->Put({"pod", std::to_string(i), 1, bytes}, Durability::kProcess);
  }
  ASSERT_FALSE(status.ok());
  ASSERT_TRUE(store->on_ballast());
  constexpr int kDebts = 100;
  for (int i = 0; i < kDebts; ++i) {
    const Status owed = store->Put({"debt", std::to_string(i), 1, bytes}, Durability::kPowerLoss);
    ASSERT_TRUE(owed.ok()) << i << ": " << owed.error().ToString();
  }
  // To delete a volume, which would have made room, was refused.
  EXPECT_TRUE(store->Put({"reservation", "reclaim/v", 1, bytes}, Durability::kPowerLoss).ok());
  EXPECT_FALSE(store->Put({"reservation", "raw/v", 1, bytes}, Durability::kPowerLoss).ok());
  EXPECT_TRUE(store->on_ballast());
  EXPECT_FALSE(store->Put({"pod", "new", 1, bytes}, Durability::kProcess).ok());
  EXPECT_THAT(store->Load("debt")->records, SizeIs(kDebts));
}

}  // namespace
}  // namespace volumed
