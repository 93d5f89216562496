// A small file is written whole, and synced unless the caller can lose it.
#include "os/write_file.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "unit/records/temp_directory.h"

namespace {

int syncs = 0;  // of this program

}  // namespace

// Stands in for the C library's, and does the same.
extern "C" int fsync(int file) {
  ++syncs;
  return static_cast<int>(::syscall(SYS_fsync, file));
}

namespace volumed {
namespace {

class WriteFileTest : public ::testing::Test {
 protected:
  // How often something was synced; -1 after a failure.
  int Write(const std::string& content, bool unsynced) {
    const int before = syncs;
    const Result<Changed> written =
        DoWriteFile({{temp_.path(), "f"}, Secret<std::string>(content), 0640, unsynced});
    if (!written.ok()) return -1;
    changed_ = written->changed;
    return syncs - before;
  }

  TempDirectory temp_;
  bool changed_ = false;
};

TEST_F(WriteFileTest, TheFileIsSyncedAndThenItsDirectory) {
  EXPECT_EQ(Write("one", /*unsynced=*/false), 2);
  EXPECT_EQ(ReadAll(temp_.path() + "/f"), "one");
  EXPECT_EQ(Write("one", /*unsynced=*/false), 0) << "it is so already";
  EXPECT_FALSE(changed_);
}

TEST_F(WriteFileTest, OneThatMayBeLostIsWrittenWholeAndNotSynced) {
  EXPECT_EQ(Write("one", /*unsynced=*/false), 2);
  std::filesystem::create_hard_link(temp_.path() + "/f", temp_.path() + "/hard");
  EXPECT_EQ(Write("another", /*unsynced=*/true), 0);
  EXPECT_TRUE(changed_);
  EXPECT_EQ(ReadAll(temp_.path() + "/f"), "another");
  EXPECT_EQ(ReadAll(temp_.path() + "/hard"), "one") << "a new file has taken the place";
  EXPECT_FALSE(std::filesystem::exists(temp_.path() + "/.f.new"));
}

}  // namespace
}  // namespace volumed
