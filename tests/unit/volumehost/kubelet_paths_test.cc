#include "volumehost/kubelet_paths.h"

#include <gtest/gtest.h>

namespace volumed {
namespace {

const PodUid kPod("3d1f");
const SpecName kSpec("data");
constexpr char kPlugin[] = "kubernetes.io/empty-dir";

TEST(KubeletPathsTest, BuildsKubeletsLayout) {
  const KubeletPaths paths("/var/lib/volumed");
  EXPECT_EQ(paths.GetPodsDir().Display(), "/var/lib/volumed/pods");
  EXPECT_EQ(paths.GetPodDir(kPod).Display(), "/var/lib/volumed/pods/3d1f");
  EXPECT_EQ(paths.GetPodVolumesDir(kPod).Display(), "/var/lib/volumed/pods/3d1f/volumes");
  EXPECT_EQ(paths.GetPodVolumeDir(kPod, kPlugin, kSpec).Display(),
            "/var/lib/volumed/pods/3d1f/volumes/kubernetes.io~empty-dir/data");
  EXPECT_EQ(paths.GetPodPluginDir(kPod, kPlugin, kSpec).Display(),
            "/var/lib/volumed/pods/3d1f/plugins/kubernetes.io~empty-dir/data");
  EXPECT_EQ(paths.GetPodVolumeSubpathsDir(kPod).Display(),
            "/var/lib/volumed/pods/3d1f/volume-subpaths");
  EXPECT_EQ(paths.GetPodVolumeSubpathDir(kPod, kSpec, "web", 2).Display(),
            "/var/lib/volumed/pods/3d1f/volume-subpaths/data/web/2");
  EXPECT_EQ(paths.GetPluginsDir().Display(), "/var/lib/volumed/plugins");
  EXPECT_EQ(paths.GetPluginDir("kubernetes.io/csi").Display(),
            "/var/lib/volumed/plugins/kubernetes.io/csi");
  EXPECT_EQ(paths.AgentDir().Display(), "/var/lib/volumed/volumed");
}

TEST(KubeletPathsTest, BlockVolumesAndPluginDataHaveTheirOwnPlaces) {
  const KubeletPaths paths("/r");
  EXPECT_EQ(paths.GetPodPluginDir(kPod, kPlugin).Display(),
            "/r/pods/3d1f/plugins/kubernetes.io~empty-dir");
  EXPECT_EQ(paths.GetPodVolumeDeviceDir(kPod, "kubernetes.io/csi").Display(),
            "/r/pods/3d1f/volumeDevices/kubernetes.io~csi");
  EXPECT_EQ(paths.GetVolumeDevicePluginDir("kubernetes.io/csi").Display(),
            "/r/plugins/kubernetes.io/csi/volumeDevices");
}

TEST(KubeletPathsTest, EverythingLiesBelowTheTrustedRootWithoutLinks) {
  const SafePath path = KubeletPaths("/r").GetPodVolumeDir(kPod, kPlugin, kSpec);
  EXPECT_EQ(path.root, "/r");
  EXPECT_EQ(path.relative, "pods/3d1f/volumes/kubernetes.io~empty-dir/data");
  EXPECT_EQ(path.resolve, Resolve::kNoSymlinks);
}

TEST(KubeletPathsTest, ParsesBackWhatItBuilt) {
  const KubeletPaths paths("/var/lib/volumed");
  const auto parsed = paths.ParsePodVolume(paths.GetPodVolumeDir(kPod, kPlugin, kSpec).Display());
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(*parsed, (KubeletPaths::PodVolume{kPod, kPlugin, kSpec}));
  EXPECT_EQ(paths.ParsePod(paths.GetPodDir(kPod).Display()), kPod);
}

TEST(KubeletPathsTest, DevicesAreParsedBack) {
  const KubeletPaths paths("/r");
  const SafePath local = paths.GetDeviceMountDir("kubernetes.io/local-volume", SpecName("pv"));
  EXPECT_EQ(paths.ParseDeviceMount(local.Display()),
            (KubeletPaths::DeviceMount{"kubernetes.io/local-volume", SpecName("pv"), false,
                                       local.Display()}));
  for (const char* path :
       {"/r/plugins/a/b/c/mounts/pv", "/r/plugins/a/b/other/pv", "/r/plugins/a/mounts/pv",
        "/r/pods/a/b/mounts/pv", "/r/plugins/kubernetes.io/flexvolume/v.io/d/mounts/pv"}) {
    EXPECT_FALSE(paths.ParseDeviceMount(path).has_value()) << path;
  }
}

TEST(KubeletPathsTest, ALayoutIsAskedForWhatDoesNotLieInTheCommonWay) {
  const KubeletPaths paths("/r", {[](const std::vector<std::string>& elements) {
                             return elements.size() != 2 ? std::nullopt
                                                         : std::optional(KubeletPaths::DeviceMount{
                                                               elements[0], SpecName(elements[1])});
                           }});
  EXPECT_EQ(paths.ParseDeviceMount("/r/plugins/a/pv"),
            (KubeletPaths::DeviceMount{"a", SpecName("pv"), false, "/r/plugins/a/pv"}));
  EXPECT_EQ(paths.ParseDeviceMount("/r/plugins/a/b/mounts/pv")->plugin, "a/b");
  EXPECT_FALSE(paths.ParseDeviceMount("/r/pods/a/pv"));
  EXPECT_FALSE(paths.ParseDeviceMount("/x/plugins/a/pv"));
}

TEST(KubeletPathsTest, ParsesWhatLiesInsideAVolume) {
  const auto parsed =
      KubeletPaths("/r").ParsePodVolume("/r/pods/u/volumes/kubernetes.io~secret/s/..data/key");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->plugin, "kubernetes.io/secret");
  EXPECT_EQ(parsed->spec, SpecName("s"));
}

TEST(KubeletPathsTest, OtherPathsBelongToNoVolume) {
  const KubeletPaths paths("/r");
  for (const char* path :
       {"", "/", "/r", "/r/", "/r/pods", "/r/pods/u", "/r/pods/u/volumes",
        "/r/pods/u/volumes/kubernetes.io~secret", "/r/pods/u/plugins/kubernetes.io~empty-dir/s",
        "/rr/pods/u/volumes/a/b", "/x/pods/u/volumes/a/b", "/r/pods/../volumes/a/b",
        "/r/pods/u/volumes/a/b/..", "/r//pods/u/volumes/a/b", "/r/pods/u/volumes/a/b/"}) {
    EXPECT_FALSE(paths.ParsePodVolume(path).has_value()) << path;
  }
}

TEST(KubeletPathsTest, OtherPathsBelongToNoPod) {
  const KubeletPaths paths("/r");
  for (const char* path : {"", "/r", "/r/pods", "/r/pods/", "/r/plugins/u", "/q/pods/u"}) {
    EXPECT_FALSE(paths.ParsePod(path).has_value()) << path;
  }
  EXPECT_EQ(paths.ParsePod("/r/pods/u/etc-hosts"), PodUid("u"));
}

}  // namespace
}  // namespace volumed
