#include "volume/unique_name.h"

#include <gtest/gtest.h>

namespace volumed {
namespace {

TEST(UniqueNameTest, SharedVolumeIsPluginAndVolumeName) {
  EXPECT_EQ(GetUniqueVolumeName("kubernetes.io/csi", "ebs.csi.aws.com^vol-1").str(),
            "kubernetes.io/csi/ebs.csi.aws.com^vol-1");
}

TEST(UniqueNameTest, VolumeOfOnePodCarriesItsUid) {
  EXPECT_EQ(
      GetUniqueVolumeNameFromSpecWithPod(PodUid("8f1c"), "kubernetes.io/secret", SpecName("token"))
          .str(),
      "kubernetes.io/secret/8f1c-token");
}

TEST(UniqueNameTest, SplitReversesBoth) {
  const auto parts = SplitUniqueName(GetUniqueVolumeName("kubernetes.io/nfs", "srv/export/a"));
  ASSERT_TRUE(parts.ok());
  EXPECT_EQ(parts->plugin_name, "kubernetes.io/nfs");
  EXPECT_EQ(parts->volume_name, "srv/export/a");
}

TEST(UniqueNameTest, SplitKeepsAnEmptyVolumeName) {
  const auto parts = SplitUniqueName(UniqueVolumeName("a/b/"));
  ASSERT_TRUE(parts.ok());
  EXPECT_EQ(*parts, (UniqueNameParts{"a/b", ""}));
}

TEST(UniqueNameTest, SplitRefusesFewerThanThreeParts) {
  for (const char* name : {"", "a", "kubernetes.io/nfs"}) {
    const auto parts = SplitUniqueName(UniqueVolumeName(name));
    ASSERT_FALSE(parts.ok()) << name;
    EXPECT_EQ(parts.error().code(), Code::kInvalidArgument);
    EXPECT_EQ(parts.error().message(), "cannot split volume unique name " + std::string(name) +
                                           " to get plugin/volume names");
  }
}

}  // namespace
}  // namespace volumed
