// Atomic payloads on the real kernel: every transition, and what interrupted runs leave behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "integration/os/kernel_fixture.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

PayloadFile Payload(const std::string& path, const std::string& content, uint32_t mode = 0644,
                    std::optional<uint32_t> uid = std::nullopt) {
  return {path, Secret<std::string>(content), mode, uid};
}

class AtomicPayloadTest : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    Directory("v");
  }

  Result<Changed> Write(std::vector<PayloadFile> files,
                        std::optional<uint32_t> gid = std::nullopt) {
    return Call(WriteAtomicPayload{At("v"), std::move(files), gid});
  }
  std::string Version() const {
    char target[256] = "";
    const ssize_t size = ::readlink(Path("v/..data").c_str(), target, sizeof(target));
    return size > 0 ? std::string(target, static_cast<size_t>(size)) : "";
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    const auto listing = Call(ListDirectory{At("v")});
    for (const DirectoryEntry& entry : listing->entries) names.push_back(entry.name);
    return names;
  }
};
INSTANTIATE_KERNEL_TESTS(AtomicPayloadTest);

TEST_P(AtomicPayloadTest, FirstWriteMakesKubeletsLayout) {
  auto written = Write({Payload("a", "one"), Payload("dir/b", "two", 0400)});
  ASSERT_TRUE(written.ok()) << written.error().ToString();
  EXPECT_TRUE(written->changed);
  EXPECT_EQ(Content("v/a"), "one");
  EXPECT_EQ(Content("v/dir/b"), "two");
  EXPECT_EQ(Mode("v/" + Version()), 0755u);
  EXPECT_EQ(Mode("v/" + Version() + "/dir/b"), 0400u);
  EXPECT_THAT(Names(), ElementsAre(Version(), "..data", "a", "dir"));
  EXPECT_THAT(Version(), StartsWith("..20"));
}

TEST_P(AtomicPayloadTest, NothingChangedWritesNothing) {
  ASSERT_TRUE(Write({Payload("a", "one"), Payload("dir/b", "two")}).ok());
  const std::string version = Version();
  EXPECT_EQ(*Write({Payload("dir/b", "two"), Payload("a", "one")}), Changed{false});
  EXPECT_EQ(Version(), version);
}

TEST_P(AtomicPayloadTest, ContentModeOwnerOrGroupAloneIsAChange) {
  ASSERT_TRUE(Write({Payload("a", "one")}).ok());
  const auto expect_new_version = [&](std::vector<PayloadFile> files, std::optional<uint32_t> gid) {
    const std::string before = Version();
    EXPECT_EQ(*Write(files, gid), Changed{true});
    EXPECT_NE(Version(), before);
    EXPECT_EQ(*Write(files, gid), Changed{false});
    EXPECT_EQ(Names().size(), 3u);
  };
  expect_new_version({Payload("a", "two")}, {});
  expect_new_version({Payload("a", "two", 0400)}, {});
  expect_new_version({Payload("a", "two", 0400, 1000)}, {});
  EXPECT_EQ(LStat("v/" + Version() + "/a").st_uid, 1000u);
  expect_new_version({Payload("a", "two", 0400, 1000)}, 4242);
  EXPECT_EQ(Mode("v/" + Version() + "/a"), 0440u);
  EXPECT_EQ(LStat("v/" + Version() + "/a").st_gid, 4242u);
  EXPECT_EQ(Mode("v/" + Version()), 02755u);
  expect_new_version({Payload("a", "two", 0400, 1000)}, {});
  EXPECT_EQ(LStat("v/" + Version() + "/a").st_gid, 0u);
}

TEST_P(AtomicPayloadTest, FilesThatGoTakeTheirLinksAlong) {
  ASSERT_TRUE(Write({Payload("a", "1"), Payload("dir/b", "2"), Payload("dir/c", "3")}).ok());
  EXPECT_EQ(*Write({Payload("a", "1"), Payload("dir/b", "2")}), Changed{true});
  EXPECT_FALSE(Exists("v/dir/c"));
  EXPECT_EQ(*Write({Payload("a", "1")}), Changed{true});
  EXPECT_THAT(Names(), ElementsAre(Version(), "..data", "a"));
  EXPECT_EQ(*Write({}), Changed{true});
  EXPECT_THAT(Names(), ElementsAre(Version(), "..data"));
  EXPECT_EQ(*Write({}), Changed{false});
}

