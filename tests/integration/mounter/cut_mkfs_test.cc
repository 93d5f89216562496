// The real mkfs of each type, cut off at 50 of its writes: what the program then decides of the
// device, by its own probe and the system's checkers, is what may be decided.
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <set>

#include "integration/mounter/block_mount_fixture.h"
#include "places.h"

namespace volumed {
namespace {

constexpr uint64_t kPoints = 50;

class CutMkfsTest : public BlockMountTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    BlockMountTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    // A checker can be lost in what a power cut leaves. In the program a deadline ends it.
    AddTool("e2fsck", "exec timeout -s KILL 20 /sbin/e2fsck \"$@\"");
    AddTool("xfs_repair", "exec timeout -s KILL 20 /sbin/xfs_repair \"$@\"");
    AddTool("btrfs", "exec timeout -s KILL 20 /bin/btrfs \"$@\"");
    SetMkfs("");
    LocalKernelOptions options;
    options.tool_directories = {Path("tools")};
    auto created = LocalKernel::Create(options);
    ASSERT_TRUE(created.ok()) << created.error().ToString();
    local_ = std::move(created).value();
    kernel_ = std::make_unique<FormatCounter>(*local_);
  }

  static std::string Type() { return GetParam(); }
  // `environment`: how its writes fare, see cut_writes.cc.
  void SetMkfs(const std::string& environment) const {
    const std::string preload =
        environment.empty() ? "" : environment + " LD_PRELOAD=" + CutWritesPath() + " ";
    AddTool("mkfs." + Type(), preload + "exec /sbin/mkfs." + Type() + " \"$@\"");
  }

  // How many writes a whole mkfs makes.
  uint64_t CountWrites() {
    const LoopDevice device(Image());
    SetMkfs("VOLUMED_COUNT=" + Path("count"));
    const SafeMountReport report = Run(Request(device, Type()));
    EXPECT_TRUE(report.status.ok()) << Text(report);
    if (report.status.ok()) Unmount();
    SetMkfs("");
    intents_ = MemoryFormatIntents();
    uint64_t writes = 0;
    std::ifstream(Path("count")) >> writes;
    return writes;
  }

  // The first, the last and as many between them, or all.
  static std::set<uint64_t> Points(uint64_t writes) {
    std::set<uint64_t> points;
    for (uint64_t i = 1; i <= std::min<uint64_t>(writes, 10); ++i) {
      points.insert({i, writes + 1 - i});
    }
    for (uint64_t i = 0; points.size() < std::min(kPoints, writes); ++i) {
      points.insert(1 + (writes - 1) * i / kPoints);
      if (i > kPoints) points.insert(1 + i % writes);
    }
    return points;
  }

  static std::string BytesAt(const std::string& device, int64_t offset, size_t size) {
    std::string bytes(size, '\0');
    std::ifstream file(device, std::ios::binary);
    file.seekg(offset);
    file.read(bytes.data(), static_cast<std::streamsize>(size));
    return bytes;
  }
  static bool IsClean(const std::string& device) {
    const std::string checker = Type() == "xfs"     ? "xfs_repair -n "
                                : Type() == "btrfs" ? "btrfs check --readonly "
                                                    : "e2fsck -fn ";
    return Shell("timeout -s KILL 20 " + checker + device) == 0;
  }

  // What may be done, found out without the program's own eyes but for the proof of blankness.
  std::string Expected(const LoopDevice& device) {
    const std::string uuid = (*intents_.Find("volume"))->fs_uuid;
    const std::string blkid = "blkid -p -s UUID -o value " + device.path();
    const bool has_uuid = Shell("test \"$(" + blkid + ")\" = " + uuid) == 0;
    const bool is_marked = Type() == "xfs"
                               ? has_uuid && BytesAt(device.path(), 126, 1) != std::string(1, '\0')
                               : BytesAt(device.path(), 65536 + 0x40, 8) == "!BHRfS_M";
    if (is_marked) return "repeated";
    if (has_uuid) return IsClean(device.path()) ? "finished" : "refused, unclean";
    const auto probe = kernel_->Call(ProbeDevice{device.path(), false, false}, {});
    if (probe.ok() && probe->blank) return "formatted, blank";
    return Shell("test -z \"$(" + blkid + ")\"") == 0 ? "refused, no superblock" : "refused";
  }

