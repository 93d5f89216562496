// Every effect on the real kernel, through LocalKernel and through workers, with the newer kernel
// features and without.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "integration/os/kernel_fixture.h"

namespace volumed {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class EffectsTest : public KernelTest {};
TEST_P(EffectsTest, MountsBelowAPathAreListedWithoutThoseBesideIt) {
  for (const char* name : {"a", "a-b", "a/b"}) Directory(name);
  Tmpfs("a");
  Directory("a/b");
  Tmpfs("a-b");
  Tmpfs("a/b");
  const auto below = [&](const std::string& path) {
    const auto mounts = Call(ListMounts{path});
    EXPECT_TRUE(mounts.ok()) << mounts.error().ToString();
    std::vector<std::string> points;
    for (const MountEntry& entry : mounts->mounts) points.push_back(entry.mount_point);
    return points;
  };
  EXPECT_EQ(below(Path("a")), (std::vector<std::string>{Path("a"), Path("a/b")}));
  EXPECT_EQ(below(Path("a/b/c")), std::vector<std::string>());
  EXPECT_EQ(below("/").size(), Call(ListMounts{})->mounts.size());
  ASSERT_TRUE(Call(Unmount{At("a/b")}).ok());
  EXPECT_EQ(below(Path("a")), std::vector<std::string>{Path("a")});
  for (const char* bad : {"a", "/a/", "/a/../b", "//a"}) {
    const auto refused = Call(ListMounts{bad});
    ASSERT_FALSE(refused.ok()) << bad;
    EXPECT_EQ(refused.error().code(), Code::kInvalidArgument);
    EXPECT_EQ(refused.error().outcome(), Outcome::kNotApplied);
  }
}

INSTANTIATE_KERNEL_TESTS(EffectsTest);

// ---- mounts ----

TEST_P(EffectsTest, MountsTmpfsWithItsOptions) {
  Directory("t");
  auto done = Call(Mount{"tmpfs", "mine", At("t"), {"size=1048576,nosuid", "nodev", "mode=0750"}});
  ASSERT_TRUE(done.ok()) << done.error().ToString();
  const auto entry = Mounted("t");
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->fs_type, "tmpfs");
  EXPECT_EQ(entry->source, "mine");
  EXPECT_THAT(entry->options, Contains("nosuid"));
  EXPECT_THAT(entry->options, Contains("nodev"));
  EXPECT_THAT(entry->super_options, Contains("size=1024k"));
  EXPECT_EQ(Mode("t"), 0750u);
}

TEST_P(EffectsTest, MountNamesTheOptionThatTheKernelRefuses) {
  Directory("t");
  auto done = Call(Mount{"tmpfs", "tmpfs", At("t"), {"nosuchthing=secret"}});
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code(), Code::kInvalidArgument);
  EXPECT_FALSE(done.error().maybe_applied());
  EXPECT_THAT(done.error().message(), HasSubstr("nosuchthing"));
  EXPECT_THAT(done.error().message(), Not(HasSubstr("secret")));
  EXPECT_FALSE(Mounted("t"));
}

TEST_P(EffectsTest, MountOnAMissingTargetIsNotFound) {
  auto done = Call(Mount{"tmpfs", "tmpfs", At("nothing"), {}});
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().sys_errno(), ENOENT);
}

TEST_P(EffectsTest, NoswapIsRefusedByNameWhereItIsMissing) {
  Directory("t");
  const bool has = Call(ProbeFeatures{})->tmpfs_noswap;
  auto done = Call(Mount{"tmpfs", "tmpfs", At("t"), {"noswap"}});
  EXPECT_EQ(done.ok(), has);
  if (!done.ok()) {
    EXPECT_EQ(done.error().code(), Code::kUnimplemented);
    EXPECT_THAT(done.error().message(), HasSubstr("tmpfs-noswap"));
  }
}

TEST_P(EffectsTest, BindShowsTheSourceReadOnlyOrNot) {
  Directory("source");
  Directory("rw");
  Directory("ro");
  File("source/file", "hello");
  ASSERT_TRUE(Call(BindMount{At("source"), At("rw")}).ok());
  ASSERT_TRUE(Call(BindMount{At("source"), At("ro"), true}).ok());
  EXPECT_EQ(Content("rw/file"), "hello");
  EXPECT_EQ(Content("ro/file"), "hello");
  EXPECT_FALSE(Mounted("rw")->read_only());
  EXPECT_TRUE(Mounted("ro")->read_only());
  EXPECT_EQ(Mounted("ro")->root, "/source");
  // Only the new mount is read-only.
  File("source/second", "more");
  EXPECT_EQ(Content("ro/second"), "more");
}

