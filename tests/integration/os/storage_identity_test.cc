// Which storage is which, on real filesystems, loop devices, partitions, binds and subvolumes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "integration/loop_device.h"
#include "integration/mount_namespace_fixture.h"
#include "integration/partitions.h"
#include "mounter/host_directory.h"
#include "os/local_kernel.h"
#include "os/loop_file.h"

namespace volumed {
namespace {

constexpr int64_t kDiskBytes = int64_t{160} << 20;

class StorageIdentityTest : public MountNamespaceTest {
 protected:
  void SetUp() override {
    MountNamespaceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    auto created = LocalKernel::Create({});
    ASSERT_TRUE(created.ok());
    kernel_ = std::move(created).value();
    LocalKernelOptions old;
    old.masked_features = {"statmount"};
    created = LocalKernel::Create(old);
    ASSERT_TRUE(created.ok());
    old_kernel_ = std::move(created).value();
  }
  std::string Path(const std::string& name) const { return scratch() + "/" + name; }
  std::string Directory(const std::string& name) const {
    EXPECT_EQ(::mkdir(Path(name).c_str(), 0755), 0) << name;
    return Path(name);
  }
  static void Bind(const std::string& from, const std::string& to) {
    ASSERT_EQ(::mount(from.c_str(), to.c_str(), nullptr, MS_BIND, nullptr), 0);
  }
  // As each of two kernels says it, which must be the same.
  StorageIdentity Identify(const std::string& path, bool users = false) {
    const IdentifyStorage request{HostPath(path), users};
    const auto now = kernel_->Call(request, {});
    const auto before = old_kernel_->Call(request, {});
    EXPECT_TRUE(now.ok()) << path << ": " << now.error().ToString();
    EXPECT_TRUE(before.ok());
    if (!now.ok() || !before.ok()) return {};
    EXPECT_EQ(*now, *before) << path;
    return *now;
  }
  bool Meet(const std::string& a, const std::string& b) {
    const StorageIdentity one = Identify(a);
    const StorageIdentity two = Identify(b);
    EXPECT_EQ(Overlap(one, two), Overlap(two, one));
    return Overlap(one, two);
  }
  static bool Run(const std::string& command) {
    return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
  }

