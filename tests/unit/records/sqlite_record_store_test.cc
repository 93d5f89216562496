#include "records/sqlite_record_store.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "records/record_database.h"
#include "unit/records/fault_vfs.h"
#include "unit/records/sqlite_record_store_fixture.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

uint32_t ModeOf(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

TEST_F(SqliteRecordStoreTest, WhatWasPutIsThereAfterReopening) {
  {
    auto store = Open();
    EXPECT_TRUE(store->Put(kPodB, Durability::kProcess).ok());
    EXPECT_TRUE(store->Put(kPodA, Durability::kPowerLoss).ok());
    EXPECT_TRUE(store->Put(kDisk, Durability::kProcess).ok());
  }
  auto store = Open();
  auto pods = store->Load("pod");
  ASSERT_TRUE(pods.ok());
  EXPECT_THAT(pods->records, ElementsAre(kPodA, kPodB));
  EXPECT_THAT(pods->quarantined, IsEmpty());
  EXPECT_THAT(store->Load("disk")->records, ElementsAre(kDisk));
  EXPECT_THAT(store->Load("none")->records, IsEmpty());
}

TEST_F(SqliteRecordStoreTest, PutReplacesAndRemoveIsIdempotent) {
  auto store = Open();
  EXPECT_TRUE(store->Put(kPodA, Durability::kProcess).ok());
  Record changed = kPodA;
  changed.version = 2;
  changed.bytes = std::string(100'000, 'x');
  EXPECT_TRUE(store->Put(changed, Durability::kProcess).ok());
  EXPECT_THAT(store->Load("pod")->records, ElementsAre(changed));
  EXPECT_TRUE(store->Remove("pod", "a", Durability::kProcess).ok());
  EXPECT_TRUE(store->Remove("pod", "a", Durability::kPowerLoss).ok());
  EXPECT_THAT(store->Load("pod")->records, IsEmpty());

  const RecordStoreStats stats = store->stats();
  EXPECT_EQ(stats.puts, 2u);
  EXPECT_EQ(stats.removes, 2u);
  EXPECT_EQ(stats.commits, 4u);
  EXPECT_EQ(stats.failures, 0u);
}

TEST_F(SqliteRecordStoreTest, SeveralRowsShareACommitAndEachHasItsAnswer) {
  auto store = Open();
  ASSERT_TRUE(store->Put(kPodA, Durability::kProcess).ok());
  const std::vector<Status> written =
      store->Write({{kPodA, /*remove=*/true}, {{"", "k", 1, ""}}, {kPodB}}, Durability::kPowerLoss);
  ASSERT_THAT(written, SizeIs(3));
  EXPECT_TRUE(written[0].ok());
  EXPECT_EQ(written[1].error().code(), Code::kInvalidArgument);
  EXPECT_TRUE(written[2].ok());
  EXPECT_THAT(store->Load("pod")->records, ElementsAre(kPodB));
  EXPECT_EQ(store->stats().commits, 2u);
  store->Close();
  const std::vector<Status> late = store->Write({{kPodA}, {kPodB}}, Durability::kProcess);
  ASSERT_THAT(late, SizeIs(2));
  EXPECT_EQ(late[1].error().code(), Code::kUnavailable);
}

TEST_F(SqliteRecordStoreTest, RecordWithoutKindOrKeyIsRefused) {
  auto store = Open();
  EXPECT_EQ(store->Put({"", "k", 1, ""}, Durability::kProcess).error().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(store->Put({"k", "", 1, ""}, Durability::kProcess).error().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(store->stats().failures, 2u);
}

TEST_F(SqliteRecordStoreTest, OnlyRootMayLook) {
  auto store = Open();
  EXPECT_TRUE(store->Put(kPodA, Durability::kPowerLoss).ok());
  EXPECT_EQ(ModeOf(Directory()), 0700u);
  EXPECT_EQ(ModeOf(File()), 0600u);
  EXPECT_EQ(ModeOf(File() + "-wal"), 0600u);
  EXPECT_EQ(ModeOf(Directory() + "/records.ballast"), 0600u);
}

TEST_F(SqliteRecordStoreTest, WiderModesAreTightened) {
  { auto store = Open(); }
  ASSERT_EQ(chmod(Directory().c_str(), 0755), 0);
  ASSERT_EQ(chmod(File().c_str(), 0644), 0);
  auto store = Open();
  EXPECT_EQ(ModeOf(Directory()), 0700u);
  EXPECT_EQ(ModeOf(File()), 0600u);
}

TEST_F(SqliteRecordStoreTest, OnlyOneUserAtATime) {
  auto store = Open();
  const Error error = OpenError(Options());
  EXPECT_EQ(error.code(), Code::kFailedPrecondition);
  EXPECT_THAT(error.message(), HasSubstr("used by another process"));

  // The sqlite3 shell takes no directory lock, and is kept out all the same.
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(File().c_str(), &db), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(db, "SELECT * FROM records", nullptr, nullptr, nullptr), SQLITE_BUSY);
  sqlite3_close(db);
}

TEST_F(SqliteRecordStoreTest, ClosedStoreRefusesAndFreesTheFile) {
  auto store = Open();
  store->Close();
  store->Close();
  const Status status = store->Put(kPodA, Durability::kProcess);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Code::kUnavailable);
  EXPECT_FALSE(status.error().maybe_applied());
  EXPECT_FALSE(store->Load("pod").ok());
  EXPECT_NE(Open(), nullptr);
}

// ---- durability ---------------------------------------------------------------------------------

TEST_F(SqliteRecordStoreTest, OnlyPowerLossRecordsAreSynced) {
  FaultVfs vfs;
  SqliteRecordStoreOptions options = Options();
  options.vfs = vfs.name();
  auto store = Open(options);
  EXPECT_TRUE(store->Put(kPodA, Durability::kPowerLoss).ok());
  const int before = vfs.syncs;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(store->Put({"pod", std::to_string(i), 1, "x"}, Durability::kProcess).ok());
  }
  EXPECT_EQ(vfs.syncs, before);
  EXPECT_TRUE(store->Put(kPodB, Durability::kPowerLoss).ok());
  EXPECT_EQ(vfs.syncs, before + 1);
}

// The child tells after each Put what it was told; whatever arrived here must be in the file.
void PutUntilKilled(const SqliteRecordStoreOptions& options, int pipe_fd) {
  auto store = SqliteRecordStore::Open(options);
  if (!store.ok()) _exit(3);
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint32_t i = 0;; ++i) {
        const Durability durability = i % 16 == 0 ? Durability::kPowerLoss : Durability::kProcess;
        const Record record{"t" + std::to_string(thread), "key", i, std::string(200, 'x')};
        if (!(*store)->Put(record, durability).ok()) _exit(4);
        const uint32_t told[2] = {thread, i};
        if (write(pipe_fd, told, sizeof(told)) != sizeof(told)) _exit(5);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(SqliteRecordStoreTest, KilledInTheMiddleOfPutsItLosesNothingAcknowledged) {
  std::map<uint32_t, uint32_t> told;
  for (int round = 0; round < 5; ++round) {
    int fds[2];
    ASSERT_EQ(pipe(fds), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      close(fds[0]);
      PutUntilKilled(Options(), fds[1]);
      _exit(6);
    }
    close(fds[1]);
    uint32_t message[2];
    int count = 0;
    while (read(fds[0], message, sizeof(message)) == sizeof(message)) {
      told[message[0]] = message[1];
      if (++count == 500 + 137 * round) kill(child, SIGKILL);
    }
    close(fds[0]);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "child ended by itself: " << WEXITSTATUS(status);

    auto store = Open();
    ASSERT_NE(store, nullptr);
    for (const auto& [thread, last] : told) {
      auto loaded = store->Load("t" + std::to_string(thread));
      ASSERT_TRUE(loaded.ok());
      ASSERT_THAT(loaded->records, SizeIs(1));
      EXPECT_THAT(loaded->quarantined, IsEmpty());
      // The one after may have been made, and its caller not told.
      EXPECT_GE(loaded->records[0].version, last);
      EXPECT_LE(loaded->records[0].version, last + 1);
    }
    store->Close();
  }
}

TEST_F(SqliteRecordStoreTest, ConcurrentCallersShareCommits) {
  FaultVfs vfs;
  SqliteRecordStoreOptions options = Options();
  options.vfs = vfs.name();
  auto store = Open(options);
  constexpr int kThreads = 8;
  constexpr int kPuts = 100;
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kPuts; ++i) {
        const Record record{"k", std::to_string(t) + "-" + std::to_string(i), 1, "x"};
        if (!store->Put(record, Durability::kPowerLoss).ok()) ++failures;
        if (i % 10 == 0 && !store->Load("other").ok()) ++failures;
        if (i % 2 == 0 && !store->Remove("k", record.key, Durability::kProcess).ok()) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_THAT(store->Load("k")->records, SizeIs(kThreads * kPuts / 2));
  const RecordStoreStats stats = store->stats();
  EXPECT_EQ(stats.puts, uint64_t{kThreads * kPuts});
  EXPECT_LT(stats.commits, stats.puts + stats.removes);
}

TEST_F(SqliteRecordStoreTest, LogIsWrittenBackWhenItHasGrown) {
  auto store = Open();
  for (int i = 0; i < 3000; ++i) {
    ASSERT_TRUE(store->Put({"k", "same", 1, std::string(8000, 'x')}, Durability::kProcess).ok());
  }
  EXPECT_LT(std::filesystem::file_size(File() + "-wal"), 10u << 20);
}

// It would be cut off again and again, for as long as nobody writes.
TEST_F(SqliteRecordStoreTest, ALogIsWrittenBackOnceAfterTheLastChange) {
  RecordDatabaseOptions options;
  options.file.directory = Directory();
  const auto database = RecordDatabase::Open(options);
  ASSERT_TRUE(database.ok()) << database.error().ToString();
  EXPECT_TRUE((*database)->has_log()) << "the agent before it may have left one";
  (*database)->CheckpointWhenIdle();
  EXPECT_FALSE((*database)->has_log());
  RecordChange change;
  change.record = &kPodA;
  (*database)->Apply({&change}, Durability::kProcess);
  ASSERT_TRUE(change.status.ok()) << change.status.error().ToString();
  EXPECT_TRUE((*database)->has_log());
  (*database)->CheckpointWhenIdle();
  EXPECT_FALSE((*database)->has_log());
}

// ---- failures of the disk -----------------------------------------------------------------------

TEST_F(SqliteRecordStoreTest, FailedSyncIsRepairedAndNotApplied) {
  FaultVfs vfs;
  SqliteRecordStoreOptions options = Options();
  options.vfs = vfs.name();
  {
    auto store = Open(options);
    ASSERT_TRUE(store->Put(kPodA, Durability::kPowerLoss).ok());
    vfs.failing_syncs = 1;
    const Status status = store->Put(kPodB, Durability::kPowerLoss);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code(), Code::kUnavailable);
    EXPECT_FALSE(status.error().maybe_applied()) << status.error().ToString();
    EXPECT_EQ(std::filesystem::file_size(File() + "-wal"), 0u) << "the commit mark is cut off";
    EXPECT_TRUE(store->Put(kDisk, Durability::kPowerLoss).ok());
    EXPECT_THAT(store->Load("pod")->records, ElementsAre(kPodA));
  }
  auto store = Open();
  EXPECT_THAT(store->Load("pod")->records, ElementsAre(kPodA));
  EXPECT_THAT(store->Load("disk")->records, ElementsAre(kDisk));
}

TEST_F(SqliteRecordStoreTest, OutcomeIsMaybeAppliedOnlyWhileTheRepairFailsToo) {
  FaultVfs vfs;
  SqliteRecordStoreOptions options = Options();
  options.vfs = vfs.name();
  auto store = Open(options);
  ASSERT_TRUE(store->Put(kPodA, Durability::kPowerLoss).ok());
  vfs.failing_syncs = 1000;
  const Status first = store->Put(kPodB, Durability::kPowerLoss);
  ASSERT_FALSE(first.ok());
  EXPECT_TRUE(first.error().maybe_applied()) << first.error().ToString();
  // Nothing is tried on top of a doubtful log, not even what needs no sync.
  const Status second = store->Put(kDisk, Durability::kProcess);
  ASSERT_FALSE(second.ok());
  EXPECT_FALSE(second.error().maybe_applied());
  EXPECT_THAT(second.error().message(), HasSubstr("after a failed write"));
  vfs.failing_syncs = 0;
  EXPECT_TRUE(store->Put(kDisk, Durability::kProcess).ok());
  EXPECT_THAT(store->Load("pod")->records, ElementsAre(kPodA));
}

TEST_F(SqliteRecordStoreTest, FailingWritesChangeNothing) {
  FaultVfs vfs;
  SqliteRecordStoreOptions options = Options();
  options.vfs = vfs.name();
  auto store = Open(options);
  ASSERT_TRUE(store->Put(kPodA, Durability::kPowerLoss).ok());
  vfs.failing_writes = true;
  EXPECT_EQ(store->Put(kPodB, Durability::kProcess).error().code(), Code::kUnavailable);
  EXPECT_FALSE(store->Remove("pod", "a", Durability::kPowerLoss).ok());
  EXPECT_THAT(store->Load("pod")->records, ElementsAre(kPodA));
  vfs.failing_writes = false;
  EXPECT_TRUE(store->Put(kPodB, Durability::kProcess).ok());
  EXPECT_THAT(store->Load("pod")->records, ElementsAre(kPodA, kPodB));
}

TEST_F(SqliteRecordStoreTest, FullDiskSpendsTheBallastAndRefusesNewRowsOnly) {
  FaultVfs vfs;
  SqliteRecordStoreOptions options = Options();
  options.vfs = vfs.name();
  auto store = Open(options);
  ASSERT_TRUE(store->Put(kPodA, Durability::kProcess).ok());
  EXPECT_FALSE(store->on_ballast());
  vfs.no_space = true;
  const Status status = store->Put(kPodB, Durability::kProcess);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Code::kResourceExhausted);
  EXPECT_FALSE(status.error().maybe_applied());
  EXPECT_THAT(status.error().message(), HasSubstr("record pod/b is refused"));
  EXPECT_TRUE(store->on_ballast());
  EXPECT_EQ(std::filesystem::file_size(Directory() + "/records.ballast"), 0u);
  vfs.no_space = false;
  EXPECT_TRUE(store->Remove("pod", "a", Durability::kProcess).ok());
  EXPECT_FALSE(store->on_ballast()) << "there is room again";
  EXPECT_TRUE(store->Put(kPodB, Durability::kProcess).ok());
}

// The store waits for real: the test looks until it has noticed, or fails by its deadline.
TEST_F(SqliteRecordStoreTest, RoomThatHasComeBackIsNoticedThoughNobodyWrites) {
  FaultVfs vfs;
  SqliteRecordStoreOptions options = Options();
  options.vfs = vfs.name();
  auto store = Open(options);
  vfs.no_space = true;
  EXPECT_FALSE(store->Put(kPodB, Durability::kProcess).ok());
  ASSERT_TRUE(store->on_ballast());
  vfs.no_space = false;
  for (int i = 0; i < 6000 && store->on_ballast(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_FALSE(store->on_ballast());
}

}  // namespace
}  // namespace volumed
