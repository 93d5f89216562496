// Where the devices of plugins lie that have ways of their own.
#include <gtest/gtest.h>

#include "plugins/flex_volume_places.h"
#include "plugins/in_tree_plugins.h"

namespace volumed {
namespace {

TEST(DeviceLayoutsTest, TheDevicesOfFlexVolumesLieBelowTheirDriver) {
  const KubeletPaths paths("/r", InTreeDeviceLayouts());
  const SafePath flex = FlexDeviceMountDir(paths, "v.io/d", SpecName("pv"));
  EXPECT_EQ(flex.Display(), "/r/plugins/kubernetes.io/flexvolume/v.io/d/mounts/pv");
  EXPECT_EQ(paths.ParseDeviceMount(flex.Display()),
            (KubeletPaths::DeviceMount{"v.io/d", SpecName("pv"), false, flex.Display()}));
  for (const char* path :
       {"/r/plugins/a/b/c/mounts/pv", "/r/plugins/a/b/other/pv", "/r/plugins/a/mounts/pv",
        "/r/pods/a/b/mounts/pv", "/r/plugins/kubernetes.io/flexvolume/v.io/d/mounts/pv/x"}) {
    EXPECT_FALSE(paths.ParseDeviceMount(path).has_value()) << path;
  }
}

TEST(DeviceLayoutsTest, TheDevicesOfFibreChannelLieBelowTheirNames) {
  const KubeletPaths paths("/r", InTreeDeviceLayouts());
  const auto mount = paths.ParseDeviceMount("/r/plugins/kubernetes.io/fc/500a0982991b8dc5-lun-7");
  ASSERT_TRUE(mount);
  EXPECT_EQ(*mount,
            (KubeletPaths::DeviceMount{"kubernetes.io/fc", SpecName("[500a0982991b8dc5]:7"), false,
                                       "/r/plugins/kubernetes.io/fc/500a0982991b8dc5-lun-7"}));
  const std::string map =
      "/r/plugins/kubernetes.io/fc/volumeDevices/3600508b400105e210000900000490000";
  const auto node = paths.ParseDeviceMount(map + "/u1");
  ASSERT_TRUE(node);
  EXPECT_EQ(*node,
            (KubeletPaths::DeviceMount{
                "kubernetes.io/fc", SpecName("[3600508b400105e210000900000490000]"), true, map}));
  // A pod's block volume is known by its link: the node does not say its name in the pod.
  EXPECT_FALSE(paths.ParsePodVolume(map + "/u1"));
  for (const char* other :
       {"/r/plugins/kubernetes.io/fc", "/r/plugins/kubernetes.io/fc/volumeDevices",
        "/r/plugins/kubernetes.io/fc/volumeDevices/x", "/r/plugins/kubernetes.io/fc/a-lun-0/inside",
        "/r/plugins/kubernetes.io/other/a-lun-0"}) {
    EXPECT_FALSE(paths.ParseDeviceMount(other)) << other;
  }
}

TEST(DeviceLayoutsTest, TheDevicesOfIscsiLieBelowTheirInterface) {
  const KubeletPaths paths("/r", InTreeDeviceLayouts());
  const std::string names = "/iface-default/10.0.0.1:3260-iqn.2026-01.lab:t-lun-1";
  const std::string place = "/r/plugins/kubernetes.io/iscsi" + names;
  const auto mount = paths.ParseDeviceMount(place);
  ASSERT_TRUE(mount);
  EXPECT_EQ(*mount, (KubeletPaths::DeviceMount{"kubernetes.io/iscsi",
                                               SpecName("10.0.0.1:3260:iqn.2026-01.lab:t:1"), false,
                                               place}));
  const std::string map = "/r/plugins/kubernetes.io/iscsi/volumeDevices" + names;
  const auto node = paths.ParseDeviceMount(map + "/u1");
  ASSERT_TRUE(node);
  EXPECT_TRUE(node->is_block);
  EXPECT_EQ(node->place, map);
  EXPECT_EQ(node->volume, mount->volume);
  for (const std::string& other :
       {map, place + "/inside", std::string("/r/plugins/kubernetes.io/iscsi"),
        std::string("/r/plugins/kubernetes.io/iscsi/iface-default/x-lun-1")}) {
    EXPECT_FALSE(paths.ParseDeviceMount(other)) << other;
  }
}

}  // namespace
}  // namespace volumed
