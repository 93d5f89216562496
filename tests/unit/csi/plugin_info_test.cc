// What a plugin says of itself: names, versions and endpoints that are taken.
#include "csi/plugin_info.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace volumed {
namespace {

TEST(CsiDriverNameTest, ANameHas63LettersDigitsDashesAndDotsAtMost) {
  for (const std::string& name :
       std::vector<std::string>{"a", "disk.csi.example.com", "A-1.b", std::string(63, 'x')}) {
    EXPECT_TRUE(CheckCsiDriverName(name).ok()) << name;
  }
  for (const std::string& name : std::vector<std::string>{"", ".a", "a.", "-a", "a-", "a/b", "a_b",
                                                          "a b", "a\n", std::string(64, 'x')}) {
    EXPECT_FALSE(CheckCsiDriverName(name).ok()) << name;
  }
}

TEST(PluginVersionTest, TheHighestCountsByItsNumbersAndWhatIsNoVersionIsPassedOver) {
  const Result<PluginVersion> highest =
      HighestSupportedVersion({"1.2.0", "junk", "v1.10.0", "1.9", "1.10.0-rc1"});
  ASSERT_TRUE(highest.ok());
  EXPECT_EQ(highest->numbers, (std::array<uint64_t, 3>{1, 10, 0}));
}

TEST(PluginVersionTest, OnlyMajorOneIsTaken) {
  EXPECT_TRUE(HighestSupportedVersion({"1.0.0"}).ok());
  EXPECT_FALSE(HighestSupportedVersion({"0.3.0"}).ok());
  EXPECT_FALSE(HighestSupportedVersion({"2.0.0", "3.0.0"}).ok());
  EXPECT_FALSE(HighestSupportedVersion({}).ok());
  EXPECT_FALSE(HighestSupportedVersion({"1"}).ok());
  EXPECT_FALSE(HighestSupportedVersion({"99999999999999999999.0"}).ok());
}

// Such a driver was refused.
TEST(PluginVersionTest, ADriverThatOffersALaterMajorVersionTooIsTakenAtOne) {
  for (const std::vector<std::string>& versions :
       {std::vector<std::string>{"1.1.0", "2.0.0", "0.3.0"}, {"2.0.0", "1.1.0"}}) {
    const Result<PluginVersion> highest = HighestSupportedVersion(versions);
    ASSERT_TRUE(highest.ok());
    EXPECT_EQ(highest->text, "1.1.0");
  }
}

TEST(EndpointPlaceTest, AnEndpointIsBelowTheLongestDirectoryThatItLiesIn) {
  const std::vector<std::string> directories = {"/var/lib/kubelet", "/run/csi",
                                                "/var/lib/kubelet/plugins"};
  const Result<SafePath> place =
      PlaceInOneOf(directories, "/var/lib/kubelet/plugins/disk/csi.sock");
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(place->root, "/var/lib/kubelet/plugins");
  EXPECT_EQ(place->relative, "disk/csi.sock");
  EXPECT_EQ(PlaceInOneOf(directories, "/run/csi/a.sock")->root, "/run/csi");
}

TEST(EndpointPlaceTest, AnEndpointThatLeadsElsewhereIsRefused) {
  const std::vector<std::string> directories = {"/var/lib/kubelet"};
  const Result<SafePath> outside = PlaceInOneOf(directories, "/var/lib/kubelet2/a.sock");
  ASSERT_FALSE(outside.ok());
  EXPECT_EQ(outside.error().code(), Code::kPermissionDenied);
  EXPECT_TRUE(outside.error().IsAbout(kCsiSocketRefused));
  for (const std::string& path : std::vector<std::string>{
           "a.sock", "", "/var/lib/kubelet/../../../run/a.sock", "/var/lib/kubelet//a.sock",
           "unix:///var/lib/kubelet/a.sock", "/var/lib/kubelet/."}) {
    const Result<SafePath> place = PlaceInOneOf(directories, path);
    ASSERT_FALSE(place.ok()) << path;
    EXPECT_EQ(place.error().code(), Code::kInvalidArgument) << path;
  }
}

}  // namespace
}  // namespace volumed
