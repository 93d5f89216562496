#include "volumemanager/claims/deleted_objects.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/manual_clock.h"
#include "base/simulated_scheduler.h"
#include "fakes/memory_record_store.h"

namespace volumed {
namespace {

const ObjectKey kClaim{ObjectKind::kPersistentVolumeClaim, "default", "data"};
const DeletedObjects::Id kFirst{kClaim, "u-1"};

class DeletedObjectsTest : public ::testing::Test {
 protected:
  // What a process has and loses with its end.
  struct Agent {
    Agent(DeletedObjectsTest& test)
        : scheduler(1, test.clock),
          log(LogOptions{LogLevel::kDebug, LogOptions::Target::kCallback,
                         [](LogLevel, std::string_view) {}},
              test.clock),
          writer(scheduler, test.store),
          deleted({scheduler, writer, log},
                  [&test](const DeletedObjects::Id& id) { test.changed.push_back(id); }) {
      std::vector<DeletedObjectRecord> records;
      std::vector<CommandNumberRecord> numbers;
      std::vector<QuarantinedRecord> damaged = test.unreadable;
      for (const Record& row : test.store.All()) {
        if (row.kind == kDeletedObjectRecordKind) {
          records.push_back(DecodeDeletedObjectRecord(row).value());
        } else if (damaged.empty()) {
          numbers.push_back(DecodeCommandNumberRecord(row).value());
        }
      }
      deleted.Restore(records, numbers, damaged);
    }
    SimulatedScheduler scheduler;
    Logger log;
    RecordWriter writer;
    DeletedObjects deleted;
  };

  void SetUp() override { Restart(); }
  void Restart() {
    agent.reset();
    agent = std::make_unique<Agent>(*this);
  }
  DeletedObjects& deleted() { return agent->deleted; }
  void Settle() { agent->scheduler.RunFor(std::chrono::seconds(1)); }
  std::optional<Status> Delete(const DeletedObjects::Id& id, bool at_once = false) {
    auto answer = std::make_shared<std::optional<Status>>();
    deleted().Delete(id, at_once, [answer](const Status& status) { *answer = status; });
    Settle();
    return *answer;
  }
  uint64_t TakeNumber() {
    uint64_t taken = 0;
    deleted().TakeNumber([&](const Result<uint64_t>& number) { taken = number.value(); });
    Settle();
    return taken;
  }

