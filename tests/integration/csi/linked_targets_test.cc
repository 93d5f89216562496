// The CO's own directory is a symbolic link, or lies below one: its volumes are where that leads,
// as the mount table has them.
#include <filesystem>
#include <string>

#include "integration/csi/own_volumes_fixture.h"

namespace volumed::linked_targets_test {
namespace {

namespace fs = std::filesystem;

enum class Link { kIsTheRoot, kIsAboveTheRoot };

class LinkedTargetsTest : public OwnVolumesFixture, public ::testing::WithParamInterface<Link> {
 protected:
  void SetUp() override {
    OwnVolumesFixture::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const std::string link = GetParam() == Link::kIsTheRoot ? co() : scratch() + "/var";
    fs::rename(link, scratch() + "/data");
    fs::create_directory_symlink(scratch() + "/data", link);
  }
  std::string co() const override { return scratch() + "/var/co"; }
  std::string real() const {
    return GetParam() == Link::kIsTheRoot ? scratch() + "/data" : scratch() + "/data/co";
  }
};

INSTANTIATE_TEST_SUITE_P(Links, LinkedTargetsTest,
                         ::testing::Values(Link::kIsTheRoot, Link::kIsAboveTheRoot));

// Nothing could be staged by the one, and nothing published by the other.
TEST_P(LinkedTargetsTest, AVolumeLivesWhereTheLinkLeads) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  for (const bool is_block : {false, true}) {
    const std::string id = Create(is_block ? "raw" : "files", is_block);
    ASSERT_NE(id, "");
    ASSERT_EQ(Stage(id, is_block), "");
    ASSERT_EQ(Publish(id, is_block), "");
    EXPECT_EQ(WriteVolume(is_block, "kept"), "kept");
    EXPECT_EQ(MountsBelow(real() + "/pod-0").size(), 1u);
    EXPECT_GT(TotalBytes(id), 0);
    ASSERT_NO_FATAL_FAILURE(Restart());
    EXPECT_EQ(Stage(id, is_block), "");
    EXPECT_EQ(Publish(id, is_block), "");
    EXPECT_EQ(ReadVolume(is_block), "kept");
    EXPECT_EQ(Unpublish(id), "");
    EXPECT_EQ(Unstage(id), "");
    EXPECT_TRUE(MountsBelow(real()).empty());
    EXPECT_EQ(LeftOnNode(), "");
    EXPECT_EQ(Delete(id), "");
  }
}

}  // namespace
}  // namespace volumed::linked_targets_test
