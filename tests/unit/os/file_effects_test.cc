#include "os/file_effects.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

#include "unit/records/temp_directory.h"

namespace volumed {
namespace {

class FileEffectsTest : public ::testing::Test {
 protected:
  SafePath Path(const std::string& name) const { return {temp_.path(), name}; }

  TempDirectory temp_;
};

// An errno that an earlier call has left means nothing.
TEST_F(FileEffectsTest, ADirectoryThatWasMadeIsNoFailure) {
  errno = EACCES;
  const Result<Changed> made =
      DoMakeDirectory({.path = Path("d"), .mode = 0750, .parent_mode = {}});
  ASSERT_TRUE(made.ok()) << made.error().ToString();
  EXPECT_TRUE(made->changed);
  EXPECT_TRUE(std::filesystem::is_directory(temp_.path() + "/d"));
}

TEST_F(FileEffectsTest, WhatIsThereAlreadyIsNotMadeAgain) {
  std::filesystem::create_directory(temp_.path() + "/d");
  WriteAll(temp_.path() + "/f", "text");
  const MakeDirectory directory{.path = Path("d"), .mode = 0750, .parent_mode = {}};
  const MakeDirectory over_file{.path = Path("f"), .mode = 0750, .parent_mode = {}};
  EXPECT_FALSE(DoMakeDirectory(directory)->changed);
  EXPECT_FALSE(DoMakeFile({.path = Path("f"), .mode = 0640})->changed);
  EXPECT_EQ(ReadAll(temp_.path() + "/f"), "text");
  EXPECT_EQ(DoMakeDirectory(over_file).error().sys_errno(), EEXIST);
  EXPECT_EQ(DoMakeFile({.path = Path("d"), .mode = 0640}).error().sys_errno(), EEXIST);
}

TEST_F(FileEffectsTest, WhatCannotBeRemovedSaysWhy) {
  std::filesystem::create_directories(temp_.path() + "/d/below");
  WriteAll(temp_.path() + "/f", "text");
  EXPECT_EQ(DoRemoveDirectory({Path("d")}).error().sys_errno(), ENOTEMPTY);
  EXPECT_EQ(DoRemoveDirectory({Path("f")}).error().sys_errno(), ENOTDIR);
  EXPECT_EQ(DoRemoveFile({Path("d")}).error().sys_errno(), EISDIR);
  EXPECT_FALSE(DoRemoveFile({Path("gone")})->changed);
}

}  // namespace
}  // namespace volumed
