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

  TempDirectory dir_;
  const std::string image_ = dir_.path() + "/image";
  Descriptor failing_;
};

TEST_F(LoopFileTest, ALoopDeviceOfSomebodysFailedFilesystemStoppedEachAttachment) {
  const std::optional<FileOfLoops> file = Image();
  ASSERT_TRUE(file);
  const auto status = file->StatusIfOn(failing_.get(), {"/mnt/broken/disk", false}, "ask");
  ASSERT_TRUE(status.ok()) << status.error().ToString();
  EXPECT_FALSE(status->has_value());
}

TEST_F(LoopFileTest, OneThatIsShownWithThisFileIsNotTakenForAnothers) {
  const std::optional<FileOfLoops> file = Image();
  ASSERT_TRUE(file);
  for (const std::string& shown : {image_, std::string("/image")}) {
    const auto status = file->StatusIfOn(failing_.get(), {shown, false}, "ask");
    ASSERT_FALSE(status.ok()) << shown;
    EXPECT_EQ(status.error().sys_errno(), ENOTTY);
  }
}

// Nobody knows then which of the two has failed.
TEST_F(LoopFileTest, WhereThisFileCannotBeAskedEitherTheErrorIsTheAnswer) {
  const FileOfLoops file(1, 2, image_);
  const auto status = file.StatusIfOn(failing_.get(), {"/mnt/broken/disk", false}, "ask");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().sys_errno(), ENOTTY);
}

}  // namespace
}  // namespace volumed
