// virtioFs: a share of the machine is mounted by its tag, and taken away.
#include "plugins/virtio_fs.h"

#include <gtest/gtest.h>

#include "kube/decode.h"
#include "unit/plugins/plugin_test_base.h"

namespace volumed {
namespace {

class VirtioFsTest : public PluginTestBase {};

constexpr char kPod[] =
    "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c}], "
    "volumes: [{name: v, virtioFs: {tag: share, readOnly: true%s}}]}}";

TEST_F(VirtioFsTest, IsReadFromAManifestAndItsFieldsAreKnown) {
  std::string manifest = kPod;
  const ManifestDecode decode = DecodeManifest("p", manifest.replace(manifest.find("%s"), 2, ""));
  ASSERT_TRUE(decode.problems.empty()) << decode.problems[0].ToString();
  EXPECT_TRUE(decode.warnings.empty());
  const PodVolume& volume = std::get<Pod>(decode.objects.at(0).object).spec.volumes.at(0);
  EXPECT_EQ(volume.source, VolumeSource(VirtioFsVolumeSource{"share", true}));
  EXPECT_EQ(VolumeSourceKind(volume.source), "virtioFs");
}

TEST_F(VirtioFsTest, ASlipIsToldAsInAKindOfKubernetes) {
  std::string manifest = kPod;
  const ManifestDecode decode =
      DecodeManifest("p", manifest.replace(manifest.find("%s"), 2, ", readonly: true"));
  ASSERT_EQ(decode.warnings.size(), 1u);
  EXPECT_EQ(decode.warnings[0].field_path, "spec.volumes[0].virtioFs.readonly");
}

TEST_F(VirtioFsTest, IsMountedByItsTagAndTakenAway) {
  const VolumeSource source = VirtioFsVolumeSource{"share", false};
  const Status done = SetUp1(source);
  ASSERT_TRUE(done.ok()) << done.error().ToString();
  const std::string place = PathOf(source);
  EXPECT_TRUE(kernel_.IsMountPoint(place));
  EXPECT_TRUE(SetUp1(source).ok());
  EXPECT_TRUE(TearDown1(source).ok());
  EXPECT_FALSE(kernel_.Exists(place));
}

}  // namespace
}  // namespace volumed
