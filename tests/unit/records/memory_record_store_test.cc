#include "fakes/memory_record_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/simulated_crash.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const Record kMount{"mount", "m", 1, "1"};
const Record kDevice{"device", "d", 1, "1"};

TEST(MemoryRecordStoreTest, LoadsOneKindInTheOrderOfKeys) {
  MemoryRecordStore store;
  const Record b{"k", "b", 1, "x"};
  const Record a{"k", "a", 1, "x"};
  ASSERT_TRUE(store.Put(b, Durability::kProcess).ok());
  ASSERT_TRUE(store.Put(a, Durability::kPowerLoss).ok());
  ASSERT_TRUE(store.Put(kMount, Durability::kPowerLoss).ok());
  EXPECT_THAT(store.Load("k")->records, ElementsAre(a, b));
  ASSERT_TRUE(store.Remove("k", "a", Durability::kProcess).ok());
  ASSERT_TRUE(store.Remove("k", "a", Durability::kProcess).ok());
  EXPECT_THAT(store.Load("k")->records, ElementsAre(b));
}

TEST(MemoryRecordStoreTest, FailedWritesChangeNothing) {
  MemoryRecordStore store;
  store.FailNext(Error::NotApplied(Code::kResourceExhausted, "full"), 2);
  EXPECT_EQ(store.Put(kMount, Durability::kProcess).error().code(), Code::kResourceExhausted);
  EXPECT_FALSE(store.Put(kMount, Durability::kProcess).ok());
  EXPECT_THAT(store.All(), IsEmpty());
  EXPECT_TRUE(store.Put(kMount, Durability::kProcess).ok());
  EXPECT_EQ(store.stats().failures, 2u);

  store.FailNextLoad(Error::NotApplied(Code::kUnavailable, "no disk"));
  EXPECT_FALSE(store.Load("mount").ok());
  EXPECT_TRUE(store.Load("mount").ok());
}

TEST(MemoryRecordStoreTest, CrashBeforeAWriteDoesNotMakeIt) {
  MemoryRecordStore store;
  store.CrashAtCall(2, MemoryRecordStore::CrashPoint::kBefore);
  EXPECT_TRUE(store.Put(kMount, Durability::kProcess).ok());
  EXPECT_THROW(static_cast<void>(store.Put(kDevice, Durability::kProcess)), SimulatedCrash);
  EXPECT_TRUE(store.crashed());
  EXPECT_THAT(store.All(), ElementsAre(kMount));
}

TEST(MemoryRecordStoreTest, CrashAfterAWriteHasMadeItAndNothingFollows) {
  MemoryRecordStore store;
  store.CrashAtCall(1, MemoryRecordStore::CrashPoint::kAfter);
  EXPECT_THROW(static_cast<void>(store.Put(kMount, Durability::kProcess)), SimulatedCrash);
  // What a destructor of the dying agent might do.
  EXPECT_EQ(store.Remove("mount", "m", Durability::kProcess).error().code(), Code::kUnavailable);
  EXPECT_FALSE(store.Load("mount").ok());
  store.Revive();
  EXPECT_EQ(store.calls(), 0u);
  EXPECT_THAT(store.Load("mount")->records, ElementsAre(kMount));
  EXPECT_TRUE(store.Put(kDevice, Durability::kProcess).ok()) << "the crash happens once";
}

TEST(MemoryRecordStoreTest, PowerLossKeepsOnlyWhatWasSynced) {
  MemoryRecordStore store;
  Record later = kDevice;
  later.bytes = "2";
  ASSERT_TRUE(store.Put(kDevice, Durability::kPowerLoss).ok());
  ASSERT_TRUE(store.Put(later, Durability::kProcess).ok());
  ASSERT_TRUE(store.Put(kMount, Durability::kProcess).ok());
  store.PowerLoss();
  EXPECT_THAT(store.All(), ElementsAre(kDevice));
  ASSERT_TRUE(store.Remove("device", "d", Durability::kProcess).ok());
  store.PowerLoss();
  EXPECT_THAT(store.All(), ElementsAre(kDevice)) << "nor was the removal synced";
  ASSERT_TRUE(store.Remove("device", "d", Durability::kPowerLoss).ok());
  store.PowerLoss();
  EXPECT_THAT(store.All(), IsEmpty());
}

