#include "os/mount_options.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

namespace volumed {
namespace {

TEST(MountOptions, FlagsAndParametersAreTakenApart) {
  auto parsed = ParseMountOptions({"ro,nosuid", "size=1m", "noswap", "", "mode=0750"});
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->attributes, uint64_t{MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID});
  EXPECT_EQ(parsed->clear_attributes, 0u);
  ASSERT_EQ(parsed->parameters.size(), 3u);
  EXPECT_EQ(parsed->parameters[0].key, "size");
  EXPECT_EQ(parsed->parameters[0].value, "1m");
  EXPECT_FALSE(parsed->parameters[0].is_flag);
  EXPECT_EQ(parsed->parameters[1].key, "noswap");
  EXPECT_TRUE(parsed->parameters[1].is_flag);
}

TEST(MountOptions, TheLaterWordWins) {
  auto parsed = ParseMountOptions({"ro", "noexec", "rw", "noatime", "strictatime"});
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->attributes, uint64_t{MOUNT_ATTR_NOEXEC | MOUNT_ATTR_STRICTATIME});
  EXPECT_EQ(parsed->clear_attributes, uint64_t{MOUNT_ATTR_RDONLY});
  EXPECT_TRUE(parsed->sets_atime);
}

TEST(MountOptions, WordsForProgramsAreDropped) {
  auto parsed = ParseMountOptions({"_netdev,nofail,defaults,x-systemd.automount,comment=a,X-b"});
  ASSERT_TRUE(parsed.ok());
  EXPECT_TRUE(parsed->parameters.empty());
  EXPECT_EQ(parsed->attributes, 0u);
}

TEST(MountOptions, WordsThatAreAnotherRequestAreRefused) {
  for (const char* word : {"bind", "rbind", "remount", "move", "shared", "rprivate"}) {
    auto parsed = ParseMountOptions({"ro", word});
    ASSERT_FALSE(parsed.ok()) << word;
    EXPECT_EQ(parsed.error().code(), Code::kInvalidArgument);
  }
  EXPECT_FALSE(ParseMountOptions({"=x"}).ok());
}

TEST(MountOptions, AttributesSurviveTheWayOverMountFlags) {
  EXPECT_EQ(AttributesToMountFlags(MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME),
            static_cast<unsigned long>(MS_RDONLY | MS_NODEV | MS_NOATIME));
  EXPECT_EQ(AttributesToMountFlags(0), static_cast<unsigned long>(MS_RELATIME));
  EXPECT_EQ(AttributesFromStatfsFlags(ST_RDONLY | ST_NOEXEC | ST_RELATIME),
            uint64_t{MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC});
  EXPECT_EQ(AttributesFromStatfsFlags(ST_NOATIME), uint64_t{MOUNT_ATTR_NOATIME});
  EXPECT_EQ(AttributesFromStatfsFlags(0), uint64_t{MOUNT_ATTR_STRICTATIME});
}

}  // namespace
}  // namespace volumed
