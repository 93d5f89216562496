// What a start tells the operations of mounts that are on no record.
#include "volumemanager/found_unrecorded.h"

#include "unit/volumemanager/manager_fixture.h"
#include "volume/unique_name.h"

namespace volumed {
namespace {

constexpr char kLocalPlugin[] = "kubernetes.io/local-volume";

class FoundUnrecordedTest : public ManagerTest {
 protected:
  static std::string VolumeDir(const std::string& pod, const std::string& plugin,
                               const std::string& spec) {
    return std::string(kRoot) + "/pods/" + pod + "/volumes/" + plugin + "/" + spec;
  }
  static std::string SubPath(const std::string& pod, const std::string& spec) {
    return std::string(kRoot) + "/pods/" + pod + "/volume-subpaths/" + spec + "/main/0";
  }
  // The directory of a pod's volume, in which nothing is mounted.
  void PutVolumeDir(const std::string& pod, const std::string& plugin, const std::string& spec) {
    const std::string volumes = std::string(kRoot) + "/pods/" + pod + "/volumes";
    kernel.directories[volumes] = {plugin};
    kernel.directories[volumes + "/" + plugin] = {spec};
  }
  const std::vector<UnrecordedMount>& Started() {
    StartAgent();
    Settle();
    return agent_->unrecorded;
  }
};

// Nobody asked which volume it was, so nothing kept it from being given away or deleted.
TEST_F(FoundUnrecordedTest, AMountOfAPodWhoseRecordsWereLostIsNamedByItsPlugin) {
  kernel.mount_points = {VolumeDir("x", "kubernetes.io~local-volume", "disk")};
  const std::vector<UnrecordedMount>& found = Started();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].plugin, kLocalPlugin);
  EXPECT_EQ(found[0].volume, GetUniqueVolumeName(kLocalPlugin, "disk"));
  EXPECT_EQ(found[0].spec, SpecName("disk"));
  EXPECT_EQ(found[0].pod, PodUid("x"));
  EXPECT_EQ(found[0].places, (std::vector{VolumeDir("x", "kubernetes.io~local-volume", "disk"),
                                          std::string(kRoot) + "/pods/x/volume-subpaths/disk"}));
}

TEST_F(FoundUnrecordedTest, OneWhosePluginCannotSayItHasNoNameOfAVolume) {
  kernel.mount_points = {VolumeDir("x", "example.com~nobody", "disk")};
  const std::vector<UnrecordedMount>& found = Started();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].plugin, "example.com/nobody");
  EXPECT_TRUE(found[0].volume.empty());
  EXPECT_FALSE(found[0].is_pods_own) << "it may be any volume of that name";
  EXPECT_EQ(found[0].spec, SpecName("disk"));
}

TEST_F(FoundUnrecordedTest, AMountThatIsOnRecordIsNotTold) {
  PutPodRecord("a");
  PutVolumeRecord("a", "disk", kLocalPlugin, VolumeState::kSetUp, "boot-1");
  kernel.mount_points = {VolumeDir("a", "kubernetes.io~local-volume", "disk")};
  EXPECT_TRUE(Started().empty());
}

// Calls by hand did not see it, and unmounted it: an emptyDir in memory lost its data.
TEST_F(FoundUnrecordedTest, AMountOfAVolumeThatHasNoDeviceWasNotTold) {
  kernel.mount_points = {VolumeDir("x", "kubernetes.io~secret", "s")};
  const std::vector<UnrecordedMount>& found = Started();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].is_pods_own);
  EXPECT_EQ(found[0].plugin, "kubernetes.io/secret");
  EXPECT_TRUE(found[0].volume.empty());
  EXPECT_EQ(found[0].pod, PodUid("x"));
  EXPECT_EQ(found[0].places.front(), VolumeDir("x", "kubernetes.io~secret", "s"));
}

TEST_F(FoundUnrecordedTest, OfAPodThatIsCoveredNothingIsAskedAndItsVolumeHasNoName) {
  kernel.mount_points = {std::string(kRoot) + "/pods/x",
                         VolumeDir("x", "kubernetes.io~local-volume", "disk")};
  const std::vector<UnrecordedMount>& found = Started();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].volume.empty());
}

// A pod had but the mount of a subPath left: its volume was given to another pod that had to be the
// only one, and deleted.
TEST_F(FoundUnrecordedTest, APartOfAVolumeThatIsMountedNoMoreWasNotSeen) {
  PutVolumeDir("x", "kubernetes.io~local-volume", "disk");
  kernel.mount_points = {SubPath("x", "disk")};
  const std::vector<UnrecordedMount>& found = Started();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].plugin, kLocalPlugin);
  EXPECT_EQ(found[0].volume, GetUniqueVolumeName(kLocalPlugin, "disk"));
  EXPECT_EQ(found[0].spec, SpecName("disk"));
  EXPECT_EQ(found[0].pod, PodUid("x"));
  EXPECT_EQ(found[0].places, (std::vector{VolumeDir("x", "kubernetes.io~local-volume", "disk"),
                                          std::string(kRoot) + "/pods/x/volume-subpaths/disk"}));
  EXPECT_EQ(UnrecordedMountsListed(),
            std::vector<std::string>{"volume disk of pod x: " + SubPath("x", "disk")});
}

