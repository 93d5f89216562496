// Filesystems that have a part of themselves on another device: what changes a copy of the one
// finds the other by its UUID, wherever it is on the node, and writes to it.
#include <string>

#include "fakes/must.h"
#include "integration/mounter/block_mount_fixture.h"

namespace volumed {
namespace {

class FilesystemPartsTest : public BlockMountTest {
 protected:
  void SetUp() override {
    BlockMountTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    first_.emplace(Image("first"));
    second_.emplace(Image("second"));
    ASSERT_TRUE(first_->valid() && second_->valid());
  }
  DeviceProbe Probe(const LoopDevice& device) {
    return Must(local_->Call(ProbeDevice{device.path()}, {}));
  }
  // Of a copy of the first one, another UUID is refused, and the second one stays as it is.
  void ExpectOnlyACopyIsLookedAt() {
    const DeviceProbe probe = Probe(*first_);
    EXPECT_TRUE(probe.spans_devices);
    ASSERT_EQ(Shell("sync; cp " + Path("first") + " " + Path("copy") + " && cp " + Path("second") +
                    " " + Path("before")),
              0);
    const ChangeFilesystemUuid change{{scratch(), "copy"},
                                      {},
                                      probe.fs_type,
                                      probe.identity.uuid,
                                      "5f4dcc3b-0000-4000-8000-000000000001"};
    const Result<FilesystemName> changed = local_->Call(change, {});
    ASSERT_FALSE(changed.ok());
    EXPECT_EQ(changed.error().code(), Code::kFailedPrecondition) << changed.error().ToString();
    EXPECT_FALSE(changed.error().maybe_applied());
    EXPECT_EQ(Shell("sync; cmp " + Path("second") + " " + Path("before")), 0);
  }

  std::optional<LoopDevice> first_;
  std::optional<LoopDevice> second_;
};

TEST_F(FilesystemPartsTest, OneThatIsWholeIsSaidToBe) {
  for (const char* const type : {"ext4", "xfs", "btrfs"}) {
    ASSERT_NO_FATAL_FAILURE(Mkfs(type, first_->path()));
    EXPECT_FALSE(Probe(*first_).spans_devices) << type;
    ASSERT_EQ(Shell("wipefs -qa " + first_->path()), 0);
  }
}

// What was made of a snapshot of the one rewrote the other, which nobody had named: neither was
// mounted from then on.
TEST_F(FilesystemPartsTest, TheOtherDeviceOfABtrfsWasWrittenTo) {
  ASSERT_EQ(Shell("mkfs.btrfs -f -q -d raid0 -m raid1 " + first_->path() + " " + second_->path()),
            0);
  ASSERT_NO_FATAL_FAILURE(ExpectOnlyACopyIsLookedAt());
}

TEST_F(FilesystemPartsTest, TheJournalOfAnExtOnAnotherDeviceWasWrittenTo) {
  ASSERT_EQ(Shell("mke2fs -q -F -O journal_dev " + second_->path()), 0);
  ASSERT_EQ(Shell("mkfs.ext4 -q -F -J device=" + second_->path() + " " + first_->path()), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectOnlyACopyIsLookedAt());
}

// The superblock named an inode of its own as well, and e2fsck went by the device.
TEST_F(FilesystemPartsTest, AnExtThatNamesAnInodeBesideAnotherDeviceForItsJournalPassedForWhole) {
  ASSERT_EQ(Shell("mke2fs -q -F -O journal_dev " + second_->path()), 0);
  ASSERT_EQ(Shell("mkfs.ext4 -q -F -J device=" + second_->path() + " " + first_->path()), 0);
  ASSERT_EQ(Shell("debugfs -w -R 'ssv journal_inum 8' " + first_->path()), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectOnlyACopyIsLookedAt());
  SafeMountRequest request = Request(*first_, "ext4");
  request.needs_whole = true;
  const SafeMountReport report = Run(request);
  EXPECT_FALSE(report.status.ok()) << Text(report);
  EXPECT_FALSE(Mounted());
  EXPECT_EQ(Shell("sync; cmp " + Path("second") + " " + Path("before")), 0);
}

TEST_F(FilesystemPartsTest, TheLogOfAnXfsOnAnotherDeviceIsLeftAlone) {
  ASSERT_EQ(Shell("mkfs.xfs -q -f -l logdev=" + second_->path() + ",size=64m " + first_->path()),
            0);
  ASSERT_NO_FATAL_FAILURE(ExpectOnlyACopyIsLookedAt());
}

}  // namespace
}  // namespace volumed
