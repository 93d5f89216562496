// What a store refuses to open, and what it sets aside and goes on without.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "unit/records/fault_vfs.h"
#include "unit/records/sqlite_record_store_fixture.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// Changes the file behind the store's back.
void Edit(const std::string& path, const std::string& sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  char* message = nullptr;
  EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &message), SQLITE_OK) << message;
  sqlite3_close(db);
}

class RecordStoreDamageTest : public SqliteRecordStoreTest {
 protected:
  // The store of an agent that starts while the disk is full.
  std::unique_ptr<SqliteRecordStore> OpenWithoutRoom(FaultVfs& vfs) {
    vfs.no_space = true;
    SqliteRecordStoreOptions options = Options();
    options.vfs = vfs.name();
    return Open(options);
  }
};

TEST_F(RecordStoreDamageTest, DamagedRowIsSetAsideAndStaysReported) {
  {
    auto store = Open();
    ASSERT_TRUE(store->Put(kPodA, Durability::kProcess).ok());
    ASSERT_TRUE(store->Put(kPodB, Durability::kProcess).ok());
    ASSERT_TRUE(store->Put({"pod", "c", 1, "c"}, Durability::kProcess).ok());
  }
  Edit(File(),
       "UPDATE records SET bytes=x'00' WHERE key='a';"
       "UPDATE records SET version=version+1 WHERE key='c';");
  for (int run = 0; run < 2; ++run) {
    auto store = Open();
    auto loaded = store->Load("pod");
    ASSERT_TRUE(loaded.ok());
    EXPECT_THAT(loaded->records, ElementsAre(kPodB));
    ASSERT_THAT(loaded->quarantined, SizeIs(2));
    EXPECT_EQ(loaded->quarantined[0].key, "a");
    EXPECT_EQ(loaded->quarantined[1].key, "c");
    EXPECT_EQ(loaded->quarantined[0].reason, "its checksum is wrong");
    EXPECT_EQ(store->stats().quarantined, 2u);
    EXPECT_THAT(store->Load("disk")->quarantined, IsEmpty());

    const Status put = store->Put(kPodA, Durability::kProcess);
    ASSERT_FALSE(put.ok());
    EXPECT_EQ(put.error().code(), Code::kFailedPrecondition);
    EXPECT_TRUE(store->Remove("pod", "a", Durability::kProcess).ok());
  }
  // Nothing of the bad row is lost: a human may still read it.
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(File().c_str(), &db), SQLITE_OK);
  sqlite3_stmt* count = nullptr;
  sqlite3_prepare_v2(db, "SELECT count(*) FROM quarantine WHERE bytes IN (x'00', x'63')", -1,
                     &count, nullptr);
  EXPECT_EQ(sqlite3_step(count), SQLITE_ROW);
  EXPECT_EQ(sqlite3_column_int(count, 0), 2);
  sqlite3_finalize(count);
  sqlite3_close(db);
}

TEST_F(RecordStoreDamageTest, AChangeThatTheDatabaseRefusesIsNotSaidToBeRecorded) {
  {
    auto store = Open();
    ASSERT_TRUE(store->Put(kPodA, Durability::kPowerLoss).ok());
  }
  Edit(File(),
       "CREATE TRIGGER refuse BEFORE INSERT ON records WHEN NEW.key='b'"
       " BEGIN SELECT RAISE(ABORT, 'not this one'); END;");
  auto store = Open();
  ASSERT_NE(store, nullptr);
  const Status refused = store->Put(kPodB, Durability::kPowerLoss);
  ASSERT_FALSE(refused.ok());
  EXPECT_FALSE(refused.error().maybe_applied());
  EXPECT_THAT(store->Load("pod")->records, ElementsAre(kPodA));
  EXPECT_TRUE(store->Put(kDisk, Durability::kPowerLoss).ok()) << "the next one is recorded";
}

