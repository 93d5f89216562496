// Places of a CO from their paths, and volumes at them from their rows.
#include "csidriver/node_targets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "base/strings.h"
#include "operation/given_place.h"

namespace volumed {
namespace {

// "root|rest", or why it is refused.
std::string PlaceIn(const std::vector<std::string>& roots, const std::string& path) {
  const Result<SafePath> place = NodeTargets(roots).PlaceOf("target_path", path);
  if (place.ok()) {
    EXPECT_EQ(place->resolve, Resolve::kNoSymlinks);
    return place->root + "|" + place->relative;
  }
  EXPECT_EQ(place.error().code(), Code::kInvalidArgument);
  EXPECT_FALSE(place.error().maybe_applied());
  EXPECT_EQ(place.error().message().find("target_path "), 0u) << place.error().message();
  return "refused";
}

TEST(NodeTargetsTest, APathBelowARootIsAPlaceInIt) {
  const std::vector<std::string> roots = {"/var/lib/kubelet", "/opt/nomad"};
  EXPECT_EQ(PlaceIn(roots, "/var/lib/kubelet/pods/u/v/mount"), "/var/lib/kubelet|pods/u/v/mount");
  EXPECT_EQ(PlaceIn(roots, "/opt/nomad/x"), "/opt/nomad|x");
  EXPECT_EQ(PlaceIn(roots, "//opt//nomad///x//"), "/opt/nomad|x");
  EXPECT_EQ(PlaceIn(roots, "/opt/nomad/..x/.y/..."), "/opt/nomad|..x/.y/...");
  EXPECT_EQ(PlaceIn(roots, "/opt/nomad/a b\xff"), "/opt/nomad|a b\xff");
}

TEST(NodeTargetsTest, WhatIsNoPathBelowARootIsRefused) {
  const std::vector<std::string> roots = {"/var/lib/kubelet", "/opt/nomad"};
  for (const std::string& path :
       {std::string(), std::string("/"), std::string("//"), std::string("x"),
        std::string("opt/nomad/x"), std::string("/opt/nomad"), std::string("/opt/nomad/"),
        std::string("/opt"), std::string("/var/lib"), std::string("/opt/nomadx/y"),
        std::string("/opt/nomad/../x"), std::string("/opt/nomad/x/.."),
        std::string("/opt/nomad/./x"), std::string("/opt/nomad/."), std::string("/etc/x"),
        std::string("/opt/nomad/\0x", 13), std::string("/opt/nomad/x\0/../../../etc", 25)}) {
    EXPECT_EQ(PlaceIn(roots, path), "refused") << path;
  }
  EXPECT_EQ(PlaceIn({}, "/var/lib/kubelet/x"), "refused") << "there is no root";
}

TEST(NodeTargetsTest, OfRootsInOneAnotherTheDeepestHasThePlace) {
  for (const auto& roots : {std::vector<std::string>{"/a", "/a/b/c"}, {"/a/b/c", "/a"}}) {
    EXPECT_EQ(PlaceIn(roots, "/a/b/c/d"), "/a/b/c|d");
    EXPECT_EQ(PlaceIn(roots, "/a/b/d"), "/a|b/d");
    EXPECT_EQ(PlaceIn(roots, "/a/b"), "refused") << "a volume there would hide a root";
    EXPECT_EQ(PlaceIn(roots, "/a/b/c"), "refused");
  }
}

// The mount table has what lies below a root by its path without links, and nothing was found
// there.
TEST(NodeTargetsTest, APathByALinkedRootIsAPlaceWhereTheLinkLeads) {
  const NodeTargets targets({"/var/lib/kubelet", "/opt/nomad"}, [](const std::string& root) {
    return root == "/var/lib/kubelet" ? std::string("/data/kubelet") : root;
  });
  for (const char* path : {"/var/lib/kubelet/pods/u/v", "/data/kubelet/pods/u/v"}) {
    const Result<SafePath> place = targets.PlaceOf("target_path", path);
    ASSERT_TRUE(place.ok()) << place.error().message();
    EXPECT_EQ(*place, (SafePath{"/data/kubelet", "pods/u/v", Resolve::kNoSymlinks})) << path;
    EXPECT_EQ(targets.RealPath(path), "/data/kubelet/pods/u/v");
  }
  EXPECT_EQ(targets.PlaceOf("target_path", "/opt/nomad/x").value().root, "/opt/nomad");
  for (const char* path : {"/data", "/data/kubelet", "/var/lib/kubelet", "/data/other/x"}) {
    EXPECT_FALSE(targets.PlaceOf("target_path", path).ok()) << path;
  }
  EXPECT_EQ(targets.RealPath("/etc/x"), "/etc/x");
}

TEST(NodeTargetsTest, ARootOfWhichNobodyKnowsWhereItLeadsIsTakenAsItIs) {
  for (const char* real : {"", "/"}) {
    const NodeTargets targets({"/srv/co"}, [real](const std::string&) { return real; });
    EXPECT_EQ(targets.PlaceOf("target_path", "/srv/co/x").value().Display(), "/srv/co/x") << real;
    EXPECT_FALSE(targets.PlaceOf("target_path", "/etc/x").ok()) << real;
  }
}

TEST(NodeTargetsTest, NoPathAtRandomLeavesItsRoot) {
  std::mt19937 random(20260101);
  const std::vector<std::string> names = {"",  ".",   "..", "a",    "b",   "root",  "...",
                                          " ", "a\n", "/",  "..\0", "\\.", "%2e%2e"};
  const std::vector<std::string> roots = {"/root", "/root/a", "/b"};
  const NodeTargets targets(roots);
  int taken = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string path = random() % 8 == 0 ? "" : "/";
    const size_t count = random() % 7;
    for (size_t k = 0; k < count; ++k) path += names[random() % names.size()] + "/";
    if (random() % 16 == 0) path += '\0';
    const Result<SafePath> place = targets.PlaceOf("target_path", path);
    if (!place.ok()) continue;
    ++taken;
    EXPECT_NE(std::find(roots.begin(), roots.end(), place->root), roots.end()) << path;
    EXPECT_TRUE(CheckGivenPlace(*place).ok()) << path;
    EXPECT_EQ(place->Display(), CleanNodePath(path)) << path;
    EXPECT_EQ(CleanNodePath(place->Display()), place->Display()) << "it stays as it is: " << path;
    for (const std::string& name : Split(place->relative, '/')) {
      EXPECT_TRUE(!name.empty() && name != "." && name != "..") << path;
    }
  }
  EXPECT_GT(taken, 100);
}

DeviceRecord StagedAt(const std::string& path, VolumeState state = VolumeState::kDeviceMounted) {
  DeviceRecord record;
  record.device_mount_path = path;
  record.place_root = "/co";
  record.state = state;
  record.fault_domain = "/srv/pool";
  return record;
}

PodVolumeRecord PublishedAt(const std::string& path, VolumeState state = VolumeState::kSetUp) {
  PodVolumeRecord record;
  record.place = path;
  record.place_root = "/co";
  record.state = state;
  record.fault_domain = "/srv/pool";
  return record;
}

TEST(NodePlacesTest, AVolumeIsFoundByThePathOfItsRow) {
  const auto staged = StagedAt("/co/stage");
  const auto published = PublishedAt("/co/v");
  const auto target = FindNodePlace("/co/v", staged, published);
  ASSERT_TRUE(target.has_value());
  EXPECT_EQ(target->place, (SafePath{"/co", "v"}));
  EXPECT_FALSE(target->is_staging);
  EXPECT_TRUE(target->is_finished);
  EXPECT_EQ(target->fault_domain, "/srv/pool");
  const auto staging = FindNodePlace("/co/stage", staged, published);
  ASSERT_TRUE(staging.has_value());
  EXPECT_TRUE(staging->is_staging);
  EXPECT_TRUE(staging->is_finished);
  EXPECT_FALSE(FindNodePlace("/co/x", staged, published).has_value());
  EXPECT_FALSE(FindNodePlace("/co/v", staged, std::nullopt).has_value());
  EXPECT_FALSE(FindNodePlace("/co/stage", std::nullopt, published).has_value());
}

TEST(NodePlacesTest, WhatHasLeftIsNowhereAndWhatIsOnItsWayIsNotFinished) {
  EXPECT_FALSE(NodePlaceOf(StagedAt("/co/s", VolumeState::kAttached)).has_value());
  EXPECT_FALSE(NodePlaceOf(PublishedAt("/co/v", VolumeState::kNotSetUp)).has_value());
  EXPECT_FALSE(NodePlaceOf(StagedAt("/co/s", VolumeState::kMountingDevice))->is_finished);
  EXPECT_FALSE(NodePlaceOf(PublishedAt("/co/v", VolumeState::kTearingDown))->is_finished);
  DeviceRecord uncertain = StagedAt("/co/s");
  uncertain.uncertain = true;
  EXPECT_FALSE(NodePlaceOf(uncertain)->is_finished);
}

TEST(NodePlacesTest, ADeviceIsThereOnceItIsMapped) {
  PodVolumeRecord record = PublishedAt("/co/v", VolumeState::kMapped);
  record.is_block = true;
  EXPECT_TRUE(NodePlaceOf(record)->is_finished);
  EXPECT_TRUE(NodePlaceOf(record)->is_block);
  record.state = VolumeState::kMapping;
  EXPECT_FALSE(NodePlaceOf(record)->is_finished);
}

TEST(NodePlacesTest, APodsVolumeIsAtNoPlaceOfACo) {
  DeviceRecord device = StagedAt("/r/plugins/x");
  device.place_root.clear();
  EXPECT_FALSE(NodePlaceOf(device).has_value());
  PodVolumeRecord volume = PublishedAt("");
  volume.place_root.clear();
  EXPECT_FALSE(NodePlaceOf(volume).has_value());
}

}  // namespace
}  // namespace volumed
