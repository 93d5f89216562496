// What a start found mounted and on no record, as long as it is mounted.
#include "operation/unrecorded_mounts.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "fakes/fake_kernel.h"

namespace volumed {
namespace {

const UniqueVolumeName kVolume("kubernetes.io/csi/d.test.io^vol-1");
constexpr char kPlugin[] = "kubernetes.io/csi";
constexpr char kVolumeDir[] = "/r/pods/a/volumes/kubernetes.io~csi/pv";
constexpr char kSubPaths[] = "/r/pods/a/volume-subpaths/pv";

class UnrecordedMountsTest : public ::testing::Test {
 protected:
  void MountAt(const std::string& path) {
    kernel_.AddDirectory(path);
    ASSERT_TRUE(kernel_.Call(Mount{"tmpfs", "tmpfs", {path, ""}, {}}, {}).ok());
  }
  static UnrecordedMount OfPod(UniqueVolumeName volume) {
    UnrecordedMount mount;
    mount.plugin = kPlugin;
    mount.volume = std::move(volume);
    mount.spec = SpecName("pv");
    mount.pod = PodUid("a");
    mount.places = {kVolumeDir, kSubPaths};
    return mount;
  }
  // The mount points that are found for the volume.
  std::set<std::string> Find(const UniqueVolumeName& volume, const std::string& spec,
                             const std::string& plugin = kPlugin) {
    std::set<std::string> points;
    const auto found = mounts_.Find({volume, plugin, SpecName(spec)}, kernel_, {});
    EXPECT_TRUE(found.ok());
    if (!found.ok()) return points;
    for (const UnrecordedMounts::Mounted& mounted : *found) points.insert(mounted.mount_point);
    return points;
  }

  FakeKernel kernel_;
  UnrecordedMounts mounts_;
};

TEST_F(UnrecordedMountsTest, AMountCountsForItsVolumeUnderWhateverNameThatIsAskedFor) {
  const std::string target = std::string(kVolumeDir) + "/mount";
  MountAt(target);
  mounts_.Set({OfPod(kVolume)});
  EXPECT_EQ(Find(kVolume, "pv"), std::set{target});
  EXPECT_EQ(Find(kVolume, "another-name"), std::set{target});
  EXPECT_TRUE(Find(UniqueVolumeName("kubernetes.io/csi/d.test.io^vol-2"), "pv").empty());
}

TEST_F(UnrecordedMountsTest, OneThatDoesNotSayItsVolumeCountsForThatOfItsName) {
  const std::string target = std::string(kVolumeDir) + "/mount";
  MountAt(target);
  mounts_.Set({OfPod(UniqueVolumeName())});
  EXPECT_EQ(Find(kVolume, "pv"), std::set{target});
  EXPECT_TRUE(Find(kVolume, "another-name").empty());
  EXPECT_TRUE(Find(kVolume, "pv", "kubernetes.io/iscsi").empty());
}

TEST_F(UnrecordedMountsTest, OneThatDoesNotSayItsPluginEitherCountsForAnyVolumeOfItsName) {
  const std::string part = std::string(kSubPaths) + "/c/0";
  MountAt(part);
  UnrecordedMount left = OfPod(UniqueVolumeName());
  left.plugin.clear();
  left.places = {kSubPaths};
  mounts_.Set({left});
  EXPECT_EQ(Find(kVolume, "pv"), std::set{part});
  EXPECT_EQ(Find(kVolume, "pv", "kubernetes.io/iscsi"), std::set{part});
  EXPECT_TRUE(Find(kVolume, "another-name").empty());
  const auto of_no_plugin = mounts_.Find({kVolume, "", SpecName("pv")}, kernel_, {});
  ASSERT_TRUE(of_no_plugin.ok());
  EXPECT_EQ(of_no_plugin->size(), 1u) << "it is told once";
  kernel_.UnmountBelow(part);
  EXPECT_TRUE(Find(kVolume, "pv").empty());
}

// What has no device was on no list, and so a call by hand took it.
TEST_F(UnrecordedMountsTest, WhatIsAPodsOwnIsFoundByItsPlaceAndNotByTheNameOfAVolume) {
  const std::string target = std::string(kVolumeDir) + "/mount";
  MountAt(target);
  UnrecordedMount own = OfPod(UniqueVolumeName());
  own.is_pods_own = true;
  mounts_.Set({own});
  EXPECT_TRUE(Find(kVolume, "pv").empty()) << "a volume of that name is another one";
  const auto any = [](const UnrecordedMount&) { return true; };
  const auto found = mounts_.FindWhere(any, kernel_, {});
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->front().mount_point, target);
  EXPECT_EQ(found->front().pod, PodUid("a"));
  kernel_.UnmountBelow(target);
  ASSERT_TRUE(mounts_.FindWhere(any, kernel_, {}).ok());
  MountAt(target);
  const auto again = mounts_.FindWhere(any, kernel_, {});
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->empty()) << "whoever mounts it now has a record";
}

