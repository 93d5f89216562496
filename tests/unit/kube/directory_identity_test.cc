#include "kube/directory_identity.h"
#include "fakes/must.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace volumed {
namespace {

namespace fs = std::filesystem;

KnownDirectory Identify(const fs::path& path) {
  const OpenDirectory open = Must(OpenDirectoryAt(path.string()));
  return IdentifyDirectory(open.fd).value();
}

TEST(DirectoryIdentity, IsTheSameForTheSameDirectoryAndAnotherForOneMadeInItsPlace) {
  char name[] = "/tmp/volumed-identity-XXXXXX";
  ASSERT_NE(::mkdtemp(name), nullptr);
  const fs::path directory = fs::path(name) / "d";
  fs::create_directory(directory);
  const KnownDirectory before = Identify(directory);
  EXPECT_FALSE(before.filesystem_type.empty());
  fs::create_directory(fs::path(name) / "e");
  EXPECT_FALSE(IsSameDirectory(before, Identify(fs::path(name) / "e")));
  const bool can_be_recognised = before.birth_unix_nanos || !before.filesystem_uuid.empty();
  EXPECT_EQ(IsSameDirectory(before, Identify(directory)), can_be_recognised);
  // ext4 gives the number of a removed directory to the next one at once.
  if (before.birth_unix_nanos) {
    ::usleep(20'000);  // births are told in ticks of the kernel's clock
    fs::remove(directory);
    fs::create_directory(directory);
    EXPECT_FALSE(IsSameDirectory(before, Identify(directory)));
  }
  fs::remove_all(name);
}

// proc tells neither a UUID nor a birth, and its inode numbers mean nothing.
TEST(DirectoryIdentity, ADirectoryThatHasNothingLastingIsNeverTheSame) {
  const KnownDirectory proc = Identify("/proc");
  EXPECT_EQ(proc.filesystem_uuid, "");
  EXPECT_FALSE(proc.inode.has_value());
  EXPECT_FALSE(IsSameDirectory(proc, proc));
}

// The UUID of a tmpfs is made anew with each mount, and the root of each has inode 1.
TEST(DirectoryIdentity, OfATmpfsOnlyTheBirthCounts) {
  const KnownDirectory shm = Identify("/dev/shm");
  if (shm.filesystem_type != "tmpfs") GTEST_SKIP() << "/dev/shm is no tmpfs";
  EXPECT_EQ(shm.filesystem_uuid, "");
  EXPECT_FALSE(shm.inode.has_value());
}

TEST(DirectoryIdentity, ComparesWhatBothTell) {
  const KnownDirectory whole = {"ext4", "u", 7, 100};
  EXPECT_TRUE(IsSameDirectory(whole, whole));
  // A kernel that tells neither UUID nor birth, and one that does.
  EXPECT_TRUE(IsSameDirectory({"ext4", "", 7, 100}, whole));
  EXPECT_TRUE(IsSameDirectory({"ext4", "u", 7, std::nullopt}, whole));
  EXPECT_FALSE(IsSameDirectory({"ext4", "", 7, std::nullopt}, whole));
  EXPECT_FALSE(IsSameDirectory({"xfs", "u", 7, 100}, whole));
  EXPECT_FALSE(IsSameDirectory({"ext4", "v", 7, 100}, whole));
  EXPECT_FALSE(IsSameDirectory({"ext4", "u", 8, 100}, whole));
  EXPECT_FALSE(IsSameDirectory({"ext4", "u", 7, 101}, whole));
  // btrfs: a subvolume's id is told by a kernel that tells no UUID, too.
  EXPECT_TRUE(IsSameDirectory({"btrfs", "/5", 256, 100}, {"btrfs", "u/5", 256, 100}));
  EXPECT_FALSE(IsSameDirectory({"btrfs", "/5", 256, 100}, {"btrfs", "u/6", 256, 100}));
  EXPECT_FALSE(IsSameDirectory({"btrfs", "/5", 256, 100}, {"btrfs", "/6", 256, 100}));
  EXPECT_TRUE(IsSameDirectory({"btrfs", "u", 256, 100}, {"btrfs", "u/6", 256, 100}));
  EXPECT_TRUE(IsSameDirectory({"tmpfs", "", std::nullopt, 100}, {"tmpfs", "", std::nullopt, 100}));
  // Its entries may change, but never back.
  const KnownDirectory changed = {"ext4", "u", 7, 100, 500};
  EXPECT_TRUE(IsSameDirectory(changed, {"ext4", "u", 7, 100, 501}));
  EXPECT_TRUE(IsSameDirectory(changed, changed));
  EXPECT_TRUE(IsSameDirectory(changed, whole));
  EXPECT_FALSE(IsSameDirectory(changed, {"ext4", "u", 7, 100, 499}));
  EXPECT_TRUE(IsOlderState(changed, {"ext4", "u", 7, 100, 499}));
  EXPECT_FALSE(IsOlderState(changed, {"ext4", "u", 8, 100, 499}));
}

}  // namespace
}  // namespace volumed
