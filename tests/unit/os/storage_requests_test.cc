#include "os/storage_identity.h"

#include <gtest/gtest.h>

namespace volumed {
namespace {

TEST(RemovalDoubtTest, AMissingDirectoryIsBelievedOnlyOfTheFilesystemThatItLayOn) {
  const StorageObject recorded = {"ext4", "u-1", 12, ""};
  EXPECT_EQ(RemovalDoubt(recorded, {"ext4", "u-1", 0, ""}), "");
  EXPECT_NE(RemovalDoubt(recorded, {"ext4", "u-2", 0, ""}), "") << "another disk is mounted";
  EXPECT_NE(RemovalDoubt(recorded, {"xfs", "u-1", 0, ""}), "");
  EXPECT_NE(RemovalDoubt(recorded, {"ext4", "", 0, ""}), "") << "no UUID, so it may be another";
  EXPECT_NE(RemovalDoubt({"ext4", "", 12, ""}, {"ext4", "", 0, ""}), "");
  EXPECT_EQ(RemovalDoubt({"tmpfs", "", 12, ""}, {"tmpfs", "", 0, ""}), "") << "it never has one";
}

TEST(RemovalDoubtTest, OfWhatWasNeverSeenNothingCanBeMissed) {
  EXPECT_EQ(RemovalDoubt({"ext4", "u-1", 0, ""}, {"ext4", "", 0, ""}), "");
  EXPECT_NE(RemovalDoubt({"ext4", "u-1", 0, ""}, {"ext4", "u-2", 0, ""}), "");
}

}  // namespace
}  // namespace volumed