// The text called it by the name of the PersistentVolume that waited.
TEST_F(UnrecordedMountsTest, ALostMountIsCalledByItsOwnNameAndNotByThatOfTheWaitingVolume) {
  const std::string target = std::string(kVolumeDir) + "/mount";
  MountAt(target);
  UnrecordedMount lost = OfPod(kVolume);
  mounts_.Set({lost});
  const auto all = [](const UnrecordedMounts::Mounted&) { return true; };
  const auto text_for = [&](const std::string& spec) {
    const Status held = mounts_.CheckNone({kVolume, kPlugin, SpecName(spec)}, kernel_, {}, all);
    return held.ok() ? std::string() : held.error().message();
  };
  const std::string there = "volume pv is mounted in pod a, of which no record tells: " + target;
  EXPECT_TRUE(text_for("pv").starts_with(there)) << text_for("pv");
  EXPECT_TRUE(text_for("f1").starts_with("volume f1 has the storage of volume pv: " + there))
      << text_for("f1");
  lost.spec = SpecName();
  mounts_.Set({lost});
  EXPECT_TRUE(text_for("f1").starts_with("volume f1 is mounted in pod a")) << text_for("f1");
}

TEST_F(UnrecordedMountsTest, WhatIsGoneIsForgottenAndAPartThatIsLeftIsNot) {
  const std::string target = std::string(kVolumeDir) + "/mount";
  const std::string part = std::string(kSubPaths) + "/c/0";
  MountAt(target);
  MountAt(part);
  mounts_.Set({OfPod(kVolume)});
  EXPECT_EQ(Find(kVolume, "pv"), (std::set{target, part}));
  kernel_.UnmountBelow(target);
  EXPECT_EQ(Find(kVolume, "pv"), std::set{part});
  kernel_.UnmountBelow(part);
  EXPECT_TRUE(Find(kVolume, "pv").empty());
  MountAt(target);
  EXPECT_TRUE(Find(kVolume, "pv").empty()) << "whoever mounts it now has a record";
}

TEST_F(UnrecordedMountsTest, InTheMapOfABlockVolumeEachNodeIsThePodsOfItsName) {
  MountAt("/r/plugins/p/volumeDevices/pv/dev/b");
  UnrecordedMount map;
  map.plugin = kPlugin;
  map.volume = kVolume;
  map.spec = SpecName("pv");
  map.places = {"/r/plugins/p/volumeDevices/pv/dev"};
  map.is_map = true;
  mounts_.Set({map});
  const auto found = mounts_.Find({kVolume, kPlugin, SpecName("pv")}, kernel_, {});
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->front().pod, PodUid("b"));
}

// What a driver had given to a pod elsewhere was nobody's.
TEST_F(UnrecordedMountsTest, InTheOtherPlaceOfABlockVolumesPodsEachNodeIsThePodsOfItsNameToo) {
  const std::string publish = "/r/plugins/p/volumeDevices/publish/pv";
  MountAt(publish + "/b/device");
  UnrecordedMount map;
  map.plugin = kPlugin;
  map.volume = kVolume;
  map.places = {"/r/plugins/p/volumeDevices/pv/dev", publish};
  map.is_map = true;
  map.is_block = true;
  map.device_place = map.places.front();
  UnrecordedMount staged = map;
  staged.is_map = false;
  staged.places = {"/r/plugins/p/volumeDevices/staging/pv"};
  MountAt(staged.places.front() + "/device");
  mounts_.Set({staged, map});
  const auto found = mounts_.Find({kVolume, kPlugin, SpecName("pv")}, kernel_, {});
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->size(), 2u);
  EXPECT_TRUE(found->front().pod.empty()) << "it is the device's";
  EXPECT_EQ(found->back().pod, PodUid("b"));
  for (const UnrecordedMounts::Mounted& mounted : *found) {
    EXPECT_TRUE(mounted.is_block);
    EXPECT_EQ(mounted.device_place, map.places.front());
  }
  kernel_.UnmountBelow(publish);
  EXPECT_EQ(Find(kVolume, "pv"), std::set{staged.places.front() + "/device"});
}

}  // namespace
}  // namespace volumed
