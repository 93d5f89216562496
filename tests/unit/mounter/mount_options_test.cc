#include "mounter/mount_options.h"

#include <gtest/gtest.h>

namespace volumed {
namespace {

using Options = std::vector<std::string>;

constexpr char kAnnotation[] = "volume.beta.kubernetes.io/mount-options";

TEST(JoinMountOptionsTest, IsASortedUnion) {
  EXPECT_EQ(JoinMountOptions({"ro", "nfsvers=4"}, {"bind", "ro"}),
            (Options{"bind", "nfsvers=4", "ro"}));
}

TEST(JoinMountOptionsTest, DropsEmptyUserOptionsOnly) {
  EXPECT_EQ(JoinMountOptions({"", "a"}, {}), (Options{"a"}));
  EXPECT_EQ(JoinMountOptions({}, {"", "b"}), (Options{"", "b"}));
}

TEST(MountOptionFromSpecTest, SpecOptionsJoinTheSystemOnes) {
  EXPECT_EQ(MountOptionFromSpec({}, {"soft"}, {"ro"}), (Options{"ro", "soft"}));
}

TEST(MountOptionFromSpecTest, TheAnnotationReplacesTheSpec) {
  EXPECT_EQ(MountOptionFromSpec({{kAnnotation, "hard,,nolock"}}, {"soft"}, {"ro"}),
            (Options{"hard", "nolock", "ro"}));
}

TEST(MountOptionFromSpecTest, AnEmptyAnnotationStillReplacesTheSpec) {
  EXPECT_EQ(MountOptionFromSpec({{kAnnotation, ""}}, {"soft"}, {"ro"}), (Options{"ro"}));
}

TEST(MountOptionFromSpecTest, WithoutUserOptionsTheSystemOrderStays) {
  EXPECT_EQ(MountOptionFromSpec({}, {}, {"rw", "bind"}), (Options{"rw", "bind"}));
}

}  // namespace
}  // namespace volumed
