// CopyTree and MoveDirectory by the real kernel, on filesystems of disks: each kind of file with
// all that it has, and what whoever renames in the tree meanwhile can do: never that anything
// outside of it is read.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "base/descriptor.h"
#include "fakes/must.h"
#include "integration/mounter/block_mount_fixture.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;

constexpr char kSecret[] = "what lies outside of the tree";

class TreeCopyTest : public BlockMountTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    BlockMountTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    disk_.emplace(Image("disk", int64_t{512} << 20));
    ASSERT_TRUE(disk_->valid());
    ASSERT_NO_FATAL_FAILURE(Mkfs(GetParam(), disk_->path()));
    ASSERT_EQ(::mount(disk_->path().c_str(), Path("mnt").c_str(), GetParam(), 0, nullptr), 0);
    for (const char* name : {"from", "to", "outside"}) {
      ASSERT_EQ(::mkdir(Show(name).c_str(), 0755), 0);
    }
  }
  SafePath In(const std::string& name) const { return {scratch(), "mnt/" + name}; }
  std::string Show(const std::string& name) const { return Path("mnt/" + name); }
  StorageObject ObjectOf(const std::string& name) {
    return Must(local_->Call(IdentifyStorage{.path = In(name)}, {})).object;
  }
  Result<TreeCopied> Copy(const CallOptions& options = {}, int64_t bytes_per_second = 0) {
    return local_->Call(CopyTree{.to = In("to"),
                                 .from = In("from"),
                                 .expected = ObjectOf("from"),
                                 .bytes_per_second = bytes_per_second},
                        options);
  }
  void Write(const std::string& name, const std::string& content) const {
    std::ofstream file(Show(name));
    file << content;
    ASSERT_TRUE(file.flush().good()) << name;
  }
  static std::string OutputOf(const std::string& command) {
    std::string output;
    FILE* const tool = ::popen(command.c_str(), "re");
    if (tool == nullptr) return "no shell";
    std::array<char, 4096> piece{};
    while (std::fgets(piece.data(), piece.size(), tool) != nullptr) output += piece.data();
    EXPECT_EQ(::pclose(tool), 0) << command;
    return output;
  }
  // Of each entry its place, kind, mode, owner, number of names, size, time and target; and what is
  // in the files.
  std::string TextOf(const std::string& name) const {
    return OutputOf("cd " + Show(name) +
                    " && find . -printf '%P %y %m %U %G %n %T@ %l\\n' | LC_ALL=C sort && "
                    "find . -type f -exec sha256sum '{}' + | LC_ALL=C sort");
  }

  std::optional<LoopDevice> disk_;
};

TEST_P(TreeCopyTest, EachKindOfFileIsCopiedWithAllThatItHas) {
  if (IsSkipped()) return;
  ASSERT_EQ(::mkdir(Show("from/d").c_str(), 0750), 0);
  Write("from/d/f", "content");
  Write("from/empty", "");
  Write("from/a name\nof two lines", "x");
  ASSERT_EQ(::link(Show("from/d/f").c_str(), Show("from/second").c_str()), 0);
  ASSERT_EQ(::link(Show("from/d/f").c_str(), Show("from/d/third").c_str()), 0);
  ASSERT_EQ(::symlink("/etc/passwd", Show("from/link").c_str()), 0);
  ASSERT_EQ(::symlink("nowhere", Show("from/d/dangling").c_str()), 0);
  ASSERT_EQ(::link(Show("from/link").c_str(), Show("from/link-again").c_str()), 0);
  ASSERT_EQ(::mkfifo(Show("from/fifo").c_str(), 0640), 0);
  ASSERT_EQ(::mknod(Show("from/socket").c_str(), S_IFSOCK | 0600, 0), 0);
  ASSERT_EQ(::mknod(Show("from/null").c_str(), S_IFCHR | 0666, makedev(1, 3)), 0);
  ASSERT_EQ(::chown(Show("from/d/f").c_str(), 1000, 2000), 0);
  ASSERT_EQ(::lchown(Show("from/link").c_str(), 1001, 2001), 0);
  ASSERT_EQ(::chmod(Show("from/empty").c_str(), 06755), 0);
  ASSERT_EQ(::chmod(Show("from/d").c_str(), 02770), 0);
  ASSERT_EQ(Shell("touch -h -d '2001-02-03 04:05:06.789' " + Show("from/link") + " " +
                  Show("from/d/f") + " " + Show("from/fifo") + " " + Show("from/d")),
            0);
  ASSERT_EQ(::chmod(Show("from").c_str(), 01777), 0);
  const std::string before = TextOf("from");
  const Result<TreeCopied> copied = Copy();
  ASSERT_TRUE(copied.ok()) << copied.error().ToString();
  EXPECT_EQ(TextOf("to"), before);
  EXPECT_EQ(TextOf("from"), before);
  struct stat device = {};
  ASSERT_EQ(::stat(Show("to/null").c_str(), &device), 0);
  EXPECT_EQ(device.st_rdev, makedev(1, 3));
  // What is written to the copy is not in the other.
  Write("to/d/f", "changed");
  EXPECT_EQ(TextOf("from"), before);
}

