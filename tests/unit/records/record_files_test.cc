// The files beside the database: the ballast, and the file that counts the transactions.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "records/ballast.h"
#include "records/number_file.h"
#include "unit/records/temp_directory.h"

namespace volumed {
namespace {

struct stat StatOf(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
  return info;
}

TEST(BallastTest, IsSpentOnceAndThenUntilItIsRestored) {
  const TempDirectory temp;
  const std::string path = temp.path() + "/ballast";
  Ballast ballast(path, 1 << 16);
  ASSERT_TRUE(ballast.Restore().ok());
  EXPECT_FALSE(ballast.spent());
  EXPECT_EQ(StatOf(path).st_size, 1 << 16);
  EXPECT_TRUE(ballast.Spend());
  EXPECT_TRUE(ballast.spent());
  EXPECT_EQ(StatOf(path).st_size, 0);
  EXPECT_FALSE(ballast.Spend()) << "there is none to give any more";
  ASSERT_TRUE(ballast.Restore().ok());
  EXPECT_FALSE(ballast.spent());
  EXPECT_TRUE(ballast.Spend());
}

TEST(BallastTest, OfNoSizeIsNeverSpent) {
  const TempDirectory temp;
  Ballast ballast(temp.path() + "/ballast", 0);
  ASSERT_TRUE(ballast.Restore().ok());
  EXPECT_FALSE(ballast.Spend());
  EXPECT_FALSE(ballast.spent());
}

TEST(BallastTest, WhatIsNoFileIsAnErrorAndGivesNothing) {
  const TempDirectory temp;
  Ballast ballast(temp.path(), 1 << 16);
  EXPECT_FALSE(ballast.Restore().ok());
  EXPECT_TRUE(ballast.spent());
  EXPECT_FALSE(ballast.Spend());
}

TEST(NumberFileTest, IsMadeOnceAndThenOverwrittenInItsPlace) {
  const TempDirectory temp;
  NumberFile file(temp.path() + "/number");
  ASSERT_TRUE(file.Open().ok());
  EXPECT_EQ(file.state(), NumberFile::State::kMissing);
  ASSERT_TRUE(file.Make({"records", 7}).ok());
  EXPECT_EQ(file.state(), NumberFile::State::kWhole);
  EXPECT_EQ(file.found(), (RecordsNumber{"records", 7}));
  const ino_t inode = StatOf(file.path()).st_ino;
  ASSERT_TRUE(file.Write({"records", 8}).ok());
  ASSERT_TRUE(file.Write({"records", 9}).ok());
  EXPECT_EQ(StatOf(file.path()).st_ino, inode);
  NumberFile again(file.path());
  ASSERT_TRUE(again.Open().ok());
  EXPECT_EQ(again.state(), NumberFile::State::kWhole);
  EXPECT_EQ(again.found(), (RecordsNumber{"records", 9}));
}

TEST(NumberFileTest, ATornSlotLeavesTheOtherAndTwoLeaveADamagedFile) {
  const TempDirectory temp;
  NumberFile file(temp.path() + "/number");
  ASSERT_TRUE(file.Make({"records", 7}).ok());
  ASSERT_TRUE(file.Write({"records", 8}).ok());  // slot 0; 7 is in slot 1
  std::string bytes = ReadAll(file.path());
  bytes[0] = '?';
  WriteAll(file.path(), bytes);
  NumberFile half(file.path());
  ASSERT_TRUE(half.Open().ok());
  EXPECT_EQ(half.state(), NumberFile::State::kWhole);
  EXPECT_EQ(half.found().number, 7u);
  bytes[4096] = '?';
  WriteAll(file.path(), bytes);
  NumberFile torn(file.path());
  ASSERT_TRUE(torn.Open().ok());
  EXPECT_EQ(torn.state(), NumberFile::State::kDamaged);
}

TEST(NumberFileTest, WhatIsNoFileOfThisProgramIsADamagedOne) {
  const TempDirectory temp;
  std::filesystem::create_directory(temp.path() + "/number");
  NumberFile file(temp.path() + "/number");
  ASSERT_TRUE(file.Open().ok());
  EXPECT_EQ(file.state(), NumberFile::State::kDamaged);
}

}  // namespace
}  // namespace volumed
