// A loop device is asked for its file, and its file's filesystem has failed.
#include "os/loop_file.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <optional>
#include <string>

#include "fakes/must.h"
#include "os/safe_path.h"
#include "unit/records/temp_directory.h"

namespace volumed {
namespace {

// What is no loop device has another error than one that has no file, as has one whose file's
// filesystem was shut down.
class LoopFileTest : public ::testing::Test {
 protected:
  LoopFileTest() { WriteAll(image_, "a volume"); }
  std::optional<FileOfLoops> Image() {
    return Must(FileOfLoops::At(SafePath{dir_.path(), "image"}));
  }
  static Result<bool> Ask(FileOfLoops& file, const std::string& shown) {
    return file.MayBeOn("null", {shown, false}, "ask");
  }

  TempDirectory dir_;
  const std::string image_ = dir_.path() + "/image";
};

TEST_F(LoopFileTest, ALoopDeviceOfSomebodysFailedFilesystemStoppedEachAttachment) {
  std::optional<FileOfLoops> file = Image();
  ASSERT_TRUE(file);
  const auto status = Ask(*file, "/mnt/broken/disk");
  ASSERT_TRUE(status.ok()) << status.error().ToString();
  EXPECT_FALSE(*status);
}

// The file of each volume of each pool is called "image".
TEST_F(LoopFileTest, AFailedOneThatIsShownByTheNameOfEachImageStoppedEachAttachment) {
  std::optional<FileOfLoops> file = Image();
  ASSERT_TRUE(file);
  const auto status = Ask(*file, "/image");
  ASSERT_TRUE(status.ok()) << status.error().ToString();
  EXPECT_FALSE(*status);
}

TEST_F(LoopFileTest, OneThatIsShownWithThisFileIsNotTakenForAnothers) {
  std::optional<FileOfLoops> file = Image();
  ASSERT_TRUE(file);
  const std::string with_directory = image_.substr(dir_.path().rfind('/'));
  for (const std::string& shown : {image_, with_directory}) {
    const auto status = Ask(*file, shown);
    ASSERT_FALSE(status.ok()) << shown;
    EXPECT_EQ(status.error().sys_errno(), ENOTTY);
  }
}

// Nobody knows then which of the two has failed.
TEST_F(LoopFileTest, WhereThisFileCannotBeAskedEitherTheErrorIsTheAnswer) {
  FileOfLoops file(1, 2, image_);
  for (const std::string shown : {"/mnt/broken/disk", "/image"}) {
    const auto status = Ask(file, shown);
    ASSERT_FALSE(status.ok()) << shown;
    EXPECT_EQ(status.error().sys_errno(), ENOTTY);
  }
}

// Why a loop device cannot be opened says nothing of its file.
TEST_F(LoopFileTest, OneThatCannotBeOpenedIsNotTakenForAnothers) {
  std::optional<FileOfLoops> file = Image();
  ASSERT_TRUE(file);
  const auto may_be = file->MayBeOn("no-such-loop-device", {"/image", false}, "ask");
  ASSERT_TRUE(may_be.ok()) << may_be.error().ToString();
  EXPECT_TRUE(*may_be);
}

}  // namespace
}  // namespace volumed
