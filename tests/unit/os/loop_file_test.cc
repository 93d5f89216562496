// A loop device is asked for its file, and its file's filesystem has failed.
#include "os/loop_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <optional>
#include <string>

#include "base/descriptor.h"
#include "fakes/must.h"
#include "os/safe_path.h"
#include "unit/records/temp_directory.h"

namespace volumed {
namespace {

// What is no loop device has another error than one that has no file, as has one whose file's
// filesystem was shut down.
class LoopFileTest : public ::testing::Test {
 protected:
  LoopFileTest() : failing_(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {
    WriteAll(image_, "a volume");
  }
  std::optional<FileOfLoops> Image() {
    return Must(FileOfLoops::At(SafePath{dir_.path(), "image"}));
  }
  Result<std::optional<loop_info64>> Ask(FileOfLoops& file, const std::string& shown) {
    return file.StatusIfOn("null", failing_.get(), {shown, false}, "ask");
  }

  TempDirectory dir_;
  const std::string image_ = dir_.path() + "/image";
  Descriptor failing_;
};

TEST_F(LoopFileTest, ALoopDeviceOfSomebodysFailedFilesystemStoppedEachAttachment) {
  std::optional<FileOfLoops> file = Image();
  ASSERT_TRUE(file);
  const auto status = Ask(*file, "/mnt/broken/disk");
  ASSERT_TRUE(status.ok()) << status.error().ToString();
  EXPECT_FALSE(status->has_value());
}

// The file of each volume of each pool is called "image".
TEST_F(LoopFileTest, AFailedOneThatIsShownByTheNameOfEachImageStoppedEachAttachment) {
  std::optional<FileOfLoops> file = Image();
  ASSERT_TRUE(file);
  const auto status = Ask(*file, "/image");
  ASSERT_TRUE(status.ok()) << status.error().ToString();
  EXPECT_FALSE(status->has_value());
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
  const auto status =
      file->StatusIfOn("no-such-loop-device", failing_.get(), {"/image", false}, "ask");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace volumed
