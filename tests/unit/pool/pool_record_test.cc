#include "pool/pool_record.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "fakes/wire_declaration.h"

namespace volumed {
namespace {

using State = PoolVolumeState;
using Event = PoolVolumeEvent;

constexpr State kStates[] = {State::kNotKnown, State::kMaking, State::kReady, State::kExpanding,
                             State::kDeleting};
constexpr Event kEvents[] = {Event::kMake, Event::kExpand,     Event::kDelete,
                             Event::kDone, Event::kNotApplied, Event::kMaybeApplied};
const std::string kVolumeId = "v-3fa91c02-0123456789abcdef01234567";
const std::string kCutId = "s-3fa91c02-0123456789abcdef01234567";

PoolVolumeRecord Volume() {
  PoolVolumeRecord record;
  record.id = kVolumeId;
  record.pool = "fast";
  record.name = "pvc-1";
  record.state = State::kExpanding;
  record.backend = PoolBackendKind::kImage;
  record.capacity_bytes = 1 << 30;
  record.target_bytes = int64_t{2} << 30;
  record.is_block = true;
  record.parameters = {{"backend", "image"}, {"pool", "fast"}};
  record.mutable_parameters = {{"directIO", "false"}};
  record.object = {"ext4", "uuid", 12, "1:0c"};
  record.family = kVolumeId;
  record.filesystem = {"xfs", "fs-uuid", "uuid-to-come"};
  record.from_snapshot = kCutId;
  record.leases = {{"n1", true, 3, false}, {"n2", false, 4, true}};
  record.used = true;
  record.created_unix_ms = 1'700'000'000'000;
  record.block_bytes = 4096;
  record.inline_use = {"/var/lib/kubelet/pods/u/v", "/var/lib/kubelet", "ns", "pod", "u"};
  record.source = "/dev/disk/by-id/wwn-0x1";
  record.source_identity = "wwid:naa.1";
  record.source_options = {"hard", "nfsvers=4.2"};
  record.source_read_only = true;
  record.project_id = 0x40000001;
  return record;
}

PoolCutRecord TheCut() {
  PoolCutRecord record;
  record.id = kCutId;
  record.pool = "fast";
  record.volume = kVolumeId;
  record.state = PoolCutState::kCut;
  record.backend = PoolBackendKind::kImage;
  record.size_bytes = 1 << 30;
  record.allocated_bytes = 1 << 20;
  record.copied_bytes = 4096;
  record.is_copy = true;
  record.is_block = true;
  record.filesystem = {"ext4", "fs-uuid", ""};
  record.object = {"ext4", "uuid", 12, "1:0c"};
  record.family = kCutId;
  record.was_frozen = true;
  record.cut_unix_ms = 1'700'000'000'000;
  return record;
}

PoolRecord ThePool() {
  return {"fast", "/srv/pool", "pool-uuid", {"ext4", "uuid", 2, "1:02"}, 1'700'000'000'000};
}

TEST(PoolVolumeState, HasTheseWaysAndNoOther) {
  const std::map<std::pair<State, Event>, State> ways = {
      {{State::kNotKnown, Event::kMake}, State::kMaking},
      {{State::kMaking, Event::kMake}, State::kMaking},
      {{State::kMaking, Event::kDelete}, State::kDeleting},
      {{State::kMaking, Event::kDone}, State::kReady},
      {{State::kMaking, Event::kNotApplied}, State::kNotKnown},
      {{State::kMaking, Event::kMaybeApplied}, State::kMaking},
      {{State::kReady, Event::kExpand}, State::kExpanding},
      {{State::kReady, Event::kDelete}, State::kDeleting},
      {{State::kExpanding, Event::kExpand}, State::kExpanding},
      {{State::kExpanding, Event::kDelete}, State::kDeleting},
      {{State::kExpanding, Event::kDone}, State::kReady},
      {{State::kExpanding, Event::kNotApplied}, State::kExpanding},
      {{State::kExpanding, Event::kMaybeApplied}, State::kExpanding},
      {{State::kDeleting, Event::kDelete}, State::kDeleting},
      {{State::kDeleting, Event::kDone}, State::kNotKnown},
      {{State::kDeleting, Event::kNotApplied}, State::kDeleting},
      {{State::kDeleting, Event::kMaybeApplied}, State::kDeleting},
  };
  for (const State from : kStates) {
    for (const Event event : kEvents) {
      const auto way = ways.find({from, event});
      const std::optional<State> expected =
          way == ways.end() ? std::nullopt : std::optional(way->second);
      EXPECT_EQ(NextState(from, event), expected)
          << PoolVolumeStateName(from) << ", event " << static_cast<int>(event);
    }
  }
}

// Whatever has happened to a volume, it can be deleted, and that ends.
TEST(PoolVolumeState, EachOneLeadsToTheEnd) {
  for (const State state : kStates) {
    if (state == State::kNotKnown) continue;
    EXPECT_FALSE(PoolVolumeStateName(state).empty());
    const std::optional<State> deleting = NextState(state, Event::kDelete);
    ASSERT_EQ(deleting, State::kDeleting) << PoolVolumeStateName(state);
    EXPECT_EQ(NextState(*deleting, Event::kDone), State::kNotKnown);
  }
}

TEST(PoolBackendKind, HasAName) {
  for (const PoolBackendKind kind : {PoolBackendKind::kImage, PoolBackendKind::kDirectory,
                                     PoolBackendKind::kSubvolume, PoolBackendKind::kLvm}) {
    EXPECT_EQ(PoolBackendOf(PoolBackendName(kind)), kind);
    EXPECT_EQ(IsTree(kind),
              kind == PoolBackendKind::kDirectory || kind == PoolBackendKind::kSubvolume);
  }
  EXPECT_FALSE(PoolBackendOf("").has_value());
  EXPECT_FALSE(PoolBackendOf("tape").has_value());
}

TEST(PoolRecords, AreEveryMemberOnce) {
  EXPECT_EQ(WireDeclaration::ProblemOf<PoolRecord>(), "");
  EXPECT_EQ(WireDeclaration::ProblemOf<PoolFilesystem>(), "");
  EXPECT_EQ(WireDeclaration::ProblemOf<PoolLease>(), "");
  EXPECT_EQ(WireDeclaration::ProblemOf<PoolInline>(), "");
  EXPECT_EQ(WireDeclaration::ProblemOf<PoolVolumeRecord>(), "");
  EXPECT_EQ(WireDeclaration::ProblemOf<PoolCutRecord>(), "");
}

TEST(PoolRecords, AreReadAsTheyAreWritten) {
  const Record pool = EncodeRecord(ThePool());
  EXPECT_EQ(pool.kind, "pool");
  EXPECT_EQ(pool.key, "fast");
  const Result<PoolRecord> read_pool = DecodePoolRecord(pool);
  ASSERT_TRUE(read_pool.ok()) << read_pool.error().ToString();
  EXPECT_EQ(*read_pool, ThePool());

  const Record volume = EncodeRecord(Volume());
  EXPECT_EQ(volume.kind, "pool-volume");
  EXPECT_EQ(volume.key, kVolumeId);
  const Result<PoolVolumeRecord> read = DecodePoolVolumeRecord(volume);
  ASSERT_TRUE(read.ok()) << read.error().ToString();
  EXPECT_EQ(*read, Volume());
}

TEST(PoolRecords, ACutIsReadAsItIsWritten) {
  const Record row = EncodeRecord(TheCut());
  EXPECT_EQ(row.kind, "pool-cut");
  EXPECT_EQ(row.key, kCutId);
  const Result<PoolCutRecord> read = DecodePoolCutRecord(row);
  ASSERT_TRUE(read.ok()) << read.error().ToString();
  EXPECT_EQ(*read, TheCut());
  EXPECT_FALSE(PoolCutStateName(TheCut().state).empty());
}

TEST(PoolRecords, ACutThatIsNoneIsNotRead) {
  const auto is_read = [](const PoolCutRecord& cut) {
    return DecodePoolCutRecord(EncodeRecord(cut)).ok();
  };
  ASSERT_TRUE(is_read(TheCut()));
  PoolCutRecord cut = TheCut();
  cut.id = kVolumeId;
  EXPECT_FALSE(is_read(cut));
  cut = TheCut();
  cut.volume = "pvc-1";
  EXPECT_FALSE(is_read(cut));
  cut = TheCut();
  cut.size_bytes = 0;
  EXPECT_FALSE(is_read(cut));
  cut = TheCut();
  cut.state = PoolCutState::kNotKnown;
  EXPECT_FALSE(is_read(cut));
}

// The numbers of the fields are on the disks of nodes.
TEST(PoolRecords, HaveTheNumbersThatTheyHadEver) {
  PoolVolumeRecord record;
  record.id = kVolumeId;
  record.pool = "p";
  record.name = "n";
  record.state = State::kReady;
  record.backend = PoolBackendKind::kImage;
  record.capacity_bytes = 4096;
  record.family = "f";
  record.used = true;
  record.block_bytes = 512;
  const std::string bytes = "\x0a\x23" + kVolumeId +
                            "\x12\x01p"
                            "\x1a\x01n"
                            "\x20\x02"
                            "\x28\x01"
                            "\x30\x80\x20" +
                            std::string("\x62\0", 2) + std::string("\x82\x01\x01", 3) + "f" +
                            std::string("\x8a\x01\0", 3) + "\xa8\x01\x01" + "\xc0\x01\x80\x04";
  EXPECT_EQ(EncodeRecord(record).bytes, bytes);
}

TEST(PoolRecords, AMutableParameterHasTheNumberThatItHadEverAndNoneLeavesTheRowAsItWas) {
  PoolVolumeRecord record;
  record.parameters = {{"k", "v"}};
  const std::string entry = std::string("\x06") + "\x0a\x01k" + "\x12\x01v";
  const std::string without = EncodeRecord(record).bytes;
  const size_t behind = without.find("\x52" + entry);
  ASSERT_NE(behind, std::string::npos);
  record.mutable_parameters = {{"k", "v"}};
  std::string with = without;
  with.insert(behind + 1 + entry.size(), "\x5a" + entry);
  EXPECT_EQ(EncodeRecord(record).bytes, with);
}

TEST(PoolRecords, ALeaseHasTheNumbersThatItHadEver) {
  PoolVolumeRecord record;
  const std::string without = EncodeRecord(record).bytes;
  record.leases = {{"n", true, 7, true}};
  const std::string with = EncodeRecord(record).bytes;
  const std::string lease =
      std::string("\x92\x01\x09") + "\x0a\x01n" + "\x10\x01" + "\x18\x07" + "\x20\x01";
  EXPECT_EQ(with, without + lease) << "after field 17, and before those that are empty here";
}

TEST(PoolRecords, AnInlineVolumeHasTheNumbersThatItHadEverAndAnotherHasNone) {
  PoolVolumeRecord record;
  record.used = true;
  const std::string without = EncodeRecord(record).bytes;
  const std::string used = "\xa8\x01\x01";
  const size_t at = without.find(used);
  ASSERT_NE(at, std::string::npos);
  record.inline_use = {"/t/a", "/t", "n", "p", "u"};
  std::string with = without;
  with.insert(at, std::string("\xa2\x01\x13") + "\x0a\x04/t/a" + "\x12\x02/t" + "\x1a\x01n" +
                      "\x22\x01p" + "\x2a\x01u");
  EXPECT_EQ(EncodeRecord(record).bytes, with);
}

TEST(PoolRecords, AProjectHasTheNumberThatItHadEverAndNoneLeavesTheRowAsItWas) {
  PoolVolumeRecord record;
  const std::string without = EncodeRecord(record).bytes;
  record.project_id = 300;
  EXPECT_EQ(EncodeRecord(record).bytes, without + "\xe0\x01\xac\x02");
}

TEST(PoolRecords, ADirectoryIsOfAnotherProjectOnlyIfOneIsOnRecord) {
  PoolVolumeRecord record;
  EXPECT_EQ(OtherProject(record, 7), "");
  record.project_id = 7;
  EXPECT_EQ(OtherProject(record, 7), "");
  EXPECT_NE(OtherProject(record, 8), "");
  EXPECT_NE(OtherProject(record, 0), "");
}

TEST(PoolLeases, OfTwoNodesAreBesideEachOtherIfBothModesAreForSeveralNodes) {
  const auto beside = [](const PoolLease& there, const PoolLease& wanted) {
    return WhyNotBeside(there, wanted).empty();
  };
  for (const int32_t one_node : {0, 1, 2, 6, 7, 99}) {
    for (const int32_t other : {1, 2, 3, 4, 5, 6, 7}) {
      EXPECT_FALSE(beside({"a", false, one_node}, {"b", false, other})) << one_node << other;
      EXPECT_FALSE(beside({"a", false, other}, {"b", false, one_node})) << other << one_node;
    }
  }
  EXPECT_TRUE(beside({"a", false, 5}, {"b", false, 5}));
  EXPECT_TRUE(beside({"a", false, 3}, {"b", false, 5}));
  EXPECT_TRUE(beside({"a", true, 3}, {"b", false, 4}));
}

TEST(PoolLeases, AVolumeForASingleWriterHasNoSecondOne) {
  EXPECT_NE(WhyNotBeside({"a", false, 4}, {"b", false, 4}), "");
  EXPECT_NE(WhyNotBeside({"a", false, 5}, {"b", false, 4}), "");
  EXPECT_EQ(WhyNotBeside({"a", false, 4}, {"b", true, 4}), "");
  EXPECT_EQ(WhyNotBeside({"a", true, 4}, {"b", false, 4}), "");
  EXPECT_EQ(WhyNotBeside({"a", false, 3}, {"b", false, 4}), "") << "a reader";
}

// It would delete the directory that somebody has begun to import.
TEST(PoolRecords, AProgramThatKnowsNoMovedDirectoriesReadsNoRowOfOneThatIsNotReady) {
  PoolVolumeRecord moved = Volume();
  moved.backend = PoolBackendKind::kDirectory;
  moved.source = "/srv/old";
  const uint32_t known = EncodeRecord(Volume()).version;
  for (const PoolVolumeState state : {PoolVolumeState::kMaking, PoolVolumeState::kDeleting}) {
    moved.state = state;
    EXPECT_GT(EncodeRecord(moved).version, known);
    EXPECT_EQ(DecodePoolVolumeRecord(EncodeRecord(moved)).value(), moved);
  }
  moved.state = PoolVolumeState::kReady;
  EXPECT_EQ(EncodeRecord(moved).version, known);
}

TEST(PoolRecords, ARowThatSaysNothingSensibleIsRefused) {
  const auto refused = [](const PoolVolumeRecord& record) {
    const Result<PoolVolumeRecord> read = DecodePoolVolumeRecord(EncodeRecord(record));
    return !read.ok() && read.error().code() == Code::kDataLoss;
  };
  EXPECT_FALSE(refused(Volume()));
  PoolVolumeRecord exported = Volume();
  exported.backend = PoolBackendKind::kExport;
  exported.source = "nas-1:/srv/media";
  exported.capacity_bytes = 0;
  exported.is_block = false;
  EXPECT_FALSE(refused(exported));
  std::vector<PoolVolumeRecord> bad(12, Volume());
  bad[0].state = State::kNotKnown;
  bad[1].state = static_cast<State>(77);
  bad[2].backend = static_cast<PoolBackendKind>(77);
  bad[3].name.clear();
  bad[4].pool.clear();
  bad[5].capacity_bytes = 0;
  bad[6].id = "../../etc/passwd";
  bad[7].id = "s-3fa91c02-0123456789abcdef01234567";
  bad[8].inline_use.target = "/etc/passwd";
  bad[9].inline_use.target_root.clear();
  for (const size_t at : {10, 11}) bad[at].backend = PoolBackendKind::kStatic;
  bad[10].source.clear();
  bad[11].source_identity.clear();
  for (int at = 0; at < 3; ++at) bad.push_back(exported);
  bad[12].source = "/dev/sdx";
  bad[13].capacity_bytes = 4096;
  bad[14].is_block = true;
  for (size_t at = 0; at < bad.size(); ++at) EXPECT_TRUE(refused(bad[at])) << at;

  Record moved = EncodeRecord(Volume());
  moved.key = "v-3fa91c02-0123456789abcdef01234568";
  EXPECT_FALSE(DecodePoolVolumeRecord(moved).ok());
  Record later = EncodeRecord(Volume());
  later.version = kMovedPoolVolumeVersion + 1;
  EXPECT_FALSE(DecodePoolVolumeRecord(later).ok());
  Record cut = EncodeRecord(Volume());
  cut.bytes.pop_back();
  EXPECT_FALSE(DecodePoolVolumeRecord(cut).ok());

  PoolRecord pool = ThePool();
  pool.uuid.clear();
  EXPECT_FALSE(DecodePoolRecord(EncodeRecord(pool)).ok());
  pool = ThePool();
  pool.path.clear();
  EXPECT_FALSE(DecodePoolRecord(EncodeRecord(pool)).ok());
}

TEST(PoolRecords, AVolumeIsDescribedForPeople) {
  PoolVolumeRecord record = Volume();
  record.name = "bad \xff bytes";
  const nlohmann::json json = nlohmann::json::parse(DescriptionOf(record, "pool-uuid"));
  EXPECT_EQ(json["id"], kVolumeId);
  EXPECT_EQ(json["pool"], "pool-uuid");
  EXPECT_EQ(json["backend"], "image");
  EXPECT_EQ(json["volumeMode"], "Block");
  EXPECT_EQ(json["capacityBytes"], 1 << 30);
  EXPECT_EQ(json["parameters"]["pool"], "fast");
}

}  // namespace
}  // namespace volumed
