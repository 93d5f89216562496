// What lvs prints, and what its tools are told.
#include "pool/lvm_tools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fakes/fake_kernel.h"
#include "fakes/must.h"
#include "unit/pool/fake_lvm.h"

namespace volumed {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// As lvs 2.03.16 prints it, with what it says on stderr.
constexpr char kLvsText[] =
    "File descriptor 4 (pipe:[123]) leaked on lvs invocation. Parent PID 7: worker\n"
    "  WARNING: Not using device /dev/sdb1 for PV x {.\n"
    "  {\n"
    "      \"report\": [\n"
    "          {\n"
    "              \"lv\": [\n"
    "                  {\"lv_name\":\"thin\", \"lv_uuid\":\"abc-1\", \"vg_uuid\":\"vgu-1\", "
    "\"pool_lv\":\"\", \"lv_tags\":\"\", \"lv_size\":\"1073741824\", "
    "\"vg_extent_size\":\"4194304\", \"lv_permissions\":\"writeable\", \"lv_active\":\"active\", "
    "\"lv_suspended\":\"\", \"lv_device_open\":\"open\", \"lv_kernel_minor\":\"2\", "
    "\"data_percent\":\"12.34\", \"metadata_percent\":\"7.05\", \"lv_health_status\":\"\"},\n"
    "                  {\"lv_name\":\"v-1\", \"lv_uuid\":\"abc-2\", \"vg_uuid\":\"vgu-1\", "
    "\"pool_lv\":\"thin\", \"lv_tags\":\"a,volumed.v-1\", \"lv_size\":\"16777216\", "
    "\"vg_extent_size\":\"4194304\", \"lv_permissions\":\"read-only\", \"lv_active\":\"\", "
    "\"lv_suspended\":\"\", \"lv_device_open\":\"\", \"lv_kernel_minor\":\"-1\", "
    "\"data_percent\":\"\", \"metadata_percent\":\"\", \"lv_health_status\":\"\"}\n"
    "              ]\n"
    "          }\n"
    "      ]\n"
    "  }\n"
    "  WARNING: one more.\n";

TEST(LvmTools, WhatLvsPrintsIsReadWithWarningsAroundIt) {
  const std::vector<LogicalVolume> volumes = Must(ParseLvs(kLvsText));
  ASSERT_EQ(volumes.size(), 2u);
  EXPECT_EQ(volumes[0].name, "thin");
  EXPECT_TRUE(volumes[0].is_active);
  EXPECT_TRUE(volumes[0].is_open);
  EXPECT_EQ(volumes[0].device, "/dev/dm-2");
  EXPECT_EQ(volumes[0].data_used, 1234);
  EXPECT_EQ(volumes[0].metadata_used, 705);
  EXPECT_EQ(volumes[1].uuid, "abc-2");
  EXPECT_EQ(volumes[1].group_uuid, "vgu-1");
  EXPECT_EQ(volumes[1].thin_pool, "thin");
  EXPECT_THAT(volumes[1].tags, ElementsAre("a", "volumed.v-1"));
  EXPECT_EQ(volumes[1].size_bytes, 16 << 20);
  EXPECT_TRUE(volumes[1].is_read_only);
  EXPECT_EQ(volumes[1].device, "");
  EXPECT_FALSE(volumes[1].data_used.has_value());
}

TEST(LvmTools, AnAnswerThatIsNotWholeIsAnError) {
  const std::string text = kLvsText;
  for (const std::string& part :
       {text.substr(0, text.size() / 2), text.substr(text.size() / 2), std::string(),
        std::string("  {\n  }\n"), std::string("  {\n  \"report\": [{\"lv\": [{}]}]\n  }\n")}) {
    EXPECT_FALSE(ParseLvs(part).ok()) << part;
  }
}

TEST(LvmTools, WhatIsInUseIsBoundedFromBothSidesAsLvsRounds) {
  LogicalVolume volume;
  volume.size_bytes = 1000000;
  EXPECT_EQ(UsedAtLeast(volume), 0);
  EXPECT_EQ(UsedAtMost(volume), 1000000);
  volume.data_used = 0;
  EXPECT_EQ(UsedAtMost(volume), 0);
  volume.data_used = 5000;
  EXPECT_EQ(UsedAtLeast(volume), 499900);
  EXPECT_EQ(UsedAtMost(volume), 500100);
  volume.data_used = 10000;
  EXPECT_EQ(UsedAtLeast(volume), 1000000);
  EXPECT_EQ(UsedAtMost(volume), 1000000);
  volume.size_bytes = INT64_MAX;
  EXPECT_EQ(UsedAtMost(volume), INT64_MAX);
}

TEST(LvmTools, MoreThanOneQuestionIsAskedForManyNames) {
  FakeKernel kernel;
  FakeLvm lvm(kernel);
  std::vector<std::string> names;
  for (int i = 0; i < 130; ++i) {
    names.push_back("n" + std::to_string(i));
    FakeLogicalVolume volume;
    volume.size_bytes = FakeLvm::kExtent;
    lvm.Add(names.back(), volume);
  }
  const LvmTools tools(kernel, {"vg0", "thin"});
  EXPECT_EQ(Must(tools.Find(names, {})).size(), 130u);
  EXPECT_EQ(lvm.commands.size(), 3u);
}

TEST(LvmTools, AToolIsToldTheLogicalVolumeByItsUuidToo) {
  FakeKernel kernel;
  FakeLvm lvm(kernel);
  FakeLogicalVolume another;
  another.uuid = "another";
  lvm.Add("v-1", another);
  LogicalVolume meant;
  meant.name = "v-1";
  meant.uuid = "meant";
  const LvmTools tools(kernel, {"vg0", "thin"});
  EXPECT_EQ(Must(tools.Remove(meant, {})), "");
  EXPECT_TRUE(lvm.Has("v-1"));
  EXPECT_THAT(lvm.commands, Contains("lvremove --yes --select lv_uuid=\"meant\" vg0/v-1"));
}

TEST(LvmTools, WhatAToolSaysIsPassedOnWithoutItsWordsAboutDescriptors) {
  FakeKernel kernel;
  kernel.AddProgram("/usr/sbin/lvs", [](FakeKernel&, const std::vector<std::string>&) {
    return ProgramEnd{5, "File descriptor 3 leaked on lvs.\n  Volume group \"vg0\" not found\n"};
  });
  const LvmTools tools(kernel, {"vg0", "thin"});
  const auto found = tools.Find({"v-1"}, {});
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code(), Code::kFailedPrecondition);
  EXPECT_FALSE(found.error().maybe_applied());
  EXPECT_THAT(found.error().message(), HasSubstr("\"vg0\" not found"));
  EXPECT_THAT(found.error().message(), Not(HasSubstr("File descriptor")));
}

TEST(LvmTools, ANameOfLvmHasNoOtherSignsThanLvmTakes) {
  for (const char* name : {"vg0", "a", "Data_1+x.y-z", "_"}) EXPECT_TRUE(IsLvmName(name)) << name;
  for (const char* name : {"", "-vg", ".", "..", "a b", "a/b", "a\"", "a|b", "a$b", "a;b"}) {
    EXPECT_FALSE(IsLvmName(name)) << name;
  }
  EXPECT_FALSE(IsLvmName(std::string(128, 'a')));
}

}  // namespace
}  // namespace volumed
