// What an administrator names as a file may be anything.
#include "base/regular_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace volumed {
namespace {

class RegularFileTest : public ::testing::Test {
 protected:
  RegularFileTest() {
    char name[] = "/tmp/volumed-file-XXXXXX";
    directory_ = ::mkdtemp(name);
  }
  ~RegularFileTest() override { std::filesystem::remove_all(directory_); }
  std::string directory_;
};

TEST_F(RegularFileTest, ItsContentIsRead) {
  std::ofstream(directory_ + "/f") << "text";
  EXPECT_EQ(ReadRegularFile(directory_ + "/f", 4).value(), "text");
  const auto larger = ReadRegularFile(directory_ + "/f", 3);
  ASSERT_FALSE(larger.ok());
  EXPECT_EQ(larger.error().code(), Code::kResourceExhausted);
  EXPECT_EQ(ReadRegularFile(directory_ + "/g", 3).error().code(), Code::kNotFound);
}

// At a reload a directory ended the agent, and a FIFO or a device without an end stopped it.
TEST_F(RegularFileTest, WhatIsNoRegularFileIsNeitherWaitedForNorReadForEver) {
  ASSERT_EQ(::mkfifo((directory_ + "/fifo").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/zero", directory_ + "/zero");
  for (const std::string& path : {directory_, directory_ + "/fifo", directory_ + "/zero"}) {
    const auto read = ReadRegularFile(path, 100);
    ASSERT_FALSE(read.ok()) << path;
    EXPECT_NE(read.error().message().find("is not a regular file"), std::string::npos);
  }
}

}  // namespace
}  // namespace volumed