TEST_F(FoundUnrecordedTest, APartWhoseVolumeHasNoDirectoryAnyMoreMayBeAnyPluginsOfItsName) {
  kernel.mount_points = {SubPath("x", "disk"), SubPath("x", "disk") + "/nested"};
  const std::vector<UnrecordedMount>& found = Started();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].plugin, "");
  EXPECT_TRUE(found[0].volume.empty());
  EXPECT_EQ(found[0].spec, SpecName("disk"));
  EXPECT_EQ(found[0].pod, PodUid("x"));
  EXPECT_EQ(found[0].places,
            std::vector<std::string>{std::string(kRoot) + "/pods/x/volume-subpaths/disk"});
}

TEST_F(FoundUnrecordedTest, APartOfAPodThatIsCoveredIsLookedForInNoDirectory) {
  PutVolumeDir("x", "kubernetes.io~local-volume", "disk");
  kernel.mount_points = {std::string(kRoot) + "/pods/x", SubPath("x", "disk")};
  const std::vector<UnrecordedMount>& found = Started();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].plugin, "");
  EXPECT_TRUE(found[0].volume.empty());
}

TEST_F(FoundUnrecordedTest, APartOfAVolumeThatIsOnRecordIsNotToldAndOfOneWithoutADeviceItIs) {
  PutPodRecord("a");
  PutVolumeRecord("a", "disk", kLocalPlugin, VolumeState::kSetUp, "boot-1");
  PutVolumeDir("x", "kubernetes.io~empty-dir", "data");
  kernel.mount_points = {SubPath("a", "disk"), SubPath("x", "data")};
  const std::vector<UnrecordedMount>& found = Started();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].pod, PodUid("x"));
  EXPECT_TRUE(found[0].is_pods_own);
}

TEST_F(FoundUnrecordedTest, APartIsToldWithTheWholeThatIsMountedToo) {
  PutVolumeDir("x", "kubernetes.io~local-volume", "disk");
  kernel.mount_points = {VolumeDir("x", "kubernetes.io~local-volume", "disk"),
                         SubPath("x", "disk")};
  EXPECT_EQ(Started().size(), 1u);
}

TEST_F(FoundUnrecordedTest, ADeviceMountIsToldByItsPlaceUnlessThatIsOnRecord) {
  FoundAtStart found;
  const KubeletPaths places{kRoot};
  found.device_mounts = {{kLocalPlugin, SpecName("disk"), false, "/p/disk"},
                         {kLocalPlugin, SpecName("map"), true, "/p/map"}};
  DeviceRecord record;
  record.device_mount_path = "/p/disk";
  found.devices = {record};
  const std::vector<UnrecordedMount> told = FindUnrecordedMounts(found, places);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].volume, GetUniqueVolumeName(kLocalPlugin, "map"));
  EXPECT_EQ(told[0].places, std::vector<std::string>{"/p/map"});
  EXPECT_TRUE(told[0].is_map);
  EXPECT_EQ(told[0].device_place, "/p/map");
  EXPECT_TRUE(told[0].pod.empty());
}

// `umount` did not get the pod away: what the mount had left beside it ("vol_data.json") was found
// by a start alone.
TEST_F(FoundUnrecordedTest, APodWhoseLostMountWasUnmountedByHandWaitedForAStart) {
  const std::string mount = VolumeDir("x", "kubernetes.io~local-volume", "disk");
  kernel.mount_points = {mount, mount + "/nested"};
  ASSERT_EQ(Started().size(), 1u);
  Deliver(PodManifest("x", {kData}));
  operations().FailNext("remove", Key("x", ""),
                        Error::NotApplied(Code::kFailedPrecondition, "Directory not empty"), 2);
  ASSERT_TRUE(Delete("x"));
  ASSERT_EQ(operations().Count("remove"), 1u);
  EXPECT_EQ(operations().Count("unmount", Key("x", "disk")), 0u) << "it is left alone";
  manager().events().MountsGone({mount + "/nested"});
  Settle();
  EXPECT_EQ(operations().Count("unmount", Key("x", "disk")), 0u) << "it is mounted still";

  kernel.mount_points.clear();
  manager().events().MountsGone({mount});
  Settle();
  EXPECT_EQ(operations().Count("unmount", Key("x", "disk")), 1u);
  EXPECT_EQ(operations().Last("unmount", Key("x", "disk"))->plugin_name, kLocalPlugin);
  EXPECT_TRUE(node.removed_pods.contains(PodUid("x")));
}

TEST_F(FoundUnrecordedTest, ALostMountThatWasUnmountedBeforeItsPodWasDeletedLeavesWithIt) {
  const std::string mount = VolumeDir("x", "kubernetes.io~local-volume", "disk");
  kernel.mount_points = {mount};
  ASSERT_EQ(Started().size(), 1u);
  manager().events().MountsGone({mount});
  Deliver(PodManifest("x", {kData}));
  EXPECT_EQ(operations().Count("unmount"), 0u);
  ASSERT_TRUE(Delete("x"));
  EXPECT_EQ(operations().Count("unmount", Key("x", "disk")), 1u);
  EXPECT_TRUE(node.removed_pods.contains(PodUid("x")));
}

