#include "os/tree_walk.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "unit/records/temp_directory.h"

namespace volumed {
namespace {

// Keeps the names, and does something else at each.
class NamesOfWalk final : public TreeVisitor {
 public:
  explicit NamesOfWalk(std::function<void(const std::string&)> then) : then_(std::move(then)) {}
  int Visit(int /*thread*/, const WalkEntry& entry) override {
    names.push_back(entry.name);
    then_(names.back());
    return 0;
  }

  std::vector<std::string> names;

 private:
  const std::function<void(const std::string&)> then_;
};

// Its descriptor is still open: it is not looked for by a name that it has no more.
TEST(TreeWalkTest, ADirectoryThatIsRenamedMeanwhileIsWalkedToItsEnd) {
  const TempDirectory temp;
  std::filesystem::create_directories(temp.path() + "/a/b");
  WriteAll(temp.path() + "/a/b/c", "");
  NamesOfWalk visitor([&](const std::string& name) {
    if (name == "b") std::filesystem::rename(temp.path() + "/a", temp.path() + "/z");
  });
  const CallOptions options;
  WorkMeter meter(options);
  TreeWalk walk(visitor, meter, "tree");
  const Status walked =
      walk.Run(Descriptor(::open(temp.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  ASSERT_TRUE(walked.ok()) << walked.error().ToString();
  EXPECT_THAT(visitor.names, ::testing::ElementsAre("a", "b", "c"));
}

}  // namespace
}  // namespace volumed
