// What the control API says of a snapshot, and how fast a copy is.
#include "agent/snapshot_view.h"

#include <gtest/gtest.h>

#include "agent/object_columns.h"
#include "snapshot/snapshot_tags.h"

namespace volumed {
namespace {

SnapshotRecord CopiedSnapshot(int64_t done) {
  SnapshotRecord record;
  record.id = "s-1";
  record.volume = "v-1";
  record.phase = SnapshotPhase::kProcessing;
  record.bytes_done = done;
  record.bytes_total = 1000;
  return record;
}

TEST(SnapshotViewTest, ThePaceIsTheMeanSinceTheSampleAndSaysTheEnd) {
  EXPECT_EQ(PaceOf(CopiedSnapshot(400), {200, 10'000}, 12'000), (CopyPace{100, 6000}));
}

// A rate of nothing would be an end that never comes.
TEST(SnapshotViewTest, WithoutProgressNoPaceIsGuessed) {
  EXPECT_EQ(PaceOf(CopiedSnapshot(200), {200, 10'000}, 12'000), CopyPace());
  EXPECT_EQ(PaceOf(CopiedSnapshot(400), {200, 10'000}, 10'000), CopyPace());
  EXPECT_EQ(PaceOf(CopiedSnapshot(100), {200, 10'000}, 12'000), CopyPace()) << "it began anew";
  SnapshotRecord ready = CopiedSnapshot(1000);
  ready.phase = SnapshotPhase::kReady;
  EXPECT_EQ(PaceOf(ready, {200, 10'000}, 12'000), CopyPace());
}

TEST(SnapshotViewTest, ASnapshotSaysWhoseItIsAndWhyItFailed) {
  SnapshotRecord record = CopiedSnapshot(0);
  record.name = ObjectSnapshotName("u1");
  SnapshotTags tags;
  tags.snapshot = {"shop", "db", "u1"};
  record.tags = TagsOf(tags);
  record.phase = SnapshotPhase::kFailed;
  record.error = "the pool is\nfull";
  record.error_code = static_cast<int32_t>(Code::kResourceExhausted);
  v1::Snapshot shown;
  EncodeSnapshot(record, &shown);
  EXPECT_EQ(shown.phase(), "Failed");
  EXPECT_FALSE(shown.ready());
  EXPECT_EQ(shown.object().kind(), "VolumeSnapshot");
  EXPECT_EQ(shown.object().namespace_(), "shop");
  EXPECT_EQ(shown.object().name(), "db");
  EXPECT_EQ(shown.error_code(), CodeName(Code::kResourceExhausted));
  EXPECT_EQ(shown.error().find('\n'), std::string::npos) << "it is a line of a table";
  record.tags.clear();
  v1::Snapshot of_nobody;
  EncodeSnapshot(record, &of_nobody);
  EXPECT_FALSE(of_nobody.has_object());
}

TEST(SnapshotViewTest, TheKindsHaveKubectlsColumns) {
  VolumeSnapshot snapshot;
  snapshot.spec.persistent_volume_claim_name = "data";
  snapshot.spec.volume_snapshot_class_name = "fast";
  EXPECT_EQ(CellsOf(Object(snapshot)),
            (std::vector<std::string>{"", "data", "", "", "fast", "", ""}));
  snapshot.status.ready_to_use = true;
  snapshot.status.restore_size = Quantity::FromBytes(int64_t{1} << 30);
  snapshot.status.bound_volume_snapshot_content_name = "snapcontent-1";
  snapshot.status.creation_unix_millis = 0;
  EXPECT_EQ(
      CellsOf(Object(snapshot)),
      (std::vector<std::string>{"true", "data", "", Quantity::FromBytes(int64_t{1} << 30).String(),
                                "fast", "snapcontent-1", "1970-01-01T00:00:00Z"}));
  for (const ObjectKind kind : {ObjectKind::kVolumeSnapshot, ObjectKind::kVolumeSnapshotContent}) {
    EXPECT_EQ(ColumnsOf(kind).size(), 7U) << ObjectKindName(kind);
  }
  VolumeSnapshotClass of_class;
  of_class.driver = "d.io";
  EXPECT_EQ(CellsOf(Object(of_class)), (std::vector<std::string>{"d.io", "Delete"}));
}

}  // namespace
}  // namespace volumed