// A damaged row counted as none: what it protected was emptied with what lay around it.
TEST_F(RecordStoreDamageTest, IrreversibleStepsWaitWhileADamagedRowHasNotBeenAccepted) {
  {
    auto store = Open();
    ASSERT_TRUE(store->Put(kPodA, Durability::kPowerLoss).ok());
    ASSERT_TRUE(store->Put({"claim", "a", 1, "c"}, Durability::kPowerLoss).ok());
    EXPECT_FALSE(store->recovery().active);
    EXPECT_FALSE(store->recovery().has_damage);
  }
  Edit(File(), "UPDATE records SET bytes=x'00';");
  SqliteRecordStoreOptions options = Options();
  options.expendable_kinds = {"pod"};
  for (int run = 0; run < 2; ++run) {
    auto store = Open(options);
    ASSERT_TRUE(store->recovery().active) << run;
    EXPECT_TRUE(store->recovery().has_damage) << run;
    EXPECT_THAT(store->recovery().reason,
                HasSubstr("the record pod \"a\" cannot be read: its checksum is wrong"));
    EXPECT_THAT(store->recovery().reason, HasSubstr("the record claim \"a\" cannot be read"));
    ASSERT_TRUE(store->AcceptRecords("pv-1").ok());
    EXPECT_TRUE(store->recovery().active) << "of one volume alone";
  }
  {
    auto store = Open(options);
    ASSERT_TRUE(store->AcceptRecords(std::nullopt).ok());
    EXPECT_TRUE(store->recovery().active) << "what is not expendable is kept";
    EXPECT_THAT(store->recovery().reason, Not(HasSubstr("record pod")));
    EXPECT_THAT(store->recovery().kept_damage, ElementsAre("a"));
  }
  auto store = Open(options);
  EXPECT_TRUE(store->recovery().active);
  // What is expendable counts as never written from the next start on; the rest is to be repaired.
  EXPECT_THAT(store->Load("pod")->quarantined, IsEmpty());
  EXPECT_TRUE(store->Put(kPodA, Durability::kProcess).ok());
  EXPECT_THAT(store->Load("claim")->quarantined, SizeIs(1));
  EXPECT_FALSE(store->Put({"claim", "a", 1, "c"}, Durability::kProcess).ok());
  // Or given up by a word about its volume.
  ASSERT_TRUE(store->AcceptRecords("a").ok());
  EXPECT_THAT(store->recovery().kept_damage, IsEmpty());
  ASSERT_TRUE(store->AcceptRecords(std::nullopt).ok());
  EXPECT_FALSE(store->recovery().active);
  store.reset();
  store = Open(options);
  EXPECT_FALSE(store->recovery().active);
  EXPECT_THAT(store->Load("claim")->quarantined, IsEmpty());
  EXPECT_TRUE(store->Put({"claim", "a", 1, "c"}, Durability::kProcess).ok());
}

// No answer that named such a row could be read by volumectl, and no word could give the row up.
TEST_F(RecordStoreDamageTest, ADamagedKeyThatIsNoTextIsShownAndGivenUpAsText) {
  ASSERT_TRUE(Open()->Put({"claim", "a", 1, "c"}, Durability::kPowerLoss).ok());
  Edit(File(), "UPDATE records SET key=CAST(x'e1' AS TEXT);");
  SqliteRecordStoreOptions options = Options();
  options.expendable_kinds = {"pod"};
  const auto store = Open(options);
  EXPECT_THAT(store->recovery().reason, HasSubstr("the record claim \"\\xe1\" cannot be read"));
  EXPECT_THAT(store->recovery().kept_damage, ElementsAre("\\xe1"));
  ASSERT_TRUE(store->AcceptRecords("\\xe1").ok());
  EXPECT_THAT(store->recovery().kept_damage, IsEmpty());
}

