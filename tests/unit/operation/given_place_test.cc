// Places that a CO gave, as values: which the operations take, and what a row says of one.
#include "operation/given_place.h"
#include "os/place_names.h"

#include <gtest/gtest.h>

#include "kube/target_uid.h"

namespace volumed {
namespace {

SafePath Place(const std::string& relative) { return {"/srv/co", relative}; }

TEST(GivenPlace, TheKeyOfATargetIsThatOfNoPodAndOfNoOtherTarget) {
  const PodVolumeKey key = TargetKey("/srv/co/pod/v", "v-1");
  // echo -n /srv/co/pod/v | sha256sum
  EXPECT_EQ(key.pod.str(), "csi:95761e33c2c742aa918f5921ea3d97c8");
  EXPECT_EQ(key.spec, SpecName("v-1"));
  EXPECT_TRUE(IsTargetUid(key.pod));
  EXPECT_NE(TargetKey("/srv/co/pod/w", "v-1"), key);
  EXPECT_NE(TargetKey("/srv/co/pod/v", "v-2"), key);
  EXPECT_FALSE(IsTargetUid(PodUid("0b3c-csi:")));
}

TEST(GivenPlace, OnlyAPlaceBelowItsRootThroughNoLinkIsTaken) {
  EXPECT_TRUE(CheckGivenPlace(Place("v")).ok());
  EXPECT_TRUE(CheckGivenPlace(Place("pod/v")).ok());
  for (const SafePath& place : {SafePath{}, SafePath{"/srv/co", ""}, SafePath{"", "v"},
                                SafePath{"srv", "v"}, SafePath{"/", "v"}, SafePath{"/srv/co", "v/"},
                                SafePath{"/srv/co", "v", Resolve::kBeneath}}) {
    const Status taken = CheckGivenPlace(place);
    ASSERT_FALSE(taken.ok()) << place.Display();
    EXPECT_EQ(taken.error().code(), Code::kInvalidArgument) << place.Display();
    EXPECT_FALSE(taken.error().maybe_applied()) << place.Display();
  }
}

TEST(GivenPlace, ItsParentAndItsNameMakeIt) {
  EXPECT_EQ(ParentOf(Place("a/b/v")), Place("a/b"));
  EXPECT_EQ(NameOf(Place("a/b/v")), "v");
  EXPECT_EQ(ParentOf(Place("v")), Place(""));
  EXPECT_EQ(NameOf(Place("v")), "v");
}

TEST(GivenPlace, ARowSaysThePlaceAsItWasGiven) {
  PodVolumeRecord volume;
  volume.key = TargetKey("/srv/co/pod/v", "v-1");
  EXPECT_EQ(GivenPlaceOf(volume), std::nullopt);
  volume.pod_namespace = "ns";
  volume.pod_name = "web";
  EXPECT_EQ(HolderOf(volume), "pod ns/web");
  volume.place = Place("pod/v").Display();
  volume.place_root = "/srv/co";
  EXPECT_EQ(GivenPlaceOf(volume), Place("pod/v"));
  EXPECT_EQ(HolderOf(volume), "the target /srv/co/pod/v");
}

TEST(GivenPlace, ADeviceIsWhereItsRowSaysWhoeverPutItThere) {
  const KubeletPaths paths("/var/lib/volumed");
  DeviceRecord device;
  device.device_mount_path = "/srv/co/stage";
  EXPECT_FALSE(PlaceOfDevice(paths, device).ok()) << "it does not lie below the agent's root";
  device.place_root = "/srv/co";
  EXPECT_EQ(PlaceOfDevice(paths, device).value(), Place("stage"));
  device.place_root.clear();
  device.device_mount_path = "/var/lib/volumed/plugins/p/v";
  EXPECT_EQ(PlaceOfDevice(paths, device).value().Display(), device.device_mount_path);
}

}  // namespace
}  // namespace volumed
