// Records that are older than the world are noticed, on real files: a log that SQLite cut short in
// silence, a database or a number file that was lost or put back, another machine. A mere kill is
// none of these.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "records/number_file.h"
#include "unit/records/sqlite_record_store_fixture.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

namespace fs = std::filesystem;

// Source: sqlite.org/walformat.html.
constexpr size_t kLogHeader = 32;
constexpr size_t kFrame = 24 + 4096;

using Files = std::map<std::string, std::string>;  // name -> bytes

class RecordRecoveryTest : public SqliteRecordStoreTest {
 protected:
  static constexpr const char* kDatabase = "records/records.db";
  static constexpr const char* kLog = "records/records.db-wal";
  static constexpr const char* kNumber = "records.number";

  RecordRecoveryTest() {
    options_ = Options();
    options_.idle = std::chrono::hours(1);  // the log stays
    options_.place = {"machine-1", "uuid-1"};
    options_.now_unix_ms = 1000;
  }

  // All that the store keeps, as the next process would find it.
  Files Take() const {
    Files files;
    for (const auto& entry : fs::recursive_directory_iterator(temp_.path())) {
      if (!entry.is_regular_file() || entry.path().filename() == "records.ballast") continue;
      files[fs::relative(entry.path(), temp_.path()).string()] = ReadAll(entry.path());
    }
    return files;
  }
  void PutBack(const Files& files) const {
    fs::remove_all(temp_.path() + "/records");
    fs::remove(temp_.path() + "/records.number");
    fs::create_directory(temp_.path() + "/records");
    for (const auto& [name, bytes] : files) WriteAll(temp_.path() + "/" + name, bytes);
  }

  // An agent that does this and is killed.
  void KilledAfter(const std::function<void(SqliteRecordStore&)>& work) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto store = SqliteRecordStore::Open(options_);
      if (!store.ok()) _exit(1);
      work(**store);
      raise(SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << status;
  }
  static void PutSynced(SqliteRecordStore& store, int from, int to) {
    for (int i = from; i < to; ++i) {
      const Record record{"device", std::to_string(i), 1, std::string(100, 'x')};
      if (!store.Put(record, Durability::kPowerLoss).ok()) _exit(2);
    }
  }
  RecordsRecovery Start() { return Open(options_)->recovery(); }
  // The recovery of a start on these files; they are put back as they were before.
  RecordsRecovery StartOn(const Files& files) {
    PutBack(files);
    return Start();
  }
  size_t Rows() { return Open(options_)->Load("device")->records.size(); }

  SqliteRecordStoreOptions options_;
};

TEST_F(RecordRecoveryTest, ANewStoreAndAKilledOneStartNormally) {
  EXPECT_FALSE(Start().active);
  KilledAfter([](SqliteRecordStore& store) { PutSynced(store, 0, 5); });
  const RecordsRecovery recovery = Start();
  EXPECT_FALSE(recovery.active) << recovery.reason;
  EXPECT_EQ(recovery.number, 6u);  // the first start, and five
  EXPECT_EQ(Rows(), 5u);
}

TEST_F(RecordRecoveryTest, FramesBehindABadOneAreDroppedInSilenceAndThatIsNoticed) {
  KilledAfter([](SqliteRecordStore& store) { PutSynced(store, 0, 12); });
  const Files whole = Take();
  const size_t frames = (whole.at(kLog).size() - kLogHeader) / kFrame;
  ASSERT_GE(frames, 24u);
  size_t lost = 0;
  for (size_t frame = 0; frame < frames; ++frame) {
    Files damaged = whole;
    damaged[kLog][kLogHeader + frame * kFrame + kFrame / 2] ^= 0x10;
    const RecordsRecovery recovery = StartOn(damaged);
    EXPECT_TRUE(recovery.active) << "frame " << frame;
    // The start succeeded, and nothing else says that rows are missing.
    const auto store = Open(options_);
    EXPECT_THAT(store->Load("device")->quarantined, IsEmpty());
    lost += 12 - store->Load("device")->records.size();
  }
  EXPECT_GT(lost, frames);
}