// A row of a newer program was whole for the store: it was written over, no irreversible step
// waited, and `records accept` said that the records are in order.
TEST_F(RecordStoreDamageTest, ARowThatItsOwnerCannotDecodeIsDamagedAndStaysForANewerProgram) {
  const Record claim{"claim", "a", 9, "new"};
  SqliteRecordStoreOptions options = Options();
  options.expendable_kinds = {"pod"};
  {
    auto store = Open(options);
    for (const Record& row : {kPodA, kPodB, claim}) {
      ASSERT_TRUE(store->Put(row, Durability::kPowerLoss).ok());
    }
  }
  const std::vector<QuarantinedRecord> refused = {{"pod", "a", "has version 9"},
                                                  {"claim", "a", "has version 9"}};
  for (int run = 0; run < 2; ++run) {
    auto store = Open(options);
    ASSERT_TRUE(store->QuarantineInPlace(refused).ok());
    EXPECT_TRUE(store->recovery().active);
    EXPECT_TRUE(store->recovery().has_damage);
    EXPECT_THAT(store->recovery().reason,
                HasSubstr("the record pod \"a\" cannot be read: has version 9"));
    EXPECT_THAT(store->recovery().kept_damage, ElementsAre("a"));
    EXPECT_EQ(store->stats().quarantined, 2u);
    EXPECT_THAT(store->Load("pod")->records, ElementsAre(kPodB));
    ASSERT_THAT(store->Load("pod")->quarantined, SizeIs(1));
    EXPECT_EQ(store->Load("pod")->quarantined[0].reason, "has version 9");
    EXPECT_FALSE(store->Put(kPodA, Durability::kProcess).ok());
    EXPECT_TRUE(store->Remove("pod", "a", Durability::kProcess).ok());
  }
  {
    auto store = Open(options);
    EXPECT_THAT(store->Load("pod")->records, ElementsAre(kPodA, kPodB)) << "as a newer program";
    EXPECT_FALSE(store->recovery().has_damage);
    EXPECT_TRUE(store->recovery().active) << "this one has worked without knowing them";
    ASSERT_TRUE(store->QuarantineInPlace(refused).ok());
    ASSERT_TRUE(store->AcceptRecords(std::nullopt).ok());
    EXPECT_TRUE(store->recovery().active) << "what is not expendable is kept";
    EXPECT_THAT(store->recovery().reason, Not(HasSubstr("record pod")));
    EXPECT_FALSE(store->Put(kPodA, Durability::kProcess).ok()) << "before the next start";
  }
  {
    auto store = Open(options);
    EXPECT_THAT(store->Load("pod")->records, ElementsAre(kPodB));
    EXPECT_THAT(store->Load("pod")->quarantined, IsEmpty());
    EXPECT_TRUE(store->Put(kPodA, Durability::kProcess).ok());
    EXPECT_THAT(store->Load("claim")->records, ElementsAre(claim));
    ASSERT_TRUE(store->QuarantineInPlace({refused[1]}).ok());
    ASSERT_TRUE(store->AcceptRecords("a").ok());
    ASSERT_TRUE(store->AcceptRecords(std::nullopt).ok());
    EXPECT_FALSE(store->recovery().active);
  }
  auto store = Open(options);
  EXPECT_FALSE(store->recovery().active) << store->recovery().reason;
  EXPECT_THAT(store->Load("claim")->records, IsEmpty());
  EXPECT_THAT(store->Load("pod")->records, ElementsAre(kPodA, kPodB));
}

// A damaged row of what a driver says of itself kept the driver from being used until the records
// were accepted and the agent started anew.
TEST_F(RecordStoreDamageTest, ADamagedRowThatItsOwnerHearsAnewIsWrittenOverAndStaysAside) {
  const Record driver{"driver", "d", 1, "one"};
  {
    auto store = Open();
    ASSERT_TRUE(store->Put(driver, Durability::kPowerLoss).ok());
    ASSERT_TRUE(store->Put(kPodA, Durability::kPowerLoss).ok());
  }
  Edit(File(), "UPDATE records SET bytes=x'00';");
  SqliteRecordStoreOptions options = Options();
  options.expendable_kinds = {"driver", "pod"};
  options.renewed_kinds = {"driver"};
  {
    auto store = Open(options);
    EXPECT_THAT(store->Load("driver")->quarantined, SizeIs(1));
    EXPECT_FALSE(store->Put(kPodA, Durability::kPowerLoss).ok()) << "of another kind";
    ASSERT_TRUE(store->Put(driver, Durability::kPowerLoss).ok());
    EXPECT_THAT(store->Load("driver")->records, ElementsAre(driver));
    EXPECT_THAT(store->Load("driver")->quarantined, IsEmpty());
    EXPECT_TRUE(store->recovery().active) << "until a person has seen it";
    EXPECT_TRUE(store->Put({"driver", "d", 1, "two"}, Durability::kPowerLoss).ok());
  }
  {
    auto store = Open(options);
    EXPECT_THAT(store->Load("driver")->records, ElementsAre(Record{"driver", "d", 1, "two"}));
    EXPECT_THAT(store->Load("driver")->quarantined, IsEmpty());
    // So is a row that is whole, and that a newer program wrote.
    ASSERT_TRUE(store->QuarantineInPlace({{"driver", "d", "has version 9"}}).ok());
    ASSERT_TRUE(store->Put(driver, Durability::kPowerLoss).ok());
    ASSERT_TRUE(store->AcceptRecords(std::nullopt).ok());
    EXPECT_FALSE(store->recovery().active) << store->recovery().reason;
  }
  auto store = Open(options);
  EXPECT_FALSE(store->recovery().active) << store->recovery().reason;
  EXPECT_THAT(store->Load("driver")->records, ElementsAre(driver));
}

