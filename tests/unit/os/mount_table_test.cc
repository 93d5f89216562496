#include "os/mount_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Result<std::vector<MountEntry>> Parse(std::string text) {
  std::FILE* stream = ::fmemopen(text.data(), text.size(), "r");
  auto entries = ParseMountTable(stream, "table");
  std::fclose(stream);
  return entries;
}

constexpr char kTable[] =
    "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw,errors=remount-ro\n"
    "30 22 0:25 / /run rw,nosuid shared:5 master:2 - tmpfs tmpfs rw,size=1024k\n"
    "41 22 254:0 /var/data\\040x /mnt/with\\040space\\134end ro,nodev - ext4 /dev/vda rw\n"
    "42 30 0:26 / /run/a rw - tmpfs one rw\n"
    "43 42 0:27 / /run/a rw - tmpfs two rw\n";

TEST(MountTable, ParsesEveryField) {
  auto entries = Parse(kTable);
  ASSERT_TRUE(entries.ok()) << entries.error().ToString();
  ASSERT_EQ(entries->size(), 5u);
  const MountEntry& run = (*entries)[1];
  EXPECT_EQ(run.mount_id, 30u);
  EXPECT_EQ(run.parent_id, 22u);
  EXPECT_EQ(run.device_major, 0u);
  EXPECT_EQ(run.device_minor, 25u);
  EXPECT_EQ(run.root, "/");
  EXPECT_EQ(run.mount_point, "/run");
  EXPECT_THAT(run.options, ElementsAre("rw", "nosuid"));
  EXPECT_THAT(run.propagation, ElementsAre("shared:5", "master:2"));
  EXPECT_EQ(run.fs_type, "tmpfs");
  EXPECT_EQ(run.source, "tmpfs");
  EXPECT_THAT(run.super_options, ElementsAre("rw", "size=1024k"));
  EXPECT_FALSE(run.read_only());
  EXPECT_THAT((*entries)[0].propagation, IsEmpty());
}

TEST(MountTable, UnescapesSpacesAndBackslashes) {
  auto entries = Parse(kTable);
  ASSERT_TRUE(entries.ok());
  EXPECT_EQ((*entries)[2].root, "/var/data x");
  EXPECT_EQ((*entries)[2].mount_point, "/mnt/with space\\end");
  EXPECT_TRUE((*entries)[2].read_only());
}

TEST(MountTable, ALineThatCannotBeReadIsAnErrorAndNotLeftOut) {
  auto entries = Parse("22 1 254:0 / / rw - ext4 /dev/vda rw\nnonsense\n");
  ASSERT_FALSE(entries.ok());
  EXPECT_EQ(entries.error().code(), Code::kDataLoss);
  EXPECT_THAT(entries.error().message(), HasSubstr("line 2"));
}

TEST(MountTable, FindsTheTopMountAndTheCoveringOne) {
  const MountSnapshot table(Parse(kTable).value());
  EXPECT_EQ(table.FindTop("/run/a")->source, "two");
  EXPECT_EQ(table.FindTop("/run/b"), nullptr);
  EXPECT_EQ(table.FindById(42)->source, "one");
  EXPECT_EQ(table.FindById(99), nullptr);
  EXPECT_EQ(table.FindCovering("/run/a/deep/er")->source, "two");
  EXPECT_EQ(table.FindCovering("/run/ab")->mount_point, "/run");
  EXPECT_EQ(table.FindCovering("/other")->mount_point, "/");
  EXPECT_EQ(table.FindCovering("/")->mount_point, "/");
}

TEST(MountTable, FindsWhatLiesBelowAPathButNotBesideIt) {
  const MountSnapshot table(Parse(kTable).value());
  EXPECT_EQ(table.Find({.below = "/run"}).size(), 3u);
  EXPECT_EQ(table.Find({.below = "/run/a"}).size(), 2u);
  EXPECT_EQ(table.Find({.below = "/ru"}).size(), 0u);
  EXPECT_EQ(table.Find({.below = "/"}).size(), 5u);
}

TEST(MountTable, FindsWhatAPathMayLieOn) {
  const std::vector<MountEntry> table = Parse(kTable).value();
  const ListMounts around{.around = "/run/a/b"};
  EXPECT_EQ(MountSnapshot(table).Find(around).size(), 4u);
  EXPECT_EQ(SelectMounts(table, around).size(), 4u);
  EXPECT_EQ(MountSnapshot(table).Find({.around = "/run/ab"}).size(), 2u);
  EXPECT_EQ(MountSnapshot(table).Find({.around = "/"}).size(), 1u);
}

TEST(MountTable, FindsWhereAPartOfAFilesystemShows) {
  const std::vector<MountEntry> table = Parse(kTable).value();
  const auto find = [&table](const FilesystemPart& part) {
    ListMounts question;
    question.showing = part;
    std::vector<std::string> points;
    for (const MountEntry& mount : MountSnapshot(table).Find(question)) {
      points.push_back(mount.mount_point);
    }
    EXPECT_EQ(points.size(), SelectMounts(table, question).size());
    return points;
  };
  EXPECT_THAT(find({254, 0, "/"}), ElementsAre("/"));
  EXPECT_THAT(find({254, 0, "/var/data x"}), ElementsAre("/mnt/with space\\end"));
  EXPECT_THAT(find({254, 0, "/var"}), IsEmpty());
  EXPECT_THAT(find({254, 0, ""}), ElementsAre("/", "/mnt/with space\\end"));
  EXPECT_THAT(find({0, 2, ""}), IsEmpty()) << "0:25 is another number";
}

