#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "os/file_effects.h"
#include "unit/records/temp_directory.h"

namespace volumed {
namespace {

class ReadFileTest : public ::testing::Test {
 protected:
  Result<FileContent> Read(uint64_t max_bytes = 10) {
    return DoReadFile({{temp_.path(), "file"}, max_bytes});
  }

  TempDirectory temp_;
  const std::string file_ = temp_.path() + "/file";
};

// An errno that an earlier call has left means nothing.
TEST_F(ReadFileTest, TheEndOfAFileIsNoInterruption) {
  WriteAll(file_, "text");
  errno = EINTR;
  const Result<FileContent> read = Read();
  ASSERT_TRUE(read.ok()) << read.error().ToString();
  EXPECT_EQ(read->bytes, "text");
}

TEST_F(ReadFileTest, AFileOfTheLargestSizeIsReadAndALargerOneRefused) {
  WriteAll(file_, "0123456789");
  EXPECT_EQ(Read()->bytes, "0123456789");
  WriteAll(file_, "0123456789a");
  EXPECT_EQ(Read().error().code(), Code::kOutOfRange);
}

TEST_F(ReadFileTest, OnlyAFileIsRead) {
  std::filesystem::create_directory(file_);
  EXPECT_EQ(Read().error().sys_errno(), EISDIR);
  std::filesystem::remove(file_);
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  EXPECT_EQ(Read().error().code(), Code::kFailedPrecondition) << "without waiting for a writer";
}

}  // namespace
}  // namespace volumed