// A row that could not be set aside is not in the count of rows: its successor has to be.
TEST_F(RecordStoreDamageTest, ADamagedRowThatWasNeverSetAsideIsWrittenOverAndCountedOnce) {
  const Record driver{"driver", "d", 1, "one"};
  {
    auto store = Open();
    ASSERT_TRUE(store->Put(driver, Durability::kPowerLoss).ok());
  }
  Edit(File(), "UPDATE records SET bytes=x'00';");
  {
    FaultVfs vfs;
    vfs.no_space = true;
    SqliteRecordStoreOptions options = Options();
    options.renewed_kinds = {"driver"};
    options.vfs = vfs.name();
    auto store = Open(options);
    vfs.no_space = false;
    for (int i = 0; i < 2; ++i) {
      const Status put = store->Put(driver, Durability::kPowerLoss);
      ASSERT_TRUE(put.ok()) << put.error().ToString();
    }
  }
  SqliteRecordStoreOptions options = Options();
  options.expendable_kinds = {"driver"};
  auto store = Open(options);
  EXPECT_THAT(store->Load("driver")->records, ElementsAre(driver));
  EXPECT_THAT(store->Load(kLostRowsRecordKind)->quarantined, IsEmpty());
}

// A page of the database that was written over with another one took all bindings of claims along,
// without an error, and a volume with one's data was given to the next claim.
TEST_F(RecordStoreDamageTest, RowsThatAreGoneOrOlderWithoutAnErrorAreNoticed) {
  const std::string gone = "DELETE FROM records WHERE key='b'";
  const std::string older =
      "UPDATE records SET (version,bytes,checksum)=(SELECT version,bytes,"
      "checksum FROM older)";
  const std::pair<std::string, std::string> cases[] = {
      {gone, "2 rows were written, and 1 are there"},
      {older, "some of the rows are not those that were written"},
      {"DELETE FROM tally", "the count of the rows is gone"},
      {"UPDATE tally SET rows=1", "the count of the rows is damaged"},
  };
  SqliteRecordStoreOptions options = Options();
  options.expendable_kinds = {kLostRowsRecordKind};
  for (const auto& [damage, reason] : cases) {
    std::filesystem::remove_all(Directory());
    std::filesystem::remove(Directory() + ".number");
    {
      auto store = Open(options);
      ASSERT_TRUE(store->Put({"pod", "a", 1, "before"}, Durability::kPowerLoss).ok());
    }
    Edit(File(), "CREATE TABLE older AS SELECT * FROM records WHERE key='a'");
    {
      auto store = Open(options);
      EXPECT_FALSE(store->recovery().active) << store->recovery().reason;
      ASSERT_TRUE(store->Put(kPodA, Durability::kPowerLoss).ok());
      ASSERT_TRUE(store->Put(kPodB, Durability::kProcess).ok());
      ASSERT_TRUE(store->Put({"pod", "c", 1, ""}, Durability::kProcess).ok());
      ASSERT_TRUE(store->Remove("pod", "c", Durability::kProcess).ok());
    }
    { EXPECT_FALSE(Open(options)->recovery().active); }
    Edit(File(), damage + (damage == older ? " WHERE key='a'" : ""));
    for (int run = 0; run < 2; ++run) {
      auto store = Open(options);
      EXPECT_TRUE(store->recovery().active) << damage;
      EXPECT_THAT(store->recovery().reason, HasSubstr(reason));
      EXPECT_THAT(store->Load(kLostRowsRecordKind)->quarantined, SizeIs(1));
      ASSERT_TRUE(store->Put({"pod", "e", 1, ""}, Durability::kPowerLoss).ok());
    }
    { ASSERT_TRUE(Open(options)->AcceptRecords(std::nullopt).ok()); }
    auto store = Open(options);
    EXPECT_FALSE(store->recovery().active) << store->recovery().reason;
    EXPECT_THAT(store->Load(kLostRowsRecordKind)->quarantined, IsEmpty());
  }
}

