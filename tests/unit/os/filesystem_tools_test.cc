#include "os/filesystem_tools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace volumed {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

FormatDevice Request(const std::string& fs_type) {
  FormatDevice request;
  request.device = "/dev/sdb";
  request.fs_type = fs_type;
  request.fs_uuid = "u";
  return request;
}

TEST(MkfsArguments, AreThoseOfTheTypeAndForceNothing) {
  EXPECT_THAT(*MkfsArguments(Request("ext2")), ElementsAre("-q", "-U", "u", "-E", "nodiscard"));
  EXPECT_THAT(*MkfsArguments(Request("ext3")),
              ElementsAre("-q", "-U", "u", "-E", "nodiscard", "-m0"));
  EXPECT_THAT(*MkfsArguments(Request("ext4")),
              ElementsAre("-q", "-U", "u", "-E", "nodiscard,lazy_itable_init=1,lazy_journal_init=0",
                          "-m0"));
  EXPECT_THAT(*MkfsArguments(Request("xfs")), ElementsAre("-q", "-K", "-m", "uuid=u"));
  EXPECT_THAT(*MkfsArguments(Request("btrfs")), ElementsAre("-q", "-K", "-U", "u"));
  EXPECT_EQ(MkfsArguments(Request("vfat")).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(MkfsArguments(Request("../x")).error().code(), Code::kInvalidArgument);
}

// An ext that was cut off is never repeated, so nothing ever forces its mkfs.
TEST(MkfsArguments, ARepetitionForcesWhereThereIsAMarkToRepeatOver) {
  for (const char* type : {"ext2", "ext3", "ext4", "xfs", "btrfs"}) {
    FormatDevice request = Request(type);
    EXPECT_THAT(*MkfsArguments(request), Not(Contains("-f")));
    request.repeat = true;
    if (type[0] == 'e') {
      EXPECT_THAT(*MkfsArguments(request), Not(Contains("-F")));
    } else {
      EXPECT_THAT(*MkfsArguments(request), Contains("-f"));
    }
  }
}

TEST(MkfsArguments, TheJournalIsLeftForLaterOnlyWhereEverythingReadsAsZero) {
  FormatDevice request = Request("ext4");
  request.reads_zero = true;
  EXPECT_THAT(*MkfsArguments(request),
              Contains("nodiscard,lazy_itable_init=1,lazy_journal_init=1"));
}

TEST(MkfsArguments, TheCallersExtendedOptionsAreJoinedToOurs) {
  FormatDevice request = Request("ext2");
  request.options = {"-b", "1024", "-E", "stride=4", "-L", "x"};
  EXPECT_THAT(*MkfsArguments(request),
              ElementsAre("-b", "1024", "-L", "x", "-q", "-U", "u", "-E", "nodiscard,stride=4"));
  request = Request("xfs");
  request.options = {"-L", "x"};
  EXPECT_THAT(*MkfsArguments(request), ElementsAre("-L", "x", "-q", "-K", "-m", "uuid=u"));
}

}  // namespace
}  // namespace volumed
