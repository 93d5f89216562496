// The same requests about subvolumes and quotas to LocalKernel, on a real btrfs, and to FakeKernel:
// equal answers, errors and outcomes. And what only the real kernel can show.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <linux/btrfs.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "fakes/fake_kernel.h"
#include "fakes/must.h"
#include "integration/bounded_writer.h"
#include "integration/differential/world_text.h"
#include "integration/mounter/block_mount_fixture.h"

namespace volumed {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kTreeDiskBytes = int64_t{400} << 20;
constexpr int64_t kTreeLimit = int64_t{8} << 20;

struct TreeWorld {
  Kernel& kernel;
  SafePath pool;
  std::string text = {};  // one line per step

  void Step(const std::string& name, const AnyRequest& request) {
    text += name + ": " + ResultText(kernel.Do(request, {}), pool.Display()) + "\n";
  }
  SafePath In(const std::string& name) const { return pool.Below(name); }
  SetTreeQuota Quota(const std::string& name, int64_t bytes) const {
    SetTreeQuota set{In(name)};
    set.bytes = bytes;
    return set;
  }
};

void WalkSubvolumes(TreeWorld& world) {
  world.Step("make", MakeSubvolume{world.In("a")});
  world.Step("make again", MakeSubvolume{world.In("a")});
  world.Step("fill", WriteFile{world.In("a/f"), Secret<std::string>("then")});
  world.Step("make what is full", MakeSubvolume{world.In("a")});
  world.Step("directory", MakeDirectory{world.In("plain"), 0755});
  world.Step("make a directory's", MakeSubvolume{world.In("plain")});
  world.Step("read-only without a source", MakeSubvolume{world.In("b"), std::nullopt, {}, true});
  world.Step("of a directory", MakeSubvolume{world.In("b"), world.In("plain")});
  world.Step("of nothing", MakeSubvolume{world.In("b"), world.In("none")});
  const StorageObject other{"btrfs", "", 256, "77:00"};
  world.Step("of another", MakeSubvolume{world.In("b"), world.In("a"), other});
  world.Step("snapshot", MakeSubvolume{world.In("b"), world.In("a"), {}, true});
  world.Step("snapshot again", MakeSubvolume{world.In("b"), world.In("a"), {}, true});
  world.Step("a writable one", MakeSubvolume{world.In("b"), world.In("a")});
  world.Step("write to it", MakeFile{world.In("b/new")});
  world.Step("remove its tree", RemoveTree{world.In("b/f")});
  world.Step("change", WriteFile{world.In("a/f"), Secret<std::string>("later")});
  world.Step("clone", MakeSubvolume{world.In("c"), world.In("b")});
  world.Step("read it", ReadFile{world.In("c/f")});
  world.Step("write to the clone", MakeFile{world.In("c/new")});
  world.Step("inside", MakeSubvolume{world.In("a/inside")});
  world.Step("no parent", MakeSubvolume{world.In("none/x")});
}

void WalkQuotas(TreeWorld& world) {
  world.Step("no account", ReadTreeQuota{world.In("a")});
  world.Step("below zero", world.Quota("a", -1));
  world.Step("of a directory", world.Quota("plain", kTreeLimit));
  world.Step("set", world.Quota("a", kTreeLimit));
  world.Step("read", ReadTreeQuota{world.In("a")});
  world.Step("read a directory's", ReadTreeQuota{world.In("plain")});
  world.Step("without a limit", ReadTreeQuota{world.In("c")});
  SetTreeQuota inodes = world.Quota("a", 0);
  inodes.inodes = 5;
  world.Step("inodes", inodes);
  world.Step("take away", world.Quota("a", 0));
  world.Step("no such directory", ReadTreeQuota{world.In("none")});
}

StorageObject ObjectIn(TreeWorld& world, const std::string& name) {
  return Must(world.kernel.Call(IdentifyStorage{.path = world.In(name)}, {})).object;
}

void WalkMoves(TreeWorld& world) {
  for (const char* name : {"box", "box/in", "from", "sub"}) {
    world.Step(std::string("directory ") + name, MakeDirectory{world.In(name), 0755});
  }
  world.Step("file", WriteFile{world.In("from/f"), Secret<std::string>("moved")});
  const StorageObject object = ObjectIn(world, "from");
  const SafePath from = world.In("from");
  world.Step("move what is not said", MoveDirectory{world.In("box/to"), from});
  world.Step("move another", MoveDirectory{world.In("box/to"), from, ObjectIn(world, "sub")});
  world.Step("move nothing", MoveDirectory{world.In("box/to"), world.In("none"), object});
  world.Step("move to no parent", MoveDirectory{world.In("none/to"), from, object});
  world.Step("move to what is there", MoveDirectory{world.In("box/in"), from, object});
  world.Step("move into itself", MoveDirectory{world.In("from/to"), from, object});
  world.Step("move to another subvolume", MoveDirectory{world.In("c/to"), from, object});
  world.Step("move a subvolume",
             MoveDirectory{world.In("box/to"), world.In("c"), ObjectIn(world, "c")});
  world.Step("move", MoveDirectory{world.In("box/to"), from, object});
  world.Step("move again", MoveDirectory{world.In("box/to"), from, object});
  world.Step("what was moved", ReadFile{world.In("box/to/f")});
  world.Step("what is left", Stat{from});
  world.Step("a bind's place", MakeDirectory{world.In("bound"), 0755});
  world.Step("bind", BindMount{.source = world.In("box/to"), .target = world.In("bound")});
  world.Step("move what is bound", MoveDirectory{from, world.In("box/to"), object});
  world.Step("unbind", Unmount{world.In("bound")});
  world.Step("move back", MoveDirectory{from, world.In("box/to"), object});
}

void WalkCopies(TreeWorld& world) {
  world.Step("link", MakeSymlink{world.In("from/link"), "/etc"});
  world.Step("mode", MakeDirectory{world.In("from/d"), 02750, std::nullopt, true});
  world.Step("group", ChangeOwnership{world.In("from/d"), 1000});
  world.Step("one with a subvolume", MakeDirectory{world.In("with"), 0755});
  world.Step("a subvolume in it", MakeSubvolume{world.In("with/inside")});
  world.Step("file in that", WriteFile{world.In("with/inside/f"), Secret<std::string>("x")});
  world.Step("copy what has a subvolume", CopyTree{world.In("sub"), world.In("with")});
  world.Step("copy", CopyTree{world.In("sub"), world.In("from")});
  for (const char* name : {"sub", "sub/d"}) {
    world.Step(std::string("list ") + name, ListDirectory{world.In(name)});
  }
  world.Step("read", ReadFile{world.In("sub/f")});
  world.Step("read the link", ReadLink{world.In("sub/link")});
  world.Step("copy again", CopyTree{world.In("sub"), world.In("from")});
  world.Step("copy another", CopyTree{world.In("bound"), world.In("from"), ObjectIn(world, "sub")});
  world.Step("copy itself", CopyTree{world.In("bound"), world.In("bound")});
  world.Step("copy a file", CopyTree{world.In("bound"), world.In("from/f")});
  world.Step("copy to a file", CopyTree{world.In("from/f"), world.In("from")});
  world.Step("copy too slowly", CopyTree{world.In("bound"), world.In("from"), {}, -1});
}

void WalkRemoval(TreeWorld& world) {
  world.Step("remove a directory", RemoveSubvolume{world.In("plain")});
  world.Step("remove a file", RemoveSubvolume{world.In("a/f")});
  world.Step("remove what is missing", RemoveSubvolume{world.In("none")});
  const StorageObject other{"btrfs", "", 256, "77:00"};
  world.Step("remove another", RemoveSubvolume{world.In("b"), other});
  world.Step("a read-only one in a directory",
             MakeSubvolume{world.In("box/kept"), world.In("c"), {}, true});
  world.Step("remove the directory", RemoveTree{world.In("box")});
  for (const char* name : {"b", "c", "a", "a"}) {
    world.Step("remove", RemoveSubvolume{world.In(name)});
  }
  world.Step("what is left", ListDirectory{world.pool});
}

class TreeTest : public BlockMountTest {
 protected:
  void MountBtrfs() {
    disk_.emplace(Image("disk", kTreeDiskBytes));
    ASSERT_TRUE(disk_->valid());
    ASSERT_NO_FATAL_FAILURE(Mkfs("btrfs", disk_->path()));
    ASSERT_EQ(::mount(disk_->path().c_str(), Path("mnt").c_str(), "btrfs", 0, nullptr), 0);
  }
  SafePath In(const std::string& name) const { return {scratch(), "mnt/" + name}; }
  std::string Show(const std::string& name) const { return Path("mnt/" + name); }
  static std::string Content(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  std::optional<LoopDevice> disk_;
};

TEST_F(TreeTest, FakeAndRealKernelAgreeOnSubvolumesAndTheirQuotas) {
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(MountBtrfs());
  FakeKernel fake;
  fake.AddMount("btrfs", "/dev/pool", "/pool");
  TreeWorld real{*local_, {scratch(), "mnt"}};
  TreeWorld made{fake, {"/pool", ""}};
  for (TreeWorld* world : {&real, &made}) {
    WalkSubvolumes(*world);
    WalkQuotas(*world);
    WalkMoves(*world);
    WalkCopies(*world);
    WalkRemoval(*world);
  }
  EXPECT_EQ(real.text, made.text);
}

TEST_F(TreeTest, FakeAndRealKernelAgreeOnWhatACopyIs) {
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(MountBtrfs());
  FakeKernel fake;
  // By the same paths, which are in the texts.
  fake.AddMount("btrfs", "/dev/pool", Path("mnt"));
  TreeWorld real{*local_, {scratch(), "mnt"}};
  TreeWorld made{fake, real.pool};
  for (TreeWorld* world : {&real, &made}) {
    WalkSubvolumes(*world);
    WalkMoves(*world);
    WalkCopies(*world);
  }
  EXPECT_EQ(RealTreeText(Show("sub")), fake.DumpTree(Show("sub")));
  EXPECT_EQ(RealTreeText(Show("from")), fake.DumpTree(Show("from")));
}

TEST_F(TreeTest, ASnapshotHasWhatWasWrittenBeforeAndIsAnotherObject) {
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(MountBtrfs());
  const FileExtent volume = Must(local_->Call(MakeSubvolume{In("v")}, {}));
  std::ofstream(Show("v/f")) << "then";  // not synced
  const FileExtent cut =
      Must(local_->Call(MakeSubvolume{In("s"), In("v"), volume.object, true}, {}));
  std::ofstream(Show("v/f")) << "later";
  EXPECT_EQ(Content(Show("s/f")), "then");
  EXPECT_EQ(volume.object.inode, cut.object.inode);
  EXPECT_NE(StorageDifference(volume.object, cut.object), "");
  EXPECT_FALSE(IsSameObject(volume.object, cut.object));
  const auto other = local_->Call(RemoveSubvolume{In("s"), volume.object}, {});
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code(), Code::kFailedPrecondition);
}

// Whoever is root in a pod can make them, and would keep the volume from being deleted by them.
TEST_F(TreeTest, ASubvolumeGoesWithTheReadOnlyOnesThatSomebodyMadeInsideOfIt) {
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(MountBtrfs());
  for (const char* name : {"v", "v/one", "v/one/two", "v/other"}) {
    Must(local_->Call(MakeSubvolume{In(name)}, {}));
  }
  std::ofstream(Show("v/one/two/f")) << "x";
  const Descriptor one(::open(Show("v/one").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  uint64_t flags = BTRFS_SUBVOL_RDONLY;
  ASSERT_EQ(::ioctl(one.get(), BTRFS_IOC_SUBVOL_SETFLAGS, &flags), 0);
  EXPECT_TRUE(Must(local_->Call(RemoveSubvolume{In("v")}, {})).changed);
  EXPECT_FALSE(std::filesystem::exists(Show("v")));
}

// A user of the pod can make them, and 256 was the end.
TEST_F(TreeTest, ASubvolumeWithManyInEachOtherCouldNotBeRemoved) {
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(MountBtrfs());
  constexpr int kNested = 300;
  // The names are longer together than any path.
  const std::string name = "d/" + std::string(20, 's');
  Must(local_->Call(MakeSubvolume{In("v")}, {}));
  Descriptor at(::open(Show("v").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int level = 0; level < kNested; ++level) {
    ASSERT_EQ(::mkdirat(at.get(), "d", 0755), 0);
    Descriptor directory(::openat(at.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    btrfs_ioctl_vol_args arguments = {};
    name.copy(arguments.name, sizeof(arguments.name) - 1, 2);
    ASSERT_EQ(::ioctl(directory.get(), BTRFS_IOC_SUBVOL_CREATE, &arguments), 0) << level;
    at = Descriptor(::openat(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(at.valid());
  }
  uint64_t flags = BTRFS_SUBVOL_RDONLY;
  ASSERT_EQ(::ioctl(at.get(), BTRFS_IOC_SUBVOL_SETFLAGS, &flags), 0);
  at.Reset();
  const auto removed = local_->Call(RemoveSubvolume{In("v")}, {});
  ASSERT_TRUE(removed.ok()) << removed.error().ToString();
  EXPECT_FALSE(std::filesystem::exists(Show("v")));
}

TEST_F(TreeTest, ADirectoryWithAReadOnlySubvolumeInItCouldNotBeRemoved) {
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(MountBtrfs());
  ASSERT_EQ(::mkdir(Show("plain").c_str(), 0755), 0);
  Must(local_->Call(MakeSubvolume{In("plain/a")}, {}));
  ASSERT_EQ(::mkdir(Show("plain/a/d").c_str(), 0755), 0);
  std::ofstream(Show("plain/a/d/f")) << "x";
  Must(local_->Call(MakeSubvolume{In("plain/a/inside")}, {}));
  Must(local_->Call(MakeSubvolume{In("plain/b"), In("plain/a"), {}, true}, {}));
  const auto removed = local_->Call(RemoveTree{.path = In("plain")}, {});
  ASSERT_TRUE(removed.ok()) << removed.error().ToString();
  EXPECT_FALSE(std::filesystem::exists(Show("plain")));
}

TEST_F(TreeTest, ACopyLeftASubvolumeOutAndSaidNothing) {
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(MountBtrfs());
  for (const char* name : {"from", "from/d", "to"}) {
    ASSERT_EQ(::mkdir(Show(name).c_str(), 0755), 0);
  }
  Must(local_->Call(MakeSubvolume{In("from/d/inside")}, {}));
  const auto copied = local_->Call(CopyTree{.to = In("to"), .from = In("from")}, {});
  ASSERT_FALSE(copied.ok());
  EXPECT_EQ(copied.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(copied.error().message(),
              AllOf(HasSubstr("copy d/inside: "), HasSubstr("it is a subvolume")));
}

// The kernel itself takes it away under them.
TEST_F(TreeTest, ASubvolumeIsNotRemovedWhileSomethingShowsItOrIsMountedInIt) {
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(MountBtrfs());
  Must(local_->Call(MakeSubvolume{In("v")}, {}));
  ASSERT_EQ(::mkdir(Show("v/sub").c_str(), 0755), 0);
  const auto refused = [&](const std::string& where) {
    const auto removed = local_->Call(RemoveSubvolume{In("v")}, {});
    ASSERT_FALSE(removed.ok());
    EXPECT_EQ(removed.error().code(), Code::kFailedPrecondition);
    EXPECT_FALSE(removed.error().maybe_applied());
    EXPECT_THAT(removed.error().message(), HasSubstr(where));
    EXPECT_TRUE(std::filesystem::exists(Show("v/sub")));
  };
  ASSERT_EQ(::mount(Show("v/sub").c_str(), Path("mnt2").c_str(), "", MS_BIND, nullptr), 0);
  refused(Path("mnt2"));
  ASSERT_EQ(::umount2(Path("mnt2").c_str(), 0), 0);
  ASSERT_EQ(::mount("few", Show("v/sub").c_str(), "tmpfs", 0, nullptr), 0);
  refused(Show("v/sub"));
  ASSERT_EQ(::umount2(Show("v/sub").c_str(), 0), 0);
  EXPECT_TRUE(local_->Call(RemoveSubvolume{In("v")}, {}).ok());
}

TEST_F(TreeTest, ALimitOfASubvolumeHoldsForRootAndIsReadWithWhatIsUsed) {
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(MountBtrfs());
  Must(local_->Call(MakeSubvolume{In("v")}, {}));
  SetTreeQuota set{In("v")};
  set.bytes = kTreeLimit;
  const TreeQuota quota = Must(local_->Call(set, {}));
  EXPECT_EQ(quota.kind, TreeQuotaKind::kQgroup);
  EXPECT_EQ(quota.limit_bytes, kTreeLimit);
  EXPECT_EQ(FillBounded(Show("v/f"), 2 * kTreeLimit), EDQUOT);
  ::sync();
  const TreeQuota full = Must(local_->Call(ReadTreeQuota{In("v")}, {}));
  EXPECT_GT(full.used_bytes, kTreeLimit / 2);
  EXPECT_LE(full.used_bytes, kTreeLimit);
  set.bytes = 3 * kTreeLimit;
  Must(local_->Call(set, {}));
  EXPECT_EQ(FillBounded(Show("v/g"), kTreeLimit), 0);
}

class ProjectQuotaTest : public TreeTest, public ::testing::WithParamInterface<const char*> {
 protected:
  // Whether this kernel counts projects on that type; mounts it, with prjquota if it can.
  bool CountsProjects() {
    disk_.emplace(Image("disk", kTreeDiskBytes));
    const std::string type = GetParam();
    const std::string features = type == "ext4" ? "-O quota,project -E quotatype=prjquota " : "";
    EXPECT_EQ(Shell("mkfs." + type + " -q " + features + disk_->path()), 0);
    if (::mount(disk_->path().c_str(), Path("mnt").c_str(), GetParam(), 0, "prjquota") != 0) {
      return false;
    }
    return local_->Call(ReadTreeQuota{{scratch(), "mnt"}}, {}).ok();
  }
};

TEST_P(ProjectQuotaTest, ADirectoryOfAProjectTakesNoMoreThanItsLimit) {
  if (IsSkipped()) return;
  if (!CountsProjects()) GTEST_SKIP() << "skipped: needs project quota";
  ASSERT_EQ(::mkdir(Show("v").c_str(), 0755), 0);
  SetTreeQuota set{In("v")};
  set.bytes = kTreeLimit;
  EXPECT_EQ(local_->Call(set, {}).error().code(), Code::kInvalidArgument);
  set.project_id = 7;
  const TreeQuota quota = Must(local_->Call(set, {}));
  EXPECT_EQ(quota.kind, TreeQuotaKind::kProject);
  EXPECT_EQ(quota.id, 7u);
  EXPECT_EQ(quota.limit_bytes, kTreeLimit);
  const int beyond = std::string(GetParam()) == "xfs" ? ENOSPC : EDQUOT;
  EXPECT_EQ(FillBounded(Show("v/f"), 2 * kTreeLimit), beyond);
  const TreeQuota full = Must(local_->Call(ReadTreeQuota{In("v")}, {}));
  EXPECT_GT(full.used_bytes, kTreeLimit / 2);
  EXPECT_LE(full.used_bytes, kTreeLimit);
  EXPECT_EQ(full.used_inodes, 2);
  ASSERT_EQ(::mkdir(Show("w").c_str(), 0755), 0);
  set.path = In("w");
  EXPECT_EQ(local_->Call(set, {}).error().code(), Code::kAlreadyExists);
  // What is of another one is not taken from it.
  set.path = In("v");
  set.project_id = 8;
  EXPECT_EQ(local_->Call(set, {}).error().code(), Code::kFailedPrecondition);
  // By the number that it has: the limit is taken away, and the files stay.
  set.project_id = 0;
  set.bytes = 0;
  EXPECT_EQ(Must(local_->Call(set, {})).limit_bytes, 0);
  EXPECT_EQ(FillBounded(Show("v/f"), 2 * kTreeLimit), 0);
  // By the directory of another one: that stays as it is.
  set.project_id = 9;
  set.path = In("w");
  set.bytes = kTreeLimit;
  Must(local_->Call(set, {}));
  set.project_id = 7;
  set.bytes = 2 * kTreeLimit;
  set.limit_alone = true;
  const TreeQuota kept = Must(local_->Call(set, {}));
  EXPECT_EQ(kept.id, 9u);
  EXPECT_EQ(kept.limit_bytes, kTreeLimit);
  EXPECT_EQ(Must(local_->Call(ReadTreeQuota{In("v")}, {})).limit_bytes, 2 * kTreeLimit);
}

TEST_P(ProjectQuotaTest, AFilesystemWithoutProjectQuotaSaysSoAndChangesNothing) {
  if (IsSkipped()) return;
  disk_.emplace(Image("disk", kTreeDiskBytes));
  ASSERT_NO_FATAL_FAILURE(Mkfs(GetParam(), disk_->path()));
  ASSERT_EQ(::mount(disk_->path().c_str(), Path("mnt").c_str(), GetParam(), 0, ""), 0);
  ASSERT_EQ(::mkdir(Show("v").c_str(), 0755), 0);
  SetTreeQuota set{In("v")};
  set.bytes = kTreeLimit;
  set.project_id = 7;
  for (const AnyRequest& request : {AnyRequest(set), AnyRequest(ReadTreeQuota{In("v")})}) {
    const auto answer = local_->Do(request, {});
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.error().code(), Code::kUnimplemented) << answer.error().ToString();
    EXPECT_FALSE(answer.error().maybe_applied());
    EXPECT_THAT(answer.error().message(), HasSubstr("project quota"));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ProjectQuotaTest, ::testing::Values("ext4", "xfs"));

}  // namespace
}  // namespace volumed