TEST_P(EffectsTest, BindOfAPartIsOfTheMountThatShowsIt) {
  for (const char* name : {"t", "source", "source/inner", "target"}) Directory(name);
  Tmpfs("t");
  Directory("t/part");
  ASSERT_TRUE(Call(BindMount{At("t/part"), At("source/inner")}).ok());
  BindMount bind{At("source/inner"), At("target")};
  const auto shown = Mounted("source/inner");
  bind.expected_part = FilesystemPart{shown->device_major, shown->device_minor, shown->root};
  EXPECT_EQ(shown->root, "/part");
  ASSERT_TRUE(Call(bind).ok());
  ASSERT_TRUE(Call(Unmount{At("target")}).ok());
  Tmpfs("source/inner");
  // Covered, and then taken away.
  for (const bool is_there : {true, false}) {
    const auto refused = Call(bind);
    ASSERT_FALSE(refused.ok()) << is_there;
    EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
    EXPECT_FALSE(refused.error().maybe_applied());
    EXPECT_FALSE(Mounted("target"));
    ASSERT_TRUE(Call(Unmount{At("source/inner")}).ok());
    ASSERT_TRUE(Call(Unmount{At("source/inner")}).ok());
  }
}

TEST_P(EffectsTest, BindKeepsTheFlagsOfTheSource) {
  Directory("t");
  Directory("target");
  ASSERT_TRUE(Call(Mount{"tmpfs", "t", At("t"), {"nosuid,nodev,noexec,noatime"}}).ok());
  ASSERT_TRUE(Call(BindMount{At("t"), At("target"), true}).ok());
  const auto options = Mounted("target")->options;
  for (const char* flag : {"ro", "nosuid", "nodev", "noexec", "noatime"}) {
    EXPECT_THAT(options, Contains(flag));
  }
}

TEST_P(EffectsTest, BindsAFileOnAFile) {
  File("source", "from");
  File("target", "to");
  ASSERT_TRUE(Call(BindMount{At("source"), At("target")}).ok());
  EXPECT_EQ(Content("target"), "from");
}

TEST_P(EffectsTest, BindOfASourceBelowAnotherMountShowsThatMount) {
  Directory("source");
  File("source/hidden");
  Tmpfs("source");
  Directory("source/inner");
  File("source/inner/file", "inner");
  Directory("target");
  ASSERT_TRUE(Call(BindMount{At("source/inner"), At("target")}).ok());
  EXPECT_EQ(Content("target/file"), "inner");
}

TEST_P(EffectsTest, BindIsNotRecursiveUnlessAsked) {
  Directory("source");
  Directory("source/inner");
  Tmpfs("source/inner");
  File("source/inner/file");
  Directory("one");
  Directory("two");
  ASSERT_TRUE(Call(BindMount{At("source"), At("one"), false, false}).ok());
  ASSERT_TRUE(Call(BindMount{At("source"), At("two"), false, true}).ok());
  EXPECT_FALSE(Exists("one/inner/file"));
  EXPECT_TRUE(Exists("two/inner/file"));
}

TEST_P(EffectsTest, RecursiveReadOnlyReachesInnerMountsOrSaysWhatIsMissing) {
  Directory("source");
  Directory("source/inner");
  Tmpfs("source/inner");
  Directory("target");
  auto done = Call(BindMount{At("source"), At("target"), true, true, true});
  if (!Call(ProbeFeatures{})->mount_setattr) {
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().code(), Code::kUnimplemented);
    EXPECT_THAT(done.error().message(), HasSubstr("mount-setattr"));
    return;
  }
  ASSERT_TRUE(done.ok()) << done.error().ToString();
  EXPECT_TRUE(Mounted("target/inner")->read_only());
  EXPECT_FALSE(Mounted("source/inner")->read_only());
}