// The move that failed took the count of the good rows back: all of them were missing, for good.
TEST_F(RecordStoreDamageTest, ADiskThatIsFullWhenARowIsSetAsideMadeTheOthersMissing) {
  {
    auto store = Open();
    for (const Record& row : {kPodA, kPodB, kDisk}) {
      ASSERT_TRUE(store->Put(row, Durability::kPowerLoss).ok());
    }
  }
  Edit(File(), "UPDATE records SET bytes=x'00' WHERE kind='pod' AND key='a'");
  FaultVfs vfs;
  {
    auto store = OpenWithoutRoom(vfs);
    ASSERT_NE(store, nullptr);
    EXPECT_THAT(store->Load("pod")->quarantined, SizeIs(1));
    EXPECT_THAT(store->Load(kLostRowsRecordKind)->quarantined, IsEmpty());
    // With room again it is set aside after all, and was never counted.
    vfs.no_space = false;
    ASSERT_TRUE(store->Put({"pod", "c", 1, "c"}, Durability::kPowerLoss).ok());
    EXPECT_THAT(store->Load("pod")->records, SizeIs(2));
  }
  auto store = Open();
  EXPECT_THAT(store->Load("pod")->quarantined, SizeIs(1));
  EXPECT_THAT(store->Load(kLostRowsRecordKind)->quarantined, IsEmpty()) << store->recovery().reason;
  EXPECT_THAT(store->Load("disk")->records, ElementsAre(kDisk));
}

// Somebody removes it while it still lies where it was.
TEST_F(RecordStoreDamageTest, ARowThatCouldNotBeSetAsideIsRemovedWithoutBeingCounted) {
  {
    auto store = Open();
    ASSERT_TRUE(store->Put(kPodA, Durability::kPowerLoss).ok());
    ASSERT_TRUE(store->Put(kPodB, Durability::kPowerLoss).ok());
  }
  Edit(File(), "UPDATE records SET bytes=x'00' WHERE key='a'");
  FaultVfs vfs;
  {
    auto store = OpenWithoutRoom(vfs);
    ASSERT_NE(store, nullptr);
    vfs.no_space = false;
    EXPECT_TRUE(store->Remove("pod", "a", Durability::kPowerLoss).ok());
  }
  auto store = Open();
  EXPECT_THAT(store->Load(kLostRowsRecordKind)->quarantined, IsEmpty()) << store->recovery().reason;
  EXPECT_THAT(store->Load("pod")->records, ElementsAre(kPodB));
}

TEST_F(RecordStoreDamageTest, RowsOfAnOlderProgramAreCountedFromTheFirstStartOn) {
  { ASSERT_TRUE(Open()->Put(kPodA, Durability::kPowerLoss).ok()); }
  Edit(File(), "UPDATE tally SET rows=-1, sum=0, checksum=0");
  { EXPECT_FALSE(Open()->recovery().active); }
  Edit(File(), "DELETE FROM records");
  EXPECT_TRUE(Open()->recovery().active);
}

TEST_F(RecordStoreDamageTest, RowMovedToAnotherKeyIsSetAside) {
  {
    auto store = Open();
    ASSERT_TRUE(store->Put(kPodA, Durability::kProcess).ok());
  }
  Edit(File(), "UPDATE records SET key='z';");
  auto store = Open();
  EXPECT_THAT(store->Load("pod")->records, IsEmpty());
  ASSERT_THAT(store->Load("pod")->quarantined, SizeIs(1));
  EXPECT_EQ(store->Load("pod")->quarantined[0].key, "z");
}

TEST_F(RecordStoreDamageTest, NewerSchemaIsRefusedNamingBothVersions) {
  { auto store = Open(); }
  Edit(File(), "PRAGMA user_version=9;");
  const std::string before = ReadAll(File());
  const Error error = OpenError(Options());
  EXPECT_EQ(error.code(), Code::kFailedPrecondition);
  EXPECT_THAT(error.message(), HasSubstr("schema version 9"));
  EXPECT_THAT(error.message(), HasSubstr("versions 1 to 3"));
  EXPECT_EQ(ReadAll(File()), before);
}