TEST_F(RecordRecoveryTest, ALogThatIsCutOrMissingOrHasABadHeaderIsNoticed) {
  KilledAfter([](SqliteRecordStore& store) { PutSynced(store, 0, 5); });
  const Files whole = Take();
  for (size_t size = 0; size < whole.at(kLog).size(); size += kFrame / 3) {
    Files cut = whole;
    cut[kLog].resize(size);
    EXPECT_TRUE(StartOn(cut).active) << size;
  }
  Files without = whole;
  without.erase(kLog);
  const RecordsRecovery recovery = StartOn(without);
  EXPECT_TRUE(recovery.active);
  EXPECT_EQ(recovery.since_unix_ms, 1000);
  Files header = whole;
  header[kLog][9] ^= 1;
  EXPECT_TRUE(StartOn(header).active);
  EXPECT_FALSE(StartOn(whole).active);
}

TEST_F(RecordRecoveryTest, TheNumbersFileMissingDamagedOrOfOtherRecordsIsNoticed) {
  KilledAfter([](SqliteRecordStore& store) { PutSynced(store, 0, 5); });
  const Files whole = Take();
  Files changed = whole;
  changed.erase(kNumber);
  EXPECT_THAT(StartOn(changed).reason, HasSubstr("is missing"));
  for (const size_t size : {0, 50, 100}) {
    changed = whole;
    changed[kNumber].resize(size);
    EXPECT_THAT(StartOn(changed).reason, HasSubstr("is damaged")) << size;
  }
  changed = whole;
  changed[kNumber][30] ^= 1;
  changed[kNumber][4096 + 100] ^= 1;
  EXPECT_THAT(StartOn(changed).reason, HasSubstr("is damaged"));

  Files other;
  {
    fs::remove_all(temp_.path() + "/records");
    fs::remove(temp_.path() + "/records.number");
    KilledAfter([](SqliteRecordStore& store) { PutSynced(store, 0, 2); });
    other = Take();
  }
  changed = whole;
  changed[kNumber] = other.at(kNumber);
  EXPECT_THAT(StartOn(changed).reason, HasSubstr("of other records"));
}

TEST_F(RecordRecoveryTest, EachBitOfOneSlotMayBeWrong) {
  KilledAfter([](SqliteRecordStore& store) { PutSynced(store, 0, 5); });
  const Files whole = Take();
  for (const size_t slot : {0, 4096}) {
    for (size_t byte = 0; byte < 128; byte += 3) {
      Files changed = whole;
      changed[kNumber][slot + byte] ^= 2;
      const RecordsRecovery recovery = StartOn(changed);
      EXPECT_FALSE(recovery.active) << slot + byte << ": " << recovery.reason;
    }
  }
}

// A power cut may take what was in the page cache alone.
TEST_F(RecordRecoveryTest, ANumbersFileThatIsOlderThanTheDatabaseMeansNothing) {
  KilledAfter([](SqliteRecordStore& store) { PutSynced(store, 0, 1); });
  const Files before = Take();
  KilledAfter([](SqliteRecordStore& store) { PutSynced(store, 1, 5); });
  Files after = Take();
  after[kNumber] = before.at(kNumber);
  const RecordsRecovery recovery = StartOn(after);
  EXPECT_FALSE(recovery.active) << recovery.reason;
  EXPECT_EQ(Rows(), 5u);
  // And the file has caught up.
  EXPECT_NE(Take().at(kNumber), before.at(kNumber));
}

TEST_F(RecordRecoveryTest, AnOlderDatabaseIsNoticedAndAnImageOfItsWholeDiskIsNot) {
  KilledAfter([](SqliteRecordStore& store) { PutSynced(store, 0, 2); });
  const Files older = Take();
  KilledAfter([](SqliteRecordStore& store) { PutSynced(store, 2, 5); });
  Files restored = older;
  restored[kNumber] = Take().at(kNumber);
  const RecordsRecovery recovery = StartOn(restored);
  EXPECT_TRUE(recovery.active);
  EXPECT_THAT(recovery.reason, HasSubstr("they end with transaction 3"));
  EXPECT_EQ(Rows(), 2u);
  // The number of the older database has come along: the laws of storage alone must hold here.
  EXPECT_FALSE(StartOn(older).active);
}