TEST_P(EffectsTest, BindRefusesLinksOnBothSides) {
  Directory("secret");
  Directory("source");
  Directory("target");
  Link(Path("secret"), "source/link");
  Link("../secret", "target/link");
  for (const auto& done : {Call(BindMount{At("source/link"), At("target")}),
                           Call(BindMount{At("source"), At("target/link")})}) {
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().sys_errno(), ELOOP);
    EXPECT_FALSE(done.error().maybe_applied());
  }
  // Links that stay inside may be followed when asked; those that lead out may not.
  Link("../secret", "source/inside");
  const SafePath inside{scratch(), "source/inside", Resolve::kBeneath};
  EXPECT_TRUE(Call(BindMount{inside, At("target")}).ok());
  Link("/etc", "source/outside");
  const SafePath outside{scratch(), "source/outside", Resolve::kBeneath};
  EXPECT_EQ(Call(BindMount{outside, At("target")}).error().sys_errno(), EXDEV);
}

TEST_P(EffectsTest, RemountChangesFlagsOfThisMountAndOptionsOfTheFilesystem) {
  Directory("t");
  ASSERT_TRUE(Call(Mount{"tmpfs", "t", At("t"), {"size=1m,noexec"}}).ok());
  ASSERT_TRUE(Call(Remount{At("t"), {"ro"}}).ok());
  EXPECT_TRUE(Mounted("t")->read_only());
  EXPECT_THAT(Mounted("t")->options, Contains("noexec"));
  ASSERT_TRUE(Call(Remount{At("t"), {"rw", "size=2m"}}).ok());
  EXPECT_FALSE(Mounted("t")->read_only());
  EXPECT_THAT(Mounted("t")->super_options, Contains("size=2048k"));
}

TEST_P(EffectsTest, RemountOfNoMountPointIsRefused) {
  Directory("d");
  auto done = Call(Remount{At("d"), {"ro"}});
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(Call(Remount{At("d"), {"bind"}}).error().code(), Code::kInvalidArgument);
}

TEST_P(EffectsTest, UnmountTakesTheTopMountAndIsContentWithNone) {
  Directory("t");
  ASSERT_TRUE(Call(Mount{"tmpfs", "lower", At("t"), {}}).ok());
  ASSERT_TRUE(Call(Mount{"tmpfs", "upper", At("t"), {}}).ok());
  EXPECT_EQ(*Call(Unmount{At("t")}), Changed{true});
  EXPECT_EQ(Mounted("t")->source, "lower");
  EXPECT_EQ(*Call(Unmount{At("t")}), Changed{true});
  EXPECT_EQ(*Call(Unmount{At("t")}), Changed{false});
  EXPECT_EQ(*Call(Unmount{At("missing/deeper")}), Changed{false});
}

TEST_P(EffectsTest, UnmountDoesNotFollowALinkAndReportsABusyMount) {
  Directory("t");
  Tmpfs("t");
  Link("t", "link");
  EXPECT_EQ(*Call(Unmount{At("link")}), Changed{false});
  ASSERT_TRUE(Mounted("t"));
  File("t/open");
  const int held = ::open(Path("t/open").c_str(), O_RDONLY | O_CLOEXEC);
  auto busy = Call(Unmount{At("t")});
  ASSERT_FALSE(busy.ok());
  EXPECT_EQ(busy.error().sys_errno(), EBUSY);
  EXPECT_FALSE(busy.error().maybe_applied());
  ::close(held);
  EXPECT_EQ(*Call(Unmount{At("t")}), Changed{true});
}

TEST_P(EffectsTest, MakeSharedBindsADirectoryOnItselfOnce) {
  Directory("shared");
  File("shared/file", "kept");
  EXPECT_EQ(*Call(MakeShared{At("shared")}), Changed{true});
  ASSERT_TRUE(Mounted("shared"));
  EXPECT_THAT(Mounted("shared")->propagation, Contains(HasSubstr("shared:")));
  EXPECT_EQ(Content("shared/file"), "kept");
  EXPECT_EQ(*Call(MakeShared{At("shared")}), Changed{false});
}

// Under systemd, whose "/" is shared, every mount of a pod was once there twice: the root was bound
// onto itself and joined the peers of "/".
TEST_P(EffectsTest, MakeSharedLeavesADirectoryOnASharedMountAsItIs) {
  ASSERT_TRUE(Call(MakeShared{{scratch(), ""}}).ok());
  Directory("root");
  EXPECT_EQ(*Call(MakeShared{At("root")}), Changed{false});
  EXPECT_FALSE(Mounted("root"));
}