  // After the cut or the loss: the decision, and whether it was the right one. A filesystem that is
  // used is whole.
  std::string Decide(const LoopDevice& device, const std::string& name) {
    const std::string expected = Expected(device);
    const int formats = kernel_->formats();
    const std::string uuid = (*intents_.Find("volume"))->fs_uuid;
    const SafeMountReport report = Run(Request(device, Type()));
    std::string happened = "refused";
    if (report.status.ok()) {
      happened = kernel_->formats() == formats ? "finished" : "formatted";
      EXPECT_TRUE(Mounted().has_value()) << name;
      std::ofstream(Path("mnt/mark")) << name;
      Unmount();
      EXPECT_TRUE(IsClean(device.path())) << name << ": " << expected;
      EXPECT_TRUE((*intents_.Find("volume"))->finished) << name;
      EXPECT_EQ(report.device.uuid == uuid, expected != "formatted, blank") << name;
    } else {
      EXPECT_EQ(kernel_->formats(), formats) << name << ": " << Text(report);
      EXPECT_FALSE(report.status.error().maybe_applied()) << Text(report);
      EXPECT_THAT(Text(report), ::testing::HasSubstr(uuid)) << name;
    }
    const std::string wanted = expected == "repeated" ? "formatted" : expected;
    EXPECT_TRUE(wanted.starts_with(happened))
        << name << ": " << happened << ", not " << expected << "; " << Text(report);
    return expected;
  }

  static void Print(const std::string& title, const std::map<std::string, int>& tally) {
    std::cout << Type() << ", " << title << ":";
    for (const auto& [decision, times] : tally)
      std::cout << " " << decision << " x" << times << ";";
    std::cout << "\n";
  }
};

TEST_P(CutMkfsTest, ACutOffMkfsIsRepeatedFinishedOrRefusedAsWhatItLeftProves) {
  const uint64_t writes = CountWrites();
  ASSERT_GE(writes, kPoints);
  std::map<std::string, int> tally;
  for (const uint64_t point : Points(writes)) {
    const std::string name = "cut at write " + std::to_string(point);
    const LoopDevice device(Image());
    ASSERT_TRUE(device.valid());
    intents_ = MemoryFormatIntents();
    SetMkfs("VOLUMED_CUT_AT=" + std::to_string(point));
    const SafeMountReport cut = Run(Request(device, Type()));
    SetMkfs("");
    ASSERT_FALSE(cut.status.ok()) << name;
    EXPECT_TRUE(cut.status.error().maybe_applied()) << Text(cut);
    EXPECT_THAT(Text(cut), ::testing::HasSubstr("was killed by signal 9")) << name;
    ++tally[Decide(device, name)];
  }
  Print("of " + std::to_string(writes) + " writes", tally);
  const bool has_mark = Type() == "xfs" || Type() == "btrfs";
  EXPECT_EQ(tally["repeated"] > 0, has_mark);
  EXPECT_GT(tally["formatted, blank"], 0);
  EXPECT_TRUE(has_mark || tally["refused, no superblock"] > 0);
}

// What reached the disk of a power cut is any part of what was written.
TEST_P(CutMkfsTest, AfterLostWritesNothingIsUsedThatIsNotWhole) {
  std::map<std::string, int> tally;
  for (int seed = 1; seed <= 20; ++seed) {
    const std::string name = "loss " + std::to_string(seed);
    const LoopDevice device(Image());
    ASSERT_TRUE(device.valid());
    intents_ = MemoryFormatIntents();
    SetMkfs("VOLUMED_LOSE=" + std::to_string(seed));
    intents_.FailNext("finish");  // the power is cut before it
    ASSERT_FALSE(Run(Request(device, Type())).status.ok()) << name;
    SetMkfs("");
    intents_.FailNext("");
    ++tally[Decide(device, name)];
  }
  Print("a quarter of the writes lost", tally);
}

INSTANTIATE_TEST_SUITE_P(Filesystems, CutMkfsTest,
                         ::testing::Values("ext2", "ext3", "ext4", "xfs", "btrfs"),
                         [](const auto& type) { return std::string(type.param); });

}  // namespace
}  // namespace volumed
