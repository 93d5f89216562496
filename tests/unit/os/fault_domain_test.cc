#include "os/fault_domain.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace volumed {
namespace {

MountEntry MountOf(const std::string& point, uint32_t minor, const std::string& type = "ext4",
                   const std::string& source = "/dev/sda") {
  MountEntry mount;
  mount.mount_point = point;
  mount.device_major = 8;
  mount.device_minor = minor;
  mount.fs_type = type;
  mount.source = source;
  return mount;
}

TEST(FaultDomain, OfAPathIsTheFilesystemOfTheClosestMountAboveIt) {
  const std::vector<MountEntry> around = {MountOf("/", 1), MountOf("/mnt/far", 7, "fuse.sshfs")};
  const FaultDomain domain = DomainOfPath("/mnt/far/a/b", around);
  EXPECT_EQ(domain.lane, "filesystem 8:7");
  EXPECT_EQ(domain.name, "filesystem 8:7 (fuse.sshfs at /mnt/far)");
}

// 300 hostPaths on one dead mount were 300 domains.
TEST(FaultDomain, ManyPathsOnOneMountAreOneLaneAndSoAreTheBindsOfOneFilesystem) {
  const std::vector<MountEntry> one = {MountOf("/", 1), MountOf("/mnt/far", 7)};
  const std::vector<MountEntry> bind = {MountOf("/", 1), MountOf("/srv/bind", 7)};
  EXPECT_EQ(DomainOfPath("/mnt/far/a", one).lane, DomainOfPath("/mnt/far/b", one).lane);
  EXPECT_EQ(DomainOfPath("/mnt/far/a", one).lane, DomainOfPath("/srv/bind/x", bind).lane);
  EXPECT_NE(DomainOfPath("/mnt/far/a", one).lane, DomainOfPath("/srv", {one.front()}).lane);
}

TEST(FaultDomain, OfTwoMountsAtOnePlaceTheLaterOneCounts) {
  EXPECT_EQ(DomainOfPath("/mnt/x", {MountOf("/", 1), MountOf("/mnt", 2), MountOf("/mnt", 3)}).lane,
            "filesystem 8:3");
}

TEST(FaultDomain, OfANetworkFilesystemIsItsServerWhateverIsMounted) {
  const FaultDomain nfs = DomainOfMount(MountOf("/mnt/a", 7, "nfs4", "NAS-1:/export/a"));
  EXPECT_EQ(nfs.lane, "nfs:nas-1") << "as the nfs plugin's own volumes";
  EXPECT_EQ(nfs.name, "NFS server NAS-1");
  EXPECT_EQ(DomainOfMount(MountOf("/mnt/b", 8, "nfs", "nas-1:/export/b")).lane, "nfs:nas-1");
  EXPECT_EQ(DomainOfMount(MountOf("/mnt/c", 9, "nfs4", "[fe80::1]:/c")).lane, "nfs:fe80::1");
  EXPECT_EQ(DomainOfMount(MountOf("/mnt/d", 9, "cifs", "//Files/share")).lane, "cifs:files");
  EXPECT_EQ(DomainOfMount(MountOf("/mnt/e", 9, "nfs4", "no colon")).lane, "filesystem 8:9");
}

TEST(FaultDomain, OfADeviceIsTheDeviceAndNotTheFilesystemOfDev) {
  const std::vector<MountEntry> around = {MountOf("/", 1), MountOf("/dev", 5, "devtmpfs")};
  EXPECT_EQ(DomainOfPath("/dev/sdb", around).lane, "device:/dev/sdb");
  EXPECT_NE(DomainOfPath("/dev/sdb", around).lane, DomainOfPath("/dev/sdc", around).lane);
}

TEST(FaultDomain, WithoutAnyMountPathsShareOneLane) {
  EXPECT_EQ(DomainOfPath("/a", {}).lane, DomainOfPath("/b", {}).lane);
}

class FollowLinksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // Links are followed on the root's filesystem alone; the build's is where this one is started.
    struct stat root = {};
    std::string pattern = "/var/tmp/fault-domain-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    scratch_ = pattern;
    struct stat here = {};
    ASSERT_EQ(::stat("/", &root), 0);
    ASSERT_EQ(::stat(scratch_.c_str(), &here), 0);
    if (root.st_dev != here.st_dev) GTEST_SKIP() << "skipped: /var/tmp is a mount of its own";
  }
  void TearDown() override { std::filesystem::remove_all(scratch_); }
  void Link(const std::string& name, const std::string& target) {
    ASSERT_EQ(::symlink(target.c_str(), (scratch_ + "/" + name).c_str()), 0);
  }
  std::string scratch_;
};

TEST_F(FollowLinksTest, ALinkCountsAsThePlaceThatItLeadsTo) {
  ASSERT_TRUE(std::filesystem::create_directory(scratch_ + "/real"));
  Link("absolute", scratch_ + "/real");
  Link("relative", "./real");
  Link("up", "../" + scratch_.substr(scratch_.rfind('/') + 1) + "/absolute");
  for (const char* name : {"real", "absolute", "relative", "up"}) {
    EXPECT_EQ(FollowLinksOnRoot(scratch_ + "/" + name + "/sub"), scratch_ + "/real/sub") << name;
  }
}

// /proc is another mount everywhere.
TEST_F(FollowLinksTest, FromAnotherMountOnThePathIsTakenAsItIs) {
  Link("far", "/proc/self/cwd/x");
  EXPECT_EQ(FollowLinksOnRoot(scratch_ + "/far/y"), "/proc/self/cwd/x/y")
      << "the link on the other filesystem was not looked at";
  Link("odd", "/proc/../proc/./self/..//fd");
  EXPECT_EQ(FollowLinksOnRoot(scratch_ + "/odd"), "/proc/fd") << "clean, as the table wants it";
}

TEST_F(FollowLinksTest, WhatDoesNotExistAndWhatTurnsInACircleStaysAsItIs) {
  EXPECT_EQ(FollowLinksOnRoot(scratch_ + "/none/of/it"), scratch_ + "/none/of/it");
  Link("circle", "circle");
  EXPECT_EQ(FollowLinksOnRoot(scratch_ + "/circle"), scratch_ + "/circle");
  EXPECT_EQ(FollowLinksOnRoot("/"), "/");
}

// The walk of a path without links took a dozen system calls, forty times for each volume.
TEST_F(FollowLinksTest, OneCallTellsThatThereIsNoLink) {
  ASSERT_TRUE(std::filesystem::create_directories(scratch_ + "/real/sub"));
  // What is not in memory yet is left to the walk, so it is looked up before.
  ASSERT_TRUE(std::filesystem::exists(scratch_ + "/real/sub"));
  ASSERT_FALSE(std::filesystem::exists(scratch_ + "/none"));
  Link("link", scratch_ + "/real");
  EXPECT_TRUE(HasNoLinkOnRoot("/"));
  EXPECT_TRUE(HasNoLinkOnRoot(scratch_ + "/real/sub"));
  EXPECT_TRUE(HasNoLinkOnRoot(scratch_ + "/none/of/it")) << "what does not exist stays as it is";
  EXPECT_FALSE(HasNoLinkOnRoot(scratch_ + "/link"));
  EXPECT_FALSE(HasNoLinkOnRoot(scratch_ + "/link/sub"));
  EXPECT_FALSE(HasNoLinkOnRoot("/proc/self")) << "another mount is not looked at";
}

}  // namespace
}  // namespace volumed