  std::unique_ptr<LocalKernel> kernel_;
  std::unique_ptr<LocalKernel> old_kernel_;
};

TEST_F(StorageIdentityTest, ADirectoryMeetsWhatContainsItAndWhatLiesInsideIt) {
  Directory("x");
  Directory("x/sub");
  Directory("xy");
  EXPECT_TRUE(Meet(Path("x"), Path("x/sub")));
  EXPECT_TRUE(Meet(Path("x"), Path("x")));
  EXPECT_TRUE(Meet(Path("x"), Path("x/not/there/yet")));
  EXPECT_FALSE(Meet(Path("x"), Path("xy")));
  EXPECT_FALSE(Meet(Path("x/sub"), Path("x/other")));
}

TEST_F(StorageIdentityTest, LinksAndBindsLeadToTheSameDirectory) {
  Directory("x");
  Directory("x/sub");
  Directory("bound");
  Directory("beside");
  ASSERT_EQ(::symlink("x/sub", Path("link").c_str()), 0);
  Bind(Path("x/sub"), Path("bound"));
  EXPECT_TRUE(Meet(Path("link"), Path("x")));
  EXPECT_TRUE(Meet(Path("bound"), Path("x")));
  EXPECT_TRUE(Meet(Path("bound"), Path("link")));
  EXPECT_FALSE(Meet(Path("bound"), Path("beside")));
  EXPECT_EQ(Identify(Path("bound")).object, Identify(Path("x/sub")).object);
  // Of a bind whose own parents are mounted nowhere.
  Directory("only");
  ASSERT_EQ(::mount("inner", Path("only").c_str(), "tmpfs", 0, nullptr), 0);
  Directory("only/deep");
  Directory("only/deep/er");
  Directory("kept");
  Directory("kept-too");
  Bind(Path("only/deep"), Path("kept"));
  Bind(Path("only/deep/er"), Path("kept-too"));
  ASSERT_EQ(::umount(Path("only").c_str()), 0);
  EXPECT_TRUE(Meet(Path("kept"), Path("kept-too")));
}

TEST_F(StorageIdentityTest, AnotherDirectoryOfTheSameNameIsTold) {
  Directory("x");
  const StorageObject before = Identify(Path("x")).object;
  EXPECT_NE(before.inode, 0u);
  ASSERT_EQ(::rename(Path("x").c_str(), Path("away").c_str()), 0);
  EXPECT_EQ(StorageDifference(before, Identify(Path("away")).object), "");
  Directory("x");
  EXPECT_NE(StorageDifference(before, Identify(Path("x")).object), "");
}

TEST_F(StorageIdentityTest, ADiskItsPartitionsAndWhatIsMountedFromThemMeet) {
  if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
  ASSERT_TRUE(MakeImage(Path("image"), kDiskBytes));
  const LoopDevice disk(Path("image"));
  ASSERT_TRUE(disk.valid());
  ASSERT_TRUE(AddPartition(disk.path(), 1, 1 << 20, 64 << 20));
  ASSERT_TRUE(AddPartition(disk.path(), 2, 80 << 20, 64 << 20));
  const std::string one = PartitionOf(disk.path(), 1);
  const std::string two = PartitionOf(disk.path(), 2);
  EXPECT_TRUE(Meet(disk.path(), one));
  EXPECT_FALSE(Meet(one, two));
  ASSERT_TRUE(Run("mkfs.ext4 -q " + one));
  Directory("mnt");
  ASSERT_EQ(::mount(one.c_str(), Path("mnt").c_str(), "ext4", 0, nullptr), 0);
  Directory("mnt/v");
  EXPECT_TRUE(Meet(Path("mnt/v"), one));
  EXPECT_TRUE(Meet(Path("mnt/v"), disk.path()));
  EXPECT_FALSE(Meet(Path("mnt/v"), two));
  // The image's own directory holds all of it.
  EXPECT_TRUE(Meet(disk.path(), scratch()));
  EXPECT_TRUE(Meet(Path("mnt/v"), Path("image")));
  EXPECT_EQ(Identify(one, true).users, std::vector<std::string>{one});
  EXPECT_EQ(Identify(disk.path(), true).users, std::vector<std::string>{disk.path()});
  EXPECT_TRUE(Identify(two, true).users.empty());
  const StorageObject object = Identify(Path("mnt/v")).object;
  EXPECT_EQ(object.fs_uuid.size(), 36u) << object.fs_uuid;
  EXPECT_EQ(object.fs_type, "ext4");
  EXPECT_NE(object.handle, "");
  ASSERT_EQ(::umount(Path("mnt").c_str()), 0);
  ASSERT_EQ(::mount(one.c_str(), Path("mnt").c_str(), "ext4", 0, nullptr), 0);
  EXPECT_EQ(Identify(Path("mnt/v")).object, object) << "it stays itself over mounts";
  ASSERT_EQ(::umount(Path("mnt").c_str()), 0);
  EXPECT_TRUE(DropPartition(disk.path(), 1));
  EXPECT_TRUE(DropPartition(disk.path(), 2));
}

// Multipath disks and mappings as sysfs tells them, for loop devices stand for all of them here.
TEST_F(StorageIdentityTest, TwoDisksOfOneWwidAndWhatIsMadeOfThemMeet) {
  if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
  std::vector<std::unique_ptr<LoopDevice>> disks;
  for (const char* name : {"one", "two", "other", "made"}) {
    ASSERT_TRUE(MakeImage(Path(name), kDiskBytes / 16));
    disks.push_back(std::make_unique<LoopDevice>(Path(name)));
    ASSERT_TRUE(disks.back()->valid());
  }
  const std::string sysfs = "/sys/dev/block";
  ASSERT_EQ(::mount("sysfs-of-the-test", sysfs.c_str(), "tmpfs", 0, nullptr), 0);
  std::vector<std::string> numbers;
  for (const auto& disk : disks) {
    struct stat node = {};
    ASSERT_EQ(::stat(disk->path().c_str(), &node), 0);
    numbers.push_back(std::to_string(major(node.st_rdev)) + ":" +
                      std::to_string(minor(node.st_rdev)));
    ASSERT_EQ(::mkdir((sysfs + "/" + numbers.back()).c_str(), 0755), 0);
  }
  const auto tell = [&](size_t disk, const std::string& attribute, const std::string& text) {
    std::ofstream(sysfs + "/" + numbers[disk] + "/" + attribute) << text << "\n";
  };
  const auto meet = [&](size_t a, size_t b) { return Meet(disks[a]->path(), disks[b]->path()); };
  EXPECT_FALSE(meet(0, 1));
  EXPECT_FALSE(meet(0, 3));
  tell(0, "wwid", "naa.1");
  tell(2, "wwid", "naa.2");
  ASSERT_EQ(::mkdir((sysfs + "/" + numbers[1] + "/device").c_str(), 0755), 0);
  tell(1, "device/wwid", "naa.1");
  EXPECT_TRUE(meet(0, 1)) << "two paths of one disk";
  EXPECT_FALSE(meet(0, 2));
  ASSERT_EQ(::mkdir((sysfs + "/" + numbers[3] + "/slaves").c_str(), 0755), 0);
  ASSERT_EQ(::mkdir((sysfs + "/" + numbers[3] + "/slaves/below").c_str(), 0755), 0);
  tell(3, "slaves/below/dev", numbers[0]);
  EXPECT_TRUE(meet(3, 0)) << "what is made of it";
  EXPECT_TRUE(meet(3, 1)) << "and its other path";
  EXPECT_FALSE(meet(3, 2));
  ASSERT_EQ(::umount(sysfs.c_str()), 0);
}

// The pod whose device it is may want it for itself.
TEST_F(StorageIdentityTest, WhoLooksAtADeviceOrKeepsItForAPodDoesNotClaimIt) {
  if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
  ASSERT_TRUE(MakeImage(Path("image"), kDiskBytes / 16));
  const LoopDevice disk(Path("image"));
  ASSERT_TRUE(disk.valid());
  const auto is_free = [&] {
    return Descriptor(::open(disk.path().c_str(), O_RDONLY | O_EXCL | O_CLOEXEC)).valid();
  };
  ASSERT_TRUE(is_free());
  EXPECT_TRUE(Identify(disk.path(), true).users.empty());
  EXPECT_TRUE(is_free());
  const auto kept = kernel_->Call(IdentifyDevice{HostPath(disk.path()), true}, {});
  ASSERT_TRUE(kept.ok()) << kept.error().ToString();
  ASSERT_NE(kept->pin, nullptr);
  EXPECT_TRUE(is_free());
}

TEST_F(StorageIdentityTest, TwoLoopDevicesOnOneFileAreOneStorage) {
  if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
  ASSERT_TRUE(MakeImage(Path("image"), kDiskBytes));
  ASSERT_TRUE(MakeImage(Path("other"), kDiskBytes));
  ASSERT_EQ(::link(Path("image").c_str(), Path("hard").c_str()), 0);
  const LoopDevice one(Path("image"));
  const LoopDevice two(Path("hard"));
  const LoopDevice other(Path("other"));
  ASSERT_TRUE(one.valid() && two.valid() && other.valid());
  EXPECT_TRUE(Meet(one.path(), two.path()));
  EXPECT_TRUE(Meet(one.path(), Path("hard")));
  EXPECT_FALSE(Meet(one.path(), other.path()));
  EXPECT_FALSE(Meet(one.path(), Path("other")));
  // So are their partitions at the same place.
  for (const LoopDevice* disk : {&one, &two}) {
    ASSERT_TRUE(AddPartition(disk->path(), 1, 1 << 20, 64 << 20));
    ASSERT_TRUE(AddPartition(disk->path(), 2, 80 << 20, 64 << 20));
  }
  EXPECT_TRUE(Meet(PartitionOf(one.path(), 1), PartitionOf(two.path(), 1)));
  EXPECT_TRUE(Meet(PartitionOf(one.path(), 1), two.path()));
  EXPECT_FALSE(Meet(PartitionOf(one.path(), 1), PartitionOf(two.path(), 2)));
  ASSERT_TRUE(Run("mkfs.ext4 -q " + PartitionOf(one.path(), 1)));
  Directory("part");
  ASSERT_EQ(::mount(PartitionOf(one.path(), 1).c_str(), Path("part").c_str(), "ext4", 0, nullptr),
            0);
  EXPECT_EQ(Identify(PartitionOf(two.path(), 1), true).users,
            std::vector<std::string>{PartitionOf(one.path(), 1)});
  EXPECT_TRUE(Identify(PartitionOf(two.path(), 2), true).users.empty());
  ASSERT_EQ(::umount(Path("part").c_str()), 0);
  for (const LoopDevice* disk : {&one, &two}) {
    EXPECT_TRUE(DropPartition(disk->path(), 1));
    EXPECT_TRUE(DropPartition(disk->path(), 2));
  }
  EXPECT_TRUE(AreTwins(Identify(one.path(), false), Identify(two.path(), false)));
  EXPECT_FALSE(AreTwins(Identify(one.path(), false), Identify(one.path(), false)));
  EXPECT_FALSE(AreTwins(Identify(one.path(), false), Identify(other.path(), false)));
  ASSERT_TRUE(Run("mkfs.ext4 -q " + one.path()));
  Directory("mnt");
  ASSERT_EQ(::mount(one.path().c_str(), Path("mnt").c_str(), "ext4", 0, nullptr), 0);
  EXPECT_EQ(Identify(two.path(), true).users, std::vector<std::string>{one.path()});
  EXPECT_TRUE(Identify(other.path(), true).users.empty());
  EXPECT_TRUE(Meet(Path("mnt"), two.path()));
  {
    // Who writes to a file of a filesystem goes through it: nothing happens behind its back.
    ASSERT_TRUE(MakeImage(Path("mnt/inner"), kDiskBytes / 16));
    const LoopDevice inner(Path("mnt/inner"));
    ASSERT_TRUE(inner.valid());
    EXPECT_TRUE(Meet(inner.path(), one.path()));
    EXPECT_FALSE(AreTwins(Identify(inner.path(), false), Identify(one.path(), false)));
  }
  ASSERT_EQ(::umount(Path("mnt").c_str()), 0);
}

TEST_F(StorageIdentityTest, SubvolumesOfABtrfsLieInOneAnotherAsDirectoriesDo) {
  if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
  ASSERT_TRUE(MakeImage(Path("image"), kDiskBytes));
  const LoopDevice disk(Path("image"));
  ASSERT_TRUE(disk.valid());
  if (!Run("mkfs.btrfs -q " + disk.path())) GTEST_SKIP() << "skipped: needs btrfs-progs";
  Directory("mnt");
  if (::mount(disk.path().c_str(), Path("mnt").c_str(), "btrfs", 0, nullptr) != 0) {
    GTEST_SKIP() << "skipped: the kernel has no btrfs";
  }
  ASSERT_TRUE(Run("btrfs subvolume create " + Path("mnt/a")));
  ASSERT_TRUE(Run("btrfs subvolume create " + Path("mnt/a/in")));
  ASSERT_TRUE(Run("btrfs subvolume create " + Path("mnt/b")));
  Directory("sub");
  ASSERT_EQ(::mount(disk.path().c_str(), Path("sub").c_str(), "btrfs", 0, "subvol=/a"), 0);
  EXPECT_TRUE(Meet(Path("mnt/a"), Path("mnt/a/in")));
  EXPECT_TRUE(Meet(Path("sub"), Path("mnt/a")));
  EXPECT_TRUE(Meet(Path("sub/in"), Path("mnt/a/in")));
  EXPECT_FALSE(Meet(Path("sub"), Path("mnt/b")));
  EXPECT_TRUE(Meet(Path("sub"), disk.path()));
  // All roots of subvolumes have one inode number.
  const StorageObject a = Identify(Path("mnt/a")).object;
  EXPECT_NE(StorageDifference(a, Identify(Path("mnt/b")).object), "");
  EXPECT_EQ(StorageDifference(a, Identify(Path("sub")).object), "");
  ASSERT_EQ(::umount(Path("sub").c_str()), 0);
  ASSERT_EQ(::umount(Path("mnt").c_str()), 0);
}

// A file elsewhere counted as one inside, and the volume was never emptied.
TEST_F(StorageIdentityTest, AFileOfAnotherSubvolumeWasTakenForTheOneOfItsNumber) {
  if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
  ASSERT_TRUE(MakeImage(Path("image"), kDiskBytes));
  const LoopDevice disk(Path("image"));
  ASSERT_TRUE(disk.valid());
  if (!Run("mkfs.btrfs -q " + disk.path())) GTEST_SKIP() << "skipped: needs btrfs-progs";
  Directory("mnt");
  if (::mount(disk.path().c_str(), Path("mnt").c_str(), "btrfs", 0, nullptr) != 0) {
    GTEST_SKIP() << "skipped: the kernel has no btrfs";
  }
  ASSERT_TRUE(MakeImage(Path("mnt/outside"), 4096));
  ASSERT_TRUE(Run("btrfs subvolume create " + Path("mnt/a")));
  ASSERT_TRUE(MakeImage(Path("mnt/a/inside"), 4096));
  Directory("sub");
  ASSERT_EQ(::mount(disk.path().c_str(), Path("sub").c_str(), "btrfs", 0, "subvol=/a"), 0);
  const StorageObject outside = Identify(Path("mnt/outside")).object;
  ASSERT_EQ(outside.inode, Identify(Path("sub/inside")).object.inode);
  IdentifyStorage request{HostPath(Path("sub")), false};
  request.look_for = outside;
  const auto found = kernel_->Call(request, {});
  ASSERT_TRUE(found.ok()) << found.error().ToString();
  EXPECT_EQ(found->type, FileType::kRegular);
  EXPECT_FALSE(Overlap(*found, Identify(Path("sub"))));
  request.look_for = Identify(Path("mnt/a/inside")).object;
  const auto inside = kernel_->Call(request, {});
  ASSERT_TRUE(inside.ok()) << inside.error().ToString();
  EXPECT_TRUE(Overlap(*inside, Identify(Path("sub"))));
  ASSERT_EQ(::umount(Path("sub").c_str()), 0);
  ASSERT_EQ(::umount(Path("mnt").c_str()), 0);
}

TEST_F(StorageIdentityTest, ADirectorySaysWhoseItIsUntilItsOwnerIsTakenAway) {
  Directory("x");
  const StorageObject object = Identify(Path("x")).object;
  const auto mark = [&](const std::string& owner, const std::string& replaces) {
    return kernel_->Call(MarkStorage{HostPath(Path("x")), owner, replaces, object}, {});
  };
  ASSERT_TRUE(mark("claim-1", "").ok());
  EXPECT_EQ(Identify(Path("x")).owner, "claim-1");
  EXPECT_FALSE(mark("claim-1", "")->changed);
  EXPECT_EQ(mark("claim-2", "").error().code(), Code::kAlreadyExists);
  EXPECT_EQ(Identify(Path("x")).owner, "claim-1");
  EXPECT_TRUE(mark("claim-2", "claim-1").ok());
  EXPECT_EQ(mark("", "claim-1").error().code(), Code::kAlreadyExists);
  EXPECT_TRUE(mark("", "claim-2").ok());
  EXPECT_EQ(Identify(Path("x")).owner, "");
  ASSERT_EQ(::rmdir(Path("x").c_str()), 0);
  Directory("x");
  EXPECT_EQ(mark("claim-1", "").error().code(), Code::kFailedPrecondition);
}

TEST_F(StorageIdentityTest, WhatWasMovedIsFoundByItsHandleWhereverItLiesInItsFilesystem) {
  Directory("x");
  Directory("y");
  Directory("y/z");
  const StorageObject object = Identify(Path("x")).object;
  IdentifyStorage request{HostPath(Path("y")), false};
  request.look_for = object;
  ASSERT_EQ(::rename(Path("x").c_str(), Path("y/z/moved").c_str()), 0);
  const auto moved = kernel_->Call(request, {});
  ASSERT_TRUE(moved.ok()) << moved.error().ToString();
  EXPECT_EQ(*moved, Identify(Path("y/z/moved")));
  ASSERT_EQ(::rmdir(Path("y/z/moved").c_str()), 0);
  const auto gone = kernel_->Call(request, {});
  ASSERT_TRUE(gone.ok()) << gone.error().ToString();
  EXPECT_EQ(gone->type, FileType::kMissing);
  EXPECT_TRUE(gone->own.empty());
  // What is removed while somebody has it open lies nowhere any more.
  Directory("open");
  request.look_for = Identify(Path("open")).object;
  const Descriptor open(::open(Path("open").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_TRUE(open.valid());
  ASSERT_EQ(::rmdir(Path("open").c_str()), 0);
  const auto removed = kernel_->Call(request, {});
  ASSERT_TRUE(removed.ok()) << removed.error().ToString();
  EXPECT_EQ(removed->type, FileType::kMissing);
  // A file likewise; and not in another filesystem.
  ASSERT_TRUE(MakeImage(Path("y/file"), 4096));
  request.look_for = Identify(Path("y/file")).object;
  EXPECT_NE(request.look_for.inode, 0U);
  EXPECT_EQ(kernel_->Call(request, {})->type, FileType::kRegular);
  Directory("other");
  ASSERT_EQ(::mount("other", Path("other").c_str(), "tmpfs", 0, nullptr), 0);
  request.path = HostPath(Path("other"));
  EXPECT_EQ(kernel_->Call(request, {})->type, FileType::kMissing);
  request.look_for.handle = "no handle";
  request.path = HostPath(Path("y"));
  EXPECT_FALSE(kernel_->Call(request, {}).ok());
}

// A volume whose path is a bind mount, or a subvolume's, was never emptied: whatever somebody had
// elsewhere in the filesystem had no path there, and counted as in the way.
TEST_F(StorageIdentityTest, WhatLiesOutsideOfABindMountIsKnownToLieElsewhere) {
  for (const std::string name : {"real", "real/v", "real/v/in", "bound", "beside"}) Directory(name);
  ASSERT_EQ(::mount(Path("real").c_str(), Path("bound").c_str(), nullptr, MS_BIND, nullptr), 0);
  const StorageIdentity volume = Identify(Path("bound/v"));
  IdentifyStorage request{HostPath(Path("bound/v")), false};
  request.look_for = Identify(Path("beside")).object;
  const auto beside = kernel_->Call(request, {});
  ASSERT_TRUE(beside.ok()) << beside.error().ToString();
  EXPECT_EQ(beside->type, FileType::kDirectory);
  EXPECT_FALSE(Overlap(*beside, volume));
  request.look_for = Identify(Path("real/v/in")).object;
  const auto inside = kernel_->Call(request, {});
  ASSERT_TRUE(inside.ok()) << inside.error().ToString();
  EXPECT_TRUE(Overlap(*inside, volume));
}

// Its path was taken as the kernel makes it up for a file that nobody has looked up.
TEST_F(StorageIdentityTest, AMovedFileThatNobodyHasLookedUpIsFound) {
  Directory("v");
  Directory("v/deep");
  Directory("other");
  ASSERT_TRUE(MakeImage(Path("file"), 4096));
  IdentifyStorage request{HostPath(Path("v")), false};
  request.look_for = Identify(Path("file")).object;
  const StorageIdentity volume = Identify(Path("v"));
  for (const bool cold : {false, true}) {
    for (const std::string to : {"v/deep/moved", "other/moved"}) {
      ASSERT_EQ(::rename(Path("file").c_str(), Path(to).c_str()), 0);
      if (cold) {
        ::sync();
        std::ofstream("/proc/sys/vm/drop_caches") << "2";
      }
      const auto found = kernel_->Call(request, {});
      ASSERT_TRUE(found.ok()) << found.error().ToString();
      EXPECT_EQ(found->type, FileType::kRegular);
      EXPECT_EQ(Overlap(*found, volume), to == "v/deep/moved") << to << (cold ? ", cold" : "");
      ASSERT_EQ(::rename(Path(to).c_str(), Path("file").c_str()), 0);
    }
  }
}

// Whoever may rename a pod's directory kept every volume of its filesystem from being emptied.
TEST_F(StorageIdentityTest, NoNameOfADirectoryHidesWhereItLies) {
  Directory("v");
  Directory("outside");
  Directory("x");
  const StorageIdentity volume = Identify(Path("v"));
  IdentifyStorage request{HostPath(Path("v")), false};
  request.look_for = Identify(Path("x")).object;
  for (const std::string below : {"outside/", "v/"}) {
    const std::string deleted = below + "x (deleted)";
    ASSERT_EQ(::rename(Path("x").c_str(), Path(deleted).c_str()), 0);
    const auto found = kernel_->Call(request, {});
    ASSERT_TRUE(found.ok()) << found.error().ToString();
    EXPECT_EQ(Overlap(*found, volume), below == "v/");
    ASSERT_EQ(::rename(Path(deleted).c_str(), Path("x").c_str()), 0);
    // Deeper than any path may be long.
    Descriptor at(::open(Path(below).c_str(), O_RDONLY | O_DIRECTORY));
    const std::string name(200, 'd');
    for (int depth = 0; depth < 25; ++depth) {
      ASSERT_EQ(::mkdirat(at.get(), name.c_str(), 0755), 0);
      at = Descriptor(::openat(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY));
    }
    ASSERT_EQ(::renameat(AT_FDCWD, Path("x").c_str(), at.get(), "x"), 0);
    const auto deep = kernel_->Call(request, {});
    ASSERT_TRUE(deep.ok()) << deep.error().ToString();
    EXPECT_EQ(Overlap(*deep, volume), below == "v/");
    ASSERT_EQ(::renameat(at.get(), "x", AT_FDCWD, Path("x").c_str()), 0);
  }
}

TEST_F(StorageIdentityTest, TheFileOfALoopDeviceIsToldAsItCanBeOverReboots) {
  if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
  ASSERT_TRUE(MakeImage(Path("image"), kDiskBytes));
  std::vector<std::string> lasting;
  for (int attachment = 0; attachment < 2; ++attachment) {
    const LoopDevice disk(Path("image"));
    ASSERT_TRUE(disk.valid());
    const StorageIdentity identity = Identify(disk.path());
    ASSERT_EQ(identity.files.size(), 1U);
    EXPECT_EQ(identity.files[0].path, Path("image"));
    EXPECT_EQ(identity.files[0].object, Identify(Path("image")).object);
    const std::string key = LastingFileKey(identity.files[0].object);
    EXPECT_TRUE(std::count(identity.own.begin(), identity.own.end(), key)) << key;
    lasting.push_back(key);
    if (!AddPartition(disk.path(), 1, int64_t{1} << 20, int64_t{1} << 20)) continue;
    const StorageIdentity part = Identify(PartitionOf(disk.path(), 1));
    EXPECT_TRUE(std::count(part.own.begin(), part.own.end(), key + ":2048")) << key;
    EXPECT_TRUE(std::count(part.made_of.begin(), part.made_of.end(), key)) << key;
    EXPECT_TRUE(DropPartition(disk.path(), 1));
  }
  EXPECT_EQ(lasting[0], lasting[1]);
}

// A node keeps the name of each loop device that it ever had, and each attachment looked at all.
TEST_F(StorageIdentityTest, OfLoopDevicesWithoutAFileAndOfPartitionsNobodyIsTold) {
  ASSERT_TRUE(MakeImage(Path("image"), kDiskBytes));
  const LoopDevice loop(Path("image"));
  ASSERT_TRUE(loop.valid());
  ASSERT_TRUE(AddPartition(loop.path(), 1, 1 << 20, 8 << 20));
  std::vector<std::string> without;
  for (const auto& disk : std::filesystem::directory_iterator("/sys/block")) {
    const std::string name = disk.path().filename();
    const bool has_none = !std::filesystem::exists(disk.path() / "loop/backing_file");
    if (name.starts_with("loop") && has_none) without.push_back(name);
  }
  const auto names = NamesOfAttachedLoops();
  ASSERT_TRUE(names.ok()) << names.error().ToString();
  EXPECT_TRUE(DropPartition(loop.path(), 1));
  const std::string own = loop.path().substr(std::string("/dev/").size());
  EXPECT_EQ(std::ranges::count(*names, own), 1);
  for (const std::string& name : *names) {
    EXPECT_EQ(name.find('p', std::string("loop").size()), std::string::npos) << name;
    // Another test may have taken one meanwhile.
    const bool has_file = std::filesystem::exists("/sys/block/" + name + "/loop/backing_file");
    EXPECT_TRUE(has_file || std::ranges::count(without, name) == 0) << name;
  }
}

}  // namespace
}  // namespace volumed
