#include "os/sub_paths.h"

#include <gtest/gtest.h>

#include <variant>

#include "fakes/fake_kernel.h"
#include "fakes/must.h"

namespace volumed {
namespace {

class SubPathsTest : public ::testing::Test {
 protected:
  SubPathsTest() {
    kernel_.AddDirectory("/r/volume/data");
    kernel_.AddDirectory("/r/volume/other");
    kernel_.AddDirectory("/r/pod");
  }
  void Prepare(const std::string& sub_path) {
    Must(DoPrepareSubPath(kernel_, {{"/r", "volume"}, sub_path, {"/r", "pod/parts"}, target_}, {}));
  }
  size_t Mounts() {
    return Must(kernel_.Call(ListMounts{.below = target_.Display()}, {})).mounts.size();
  }
  uint64_t Inode(const SafePath& path) { return Must(kernel_.Call(Stat{.path = path}, {})).inode; }

  const SafePath target_{"/r", "pod/parts/0"};
  FakeKernel kernel_;
};

TEST_F(SubPathsTest, ABindThatIsRightIsKept) {
  Prepare("data");
  kernel_.SetCallHook([](const AnyRequest& request) {
    EXPECT_FALSE(std::holds_alternative<Unmount>(request)) << "a pod may be using it";
  });
  Prepare("data");
  EXPECT_EQ(Mounts(), 1u);
}

TEST_F(SubPathsTest, ABindOfSomethingElseIsReplaced) {
  Prepare("data");
  Prepare("other");
  EXPECT_EQ(Mounts(), 1u);
  EXPECT_EQ(Inode(target_), Inode({"/r", "volume/other"}));
}

}  // namespace
}  // namespace volumed