  ManualClock clock;
  MemoryRecordStore store;
  std::vector<DeletedObjects::Id> changed;
  std::vector<QuarantinedRecord> unreadable;
  std::unique_ptr<Agent> agent;
};

TEST_F(DeletedObjectsTest, ThatStorageIsLeftOutlivesTheAgentAndALaterDelete) {
  const DeletedObjects::Id volume{{ObjectKind::kPersistentVolume, "", "disk"}, "v-1"};
  ASSERT_TRUE(Delete(volume)->ok());
  EXPECT_FALSE(deleted().Find(volume)->storage_left);
  const int64_t since = deleted().Find(volume)->since_unix_ms;
  clock.Advance(std::chrono::minutes(1));
  std::optional<Status> left;
  deleted().LeaveStorage(volume, [&](const Status& status) { left = status; });
  Settle();
  ASSERT_TRUE(left && left->ok());
  Restart();
  ASSERT_NE(deleted().Find(volume), nullptr);
  EXPECT_TRUE(deleted().Find(volume)->storage_left);
  EXPECT_FALSE(deleted().Find(volume)->ended);
  EXPECT_EQ(deleted().Find(volume)->since_unix_ms, since);
  ASSERT_TRUE(Delete(volume)->ok());
  EXPECT_TRUE(deleted().Find(volume)->storage_left);
}

TEST_F(DeletedObjectsTest, IsAnsweredOnceTheRowIsOnRecord) {
  std::optional<Status> answer;
  deleted().Delete(kFirst, false, [&](const Status& status) {
    answer = status;
    EXPECT_TRUE(store.Find(kDeletedObjectRecordKind, RecordKey(kClaim) + " u-1"));
  });
  EXPECT_EQ(deleted().Find(kFirst), nullptr) << "nothing counts before it is on record";
  Settle();
  ASSERT_TRUE(answer && answer->ok());
  ASSERT_NE(deleted().Find(kFirst), nullptr);
  EXPECT_FALSE(deleted().HasEnded(kFirst));
  EXPECT_EQ(changed, std::vector<DeletedObjects::Id>{kFirst});
  Restart();
  ASSERT_NE(deleted().Find(kFirst), nullptr);
  deleted().End(kFirst);
  EXPECT_FALSE(deleted().HasEnded(kFirst));
  Settle();
  EXPECT_TRUE(deleted().HasEnded(kFirst));
  EXPECT_FALSE(deleted().HasEnded({kClaim, "u-2"}));
  Restart();
  EXPECT_TRUE(deleted().HasEnded(kFirst));
  EXPECT_EQ(deleted().EndedBy(kClaim), deleted().Find(kFirst)->number);
  deleted().Forget(kFirst);
  Settle();
  EXPECT_EQ(deleted().Find(kFirst), nullptr);
  EXPECT_EQ(deleted().EndedBy(kClaim), std::nullopt);
}

TEST_F(DeletedObjectsTest, NumbersGrowOverRestartsAlsoThoseThatNothingKeeps) {
  const uint64_t first = TakeNumber();
  const uint64_t second = TakeNumber();
  EXPECT_LT(first, second);
  Restart();
  const uint64_t third = TakeNumber();
  EXPECT_LT(second, third);
  // A file says more than the records do: these are older than it.
  deleted().Saw(third + 5000);
  EXPECT_EQ(TakeNumber(), third + 5001);
  Restart();
  EXPECT_LT(third + 5001, TakeNumber());
}

TEST_F(DeletedObjectsTest, WithoutItsNumberTheClockIsHigherThanAnyCount) {
  ASSERT_LT(TakeNumber(), 1000u);
  unreadable = {{kCommandNumberRecordKind, "last", "checksum"}};
  Restart();
  EXPECT_GE(TakeNumber(), static_cast<uint64_t>(ManualClock::kStartUnixMillis));
}

TEST_F(DeletedObjectsTest, AnObjectWithoutAUidThatIsDeletedAgainHasTheLaterNumber) {
  const DeletedObjects::Id secret{{ObjectKind::kSecret, "default", "s"}, ""};
  ASSERT_TRUE(Delete(secret, true)->ok());
  const uint64_t first = *deleted().EndedBy(secret.first);
  ASSERT_TRUE(Delete(secret, true)->ok());
  EXPECT_GT(*deleted().EndedBy(secret.first), first);
  ASSERT_TRUE(Delete(kFirst)->ok());
  const uint64_t claim = deleted().Find(kFirst)->number;
  ASSERT_TRUE(Delete(kFirst)->ok()) << "twice is once";
  EXPECT_EQ(deleted().Find(kFirst)->number, claim);
  deleted().End(kFirst);
  Settle();
  ASSERT_TRUE(Delete(kFirst)->ok());
  EXPECT_TRUE(deleted().HasEnded(kFirst)) << "it ends once";
}

TEST_F(DeletedObjectsTest, ARowThatIsGoingIsWrittenAnewByTheNextCommand) {
  const DeletedObjects::Id secret{{ObjectKind::kSecret, "default", "s"}, ""};
  ASSERT_TRUE(Delete(secret, true)->ok());
  deleted().Forget(secret);
  ASSERT_TRUE(Delete(secret, true)->ok());
  Settle();
  EXPECT_TRUE(deleted().HasEnded(secret));
  Restart();
  EXPECT_TRUE(deleted().HasEnded(secret));
}

}  // namespace
}  // namespace volumed