TEST_F(RecordStoreDamageTest, OlderSchemaIsMigratedInOrder) {
  {
    auto store = Open();
    ASSERT_TRUE(store->Put(kPodA, Durability::kProcess).ok());
  }
  SqliteRecordStoreOptions options = Options();
  options.migrations = {"CREATE TABLE extra(a INTEGER)", "INSERT INTO extra VALUES(1)"};
  {
    auto store = Open(options);
    ASSERT_NE(store, nullptr);
    EXPECT_THAT(store->Load("pod")->records, ElementsAre(kPodA));
  }
  EXPECT_NE(Open(options), nullptr) << "a second start migrates nothing";
  EXPECT_THAT(OpenError(Options()).message(), HasSubstr("schema version 5"));
}

TEST_F(RecordStoreDamageTest, FailedMigrationLeavesTheOldSchema) {
  {
    auto store = Open();
    ASSERT_TRUE(store->Put(kPodA, Durability::kProcess).ok());
  }
  SqliteRecordStoreOptions options = Options();
  options.migrations = {"CREATE TABLE extra(a INTEGER); DELETE FROM records; SELECT nonsense"};
  EXPECT_THAT(OpenError(options).message(), HasSubstr("to schema version 4"));
  auto store = Open();
  ASSERT_NE(store, nullptr);
  EXPECT_THAT(store->Load("pod")->records, ElementsAre(kPodA));
}

TEST_F(RecordStoreDamageTest, FilesThatAreNotOursAreRefusedAndLeftAlone) {
  ASSERT_TRUE(std::filesystem::create_directory(Directory()));
  const struct {
    std::string bytes;
    std::string message;
  } cases[] = {
      {std::string(5000, 'x'), "cannot be read as a database"},
      {"", "is empty"},
  };
  for (const auto& c : cases) {
    WriteAll(File(), c.bytes);
    const Error error = OpenError(Options());
    EXPECT_EQ(error.code(), Code::kDataLoss);
    EXPECT_THAT(error.message(), HasSubstr(c.message));
    EXPECT_THAT(error.message(), HasSubstr(File()));
    EXPECT_EQ(ReadAll(File()), c.bytes);
  }
  std::filesystem::remove(File());
  Edit(File(), "CREATE TABLE mine(a); INSERT INTO mine VALUES(1);");
  EXPECT_THAT(OpenError(Options()).message(), HasSubstr("database of another program"));
  std::filesystem::remove(File());
  std::filesystem::create_symlink("/dev/null", File());
  EXPECT_THAT(OpenError(Options()).message(), HasSubstr("not a regular file"));
}

TEST_F(RecordStoreDamageTest, DamagedFileIsRefused) {
  {
    auto store = Open();
    for (int i = 0; i < 200; ++i) {
      ASSERT_TRUE(
          store->Put({"k", std::to_string(i), 1, std::string(500, 'x')}, Durability::kProcess)
              .ok());
    }
  }
  std::string bytes = ReadAll(File());
  ASSERT_GT(bytes.size(), 40'000u);
  for (size_t i = 3 * 4096; i < 8 * 4096; ++i) bytes[i] = static_cast<char>(0xee);
  WriteAll(File(), bytes);
  const Error error = OpenError(Options());
  EXPECT_EQ(error.code(), Code::kDataLoss) << error.ToString();
  EXPECT_THAT(error.message(), HasSubstr("is damaged"));
  EXPECT_EQ(ReadAll(File()), bytes);
}

TEST_F(RecordStoreDamageTest, MissingFileWithALogIsRefused) {
  ASSERT_TRUE(std::filesystem::create_directory(Directory()));
  WriteAll(File() + "-wal", "frames");
  const Error error = OpenError(Options());
  EXPECT_EQ(error.code(), Code::kDataLoss);
  EXPECT_THAT(error.message(), HasSubstr("records.db is missing, but its log"));
}

TEST_F(RecordStoreDamageTest, InterruptedFirstStartIsStartedAgain) {
  ASSERT_TRUE(std::filesystem::create_directory(Directory()));
  WriteAll(File() + ".new", "half");
  auto store = Open();
  ASSERT_NE(store, nullptr);
  EXPECT_FALSE(std::filesystem::exists(File() + ".new"));
}

}  // namespace
}  // namespace volumed
