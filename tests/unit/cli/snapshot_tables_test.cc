#include "cli/snapshot_tables.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace volumed {
namespace {

constexpr int64_t kSeenAt = 1'000'000'000'000;

v1::Snapshot SnapshotOfPhase(const std::string& phase) {
  v1::Snapshot one;
  one.set_id("s-1");
  one.set_name("hand:a");
  one.set_volume("v-1");
  one.set_phase(phase);
  one.set_size_bytes(int64_t{1} << 30);
  one.set_cut_unix_ms(kSeenAt - 65'000);
  return one;
}

std::string SnapshotTable(const v1::GetSnapshotsResponse& all, OutputFormat format) {
  std::ostringstream out;
  PrintSnapshots(all, format, kSeenAt, out);
  return out.str();
}

std::string PoolTable(const v1::GetPoolsResponse& all, OutputFormat format) {
  std::ostringstream out;
  PrintPools(all, format, out);
  return out.str();
}

std::string ProgressLine(const v1::WatchSnapshotResponse& answer) {
  std::ostringstream out;
  PrintSnapshotProgress(answer, OutputFormat::kTable, out);
  return out.str();
}

TEST(SnapshotTablesTest, ASnapshotIsALineWithHowMuchOfItIsCopied) {
  v1::GetSnapshotsResponse all;
  *all.add_snapshots() = SnapshotOfPhase("Ready");
  v1::Snapshot copied = SnapshotOfPhase("Processing");
  copied.set_id("s-2");
  copied.set_bytes_done(256 << 20);
  copied.set_bytes_total(int64_t{1} << 30);
  copied.mutable_object()->set_namespace_("shop");
  copied.mutable_object()->set_name("db");
  *all.add_snapshots() = copied;
  EXPECT_EQ(SnapshotTable(all, OutputFormat::kTable),
            "ID   NAME    VOLUME  PHASE       SIZE  COPIED           AGE   ERROR\n"
            "s-1  hand:a  v-1     Ready       1Gi   -                1m5s  -\n"
            "s-2  hand:a  v-1     Processing  1Gi   256Mi/1Gi (25%)  1m5s  -\n");
  const std::string wide = SnapshotTable(all, OutputFormat::kWide);
  EXPECT_NE(wide.find("VOLUMESNAPSHOT"), std::string::npos) << wide;
  EXPECT_NE(wide.find("shop/db"), std::string::npos) << wide;
  EXPECT_NE(SnapshotTable(all, OutputFormat::kJson).find("\"bytes_total\""), std::string::npos);
}

TEST(SnapshotTablesTest, WhyASnapshotFailedIsInItsLineAndItsDescription) {
  v1::Snapshot failed = SnapshotOfPhase("Failed");
  failed.set_error("the pool is full");
  failed.set_error_code("ResourceExhausted");
  v1::GetSnapshotsResponse all;
  *all.add_snapshots() = failed;
  const std::string told = "ResourceExhausted: the pool is full";
  EXPECT_NE(SnapshotTable(all, OutputFormat::kTable).find(told), std::string::npos);
  std::ostringstream out;
  PrintSnapshotDescription(failed, kSeenAt, out);
  EXPECT_NE(out.str().find(told), std::string::npos) << out.str();
  EXPECT_NE(out.str().find("1m5s ago"), std::string::npos) << out.str();
}

TEST(SnapshotTablesTest, ThatThereAreNoneIsSaid) {
  EXPECT_EQ(SnapshotTable({}, OutputFormat::kTable), "there are no snapshots\n");
  EXPECT_EQ(PoolTable({}, OutputFormat::kTable), "no pool is configured\n");
}

TEST(SnapshotTablesTest, OfAPoolThatIsNotOpenNothingIsGuessed) {
  v1::GetPoolsResponse all;
  v1::Pool* const open = all.add_pools();
  open->set_name("main");
  open->set_path("/srv/pool");
  open->set_open(true);
  open->set_capacity_bytes(int64_t{10} << 30);
  open->set_reserve_percent(5);
  open->set_promised_bytes(int64_t{2} << 30);
  open->set_outstanding_bytes(int64_t{1} << 30);
  open->set_free_bytes(int64_t{8} << 30);
  open->set_volumes(2);
  open->set_snapshots(1);
  v1::Pool* const away = all.add_pools();
  away->set_name("disk");
  away->set_path("/mnt/d");
  away->set_reason("nothing is mounted there");
  EXPECT_EQ(
      PoolTable(all, OutputFormat::kTable),
      "NAME  PATH       STATE     CAPACITY  PROMISED  FREE  VOLUMES  SNAPSHOTS  REASON\n"
      "main  /srv/pool  open      10Gi      2Gi       8Gi   2        1          -\n"
      "disk  /mnt/d     not open  -         -         -     0        0          nothing is mounted "
      "there\n");
  EXPECT_NE(PoolTable(all, OutputFormat::kWide).find("OUTSTANDING  RESERVE"), std::string::npos);
}

TEST(SnapshotTablesTest, TheProgressOfACopyIsALineWithItsPaceAndItsEnd) {
  v1::WatchSnapshotResponse answer;
  answer.set_now_unix_ms(kSeenAt);
  *answer.mutable_snapshot() = SnapshotOfPhase("Processing");
  answer.mutable_snapshot()->set_bytes_done(256 << 20);
  answer.mutable_snapshot()->set_bytes_total(int64_t{1} << 30);
  answer.set_bytes_per_second(64 << 20);
  answer.set_left_ms(12'000);
  EXPECT_EQ(ProgressLine(answer), "Processing  256Mi/1Gi (25%)  64Mi/s  12s left\n");
  v1::WatchSnapshotResponse ready;
  *ready.mutable_snapshot() = SnapshotOfPhase("Ready");
  EXPECT_EQ(ProgressLine(ready), "Ready\n");
  ready.set_gone(true);
  EXPECT_EQ(ProgressLine(ready), "gone\n");
}

}  // namespace
}  // namespace volumed