TEST_P(AtomicPayloadTest, AFileMayBecomeADirectory) {
  ASSERT_TRUE(Write({Payload("a", "1")}).ok());
  EXPECT_EQ(*Write({Payload("a/b", "2")}), Changed{true});
  EXPECT_EQ(Content("v/a/b"), "2");
  EXPECT_EQ(*Write({Payload("a", "1")}), Changed{true});
  EXPECT_EQ(Content("v/a"), "1");
}

TEST_P(AtomicPayloadTest, LeftOversOfAnInterruptedRunAreCleaned) {
  ASSERT_TRUE(Write({Payload("a", "1")}).ok());
  Link("..2020_01_01_00_00_00.0000000001", "v/..data_tmp");
  Directory("v/..2020_01_01_00_00_00.0000000001");
  File("v/..2020_01_01_00_00_00.0000000001/half");
  EXPECT_EQ(*Write({Payload("a", "1")}), Changed{false});
  EXPECT_THAT(Names(), ElementsAre(Version(), "..data", "a"));
  Link("nowhere", "v/..data_tmp");
  EXPECT_EQ(*Write({Payload("a", "2")}), Changed{true});
  EXPECT_EQ(Content("v/a"), "2");
}

TEST_P(AtomicPayloadTest, LinksOfTheFirstLevelArePutRight) {
  ASSERT_TRUE(Write({Payload("a", "1"), Payload("b", "2")}).ok());
  ASSERT_EQ(::unlink(Path("v/a").c_str()), 0);
  ASSERT_EQ(::unlink(Path("v/b").c_str()), 0);
  Link("/etc/passwd", "v/b");
  Link("..data/old", "v/old");
  Link("/somewhere", "v/foreign");
  EXPECT_EQ(*Write({Payload("a", "1"), Payload("b", "2")}), Changed{false});
  EXPECT_EQ(Content("v/a"), "1");
  EXPECT_EQ(Content("v/b"), "2");
  EXPECT_FALSE(Exists("v/old"));
  EXPECT_TRUE(Exists("v/foreign"));
}

TEST_P(AtomicPayloadTest, TamperedContentIsWrittenAgain) {
  ASSERT_TRUE(Write({Payload("a", "1")}).ok());
  File("v/" + Version() + "/a", "2");
  EXPECT_EQ(*Write({Payload("a", "1")}), Changed{true});
  File("v/" + Version() + "/extra", "2");
  EXPECT_EQ(*Write({Payload("a", "1")}), Changed{true});
  EXPECT_FALSE(Exists("v/..data/extra"));
}

TEST_P(AtomicPayloadTest, ADataLinkThatWasSwappedIsNotFollowed) {
  Directory("outside");
  File("outside/kept");
  Link("../outside", "v/..data");
  EXPECT_EQ(*Write({Payload("a", "1")}), Changed{true});
  EXPECT_TRUE(Exists("outside/kept"));
  EXPECT_FALSE(Exists("outside/a"));
  EXPECT_EQ(Content("v/a"), "1");
}

TEST_P(AtomicPayloadTest, BadPathsAndBadTargetsChangeNothing) {
  EXPECT_EQ(Write({Payload("a", "1"), Payload("../x", "2")}).error().code(),
            Code::kInvalidArgument);
  EXPECT_TRUE(Names().empty());
  EXPECT_EQ(Call(WriteAtomicPayload{At("none"), {}}).error().code(), Code::kNotFound);
  Directory("v/..data");
  EXPECT_EQ(Write({Payload("a", "1")}).error().code(), Code::kFailedPrecondition);
}

TEST_P(AtomicPayloadTest, AFullFilesystemKeepsTheOldVersion) {
  Directory("small");
  ASSERT_TRUE(Call(Mount{"tmpfs", "t", At("small"), {"size=64k"}}).ok());
  const auto write = [&](const std::string& content) {
    return Call(WriteAtomicPayload{At("small"), {Payload("a", content)}});
  };
  ASSERT_TRUE(write("old").ok());
  auto written = write(std::string(200000, 'x'));
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code(), Code::kResourceExhausted);
  EXPECT_FALSE(written.error().maybe_applied());
  EXPECT_EQ(Content("small/a"), "old");
  EXPECT_EQ(Call(ListDirectory{At("small")})->entries.size(), 3u);
}

}  // namespace
}  // namespace volumed