TEST_P(TreeCopyTest, AttributesAreCopiedButForTheMarkThatSaysWhoseItIs) {
  if (IsSkipped()) return;
  Write("from/f", "x");
  ASSERT_EQ(::mkdir(Show("from/d").c_str(), 0755), 0);
  // An access list as it is stored: version 2, u::rw-, u:1000:rwx, g::r--, m::rwx, o::---.
  const unsigned char acl[] = {2,    0,    0,    0,    1,    0,    6,    0,    0xff, 0xff, 0xff,
                               0xff, 2,    0,    7,    0,    0xe8, 3,    0,    0,    4,    0,
                               4,    0,    0xff, 0xff, 0xff, 0xff, 0x10, 0,    7,    0,    0xff,
                               0xff, 0xff, 0xff, 0x20, 0,    0,    0,    0xff, 0xff, 0xff, 0xff};
  const std::string large(3000, 'v');
  for (const char* name : {"from/f", "from/d"}) {
    ASSERT_EQ(::setxattr(Show(name).c_str(), "user.large", large.data(), large.size(), 0), 0);
    ASSERT_EQ(::setxattr(Show(name).c_str(), "trusted.other", "t", 1, 0), 0);
    ASSERT_EQ(::setxattr(Show(name).c_str(), "system.posix_acl_access", acl, sizeof(acl), 0), 0);
  }
  ASSERT_EQ(::setxattr(Show("from/d").c_str(), "system.posix_acl_default", acl, sizeof(acl), 0), 0);
  Write("from/d/inherits-nothing", "x");
  ASSERT_EQ(::removexattr(Show("from/d/inherits-nothing").c_str(), "system.posix_acl_access"), 0);
  ASSERT_EQ(::setxattr(Show("from").c_str(), "trusted.volumed.owner", "pv-1", 4, 0), 0);
  const std::string before = TextOf("from");
  const Result<TreeCopied> copied = Copy();
  ASSERT_TRUE(copied.ok()) << copied.error().ToString();
  EXPECT_EQ(TextOf("to"), before);
  std::array<char, 4096> value{};
  for (const char* name : {"to/f", "to/d"}) {
    const std::string path = Show(name);
    EXPECT_EQ(::getxattr(path.c_str(), "user.large", value.data(), value.size()), 3000) << name;
    EXPECT_EQ(::getxattr(path.c_str(), "trusted.other", value.data(), value.size()), 1) << name;
    EXPECT_EQ(::getxattr(path.c_str(), "system.posix_acl_access", value.data(), value.size()),
              static_cast<ssize_t>(sizeof(acl)))
        << name;
  }
  EXPECT_LT(::getxattr(Show("to/d/inherits-nothing").c_str(), "system.posix_acl_access",
                       value.data(), value.size()),
            0);
  EXPECT_LT(::getxattr(Show("to").c_str(), "trusted.volumed.owner", value.data(), value.size()), 0);
}

