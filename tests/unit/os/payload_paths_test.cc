#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "os/atomic_payload.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;

Status Validate(const std::vector<std::string>& paths) {
  std::vector<PayloadFile> files;
  for (const std::string& path : paths) files.push_back({path, Secret<std::string>("secret")});
  return ValidatePayloadPaths(files);
}

TEST(PayloadPaths, OrdinaryOnesAreAccepted) {
  EXPECT_TRUE(Validate({}).ok());
  EXPECT_TRUE(Validate({"a", "b.txt", "dir/c", "dir/deeper/d", ".hidden", "a..b"}).ok());
  EXPECT_TRUE(Validate({"dir/..data"}).ok());  // only the first component is special
  EXPECT_TRUE(Validate({std::string(255, 'x')}).ok());
}

TEST(PayloadPaths, BadOnesAreRefusedByName) {
  std::string long_path = "x";
  while (long_path.size() <= 4096) long_path += "/" + std::string(200, 'x');
  for (const std::string& bad :
       {std::string(""), std::string("/a"), std::string(".."), std::string("a/../b"),
        std::string("..data"), std::string("..2020"), std::string("..a/b"), std::string("a//b"),
        std::string("a/"), std::string("./a"), std::string("a/./b"), std::string(256, 'x'),
        std::string("a\0b", 3), long_path}) {
    const Status status = Validate({"good", bad});
    ASSERT_FALSE(status.ok()) << bad;
    EXPECT_EQ(status.error().code(), Code::kInvalidArgument);
    EXPECT_FALSE(status.error().maybe_applied());
    EXPECT_THAT(status.error().message(), HasSubstr(bad));
    EXPECT_THAT(status.error().message(), ::testing::Not(HasSubstr("secret")));
  }
}

TEST(PayloadPaths, NoPathTwiceAndNoneBelowAFile) {
  EXPECT_THAT(Validate({"a", "b", "a"}).error().message(), HasSubstr("twice"));
  EXPECT_THAT(Validate({"a/b", "a"}).error().message(), HasSubstr("file and a directory"));
  EXPECT_THAT(Validate({"a", "a/b/c"}).error().message(), HasSubstr("file and a directory"));
  EXPECT_TRUE(Validate({"a", "ab/c"}).ok());
}

}  // namespace
}  // namespace volumed
