// Walks on the real kernel: removing, measuring and giving away trees.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "integration/os/kernel_fixture.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;

class WalksTest : public KernelTest {
 protected:
  // A chain of directories "d/d/d/...", deeper than any path may be long.
  void Chain(const std::string& top, int depth, bool with_siblings) {
    Directory(top);
    Descriptor current(::open(Path(top).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (int i = 0; i < depth; ++i) {
      ASSERT_EQ(::mkdirat(current.get(), "d", 0755), 0);
      if (with_siblings) {
        ASSERT_EQ(::mkdirat(current.get(), "a", 0755), 0);
      }
      current = Descriptor(::openat(current.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      ASSERT_TRUE(current.valid());
    }
  }

  void Wide(const std::string& top, int directories, int files) {
    Directory(top);
    for (int d = 0; d < directories; ++d) {
      const std::string directory = top + "/d" + std::to_string(d);
      Directory(directory);
      for (int f = 0; f < files; ++f) {
        const int fd = ::open(Path(directory + "/f" + std::to_string(f)).c_str(),
                              O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        ASSERT_GE(fd, 0);
        if (f % 16 == 0) {
          ASSERT_EQ(::write(fd, "0123456789", 10), 10);
        }
        ::close(fd);
      }
    }
  }

  int64_t Du(const std::string& relative, const std::string& arguments) {
    std::FILE* pipe = ::popen(("du " + arguments + " " + Path(relative)).c_str(), "r");
    long long number = -1;
    if (pipe == nullptr || std::fscanf(pipe, "%lld", &number) != 1) number = -1;
    if (pipe != nullptr) ::pclose(pipe);
    return number;
  }
};
INSTANTIATE_KERNEL_TESTS(WalksTest);

// ---- remove ----

TEST_P(WalksTest, RemoveTreeTakesATreeAndAFileAndNothing) {
  Wide("tree", 20, 100);
  Link("/etc/passwd", "tree/link");
  ASSERT_EQ(::mkfifo(Path("tree/fifo").c_str(), 0600), 0);
  File("file");
  EXPECT_EQ(*Call(RemoveTree{At("tree")}), Changed{true});
  EXPECT_FALSE(Exists("tree"));
  EXPECT_EQ(*Call(RemoveTree{At("file")}), Changed{true});
  EXPECT_EQ(*Call(RemoveTree{At("file")}), Changed{false});
  EXPECT_EQ(*Call(RemoveTree{At("none/deeper")}), Changed{false});
}

// Each repeated deletion was the same error, which did not say what to do.
TEST_P(WalksTest, AnImmutableFileKeptItsTreeAndNobodyHeardHowToEndThat) {
  Directory("tree");
  const Descriptor file(::open(Path("tree/f").c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0644));
  ASSERT_TRUE(file.valid());
  int flags = FS_IMMUTABLE_FL;
  if (::ioctl(file.get(), FS_IOC_SETFLAGS, &flags) != 0) {
    GTEST_SKIP() << "skipped: needs immutable files on a tmpfs";
  }
  const Result<Changed> kept = Call(RemoveTree{At("tree")});
  ASSERT_FALSE(kept.ok());
  EXPECT_EQ(kept.error().sys_errno(), EPERM);
  EXPECT_THAT(kept.error().message(), HasSubstr("`chattr -R -i -a " + Path("tree") + "`"));
  flags = 0;
  ASSERT_EQ(::ioctl(file.get(), FS_IOC_SETFLAGS, &flags), 0);
  EXPECT_EQ(*Call(RemoveTree{At("tree")}), Changed{true});
}

TEST_P(WalksTest, RemoveTreeLeavesWhatALinkPointsTo) {
  Directory("outside");
  File("outside/kept");
  Directory("tree");
  Link(Path("outside"), "tree/link");
  Link(Path("outside"), "root-link");
  EXPECT_EQ(*Call(RemoveTree{At("tree")}), Changed{true});
  EXPECT_EQ(*Call(RemoveTree{At("root-link")}), Changed{true});
  EXPECT_TRUE(Exists("outside/kept"));
  // A component that was swapped for a link is refused.
  Link(Path("outside"), "swapped");
  EXPECT_EQ(Call(RemoveTree{At("swapped/kept")}).error().sys_errno(), ELOOP);
  EXPECT_TRUE(Exists("outside/kept"));
}

TEST_P(WalksTest, RemoveTreeStopsAtEveryMountAndTakesTheRest) {
  Directory("tree");
  Directory("tree/a");
  Directory("tree/a/mounted");
  Directory("tree/b");
  File("tree/b/file");
  File("tree/file-mount");
  File("data");
  Tmpfs("tree/a/mounted");
  File("tree/a/mounted/precious", "kept");
  // A bind of the same filesystem is a mount too.
  Directory("bound");
  File("bound/precious", "kept");
  Directory("tree/bind");
  ASSERT_TRUE(Call(BindMount{At("bound"), At("tree/bind")}).ok());
  ASSERT_TRUE(Call(BindMount{At("data"), At("tree/file-mount")}).ok());

  auto removed = Call(RemoveTree{At("tree")});
  ASSERT_FALSE(removed.ok());
  EXPECT_EQ(removed.error().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(removed.error().maybe_applied());
  EXPECT_THAT(removed.error().message(), HasSubstr("is a mount point"));
  EXPECT_EQ(Content("tree/a/mounted/precious"), "kept");
  EXPECT_EQ(Content("bound/precious"), "kept");
  EXPECT_TRUE(Exists("tree/file-mount"));
  EXPECT_FALSE(Exists("tree/b"));

  // Nothing is left to remove now, so nothing is applied.
  removed = Call(RemoveTree{At("tree")});
  ASSERT_FALSE(removed.ok());
  EXPECT_FALSE(removed.error().maybe_applied());
  for (const char* mount : {"tree/a/mounted", "tree/bind", "tree/file-mount"}) {
    EXPECT_EQ(*Call(Unmount{At(mount)}), Changed{true});
  }
  EXPECT_EQ(*Call(RemoveTree{At("tree")}), Changed{true});
}

TEST_P(WalksTest, RemoveTreeOfAMountPointTouchesNothing) {
  Directory("m");
  Tmpfs("m");
  File("m/precious");
  auto removed = Call(RemoveTree{At("m")});
  ASSERT_FALSE(removed.ok());
  EXPECT_EQ(removed.error().code(), Code::kFailedPrecondition);
  EXPECT_FALSE(removed.error().maybe_applied());
  EXPECT_THAT(removed.error().message(), HasSubstr(Path("m") + " is a mount point"));
  EXPECT_TRUE(Exists("m/precious"));
}

TEST_P(WalksTest, RemoveTreeOfAnExpectedDirectoryTakesNoOther) {
  Wide("tree", 3, 10);
  Wide("other", 3, 10);
  const StorageObject expected = Call(IdentifyStorage{At("tree")})->object;
  const StorageObject another = Call(IdentifyStorage{At("other")})->object;
  for (const bool content_alone : {false, true}) {
    const auto refused = Call(RemoveTree{At("other"), content_alone, expected});
    EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
    EXPECT_FALSE(refused.error().maybe_applied());
    EXPECT_FALSE(Call(RemoveTree{At("none"), content_alone, expected}).ok());
    EXPECT_FALSE(Call(RemoveTree{At("none/deeper"), content_alone, expected}).ok());
  }
  EXPECT_TRUE(Exists("other/d2/f9"));
  EXPECT_EQ(*Call(RemoveTree{At("tree"), true, expected}), Changed{true});
  EXPECT_TRUE(Exists("tree"));
  EXPECT_FALSE(Exists("tree/d0"));
  EXPECT_EQ(*Call(RemoveTree{At("tree"), true, expected}), Changed{false});
  EXPECT_EQ(*Call(RemoveTree{At("tree"), false, expected}), Changed{true});
  EXPECT_FALSE(Exists("tree"));
  Chain("other/deep", 200, true);
  EXPECT_EQ(*Call(RemoveTree{At("other"), true, another}), Changed{true});
  EXPECT_TRUE(Exists("other"));
  Chain("other/deep", 200, true);
  EXPECT_EQ(*Call(RemoveTree{At("other"), false, another}), Changed{true});
  EXPECT_FALSE(Exists("other"));
}

TEST_P(WalksTest, RemoveTreeNeedsNeitherStackNorDescriptorsForDepth) {
  Chain("deep", 3000, true);
  auto removed = Call(RemoveTree{At("deep")});
  ASSERT_TRUE(removed.ok()) << removed.error().ToString();
  EXPECT_FALSE(Exists("deep"));
}

// ---- usage ----

TEST_P(WalksTest, UsageIsWhatDuSays) {
  Wide("tree", 120, 100);  // more than one thread's share
  ASSERT_EQ(::link(Path("tree/d0/f0").c_str(), Path("tree/d1/hard").c_str()), 0);
  Link("/etc", "tree/link");
  const int fd = ::open(Path("tree/sparse").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  ASSERT_EQ(::ftruncate(fd, 100 << 20), 0);
  ::close(fd);
  Directory("tree/mounted");
  Tmpfs("tree/mounted");
  File("tree/mounted/foreign", std::string(100000, 'x'));
  auto usage = Call(Usage{At("tree")});
  ASSERT_TRUE(usage.ok()) << usage.error().ToString();
  EXPECT_EQ(usage->used_bytes, Du("tree", "-s -B1 -x"));
  EXPECT_EQ(usage->inodes_used, Du("tree", "-s -x --inodes"));
}

TEST_P(WalksTest, UsageOfAFileAndOfNothing) {
  File("f", "12345");
  EXPECT_EQ(Call(Usage{At("f")})->inodes_used, 1);
  EXPECT_EQ(Call(Usage{At("f")})->used_bytes, 4096);
  EXPECT_EQ(Call(Usage{At("none")}).error().code(), Code::kNotFound);
}

TEST_P(WalksTest, UsageOfADeepTreeWithSiblings) {
  Chain("deep", 1500, true);
  auto usage = Call(Usage{At("deep")});
  ASSERT_TRUE(usage.ok()) << usage.error().ToString();
  EXPECT_EQ(usage->inodes_used, 1 + 2 * 1500);
}

// ---- ownership ----

constexpr uint32_t kGroup = 4242;

TEST_P(WalksTest, OwnershipGivesGroupAndModes) {
  Directory("v", 0700);
  Directory("v/d", 0700);
  File("v/plain", "x", 0600);
  File("v/run", "x", 0755);
  File("v/d/setuid", "x", 06755);
  File("outside", "x", 0600);
  Link(Path("outside"), "v/link");
  ASSERT_EQ(::link(Path("v/plain").c_str(), Path("v/d/hard").c_str()), 0);
  auto info = Call(ChangeOwnership{At("v"), kGroup});
  ASSERT_TRUE(info.ok()) << info.error().ToString();
  EXPECT_EQ(info->visited, 7);
  EXPECT_FALSE(info->skipped);
  EXPECT_EQ(Mode("v"), 02770u);
  EXPECT_EQ(Mode("v/d"), 02770u);
  EXPECT_EQ(Mode("v/plain"), 0660u);
  EXPECT_EQ(Mode("v/run"), 0775u);
  // chown takes these bits away; they must be there in the end.
  EXPECT_EQ(Mode("v/d/setuid"), 06775u);
  for (const char* name : {"v", "v/d", "v/plain", "v/run", "v/d/setuid", "v/link", "v/d/hard"}) {
    EXPECT_EQ(LStat(name).st_gid, kGroup) << name;
    EXPECT_EQ(LStat(name).st_uid, 0u) << name;
  }
  EXPECT_EQ(LStat("outside").st_gid, 0u);
  EXPECT_EQ(Mode("outside"), 0600u);
}

TEST_P(WalksTest, OwnershipReadOnlyGivesReadOnly) {
  Directory("v", 0700);
  File("v/f", "x", 0400);
  ASSERT_TRUE(Call(ChangeOwnership{At("v"), kGroup, true}).ok());
  EXPECT_EQ(Mode("v"), 02750u);
  EXPECT_EQ(Mode("v/f"), 0440u);
}

TEST_P(WalksTest, OwnershipLeavesAloneWhatIsRight) {
  Wide("v", 50, 100);
  auto first = Call(ChangeOwnership{At("v"), kGroup});
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->visited, 50 * 100 + 50 + 1);
  EXPECT_EQ(first->changed, first->visited);
  const timespec before = LStat("v/d7/f7").st_ctim;
  auto second = Call(ChangeOwnership{At("v"), kGroup});
  EXPECT_EQ(second->changed, 0);
  EXPECT_EQ(second->visited, first->visited);
  const timespec after = LStat("v/d7/f7").st_ctim;
  EXPECT_EQ(before.tv_nsec, after.tv_nsec);
  EXPECT_EQ(before.tv_sec, after.tv_sec);
}

TEST_P(WalksTest, OwnershipOnRootMismatchLooksAtTheRootOnly) {
  Directory("v", 0700);
  File("v/f", "x", 0600);
  EXPECT_FALSE(Call(ChangeOwnership{At("v"), kGroup, false, true})->skipped);
  EXPECT_EQ(Mode("v/f"), 0660u);
  ASSERT_EQ(::chmod(Path("v/f").c_str(), 0600), 0);
  EXPECT_TRUE(Call(ChangeOwnership{At("v"), kGroup, false, true})->skipped);
  EXPECT_EQ(Mode("v/f"), 0600u);
  ASSERT_EQ(::chmod(Path("v").c_str(), 0770), 0);  // setgid is gone: not the mark of a finished run
  EXPECT_FALSE(Call(ChangeOwnership{At("v"), kGroup, false, true})->skipped);
  EXPECT_EQ(Mode("v/f"), 0660u);
}

TEST_P(WalksTest, OwnershipDoesNotEnterAnotherMount) {
  Directory("v");
  Directory("v/m");
  Tmpfs("v/m");
  File("v/m/f", "x", 0600);
  auto info = Call(ChangeOwnership{At("v"), kGroup});
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->visited, 1);
  EXPECT_EQ(LStat("v/m/f").st_gid, 0u);
  EXPECT_EQ(LStat("v/m").st_gid, 0u);
}

TEST_P(WalksTest, OwnershipOnAReadOnlyFilesystemNamesThePath) {
  Directory("m");
  Tmpfs("m");
  File("m/f", "x", 0600);
  ASSERT_TRUE(Call(Remount{At("m"), {"ro"}}).ok());
  auto info = Call(ChangeOwnership{At("m"), kGroup});
  ASSERT_FALSE(info.ok());
  EXPECT_EQ(info.error().sys_errno(), EROFS);
  EXPECT_FALSE(info.error().maybe_applied());
  EXPECT_THAT(info.error().message(), HasSubstr(Path("m/f")));
}

TEST_P(WalksTest, ACancelledWalkSaysSo) {
  Wide("v", 10, 10);
  CancelToken cancel;
  cancel.Cancel();
  CallOptions options;
  options.cancel = &cancel;
  auto usage = kernel_->Call(Usage{At("v")}, options);
  ASSERT_FALSE(usage.ok());
  EXPECT_EQ(usage.error().code(), Code::kCancelled);
  EXPECT_FALSE(usage.error().maybe_applied());
}

}  // namespace
}  // namespace volumed