TEST_P(EffectsTest, BindsBelowASharedRootStillWork) {
  ASSERT_TRUE(Call(MakeShared{{scratch(), ""}}).ok());
  Directory("source");
  File("source/file", "x");
  Directory("target");
  ASSERT_TRUE(Call(BindMount{At("source"), At("target"), true}).ok());
  EXPECT_EQ(Content("target/file"), "x");
  EXPECT_EQ(*Call(Unmount{At("target")}), Changed{true});
}

// ---- stat ----

TEST_P(EffectsTest, StatSaysTypeModeAndMountPoint) {
  Directory("d", 02751);
  File("f", "12345", 04640);
  Link("f", "l");
  ASSERT_EQ(::mkfifo(Path("p").c_str(), 0600), 0);
  Directory("m");
  Tmpfs("m");
  EXPECT_EQ(Call(Stat{At("d")})->type, FileType::kDirectory);
  EXPECT_EQ(Call(Stat{At("d")})->mode, 02751u);
  EXPECT_FALSE(Call(Stat{At("d")})->is_mount_point);
  EXPECT_EQ(Call(Stat{At("f")})->size_bytes, 5);
  EXPECT_EQ(Call(Stat{At("f")})->mode, 04640u);
  EXPECT_EQ(Call(Stat{At("l")})->type, FileType::kSymlink);
  EXPECT_EQ(Call(Stat{At("p")})->type, FileType::kFifo);
  EXPECT_TRUE(Call(Stat{At("m")})->is_mount_point);
  EXPECT_EQ(Call(Stat{At("none")})->type, FileType::kMissing);
  const SafePath link{scratch(), "l", Resolve::kBeneath};
  EXPECT_EQ(Call(Stat{link, true})->type, FileType::kRegular);
  EXPECT_EQ(Call(Stat{At("l"), true}).error().sys_errno(), ELOOP);
  EXPECT_EQ(Call(Stat{At("f/below")}).error().sys_errno(), ENOTDIR);
}

TEST_P(EffectsTest, StatOfOnlyTheMountPointSaysTypeAndNothingElse) {
  Directory("d");
  Directory("m");
  Tmpfs("m");
  File("f");
  File("target");
  ASSERT_TRUE(Call(BindMount{At("f"), At("target")}).ok());
  const auto check = [&](const std::string& name, FileType type, bool is_mount_point) {
    auto info = Call(Stat{At(name), false, true});
    ASSERT_TRUE(info.ok()) << info.error().ToString();
    EXPECT_EQ(info->type, type) << name;
    EXPECT_EQ(info->is_mount_point, is_mount_point) << name;
    EXPECT_EQ(info->inode, 0u);
  };
  check("d", FileType::kDirectory, false);
  check("m", FileType::kDirectory, true);
  check("f", FileType::kRegular, false);
  check("target", FileType::kRegular, true);
  check("none", FileType::kMissing, false);
  check("none/deeper", FileType::kMissing, false);
  EXPECT_TRUE(Call(Stat{{scratch(), ""}, false, true})->is_mount_point);
  EXPECT_TRUE(Call(Stat{{"/", ""}, false, true})->is_mount_point);
}

TEST_P(EffectsTest, StatFsCountsInBlocksOfTheFilesystem) {
  Directory("t");
  ASSERT_TRUE(Call(Mount{"tmpfs", "t", At("t"), {"size=1m,nr_inodes=100"}}).ok());
  auto info = Call(StatFs{At("t")});
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->capacity_bytes, 1 << 20);
  EXPECT_EQ(info->available_bytes + info->used_bytes, 1 << 20);
  EXPECT_EQ(info->inodes, 100);
  EXPECT_EQ(info->inodes_free + info->inodes_used, 100);
  EXPECT_EQ(info->fs_magic, 0x01021994u);
  EXPECT_EQ(Call(StatFs{At("none")}).error().sys_errno(), ENOENT);
}

// ---- files and directories ----

TEST_P(EffectsTest, MakeDirectoryGivesExactlyTheMode) {
  EXPECT_EQ(*Call(MakeDirectory{At("a"), 02777}), Changed{true});
  EXPECT_EQ(Mode("a"), 02777u);
  // Below a setgid directory the bit is inherited, and not wanted.
  EXPECT_EQ(*Call(MakeDirectory{At("a/b"), 0750}), Changed{true});
  EXPECT_EQ(Mode("a/b"), 0750u);
  EXPECT_EQ(*Call(MakeDirectory{At("a/b"), 0700}), Changed{false});
  EXPECT_EQ(Mode("a/b"), 0750u);
  EXPECT_EQ(*Call(MakeDirectory{At("a/b"), 0700, std::nullopt, true}), Changed{true});
  EXPECT_EQ(Mode("a/b"), 0700u);
}

