// Properties of DecideFormat over random devices and records, whatever the combination: what a
// table of cases would not think of.
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>

#include "mounter/format_decision.h"
#include "run_numbers.h"

namespace volumed {
namespace {

struct Case {
  FormatQuestion question;
  DeviceProbe probe;
  std::optional<FormatIntent> intent;
};

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  size_t Below(size_t limit) { return static_cast<size_t>(random_() % limit); }
  bool OneIn(size_t times) { return Below(times) == 0; }
  std::string Type() { return OneIn(2) ? "ext4" : OneIn(2) ? "xfs" : "btrfs"; }
  std::string Uuid() { return OneIn(2) ? "ours" : "theirs"; }

 private:
  std::mt19937_64 random_;
};

DeviceProbe RandomProbe(Dice& dice) {
  DeviceProbe probe;
  probe.identity = {1 << 30, 8, 16, 5 + dice.Below(2), dice.OneIn(4) ? "wwid:b" : "wwid:a", ""};
  if (!dice.OneIn(3)) probe.fs_type = dice.OneIn(8) ? "ambivalent" : dice.Type();
  if (!probe.fs_type.empty()) probe.identity.uuid = dice.Uuid();
  if (dice.OneIn(10)) probe.partition_table = "gpt";
  probe.read_only = dice.OneIn(5);
  probe.unfinished = !probe.fs_type.empty() && dice.OneIn(2);
  probe.was_mounted = dice.OneIn(3);
  probe.read_whole = dice.OneIn(2);
  probe.blank = probe.fs_type.empty() && probe.partition_table.empty() && dice.OneIn(2);
  if (!probe.blank) probe.why_not_blank = "bytes";
  if (dice.OneIn(8)) probe.duplicate = "8:32";
  return probe;
}

Case RandomCase(Dice& dice) {
  Case random;
  random.question = {"/dev/sdb", dice.Type(), dice.OneIn(4), dice.OneIn(4)};
  random.question.format_policy = static_cast<FormatPolicy>(dice.Below(3));
  random.question.fsck_policy = static_cast<FsckPolicy>(dice.Below(3));
  random.probe = RandomProbe(dice);
  if (dice.OneIn(2)) return random;
  FormatIntent intent{random.probe.identity, dice.Type(), dice.Uuid(), dice.OneIn(2)};
  intent.device.uuid.clear();
  if (dice.OneIn(4)) intent.device.stable_id = "wwid:c";
  random.intent = intent;
  return random;
}

bool MayWrite(const Case& given) {
  return !given.question.read_only && !given.probe.read_only &&
         given.question.format_policy != FormatPolicy::kNever;
}

// Of all that could be on the disk, only a mark that our own interrupted mkfs left.
bool IsLeftByOurFormat(const Case& given) {
  return given.intent && !given.intent->finished && given.probe.unfinished &&
         given.probe.partition_table.empty() &&
         given.probe.identity.uuid == given.intent->fs_uuid &&
         given.probe.fs_type == given.question.fs_type &&
         given.intent->fs_type == given.question.fs_type;
}

void CheckFormat(const Case& given) {
  EXPECT_TRUE(given.probe.blank);
  EXPECT_TRUE(MayWrite(given));
  EXPECT_FALSE(given.intent && given.intent->finished) << "it had a filesystem: its data is lost";
  if (given.question.format_policy == FormatPolicy::kFullScan) {
    EXPECT_TRUE(given.probe.read_whole);
  }
}

void CheckMount(const Case& given) {
  EXPECT_EQ(given.probe.fs_type, given.question.fs_type);
  EXPECT_FALSE(given.probe.unfinished);
  EXPECT_TRUE(given.probe.partition_table.empty());
  EXPECT_TRUE(given.question.read_only || !given.probe.read_only);
  if (given.intent && given.intent->finished) {
    EXPECT_EQ(given.intent->fs_uuid, given.probe.identity.uuid) << "another disk";
  }
}

void CheckDecision(const Case& given) {
  const FormatDecision decision = DecideFormat(given.question, given.probe, given.intent);
  EXPECT_EQ(decision.reason.empty(), decision.action != FormatAction::kRefuse);
  switch (decision.action) {
    case FormatAction::kFormat:
      return CheckFormat(given);
    case FormatAction::kFullScan:
      EXPECT_FALSE(given.probe.read_whole);
      EXPECT_TRUE(given.probe.blank && MayWrite(given));
      return;
    case FormatAction::kRepeatFormat:
      EXPECT_TRUE(IsLeftByOurFormat(given) && MayWrite(given));
      return;
    case FormatAction::kProveFinished:
      EXPECT_TRUE(given.intent && !given.intent->finished && !given.probe.was_mounted);
      return CheckMount(given);
    case FormatAction::kMount:
      EXPECT_FALSE(decision.check == CheckMode::kPreen && given.question.read_only);
      return CheckMount(given);
    case FormatAction::kRefuse:
      return;
  }
}

TEST(DecideFormatRandom, NothingThatSomebodyElseCouldHaveLeftIsFormatted) {
  const uint64_t seed = NumberOfRun("VOLUMED_SEED", 1);
  Dice dice(seed);
  for (int i = 0; i < 100'000; ++i) {
    CheckDecision(RandomCase(dice));
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << ", case " << i;
  }
}

// Data on the disk never makes formatting likelier.
TEST(DecideFormatRandom, WhatIsOnTheDiskStaysWithoutOurMark) {
  Dice dice(2);
  for (int i = 0; i < 100'000; ++i) {
    Case random = RandomCase(dice);
    random.probe.blank = false;
    random.probe.why_not_blank = "bytes";
    if (random.intent) random.intent->fs_uuid = "drawn";
    const FormatAction action = DecideFormat(random.question, random.probe, random.intent).action;
    ASSERT_TRUE(action == FormatAction::kMount || action == FormatAction::kRefuse) << i;
  }
}

}  // namespace
}  // namespace volumed