TEST_P(TreeCopyTest, HolesStayHolesAndADeepTreeCostsNoDescriptors) {
  if (IsSkipped()) return;
  const Descriptor file(::open(Show("from/holes").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::ftruncate(file.get(), int64_t{4} << 30), 0);
  ASSERT_EQ(::pwrite(file.get(), "here", 4, int64_t{1} << 30), 4);
  std::string deep = Show("from");
  // Deeper than what stays open, with something on each way back.
  for (int level = 0; level < 200; ++level) {
    deep += "/d";
    ASSERT_EQ(::mkdir(deep.c_str(), 0755), 0);
    std::ofstream(deep + "/f") << level;
    if (level % 50 == 0) {
      ASSERT_EQ(::mkdir((deep + "/e").c_str(), 0700), 0);
    }
  }
  // Sizes of directories are the filesystem's own business.
  const auto shown = [&](const std::string& name) {
    return OutputOf("cd " + Show(name) + " && find . -printf '%P %y %m %T@\\n' | LC_ALL=C sort");
  };
  const Result<TreeCopied> copied = Copy();
  ASSERT_TRUE(copied.ok()) << copied.error().ToString();
  EXPECT_EQ(shown("to"), shown("from"));
  struct stat copy = {};
  ASSERT_EQ(::stat(Show("to/holes").c_str(), &copy), 0);
  EXPECT_EQ(copy.st_size, int64_t{4} << 30);
  EXPECT_LT(copy.st_blocks * 512, int64_t{4} << 20);
  std::array<char, 4> here{};
  const Descriptor read(::open(Show("to/holes").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::pread(read.get(), here.data(), here.size(), int64_t{1} << 30), 4);
  EXPECT_EQ(std::string(here.data(), here.size()), "here");
}

TEST_P(TreeCopyTest, ADirectoryDeeperThanAPathLeadsCouldNotBeCopied) {
  if (IsSkipped()) return;
  const std::string name(200, 'd');
  constexpr int kLevels = 60;
  Descriptor at(::open(Show("from").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int level = 0; level < kLevels; ++level) {
    ASSERT_EQ(::mkdirat(at.get(), name.c_str(), 0755), 0);
    at = Descriptor(::openat(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(at.valid());
  }
  // With a second name, which is made by the handle of the first.
  const Descriptor file(::openat(at.get(), "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::write(file.get(), "deep", 4), 4);
  ASSERT_EQ(::linkat(at.get(), "f", at.get(), "g", 0), 0);
  ASSERT_EQ(::symlinkat("f", at.get(), "h"), 0);
  const Result<TreeCopied> copied = Copy();
  ASSERT_TRUE(copied.ok()) << copied.error().ToString();
  Descriptor copy(::open(Show("to").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int level = 0; level < kLevels; ++level) {
    copy = Descriptor(::openat(copy.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(copy.valid()) << level;
  }
  std::array<char, 4> content{};
  const Descriptor read(::openat(copy.get(), "h", O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::read(read.get(), content.data(), content.size()), 4);
  EXPECT_EQ(std::string(content.data(), content.size()), "deep");
  struct stat there = {};
  ASSERT_EQ(::fstatat(copy.get(), "g", &there, 0), 0);
  EXPECT_EQ(there.st_nlink, 2u);
}

TEST_P(TreeCopyTest, WhatIsMountedInItIsNotEntered) {
  if (IsSkipped()) return;
  ASSERT_EQ(::mkdir(Show("from/m").c_str(), 0700), 0);
  ASSERT_EQ(::mount("other", Show("from/m").c_str(), "tmpfs", 0, nullptr), 0);
  Write("from/m/f", kSecret);
  const Result<TreeCopied> copied = Copy();
  ASSERT_TRUE(copied.ok()) << copied.error().ToString();
  EXPECT_TRUE(std::filesystem::is_directory(Show("to/m")));
  EXPECT_TRUE(std::filesystem::is_empty(Show("to/m")));
  ASSERT_EQ(::umount2(Show("from/m").c_str(), 0), 0);
}

TEST_P(TreeCopyTest, OnlyAnEmptyDirectoryTakesACopyAndOnlyOfTheExpectedOne) {
  if (IsSkipped()) return;
  Write("to/f", "somebody's");
  const Result<TreeCopied> full = Copy();
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code(), Code::kFailedPrecondition);
  EXPECT_FALSE(full.error().maybe_applied());
  ASSERT_EQ(::unlink(Show("to/f").c_str()), 0);
  const Result<TreeCopied> other = local_->Call(
      CopyTree{.to = In("to"), .from = In("from"), .expected = ObjectOf("outside")}, {});
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code(), Code::kFailedPrecondition);
  EXPECT_FALSE(other.error().maybe_applied());
  ASSERT_EQ(::symlink(Show("outside").c_str(), Show("led").c_str()), 0);
  EXPECT_FALSE(local_->Call(CopyTree{.to = In("to"), .from = In("led")}, {}).ok());
  ASSERT_EQ(::mkdir(Show("from/in").c_str(), 0755), 0);
  const Result<TreeCopied> inside =
      local_->Call(CopyTree{.to = In("from/in"), .from = In("from")}, {});
  ASSERT_FALSE(inside.ok());
  EXPECT_EQ(inside.error().code(), Code::kFailedPrecondition);
}

TEST_P(TreeCopyTest, ACopyKeepsToItsRateAndEndsWhenItIsCancelled) {
  if (IsSkipped()) return;
  Write("from/f", std::string(size_t{4} << 20, 'x'));
  CancelToken token;
  token.Cancel();
  CallOptions cancelled;
  cancelled.cancel = &token;
  const Result<TreeCopied> ended = Copy(cancelled);
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().code(), Code::kCancelled);
  if (std::string(GetParam()) != "ext4") return;  // the others share blocks
  const auto begin = std::chrono::steady_clock::now();
  const Result<TreeCopied> copied = Copy({}, int64_t{8} << 20);
  ASSERT_TRUE(copied.ok()) << copied.error().ToString();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(300));
}

// ---- whoever renames meanwhile ------------------------------------------------------------------

// Swaps a directory and a file of the tree for links that lead out of it, for a fifo and for each
// other, as fast as it can.
class Renamer {
 public:
  Renamer(std::string tree, const std::string& outside)
      : tree_(std::move(tree)), outside_(outside), thread_([this] { Run(); }) {}
  ~Renamer() {
    stop_ = true;
    thread_.join();
  }
  int rounds() const { return rounds_; }

 private:
  std::string At(const std::string& name) const { return tree_ + "/" + name; }
  void Swap(const std::string& name, const std::string& leads_to) const {
    ::rename(At(name).c_str(), At("aside").c_str());
    if (::symlink(leads_to.c_str(), At(name).c_str()) == 0) {
      std::this_thread::yield();
      ::unlink(At(name).c_str());
    }
    ::mkfifo(At(name).c_str(), 0600);
    ::unlink(At(name).c_str());
    ::rename(At("aside").c_str(), At(name).c_str());
  }
  void Run() {
    while (!stop_) {
      Swap("d", outside_);
      Swap("f", outside_ + "/secret");
      Swap("d/deep", outside_);
      ::syscall(SYS_renameat2, AT_FDCWD, At("d").c_str(), AT_FDCWD, At("e").c_str(),
                RENAME_EXCHANGE);
      ++rounds_;
    }
  }

  const std::string tree_;
  const std::string outside_;
  std::atomic<bool> stop_{false};
  std::atomic<int> rounds_{0};
  std::thread thread_;
};

TEST_P(TreeCopyTest, WhoeverRenamesInTheTreeLeadsTheCopyNowhereElse) {
  if (IsSkipped()) return;
  Write("outside/secret", kSecret);
  for (const char* name : {"d", "e", "d/deep", "d/deep/er"}) {
    ASSERT_EQ(::mkdir(Show(std::string("from/") + name).c_str(), 0755), 0);
  }
  for (int i = 0; i < 50; ++i) {
    const std::string number = std::to_string(i);
    Write("from/d/f" + number, number);
    Write("from/e/g" + number, number);
    Write("from/d/deep/secret" + number, number);
  }
  Write("from/d/secret", "of the tree");
  Write("from/f", "of the tree");
  int copied_links = 0;
  Renamer renamer(Show("from"), Show("outside"));
  for (int round = 0; round < 150; ++round) {
    const Result<TreeCopied> copied = Copy();
    ASSERT_TRUE(copied.ok()) << copied.error().ToString();
    ASSERT_NE(Shell("grep -rqs '" + std::string(kSecret) + "' " + Show("to")), 0) << round;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(Show("to"))) {
      if (entry.is_symlink()) ++copied_links;
    }
    Must(local_->Call(RemoveTree{.path = In("to"), .content_alone = true}, {}));
  }
  EXPECT_GT(renamer.rounds(), 150);
  // Else nothing was ever swapped while it was looked at.
  EXPECT_GT(copied_links, 0);
}

TEST_P(TreeCopyTest, AFileThatGrowsAndShrinksMeanwhileHoldsNothingUp) {
  if (IsSkipped()) return;
  Write("from/f", std::string(size_t{1} << 20, 'x'));
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    const Descriptor file(::open(Show("from/f").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    const std::string piece(65536, 'y');
    for (int i = 0; !stop; ++i) {
      if (::write(file.get(), piece.data(), piece.size()) < 0) break;
      if (i % 16 == 0 && ::ftruncate(file.get(), 4096) != 0) break;
    }
  });
  for (int round = 0; round < 20; ++round) {
    const Result<TreeCopied> copied = Copy();
    EXPECT_TRUE(copied.ok()) << copied.error().ToString();
    Must(local_->Call(RemoveTree{.path = In("to"), .content_alone = true}, {}));
  }
  stop = true;
  writer.join();
}

// ---- moves --------------------------------------------------------------------------------------

TEST_P(TreeCopyTest, ADirectoryIsMovedOnceAndFoundAgain) {
  if (IsSkipped()) return;
  Write("from/f", "content");
  const StorageObject object = ObjectOf("from");
  const MoveDirectory move{.to = In("to/data"), .from = In("from"), .expected = object};
  EXPECT_TRUE(Must(local_->Call(move, {})).changed);
  EXPECT_FALSE(Must(local_->Call(move, {})).changed);
  EXPECT_EQ(ObjectOf("to/data"), object);
  EXPECT_FALSE(std::filesystem::exists(Show("from")));
  EXPECT_TRUE(std::filesystem::exists(Show("to/data/f")));
  // Another one at its old place stays there, and so does what is where it is to go.
  ASSERT_EQ(::mkdir(Show("from").c_str(), 0755), 0);
  EXPECT_FALSE(Must(local_->Call(move, {})).changed);
  const Result<Changed> back =
      local_->Call(MoveDirectory{.to = In("from"), .from = In("to/data"), .expected = object}, {});
  ASSERT_FALSE(back.ok());
  EXPECT_EQ(back.error().code(), Code::kAlreadyExists);
  EXPECT_TRUE(std::filesystem::exists(Show("to/data/f")));
}

TEST_P(TreeCopyTest, ADirectoryThatSomebodyHasOrOfAnotherFilesystemIsNotMoved) {
  if (IsSkipped()) return;
  ASSERT_EQ(::mkdir(Show("from/sub").c_str(), 0755), 0);
  const MoveDirectory move{.to = In("to/data"), .from = In("from"), .expected = ObjectOf("from")};
  const auto refused = [&](const MoveDirectory& asked, const std::string& why) {
    const Result<Changed> moved = local_->Call(asked, {});
    ASSERT_FALSE(moved.ok());
    EXPECT_EQ(moved.error().code(), Code::kFailedPrecondition) << moved.error().ToString();
    EXPECT_FALSE(moved.error().maybe_applied());
    EXPECT_THAT(moved.error().message(), HasSubstr(why));
    EXPECT_TRUE(std::filesystem::exists(Show("from/sub")));
  };
  ASSERT_EQ(::mount(Show("from/sub").c_str(), Path("mnt2").c_str(), "", MS_BIND, nullptr), 0);
  refused(move, "is mounted at " + Path("mnt2"));
  ASSERT_EQ(::umount2(Path("mnt2").c_str(), 0), 0);
  ASSERT_EQ(::mount("other", Show("from/sub").c_str(), "tmpfs", 0, nullptr), 0);
  refused(move, "is mounted at " + Show("from/sub"));
  ASSERT_EQ(::umount2(Show("from/sub").c_str(), 0), 0);
  MoveDirectory away = move;
  away.to = {scratch(), "elsewhere"};
  refused(away, "could only be copied");
  MoveDirectory other = move;
  other.expected = ObjectOf("outside");
  refused(other, "it is another directory");
  MoveDirectory any = move;
  any.expected = {};
  EXPECT_EQ(local_->Call(any, {}).error().code(), Code::kInvalidArgument);
  EXPECT_TRUE(Must(local_->Call(move, {})).changed);
}

// ---- bounds -------------------------------------------------------------------------------------

// Files without a length of their own, names, and files of which most is a hole.
TEST_P(TreeCopyTest, WhatIsNoLengthCountsAsWellAndTheAnswerIsWhatTheCopyHas) {
  if (IsSkipped()) return;
  ASSERT_EQ(::mkdir(Show("from/names").c_str(), 0755), 0);
  Write("from/names/f", "x");
  for (int at = 0; at < 2000; ++at) {
    const std::string name = "from/names/" + std::string(200, 'n') + std::to_string(at);
    ASSERT_EQ(::link(Show("from/names/f").c_str(), Show(name).c_str()), 0);
  }
  const Descriptor holes(::open(Show("from/holes").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::ftruncate(holes.get(), int64_t{4} << 30), 0);
  ASSERT_EQ(::pwrite(holes.get(), "here", 4, int64_t{1} << 30), 4);
  for (int at = 0; at < 200; ++at) Write("from/small" + std::to_string(at), "x");
  const Result<TreeCopied> whole = Copy();
  ASSERT_TRUE(whole.ok()) << whole.error().ToString();
  EXPECT_EQ(whole->shares_blocks, std::string(GetParam()) != "ext4");
  ::sync();
  const int64_t has = Must(local_->Call(Usage{In("to")}, {})).used_bytes;
  EXPECT_NEAR(static_cast<double>(whole->allocated_bytes), static_cast<double>(has), 64 << 10);
  for (const int64_t bound : {has / 4, has / 2, has - (int64_t{128} << 10)}) {
    ASSERT_EQ(Shell("find " + Show("to") + " -mindepth 1 -delete"), 0);
    CopyTree copy{.to = In("to"), .from = In("from"), .most_bytes = bound};
    const Result<TreeCopied> copied = local_->Call(copy, {});
    ASSERT_FALSE(copied.ok()) << bound << " of " << has;
    EXPECT_EQ(copied.error().code(), Code::kResourceExhausted);
    EXPECT_EQ(copied.error().sys_errno(), EDQUOT);
    EXPECT_LE(Must(local_->Call(Usage{In("to")}, {})).used_bytes, bound + (int64_t{64} << 10));
  }
}

TEST_P(TreeCopyTest, ASingleLargeFileWasCopiedToItsEndWhateverWasPromised) {
  if (IsSkipped()) return;
  Write("from/large", std::string(32 << 20, 'x'));
  CopyTree copy{.to = In("to"), .from = In("from"), .most_bytes = int64_t{8} << 20};
  const Result<TreeCopied> copied = local_->Call(copy, {});
  ASSERT_FALSE(copied.ok());
  EXPECT_EQ(copied.error().code(), Code::kResourceExhausted);
  EXPECT_LE(Must(local_->Call(Usage{In("to")}, {})).used_bytes, int64_t{8} << 20);
  copy.most_bytes = -1;
  const Result<TreeCopied> refused = local_->Call(copy, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Types, TreeCopyTest, ::testing::Values("ext4", "xfs", "btrfs"));

}  // namespace
}  // namespace volumed