TEST_P(EffectsTest, MakeDirectoryMakesParentsOnlyWhenAsked) {
  EXPECT_EQ(Call(MakeDirectory{At("x/y/z"), 0700}).error().code(), Code::kNotFound);
  EXPECT_EQ(*Call(MakeDirectory{At("x/y/z"), 0700, 0711}), Changed{true});
  EXPECT_EQ(Mode("x"), 0711u);
  EXPECT_EQ(Mode("x/y"), 0711u);
  EXPECT_EQ(Mode("x/y/z"), 0700u);
  EXPECT_EQ(*Call(MakeDirectory{{Path("new/root"), ""}, 0750, 0755}), Changed{true});
  EXPECT_EQ(Mode("new/root"), 0750u);
}

TEST_P(EffectsTest, MakeDirectoryDoesNotGoThroughALinkThatWasSwappedIn) {
  Directory("outside");
  Link("outside", "swapped");
  auto made = Call(MakeDirectory{At("swapped/inner"), 0755, 0755});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().sys_errno(), ELOOP);
  EXPECT_FALSE(Exists("outside/inner"));
  EXPECT_EQ(Call(MakeDirectory{At("swapped"), 0755}).error().code(), Code::kAlreadyExists);
}

TEST_P(EffectsTest, MakeFileMakesAnEmptyOneOnce) {
  EXPECT_EQ(*Call(MakeFile{At("f"), 0640}), Changed{true});
  EXPECT_EQ(Mode("f"), 0640u);
  File("f", "content");
  EXPECT_EQ(*Call(MakeFile{At("f"), 0600}), Changed{false});
  EXPECT_EQ(Content("f"), "content");
  Directory("d");
  Link("nowhere", "l");
  EXPECT_EQ(Call(MakeFile{At("d")}).error().code(), Code::kAlreadyExists);
  EXPECT_EQ(Call(MakeFile{At("l")}).error().code(), Code::kAlreadyExists);
  EXPECT_FALSE(Exists("nowhere"));
}

