#include "volume/volume_spec.h"

#include <gtest/gtest.h>

#include <utility>
#include <variant>
#include <vector>

#include "volume/storage_name.h"

namespace volumed {
namespace {

TEST(VolumeSpecTest, TakesItsNameFromTheInlineVolume) {
  const VolumeSpec spec = VolumeSpec::FromVolume(PodVolume{"scratch", EmptyDirVolumeSource()});
  EXPECT_EQ(spec.name(), SpecName("scratch"));
  ASSERT_NE(spec.volume(), nullptr);
  EXPECT_TRUE(std::holds_alternative<EmptyDirVolumeSource>(spec.volume()->source));
}

TEST(VolumeSpecTest, AnInlineVolumeIsNeverReadOnlyByItsSpec) {
  NfsVolumeSource nfs;
  nfs.read_only = true;
  EXPECT_FALSE(VolumeSpec::FromVolume(PodVolume{"share", nfs}).read_only());
}

TEST(VolumeSpecTest, CopiesShareOneImmutableVolume) {
  const VolumeSpec spec = VolumeSpec::FromVolume(PodVolume{"scratch", EmptyDirVolumeSource()});
  const VolumeSpec copy = spec;  // NOLINT: the copy is what is tested
  EXPECT_EQ(copy.volume(), spec.volume());
}

PersistentVolume Pv(PersistentVolumeSource source) {
  PersistentVolume volume;
  volume.metadata.name = "pv-1";
  volume.spec.source = std::move(source);
  return volume;
}

TEST(VolumeSpecTest, TakesItsNameFromThePersistentVolume) {
  const VolumeSpec spec =
      VolumeSpec::FromPersistentVolume(Pv(LocalVolumeSource{"/mnt/disk", "xfs"}), true);
  EXPECT_EQ(spec.name(), SpecName("pv-1"));
  EXPECT_EQ(spec.volume(), nullptr);
  ASSERT_NE(spec.persistent_volume(), nullptr);
  EXPECT_TRUE(spec.read_only());
  ASSERT_NE(spec.SourceAs<LocalVolumeSource>(), nullptr);
  EXPECT_EQ(spec.SourceAs<LocalVolumeSource>()->fs_type, "xfs");
  EXPECT_EQ(spec.SourceAs<HostPathVolumeSource>(), nullptr);
  EXPECT_EQ(spec.Display(), "persistent volume pv-1 (local)");
}

TEST(VolumeSpecTest, ASourceOfBothKindsIsFoundInBoth) {
  const HostPathVolumeSource source{"/h", HostPathType::kUnset};
  const VolumeSpec in_pod = VolumeSpec::FromVolume({"v", source});
  const VolumeSpec persistent = VolumeSpec::FromPersistentVolume(Pv(source), false);
  EXPECT_EQ(in_pod.SourceAs<HostPathVolumeSource>()->path, "/h");
  EXPECT_EQ(persistent.SourceAs<HostPathVolumeSource>()->path, "/h");
  EXPECT_EQ(in_pod.SourceAs<EmptyDirVolumeSource>(), nullptr);
  EXPECT_EQ(in_pod.Display(), "volume v (hostPath)");
}

TEST(VolumeSpecTest, OnlyFlexVolumesAreExpandedByTheNodeAlone) {
  FlexVolumeSource flex;
  flex.driver = "vendor/driver";
  FlexPersistentVolumeSource pv_flex;
  pv_flex.driver = "vendor/other";
  const VolumeSpec in_pod = VolumeSpec::FromVolume({"v", flex});
  const VolumeSpec persistent = VolumeSpec::FromPersistentVolume(Pv(pv_flex), false);
  EXPECT_TRUE(in_pod.IsKubeletExpandable());
  EXPECT_EQ(in_pod.KubeletExpandablePluginName(), "vendor/driver");
  EXPECT_TRUE(persistent.IsKubeletExpandable());
  EXPECT_EQ(persistent.KubeletExpandablePluginName(), "vendor/other");
  const VolumeSpec other = VolumeSpec::FromVolume({"v", EmptyDirVolumeSource()});
  EXPECT_FALSE(other.IsKubeletExpandable());
  EXPECT_EQ(other.KubeletExpandablePluginName(), "");
}

TEST(VolumeSpecTest, MigrationIsAMarkOfACopy) {
  const VolumeSpec spec = VolumeSpec::FromVolume({"v", EmptyDirVolumeSource()});
  const VolumeSpec stand_in = spec.WithInlineForCsiMigration();
  EXPECT_FALSE(spec.migrated());
  EXPECT_FALSE(spec.inline_for_csi_migration());
  EXPECT_TRUE(stand_in.migrated());
  EXPECT_TRUE(stand_in.inline_for_csi_migration());
  EXPECT_EQ(stand_in.volume(), spec.volume());
  const VolumeSpec persistent = VolumeSpec::FromPersistentVolume(Pv(NfsVolumeSource()), true);
  const VolumeSpec migrated = persistent.WithCsiMigration();
  EXPECT_FALSE(persistent.migrated());
  EXPECT_TRUE(migrated.migrated());
  EXPECT_FALSE(migrated.inline_for_csi_migration());
  EXPECT_TRUE(migrated.read_only());
}

TEST(VolumeSpecTest, WhatWasMovedFromIsEmpty) {
  VolumeSpec spec = VolumeSpec::FromVolume({"v", EmptyDirVolumeSource()});
  const VolumeSpec taken = std::move(spec);
  EXPECT_TRUE(spec.empty());  // NOLINT: on purpose
  EXPECT_FALSE(taken.empty());
}

// A source says by its facts where its data lies.
TEST(StorageNameTest, IsWhatASourceSaysOfIt) {
  EXPECT_EQ(KindsWithStorageName(), (std::vector<std::string>{"csi", "hostPath", "local", "nfs"}));
  const auto name = [](VolumeSource source) {
    return StorageNameOf(VolumeSpec::FromVolume(PodVolume{"v", std::move(source)}));
  };
  EXPECT_EQ(name(HostPathVolumeSource{"/a//b/.", HostPathType::kUnset}), StorageName{"/a/b"});
  EXPECT_EQ(name(NfsVolumeSource{"nas", "/a/../b", false}), (StorageName{"/a/../b", "nas"}));
  EXPECT_EQ(name(HostPathVolumeSource{"/a/../b", HostPathType::kUnset}), std::nullopt);
  EXPECT_EQ(name(EmptyDirVolumeSource{}), std::nullopt);
  PersistentVolume volume;
  volume.spec.source = LocalVolumeSource{"/mnt/disk/", ""};
  EXPECT_EQ(StorageNameOf(VolumeSpec::FromPersistentVolume(volume, false)),
            StorageName{"/mnt/disk"});
  CsiPersistentVolumeSource csi;
  csi.driver = "disks.io";
  csi.volume_handle = "vol/../1";
  volume.spec.source = csi;
  const auto of_driver = StorageNameOf(VolumeSpec::FromPersistentVolume(volume, false));
  EXPECT_EQ(of_driver, (StorageName{.path = "vol/../1", .driver = "disks.io"}));
  EXPECT_EQ(of_driver->ToString(), "disks.io^vol/../1");
  EXPECT_FALSE(of_driver->IsOnNode());
  CinderPersistentVolumeSource cinder;
  cinder.volume_id = "c-1";
  volume.spec.source = cinder;
  EXPECT_EQ(StorageNameOf(VolumeSpec::FromPersistentVolume(volume, false)),
            (StorageName{.path = "c-1", .driver = "cinder.csi.openstack.org"}))
      << "as the driver that replaces it has it";
}

}  // namespace
}  // namespace volumed
