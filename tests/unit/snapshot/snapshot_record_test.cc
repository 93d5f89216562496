#include "snapshot/snapshot_record.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fakes/wire_declaration.h"

namespace volumed {
namespace {

const std::string kOneSnapshot = "s-3fa91c02-0123456789abcdef01234567";
const std::string kOneVolume = "v-3fa91c02-0123456789abcdef01234567";
const std::string kOneGroup = "g-3fa91c02-0123456789abcdef01234567";

SnapshotRecord FullSnapshot() {
  SnapshotRecord record;
  record.id = kOneSnapshot;
  record.name = "csi:nightly";
  record.volume = kOneVolume;
  record.group = kOneGroup;
  record.phase = SnapshotPhase::kProcessing;
  record.cancel_asked = true;
  record.delete_asked = true;
  record.bytes_done = 4096;
  record.bytes_total = 8192;
  record.size_bytes = 8192;
  record.started_unix_ms = 1'700'000'000'000;
  record.cut_unix_ms = 1'700'000'000'001;
  record.updated_unix_ms = 1'700'000'000'002;
  record.error = "it did not work";
  record.error_code = 8;
  record.error_told = true;
  record.tags = {{"backup", "7"}};
  record.for_volume = kOneVolume;
  return record;
}

SnapshotGroupRecord FullGroup() {
  SnapshotGroupRecord record;
  record.id = kOneGroup;
  record.name = "csi:all";
  record.volumes = {kOneVolume};
  record.snapshots = {kOneSnapshot};
  record.parameters = {{"a", "b"}};
  record.started_unix_ms = 1'700'000'000'000;
  record.deleting = true;
  return record;
}

TEST(SnapshotRecords, AreEveryMemberOnce) {
  EXPECT_EQ(WireDeclaration::ProblemOf<SnapshotRecord>(), "");
  EXPECT_EQ(WireDeclaration::ProblemOf<SnapshotGroupRecord>(), "");
}

TEST(SnapshotRecords, AreReadAsTheyAreWritten) {
  const Record row = EncodeRecord(FullSnapshot());
  EXPECT_EQ(row.kind, "snapshot");
  EXPECT_EQ(row.key, kOneSnapshot);
  const Result<SnapshotRecord> read = DecodeSnapshotRecord(row);
  ASSERT_TRUE(read.ok()) << read.error().ToString();
  EXPECT_EQ(*read, FullSnapshot());

  const Record group = EncodeRecord(FullGroup());
  EXPECT_EQ(group.kind, "snapshot-group");
  const Result<SnapshotGroupRecord> read_group = DecodeSnapshotGroupRecord(group);
  ASSERT_TRUE(read_group.ok()) << read_group.error().ToString();
  EXPECT_EQ(*read_group, FullGroup());
}

TEST(SnapshotRecords, ARowThatSaysNothingSensibleIsRefused) {
  const auto is_refused = [](const SnapshotRecord& record) {
    const Result<SnapshotRecord> read = DecodeSnapshotRecord(EncodeRecord(record));
    return !read.ok() && read.error().code() == Code::kDataLoss;
  };
  EXPECT_FALSE(is_refused(FullSnapshot()));
  std::vector<SnapshotRecord> bad(5, FullSnapshot());
  bad[0].id = kOneVolume;
  bad[1].name.clear();
  bad[2].volume.clear();
  bad[3].phase = SnapshotPhase::kNotKnown;
  bad[4].phase = static_cast<SnapshotPhase>(77);
  for (size_t at = 0; at < bad.size(); ++at) EXPECT_TRUE(is_refused(bad[at])) << at;
  Record later = EncodeRecord(FullSnapshot());
  ++later.version;
  EXPECT_FALSE(DecodeSnapshotRecord(later).ok());
}

TEST(SnapshotRecords, AGroupHasAMemberForEachVolume) {
  const auto is_read = [](const SnapshotGroupRecord& record) {
    return DecodeSnapshotGroupRecord(EncodeRecord(record)).ok();
  };
  ASSERT_TRUE(is_read(FullGroup()));
  std::vector<SnapshotGroupRecord> bad(4, FullGroup());
  bad[0].id = kOneSnapshot;
  bad[1].snapshots.clear();
  bad[2].volumes.push_back(kOneVolume);
  bad[3].name.clear();
  for (size_t at = 0; at < bad.size(); ++at) EXPECT_FALSE(is_read(bad[at])) << at;
}

}  // namespace
}  // namespace volumed