TEST_P(EffectsTest, RemoveDirectoryTakesAnEmptyOneOnly) {
  Directory("d");
  File("d/f");
  EXPECT_EQ(Call(RemoveDirectory{At("d")}).error().sys_errno(), ENOTEMPTY);
  EXPECT_EQ(Call(RemoveDirectory{At("d")}).error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(*Call(RemoveFile{At("d/f")}), Changed{true});
  EXPECT_EQ(*Call(RemoveFile{At("d/f")}), Changed{false});
  Tmpfs("d");
  EXPECT_EQ(Call(RemoveDirectory{At("d")}).error().sys_errno(), EBUSY);
  ASSERT_EQ(*Call(Unmount{At("d")}), Changed{true});
  EXPECT_EQ(Call(RemoveFile{At("d")}).error().sys_errno(), EISDIR);
  EXPECT_EQ(*Call(RemoveDirectory{At("d")}), Changed{true});
  EXPECT_EQ(*Call(RemoveDirectory{At("d")}), Changed{false});
  EXPECT_EQ(*Call(RemoveDirectory{At("d/deeper")}), Changed{false});
}

TEST_P(EffectsTest, RemoveFileTakesALinkAndNotItsTarget) {
  File("f");
  Link("f", "l");
  EXPECT_EQ(*Call(RemoveFile{At("l")}), Changed{true});
  EXPECT_TRUE(Exists("f"));
}

TEST_P(EffectsTest, ListDirectorySortsAndKnowsTypes) {
  Directory("d");
  File("d/b");
  Directory("d/a");
  Link("x", "d/c");
  auto listing = Call(ListDirectory{At("d")});
  ASSERT_TRUE(listing.ok());
  const std::vector<DirectoryEntry> expected = {
      {"a", FileType::kDirectory}, {"b", FileType::kRegular}, {"c", FileType::kSymlink}};
  EXPECT_EQ(listing->entries, expected);
  EXPECT_EQ(Call(ListDirectory{At("none")}).error().code(), Code::kNotFound);
  EXPECT_EQ(Call(ListDirectory{At("d/b")}).error().sys_errno(), ENOTDIR);
}

TEST_P(EffectsTest, ReadFileHasALimit) {
  File("small", std::string(65536, 'a'));
  File("large", std::string(65537, 'a'));
  ASSERT_EQ(::mkfifo(Path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(Call(ReadFile{At("small")})->bytes.size(), 65536u);
  EXPECT_EQ(Call(ReadFile{At("large")}).error().code(), Code::kOutOfRange);
  EXPECT_EQ(Call(ReadFile{At("none")}).error().code(), Code::kNotFound);
  EXPECT_EQ(Call(ReadFile{At("fifo")}).error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(Call(ReadFile{{scratch(), ""}}).error().sys_errno(), EISDIR);
}

TEST_P(EffectsTest, WriteFileReplacesTheFileAndNotWhatElseHasItsContent) {
  File("f", "old");
  ASSERT_EQ(::link(Path("f").c_str(), Path("hard").c_str()), 0);
  const WriteFile write{At("f"), Secret<std::string>("new"), 0640};
  EXPECT_EQ(*Call(write), Changed{true});
  EXPECT_EQ(*Call(write), Changed{false});
  EXPECT_EQ(Call(ReadFile{At("f")})->bytes, "new");
  EXPECT_EQ(Call(ReadFile{At("hard")})->bytes, "old");
  EXPECT_EQ(Call(Stat{At("f")})->mode, 0640u);
  EXPECT_EQ(Call(ListDirectory{{scratch(), ""}})->entries.size(), 2u);
}

TEST_P(EffectsTest, WriteFileReplacesNothingThatIsNoFile) {
  Directory("d");
  Link("d", "l");
  for (const char* name : {"d", "l"}) {
    EXPECT_EQ(Call(WriteFile{At(name), Secret<std::string>("x")}).error().sys_errno(), EEXIST);
  }
  const Secret<std::string> large(std::string(65537, 'a'));
  EXPECT_EQ(Call(WriteFile{At("f"), large}).error().code(), Code::kOutOfRange);
  EXPECT_FALSE(Exists("f"));
}

TEST_P(EffectsTest, WriteAttributeNeverMakesAFile) {
  File("scan", "x");
  EXPECT_TRUE(Call(WriteAttribute{At("scan"), "0 0 7"}).ok());
  EXPECT_EQ(Call(ReadFile{At("scan")})->bytes, "0 0 7");
  EXPECT_EQ(Call(WriteAttribute{At("none"), "1"}).error().code(), Code::kNotFound);
  EXPECT_FALSE(Exists("none"));
}

// As of a SCSI disk that is offline: nobody can open it, but nobody has it either.
TEST_P(EffectsTest, ADeviceThatItsDriverOpensForNobodyIsUnused) {
  constexpr unsigned kMajor = 8, kMinor = 255;  // sdp15
  if (std::filesystem::exists("/sys/dev/block/8:255")) GTEST_SKIP() << "this node has an sdp15";
  ASSERT_EQ(::mknod(Path("disk").c_str(), S_IFBLK | 0600, makedev(kMajor, kMinor)), 0);
  const auto use = Call(CheckDeviceUse{Path("disk"), kMajor, kMinor});
  ASSERT_TRUE(use.ok()) << use.error().ToString();
  EXPECT_TRUE(use->present);
  EXPECT_FALSE(use->in_use);
  EXPECT_FALSE(Call(CheckDeviceUse{Path("disk"), kMajor, kMinor - 1})->present) << "another";
  EXPECT_EQ(Call(FlushDevice{Path("disk")}).error().sys_errno(), ENXIO);
}

TEST_P(EffectsTest, MalformedPathsAreRefusedBeforeAnythingIsTouched) {
  for (const char* bad : {"..", "a/../b", "a//b", "/a", "a/", "."}) {
    auto made = Call(MakeDirectory{At(bad)});
    ASSERT_FALSE(made.ok()) << bad;
    EXPECT_EQ(made.error().code(), Code::kInvalidArgument) << bad;
    EXPECT_EQ(made.error().sys_errno(), 0) << bad;
  }
  EXPECT_EQ(Call(Stat{{"relative", "a"}}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(Call(Unmount{{"/", ""}}).error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace volumed