TEST(MountTable, AQuestionIsOneAndItsPathIsClean) {
  EXPECT_TRUE(CheckMountQuestion({}).ok());
  EXPECT_TRUE(CheckMountQuestion({.below = "/a"}).ok());
  EXPECT_EQ(CheckMountQuestion({.below = "a"}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(CheckMountQuestion({.around = "/a/../b"}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(CheckMountQuestion({.below = "/a", .around = "/a"}).error().code(),
            Code::kInvalidArgument);
}

TEST(MountTable, TheDifferenceNamesWhatCameWentAndChanged) {
  std::vector<MountEntry> before = Parse(kTable).value();
  std::vector<MountEntry> after = before;
  after.erase(after.begin() + 3);       // 42 went
  after[1].options = {"ro", "nosuid"};  // 30 changed
  after[2].root = "/another";           // 41 is another mount with the same id
  after.push_back(before[0]);
  after.back().mount_id = 77;  // came
  const MountTableChange change = DiffMounts(MountSnapshot(before), MountSnapshot(after));
  ASSERT_EQ(change.added.size(), 2u);
  EXPECT_EQ(change.added[0].root, "/another");
  EXPECT_EQ(change.added[1].mount_id, 77u);
  ASSERT_EQ(change.removed.size(), 2u);
  EXPECT_EQ(change.removed[0].root, "/var/data x");
  EXPECT_EQ(change.removed[1].mount_id, 42u);
  ASSERT_EQ(change.changed.size(), 1u);
  EXPECT_TRUE(change.changed[0].read_only());
  EXPECT_TRUE(DiffMounts(MountSnapshot(before), MountSnapshot(before)).empty());
}

TEST(MountTable, TheTopMountIsTheOneThatNoOtherLiesOnAndNotTheLast) {
  // 50 was moved onto 52, which is on 51.
  const MountSnapshot table(Parse("22 1 254:0 / / rw - ext4 /dev/vda rw\n"
                                  "50 52 0:30 / /m rw - tmpfs top rw\n"
                                  "51 22 0:31 / /m rw - tmpfs bottom rw\n"
                                  "52 51 0:32 / /m rw - tmpfs middle rw\n")
                                .value());
  EXPECT_EQ(table.FindTop("/m")->source, "top");
  EXPECT_EQ(table.FindCovering("/m/x")->source, "top");
}

// What a pool had on the larger disk was looked for on the one that it hides.
TEST(MountTable, AMountThatIsHiddenWasTakenForTheOneThatAPathLiesOn) {
  const MountSnapshot table(Parse("22 1 254:0 / / rw - ext4 /dev/vda rw\n"
                                  "30 22 0:30 / /srv/pool rw - ext4 hidden rw\n"
                                  "31 30 0:31 / /srv/pool/volumes rw - ext4 hidden rw\n"
                                  "40 22 0:32 / /srv rw - xfs shown rw\n"
                                  "41 40 0:33 / /srv/pool/cuts rw - ext4 upon rw\n")
                                .value());
  EXPECT_EQ(table.FindCovering("/srv/pool/volumes/v")->source, "shown");
  EXPECT_EQ(table.FindCovering("/srv/pool")->source, "shown");
  EXPECT_EQ(table.FindCovering("/srv/pool/cuts/c")->source, "upon");
  EXPECT_EQ(table.FindCovering("/other")->source, "/dev/vda");
}

TEST(MountTable, NoPathLiesOnWhatIsMountedOverTheRoot) {
  const MountSnapshot table(Parse("60 22 254:0 / / rw - ext4 upon rw\n"
                                  "22 1 254:0 / / rw - ext4 root rw\n"
                                  "30 22 0:30 / /srv rw - ext4 disk rw\n"
                                  "31 60 0:31 / /run rw - tmpfs nowhere rw\n")
                                .value());
  EXPECT_EQ(table.FindCovering("/srv/x")->source, "disk");
  EXPECT_EQ(table.FindCovering("/run/x")->source, "root");
  EXPECT_EQ(table.FindCovering("/")->source, "root");
}

TEST(MountTable, WhereTheRootIsNoMountPointTheOthersAreFoundAllTheSame) {
  const MountSnapshot table(Parse("30 22 0:30 / /srv rw - ext4 disk rw\n"
                                  "31 30 0:31 / /srv/pool rw - tmpfs upon rw\n")
                                .value());
  EXPECT_EQ(table.FindCovering("/srv/x")->source, "disk");
  EXPECT_EQ(table.FindCovering("/srv/pool/x")->source, "upon");
  EXPECT_EQ(table.FindCovering("/run/x"), nullptr);
}

TEST(MountTable, SelectsWhatLiesBelowAPathInTheSameOrder) {
  const std::vector<MountEntry> below = SelectMounts(Parse(kTable).value(), {.below = "/run"});
  ASSERT_EQ(below.size(), 3u);
  EXPECT_EQ(below[0].mount_point, "/run");
  EXPECT_EQ(below[2].source, "two");
  EXPECT_THAT(SelectMounts(Parse(kTable).value(), {.below = "/ru"}), IsEmpty());
}

TEST(MountTable, ReadsTheTableOfThisProcess) {
  const auto entries = ReadMountTable();
  ASSERT_TRUE(entries.ok()) << entries.error().ToString();
  EXPECT_NE(MountSnapshot(*entries).FindTop("/"), nullptr);
}

}  // namespace
}  // namespace volumed