TEST_F(RecordRecoveryTest, RecordsThatWereMovedAwayAreMissed) {
  KilledAfter([](SqliteRecordStore& store) { PutSynced(store, 0, 2); });
  fs::remove_all(temp_.path() + "/records");
  const RecordsRecovery recovery = Start();
  EXPECT_THAT(recovery.reason, HasSubstr("they have no number"));
  EXPECT_TRUE(Start().active);
}

// A root that lost both was taken for a new one: disks were formatted and nobody was asked.
TEST_F(RecordRecoveryTest, RecordsThatAreGoneWithTheirNumberAreMissedIfTheRootWasUsed) {
  EXPECT_FALSE(Start().active) << "a new root";
  const auto lose_all = [&] {
    fs::remove_all(temp_.path() + "/records");
    fs::remove(temp_.path() + "/records.number");
  };
  lose_all();
  options_.sign_of_use = "/root/pods";
  EXPECT_THAT(Start().reason, HasSubstr("there are none, and /root/pods is of an agent"));
  EXPECT_TRUE(Start().active) << "until somebody accepts it";
  ASSERT_TRUE(Open(options_)->AcceptRecords(std::nullopt).ok());
  EXPECT_FALSE(Start().active);
  // The agent was killed before it had written why.
  lose_all();
  options_.sign_of_use = "";
  KilledAfter([](SqliteRecordStore&) {});
  Files begun = Take();
  begun.erase(kLog);
  begun.erase(kNumber);
  options_.sign_of_use = "/root/pods";
  EXPECT_TRUE(StartOn(begun).active);
}

TEST_F(RecordRecoveryTest, AnotherMachineOrAnotherRootIsNoticedAndWhatIsNotKnownIsNotCompared) {
  KilledAfter([](SqliteRecordStore& store) { PutSynced(store, 0, 2); });
  const Files whole = Take();
  options_.place = {"machine-2", "uuid-1"};
  EXPECT_THAT(StartOn(whole).reason, HasSubstr("machine-id machine-1, and this one has machine-2"));
  options_.place = {"machine-1", "uuid-2"};
  EXPECT_THAT(StartOn(whole).reason, HasSubstr("UUID uuid-1, and this one is on uuid-2"));
  options_.place = {"", ""};
  EXPECT_FALSE(StartOn(whole).active);
  EXPECT_EQ(Start().not_compared, "machine-id, UUID of the root's filesystem");
  // What was known once stays on record.
  options_.place = {"machine-2", ""};
  EXPECT_TRUE(Start().active);
}

// Two agents had one root and its copy, each with the same claims, and one emptied what the other's
// pods used; a root that was put back from a copy with its number started as if nothing were lost.
TEST_F(RecordRecoveryTest, ACopyOfTheRecordsDirectoryIsNoticedThoughItsNumberIsThere) {
  KilledAfter([](SqliteRecordStore& store) { PutSynced(store, 0, 2); });
  const Files older = Take();
  options_.place.directory = "inode 1";
  EXPECT_FALSE(StartOn(older).active) << "one of before has none on record";
  const Files whole = Take();
  EXPECT_FALSE(StartOn(whole).active);
  options_.place.directory = "inode 2";
  EXPECT_THAT(StartOn(whole).reason,
              HasSubstr("their directory is a copy: they were written in the one with inode 1, and "
                        "this one has inode 2"));
  { ASSERT_TRUE(Open(options_)->AcceptRecords(std::nullopt).ok()); }
  EXPECT_FALSE(Start().active);
  options_.place.directory = "";
  EXPECT_FALSE(Start().active) << "what is not known is not compared";
}

// Who compared it would have it on record, and take each boot for another machine.
TEST_F(RecordRecoveryTest, TheBootIdIsNowhereOnRecord) {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot_id;
  file >> boot_id;
  ASSERT_FALSE(boot_id.empty());
  KilledAfter([](SqliteRecordStore& store) { PutSynced(store, 0, 2); });
  for (const auto& [name, bytes] : Take()) {
    EXPECT_EQ(bytes.find(boot_id), std::string::npos) << name;
  }
}

