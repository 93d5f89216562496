#include "csi/csi_names.h"

#include <gtest/gtest.h>

#include <set>

#include "base/strings.h"
#include "volume/storage_name.h"

namespace volumed {
namespace {

constexpr char kHash[] = "d2e8363faaac7ae76def3b14091d8eb5755f6b92e9531627aeec833a8731cc49";

TEST(CsiNamesTest, PathsAreThoseOfAKubelet) {
  const KubeletPaths paths("/r");
  const PodUid pod("uid-1");
  const SpecName pv("pv-1");
  const SpecName slashes("d-a/b");
  const struct {
    SafePath place;
    const char* expected;
  } cases[] = {
      {CsiStageDir(paths, "disk.example.com", "vol-1"),
       "plugins/kubernetes.io/csi/disk.example.com/"},
      {CsiOldStageDir(paths, pv), "plugins/kubernetes.io/csi/pv/pv-1"},
      {CsiOldStagingPath(paths, pv), "plugins/kubernetes.io/csi/pv/pv-1/globalmount"},
      {CsiPodVolumeDir(paths, pod, pv), "pods/uid-1/volumes/kubernetes.io~csi/pv-1"},
      {CsiTargetPath(paths, pod, pv), "pods/uid-1/volumes/kubernetes.io~csi/pv-1/mount"},
      {CsiTargetPath(paths, pod, slashes), "pods/uid-1/volumes/kubernetes.io~csi/d-a~b/mount"},
      {CsiBlockDir(paths, pv), "plugins/kubernetes.io/csi/volumeDevices/pv-1"},
      {CsiBlockMapDir(paths, pv), "plugins/kubernetes.io/csi/volumeDevices/pv-1/dev"},
      {CsiBlockMapDir(paths, slashes), "plugins/kubernetes.io/csi/volumeDevices/d-a~b/dev"},
      {CsiBlockDataDir(paths, pv), "plugins/kubernetes.io/csi/volumeDevices/pv-1/data"},
      {CsiBlockStagingPath(paths, pv), "plugins/kubernetes.io/csi/volumeDevices/staging/pv-1"},
      {CsiBlockPublishDir(paths, pv), "plugins/kubernetes.io/csi/volumeDevices/publish/pv-1"},
      {CsiBlockPublishPath(paths, pv, pod),
       "plugins/kubernetes.io/csi/volumeDevices/publish/pv-1/uid-1"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(c.place.root, "/r");
    const std::string expected = c.expected;
    EXPECT_EQ(c.place.relative, expected.ends_with('/') ? expected + kHash : expected);
  }
  EXPECT_EQ(CsiStagingPath(paths, "disk.example.com", "vol-1").relative,
            std::string("plugins/kubernetes.io/csi/disk.example.com/") + kHash + "/globalmount");
}

TEST(CsiNamesTest, TwoNamesOfBlockVolumesAreThoseOfSharedDirectories) {
  const KubeletPaths paths("/r");
  for (const char* name : {"publish", "staging"}) EXPECT_TRUE(HasSharedBlockDir(SpecName(name)));
  for (const char* name : {"dev", "data", "pv-1", "publish-1", "a/publish"}) {
    EXPECT_FALSE(HasSharedBlockDir(SpecName(name))) << name;
  }
  EXPECT_EQ(CsiBlockMapDir(paths, SpecName("publish")), CsiBlockPublishDir(paths, SpecName("dev")));
  EXPECT_EQ(CsiBlockMapDir(paths, SpecName("staging")),
            CsiBlockStagingPath(paths, SpecName("dev")));
}

TEST(CsiNamesTest, HashesAreThoseOfAKubelet) {
  EXPECT_EQ(CsiHandleHash("vol-1"), kHash);
  EXPECT_EQ(CsiHandleHash("a/b^c"),
            "6e682921a3a0e7bd006065fdeae454cbad838f7a8f6f6ce5bb8c17ef5c04a731");
  EXPECT_EQ(CsiAttachmentName("vol-1", "disk.example.com", "node-1"),
            "csi-19c42f43d69fa1f381555c6802be2757a07267e9705a867fd59297bc87dd0694");
  EXPECT_TRUE(IsLikeCsiInlineHandle(CsiInlineHandle(PodUid("uid-1"), SpecName("scratch"))));
  for (const char* handle : {"", "csi-", "vol-1", "csi-12345"}) {
    EXPECT_FALSE(IsLikeCsiInlineHandle(handle)) << handle;
  }
  EXPECT_EQ(CsiInlineHandle(PodUid("uid-1"), SpecName("scratch")),
            "csi-a919eb5a57ed1bf8c61a802fc713b36e9bfa4fbf009dfb5f4206d253a3a3dc32");
}

TEST(CsiNamesTest, AVolumeIsFoundByItsName) {
  for (const char* handle : {"vol-1", "", "a/b/c", "a^b", "^", "/", "projects/p/disks/x y\n"}) {
    const CsiVolumeId id{"disk.example.com", handle};
    EXPECT_EQ(CsiUniqueName(id.driver, id.handle).str(),
              std::string("kubernetes.io/csi/disk.example.com^") + handle);
    EXPECT_EQ(ParseCsiVolumeName(CsiVolumeName(id.driver, id.handle)), id) << handle;
    EXPECT_EQ(ParseCsiUniqueName(CsiUniqueName(id.driver, id.handle)), id) << handle;
  }
}

TEST(CsiNamesTest, OtherNamesAreOfNoVolume) {
  for (const char* name : {"", "driver", "^vol", "a/b^vol", "staged/pv/x"}) {
    EXPECT_EQ(ParseCsiVolumeName(name), std::nullopt) << name;
    EXPECT_EQ(ParseCsiUniqueName(UniqueVolumeName(std::string("kubernetes.io/csi/") + name)),
              std::nullopt);
  }
  for (const char* name : {"", "d^v", "kubernetes.io/nfs/d^v", "kubernetes.io/csid^v"}) {
    EXPECT_EQ(ParseCsiUniqueName(UniqueVolumeName(name)), std::nullopt) << name;
  }
}

KubeletPaths Paths() { return KubeletPaths("/r", {CsiDeviceAt}); }

std::optional<KubeletPaths::DeviceMount> At(const SafePath& place) {
  return Paths().ParseDeviceMount(place.Display());
}

TEST(CsiNamesTest, APlaceOfADeviceIsFoundAgainInBothLayouts) {
  const KubeletPaths paths = Paths();
  const auto staged = At(CsiStagingPath(paths, "disk.example.com", "vol-1"));
  ASSERT_TRUE(staged);
  EXPECT_EQ(staged->plugin, kCsiPluginName);
  EXPECT_FALSE(staged->is_block);
  EXPECT_EQ(staged->volume.str(), std::string("staged/disk.example.com/") + kHash);
  EXPECT_EQ(staged->place, CsiStagingPath(paths, "disk.example.com", "vol-1").Display());

  const auto old = At(CsiOldStagingPath(paths, SpecName("pv-1")));
  ASSERT_TRUE(old);
  EXPECT_EQ(old->volume.str(), "staged/pv/pv-1");
  EXPECT_FALSE(old->is_block);

  const auto block = At(CsiBlockMapDir(paths, SpecName("pv-1")).Below("uid-1"));
  ASSERT_TRUE(block);
  EXPECT_TRUE(block->is_block);
  EXPECT_EQ(block->volume.str(), "block/pv-1");
  EXPECT_EQ(block->place, CsiBlockMapDir(paths, SpecName("pv-1")).Display());
}

// What was mounted there alone was not known at all.
TEST(CsiNamesTest, ABlockVolumeIsFoundAgainByEachOfItsPlaces) {
  const KubeletPaths paths = Paths();
  for (const char* name : {"pv-1", "dev"}) {
    const SpecName pv(name);
    const SafePath target = CsiBlockPublishPath(paths, pv, PodUid("uid-1"));
    const SafePath staging = CsiBlockStagingPath(paths, pv);
    for (const SafePath& at : {CsiBlockMapDir(paths, pv).Below("uid-1"), target,
                               target.Below("device"), staging, staging.Below("device")}) {
      const auto device = At(at);
      ASSERT_TRUE(device) << at.Display();
      EXPECT_TRUE(device->is_block);
      EXPECT_EQ(device->plugin, kCsiPluginName);
      EXPECT_EQ(device->volume.str(), std::string("block/") + name);
      EXPECT_EQ(device->place, CsiBlockMapDir(paths, pv).Display());
      EXPECT_EQ(device->pods_place, CsiBlockPublishDir(paths, pv).Display());
      EXPECT_EQ(device->node_place, staging.Display());
      const bool is_nodes = at.Display().starts_with(staging.Display());
      EXPECT_EQ(device->pod, is_nodes ? PodUid() : PodUid("uid-1"));
    }
  }
}

TEST(CsiNamesTest, WhatStandsInForAVolumeIsNoVolumesName) {
  const KubeletPaths paths = Paths();
  std::set<std::string> names;
  for (const SafePath& place :
       {CsiStagingPath(paths, "d.example.com", "v"), CsiStagingPath(paths, "e.example.com", "v"),
        CsiOldStagingPath(paths, SpecName("v")), CsiOldStagingPath(paths, SpecName("a^b")),
        CsiBlockMapDir(paths, SpecName("v")).Below("u")}) {
    const auto device = At(place);
    ASSERT_TRUE(device) << place.Display();
    EXPECT_EQ(ParseCsiVolumeName(device->volume.str()), std::nullopt);
    names.insert(device->volume.str());
  }
  EXPECT_EQ(names.size(), 5u);
}

TEST(CsiNamesTest, OtherPlacesHaveNoDevice) {
  const std::string csi = "kubernetes.io/csi/";
  for (const std::string& path :
       {csi + "d/" + kHash, csi + "d/" + kHash + "/vol_data.json", csi + "d/vol-1/globalmount",
        csi + "d/" + kHash + "/globalmount/x", csi + "pv/pv-1", csi + "volumeDevices/pv-1/dev",
        csi + "volumeDevices/pv-1/data/vol_data.json", csi + "volumeDevices/staging",
        csi + "volumeDevices/publish/pv-1", csi + "volumeDevices/pv-1/dev/uid-1/x",
        std::string("kubernetes.io/nfs/d/") + kHash + "/globalmount", std::string("csi")}) {
    EXPECT_EQ(CsiDeviceAt(Split(path, '/')), std::nullopt) << path;
  }
  EXPECT_EQ(CsiDeviceAt({}), std::nullopt);
}

}  // namespace
}  // namespace volumed