TEST(MemoryRecordStoreTest, ASyncedWriteSyncsTheChangesBeforeItOfRowsThatWereSyncedOnce) {
  MemoryRecordStore store;
  const Record other{"other", "o", 1, "1"};
  Record later = kDevice;
  later.bytes = "2";
  ASSERT_TRUE(store.Put(kDevice, Durability::kPowerLoss).ok());
  ASSERT_TRUE(store.Put(later, Durability::kProcess).ok());
  ASSERT_TRUE(store.Put(kMount, Durability::kProcess).ok());
  ASSERT_TRUE(store.Put(other, Durability::kPowerLoss).ok());
  store.PowerLoss();
  EXPECT_EQ(store.Find("device", "d"), later);
  EXPECT_EQ(store.Find("mount", "m"), std::nullopt) << "it may be missing, and is";
  ASSERT_TRUE(store.Remove("device", "d", Durability::kProcess).ok());
  ASSERT_TRUE(store.Remove("other", "o", Durability::kPowerLoss).ok());
  store.PowerLoss();
  EXPECT_THAT(store.All(), IsEmpty());
}

TEST(MemoryRecordStoreTest, CorruptRowIsReportedAndItsKeyRefused) {
  MemoryRecordStore store;
  ASSERT_TRUE(store.Put(kMount, Durability::kPowerLoss).ok());
  store.Corrupt("mount", "m", "its checksum is wrong");
  EXPECT_THAT(store.Load("mount")->records, IsEmpty());
  ASSERT_THAT(store.Load("mount")->quarantined, SizeIs(1));
  EXPECT_EQ(store.stats().quarantined, 1u);
  EXPECT_EQ(store.Put(kMount, Durability::kProcess).error().code(), Code::kFailedPrecondition);
}

TEST(MemoryRecordStoreTest, CloneGoesItsOwnWay) {
  MemoryRecordStore store;
  ASSERT_TRUE(store.Put(kMount, Durability::kProcess).ok());
  auto clone = store.Clone();
  ASSERT_TRUE(clone->Put(kDevice, Durability::kProcess).ok());
  EXPECT_THAT(store.All(), ElementsAre(kMount));
  EXPECT_THAT(clone->All(), ElementsAre(kDevice, kMount));
  clone->PowerLoss();
  EXPECT_THAT(clone->All(), IsEmpty());
  EXPECT_THAT(store.All(), ElementsAre(kMount));
}

TEST(MemoryRecordStoreTest, OlderRowsAreNoticedUnlessTheNumberIsPutBackToo) {
  MemoryRecordStore store;
  store.KeepHistory();
  ASSERT_TRUE(store.Put({"k", "a", 1, "1"}, Durability::kPowerLoss).ok());
  ASSERT_TRUE(store.Put({"k", "a", 1, "2"}, Durability::kProcess).ok());
  ASSERT_TRUE(store.Put({"k", "b", 1, "3"}, Durability::kPowerLoss).ok());
  ASSERT_EQ(store.history(), 4u);
  store.Revive();
  EXPECT_FALSE(store.recovery().active) << "a mere restart";

  store.PutBack(1, /*number_too=*/false);
  EXPECT_EQ(store.Find("k", "a")->bytes, "1");
  EXPECT_FALSE(store.Find("k", "b").has_value());
  store.Revive();
  EXPECT_TRUE(store.recovery().active);
  store.Revive();
  EXPECT_TRUE(store.recovery().active) << "it lasts";
  ASSERT_TRUE(store.AcceptRecords("v").ok());
  EXPECT_TRUE(store.recovery().active);
  ASSERT_TRUE(store.AcceptRecords(std::nullopt).ok());
  store.Revive();
  EXPECT_FALSE(store.recovery().active);
}

TEST(MemoryRecordStoreTest, AnImageOfTheWholeDiskLooksRight) {
  MemoryRecordStore store;
  store.KeepHistory();
  ASSERT_TRUE(store.Put({"k", "a", 1, "1"}, Durability::kPowerLoss).ok());
  ASSERT_TRUE(store.Put({"k", "b", 1, "3"}, Durability::kPowerLoss).ok());
  store.PutBack(0, /*number_too=*/true);
  store.Revive();
  EXPECT_FALSE(store.recovery().active);
  EXPECT_TRUE(store.All().empty());
}

}  // namespace
}  // namespace volumed