TEST_F(RecordRecoveryTest, WhatGetsKnownLaterIsComparedFromThenOn) {
  options_.place = {"", ""};
  KilledAfter([](SqliteRecordStore& store) { PutSynced(store, 0, 2); });
  options_.place = {"machine-1", "uuid-1"};
  EXPECT_FALSE(Start().active);
  options_.place = {"machine-2", "uuid-1"};
  EXPECT_TRUE(Start().active);
}

TEST_F(RecordRecoveryTest, ARecoveryLastsWhicheverOfItsWritesWereMade) {
  KilledAfter([](SqliteRecordStore& store) { PutSynced(store, 0, 5); });
  Files without_log = Take();
  without_log.erase(kLog);
  PutBack(without_log);
  KilledAfter([](SqliteRecordStore&) {});  // it notices
  const Files noticed = Take();
  for (const bool database : {false, true}) {
    for (const bool number : {false, true}) {
      Files mixed = database ? noticed : without_log;
      mixed[kNumber] = (number ? noticed : without_log).at(kNumber);
      PutBack(mixed);
      options_.now_unix_ms = 2000;
      const RecordsRecovery recovery = Start();
      EXPECT_TRUE(recovery.active) << database << number;
      EXPECT_EQ(recovery.since_unix_ms, database ? 1000 : 2000);
      // And whatever is written then.
      KilledAfter([](SqliteRecordStore& store) { PutSynced(store, 5, 9); });
      EXPECT_TRUE(Start().active) << database << number;
    }
  }
}

TEST_F(RecordRecoveryTest, ARecoveryLastsThoughItsCauseHasGone) {
  KilledAfter([](SqliteRecordStore& store) { PutSynced(store, 0, 2); });
  options_.place.machine_id = "machine-2";
  EXPECT_TRUE(Start().active);
  options_.place.machine_id = "machine-1";
  options_.now_unix_ms = 2000;
  const RecordsRecovery recovery = Start();
  EXPECT_TRUE(recovery.active);
  EXPECT_EQ(recovery.since_unix_ms, 1000);
  EXPECT_THAT(recovery.reason, HasSubstr("and this one has machine-2"));
}

TEST_F(RecordRecoveryTest, AcceptingEndsItForGoodOnceTheDatabaseSaysSo) {
  KilledAfter([](SqliteRecordStore& store) { PutSynced(store, 0, 5); });
  options_.place = {"machine-2", "uuid-2"};
  KilledAfter([](SqliteRecordStore&) {});
  const Files before = Take();
  KilledAfter([](SqliteRecordStore& store) {
    if (!store.AcceptRecords(std::nullopt).ok() || store.recovery().active) _exit(3);
  });
  const Files after = Take();
  EXPECT_FALSE(StartOn(after).active);
  EXPECT_FALSE(Start().active);
  Files mixed = after;
  mixed[kNumber] = before.at(kNumber);
  EXPECT_FALSE(StartOn(mixed).active);
  // The word was lost with the log's tail.
  mixed = before;
  mixed[kNumber] = after.at(kNumber);
  EXPECT_TRUE(StartOn(mixed).active);
  // The records are of the machine that they were accepted on.
  PutBack(after);
  options_.place = {"machine-1", "uuid-1"};
  EXPECT_TRUE(Start().active);
}

TEST_F(RecordRecoveryTest, OneVolumeIsAcceptedOverRestarts) {
  KilledAfter([](SqliteRecordStore& store) { PutSynced(store, 0, 5); });
  options_.place.machine_id = "machine-2";
  KilledAfter([](SqliteRecordStore& store) {
    if (!store.AcceptRecords("pv-1").ok() || !store.AcceptRecords("pv-2").ok()) _exit(3);
  });
  auto store = Open(options_);
  EXPECT_TRUE(store->recovery().active);
  EXPECT_THAT(store->recovery().accepted, ElementsAre("pv-1", "pv-2"));
  EXPECT_EQ(store->AcceptRecords("a\nb").error().code(), Code::kInvalidArgument);
  ASSERT_TRUE(store->AcceptRecords(std::nullopt).ok());
  EXPECT_FALSE(store->recovery().active);
  EXPECT_THAT(store->recovery().accepted, IsEmpty());
}