TEST_F(FoundUnrecordedTest, ALostMountThatIsOnRecordAgainIsTakenAwayOnce) {
  const std::string mount = VolumeDir("x", "kubernetes.io~empty-dir", "data");
  kernel.mount_points = {mount};
  Started();
  Deliver(PodManifest("x", {kData}));
  ASSERT_EQ(operations().Count("mount", Key("x", "data")), 1u);
  operations().Hang(Key("x", ""));
  ASSERT_TRUE(Delete("x"));
  ASSERT_EQ(operations().Count("unmount", Key("x", "data")), 1u);
  manager().events().MountsGone({mount});
  operations().FailNext("remove", Key("x", ""), Error::NotApplied(Code::kUnavailable, "no"), 1);
  operations().Release(Key("x", ""));
  Settle();
  EXPECT_EQ(operations().Count("unmount", Key("x", "data")), 1u);
  EXPECT_TRUE(node.removed_pods.contains(PodUid("x")));
}

// `status` listed it until the next start.
TEST_F(FoundUnrecordedTest, AMountThatIsGoneOrOnRecordAgainIsListedNoMore) {
  PutVolumeDir("x", "kubernetes.io~empty-dir", "data");
  kernel.mount_points = {VolumeDir("x", "kubernetes.io~empty-dir", "data"),
                         VolumeDir("y", "kubernetes.io~local-volume", "disk")};
  Started();
  const std::string data =
      "volume data of pod x: " + VolumeDir("x", "kubernetes.io~empty-dir", "data");
  const std::string disk =
      "volume disk of pod y: " + VolumeDir("y", "kubernetes.io~local-volume", "disk");
  EXPECT_EQ(UnrecordedMountsListed(), (std::vector<std::string>{data, disk}));
  Deliver(PodManifest("x", {kData}));
  ASSERT_EQ(operations().Count("mount", Key("x", "data")), 1u);
  EXPECT_EQ(UnrecordedMountsListed(), std::vector<std::string>{disk});
  kernel.mount_points.pop_back();
  EXPECT_TRUE(UnrecordedMountsListed().empty());
}

class LostBlockVolumeTest : public ::testing::Test {
 protected:
  LostBlockVolumeTest() {
    KubeletPaths::DeviceMount device{kLocalPlugin, SpecName("map"), true, "/p/map"};
    device.pods_place = "/p/publish/map";
    device.node_place = "/p/staging/map";
    found_.device_mounts = {device};
    found_.device_pods["/p/map"] = {PodUid("a"), PodUid("b")};
  }

  const KubeletPaths paths_{"/p"};
  FoundAtStart found_;
};

// A driver had it at its target path alone: it was detached, deleted and formatted.
TEST_F(LostBlockVolumeTest, ItIsToldWithAllPlacesThatItsPluginHasForIt) {
  const std::vector<UnrecordedMount> told = FindUnrecordedMounts(found_, paths_);
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].places, std::vector<std::string>{"/p/staging/map"});
  EXPECT_FALSE(told[0].is_map);
  EXPECT_EQ(told[1].places, (std::vector<std::string>{"/p/map", "/p/publish/map"}));
  EXPECT_TRUE(told[1].is_map);
  for (const UnrecordedMount& mount : told) {
    EXPECT_TRUE(mount.is_block);
    EXPECT_EQ(mount.device_place, "/p/map");
    EXPECT_EQ(mount.volume, GetUniqueVolumeName(kLocalPlugin, "map"));
  }
  EXPECT_TRUE(FindLostBlockVolumes(found_).empty());
}

TEST_F(LostBlockVolumeTest, WhatAPodWithoutARowHasOfADeviceOnRecordIsToldToo) {
  DeviceRecord device;
  device.key = GetUniqueVolumeName(kLocalPlugin, "map");
  device.plugin_name = kLocalPlugin;
  device.spec = SpecName("map");
  device.is_block = true;
  device.device_mount_path = "/p/map";
  found_.devices = {device};
  PodVolumeRecord record;
  record.key = {PodUid("a"), SpecName("map")};
  found_.volumes = {record};
  const std::vector<UnrecordedMount> told = FindUnrecordedMounts(found_, paths_);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].pod, PodUid("b"));
  EXPECT_EQ(told[0].volume, device.key);
  EXPECT_EQ(told[0].places, (std::vector<std::string>{"/p/map/b", "/p/publish/map/b"}));
  EXPECT_TRUE(told[0].is_block);
  const std::vector<KubeletPaths::PodVolume> lost = FindLostBlockVolumes(found_);
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0], (KubeletPaths::PodVolume{PodUid("b"), kLocalPlugin, SpecName("map"), true}));
}

}  // namespace
}  // namespace volumed