TEST_F(RecordRecoveryTest, AcceptingWithoutARecoveryWritesNothing) {
  auto store = Open(options_);
  const uint64_t number = store->recovery().number;
  EXPECT_TRUE(store->AcceptRecords(std::nullopt).ok());
  EXPECT_TRUE(store->AcceptRecords("pv-1").ok());
  EXPECT_EQ(store->recovery().number, number);
  EXPECT_THAT(store->recovery().accepted, IsEmpty());
}

TEST_F(RecordRecoveryTest, ADamagedRowOfTheNumberIsNoticed) {
  { auto store = Open(options_); }
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(File().c_str(), &db), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(db, "UPDATE numbering SET number=number+7", nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(db);
  EXPECT_THAT(Start().reason, HasSubstr("the row with their number is damaged"));
}

TEST_F(RecordRecoveryTest, OnlySyncedTransactionsAreNumbered) {
  auto store = Open(options_);
  const uint64_t before = store->recovery().number;
  ASSERT_TRUE(store->Put(kPodA, Durability::kProcess).ok());
  EXPECT_EQ(store->recovery().number, before);
  ASSERT_TRUE(store->Put(kPodB, Durability::kPowerLoss).ok());
  EXPECT_EQ(store->recovery().number, before + 1);
}

TEST_F(RecordRecoveryTest, WhatIsNotNumberedDoesNotWriteTheNumbersFile) {
  const std::string file = temp_.path() + "/" + kNumber;
  auto store = Open(options_);
  ASSERT_TRUE(store->Put(kPodB, Durability::kPowerLoss).ok());
  ASSERT_TRUE(fs::exists(file));
  WriteAll(file, "not written since");
  ASSERT_TRUE(store->Put(kPodA, Durability::kProcess).ok());
  EXPECT_EQ(ReadAll(file), "not written since");
  ASSERT_TRUE(store->Put(kPodA, Durability::kPowerLoss).ok());
  EXPECT_NE(ReadAll(file), "not written since");
}

// The store waits for real: the test looks until the log is gone, or fails by its deadline.
TEST_F(RecordRecoveryTest, AnIdleStoreHasNoLogToLose) {
  const auto log_is_empty = [this] {
    for (int i = 0; i < 1000; ++i) {
      std::error_code error;
      if (fs::file_size(File() + "-wal", error) == 0 || error) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  };
  KilledAfter([](SqliteRecordStore& store) { PutSynced(store, 0, 5); });
  ASSERT_GT(fs::file_size(File() + "-wal"), 0u);
  options_.idle = std::chrono::milliseconds(20);
  auto store = Open(options_);
  EXPECT_TRUE(log_is_empty()) << "the log of the agent before it";
  for (const Durability durability : {Durability::kProcess, Durability::kPowerLoss}) {
    ASSERT_TRUE(store->Put(kPodA, durability).ok());
    EXPECT_TRUE(log_is_empty());
  }
  store.reset();
  EXPECT_FALSE(Start().active);
}

// A mix of changes, a byte into the pipe before each, until the process is killed.
[[noreturn]] void ChangeUntilKilled(const SqliteRecordStoreOptions& options, int fd) {
  auto store = SqliteRecordStore::Open(options);
  if (!store.ok() || (*store)->recovery().active) _exit(1);
  for (int i = 0;; ++i) {
    const Record record{"device", std::to_string(i % 40), 1, std::string(300, 'y')};
    const auto durability = i % 3 == 0 ? Durability::kProcess : Durability::kPowerLoss;
    if (write(fd, "x", 1) != 1) _exit(2);
    if (i % 5 == 4) static_cast<void>((*store)->Remove("device", record.key, durability));
    static_cast<void>((*store)->Put(record, durability));
  }
}

TEST_F(RecordRecoveryTest, TwoHundredAndFiftyKillsAreNeverARecovery) {
  std::mt19937 random(7);
  for (int round = 0; round < 250; ++round) {
    options_.idle = std::chrono::milliseconds(round % 3 == 0 ? 1 : 3'600'000);
    int fds[2];
    ASSERT_EQ(pipe(fds), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) ChangeUntilKilled(options_, fds[1]);
    close(fds[1]);
    char byte = 0;
    for (auto changes = random() % 30; changes > 0 && read(fds[0], &byte, 1) == 1; --changes) {
    }
    // Anywhere in a change, in the start, or in a checkpoint.
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
    kill(child, SIGKILL);
    close(fds[0]);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "round " << round << ": exit " << WEXITSTATUS(status);
  }
  const RecordsRecovery recovery = Start();
  EXPECT_FALSE(recovery.active) << recovery.reason;
  EXPECT_GT(recovery.number, 1000u);
}

// ---- other releases -----------------------------------------------------------------------------

// The schema of the release without numbers, in its own words.
constexpr const char* kFormerSchema =
    "CREATE TABLE records(kind TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL,"
    " bytes BLOB NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY(kind, key))"
    " STRICT, WITHOUT ROWID;"
    "CREATE TABLE quarantine(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, key TEXT NOT NULL,"
    " version INTEGER NOT NULL, bytes BLOB NOT NULL, checksum INTEGER NOT NULL,"
    " reason TEXT NOT NULL) STRICT;"
    "PRAGMA application_id=1448232259;"
    "PRAGMA user_version=1;"
    "PRAGMA journal_mode=WAL;";
constexpr int64_t kFormerVersion = 1;

TEST_F(RecordRecoveryTest, RecordsOfTheReleaseWithoutNumbersGetOne) {
  fs::create_directory(Directory());
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(File().c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, kFormerSchema, nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
  auto store = Open(options_);
  EXPECT_FALSE(store->recovery().active) << store->recovery().reason;
  EXPECT_EQ(store->recovery().number, 1u);
  EXPECT_TRUE(store->Put(kPodA, Durability::kPowerLoss).ok());
  store.reset();
  EXPECT_FALSE(Start().active);
  // Put back from a copy that was made before the upgrade, it is older than what was recorded
  // since.
  const std::string number = ReadAll(temp_.path() + "/records.number");
  fs::remove_all(Directory());
  fs::create_directory(Directory());
  ASSERT_EQ(sqlite3_open(File().c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, kFormerSchema, nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
  EXPECT_TRUE(Start().active);
}

TEST_F(RecordRecoveryTest, AnUpgradeThatWasKilledIsFinished) {
  KilledAfter([](SqliteRecordStore&) {});
  const Files numbered = Take();
  // The file is made before the database gets its number.
  Files half = numbered;
  half.erase(kLog);  // with the number, and with the table for it
  EXPECT_TRUE(StartOn(half).active) << "a number that was there is missed";
  NumberFile file(temp_.path() + "/" + kNumber);
  ASSERT_TRUE(file.Make({"some-records", 0}).ok());
  half[kNumber] = ReadAll(file.path());
  EXPECT_FALSE(StartOn(half).active);
}

// What the former release does with the file, in its own order: the number of its schema is the
// first thing that it reads after the application's.
TEST_F(RecordRecoveryTest, TheReleaseWithoutTheseLawsRefusesTheRecords) {
  { auto store = Open(options_); }
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(File().c_str(), &db), SQLITE_OK);
  sqlite3_stmt* version = nullptr;
  ASSERT_EQ(sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &version, nullptr), SQLITE_OK);
  ASSERT_EQ(sqlite3_step(version), SQLITE_ROW);
  const int64_t found = sqlite3_column_int64(version, 0);
  sqlite3_finalize(version);
  sqlite3_close(db);
  const bool former_release_starts = !(found > kFormerVersion || found < 1);
  EXPECT_FALSE(former_release_starts) << found;
}

}  // namespace
}  // namespace volumed
