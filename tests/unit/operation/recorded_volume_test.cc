#include "operation/recorded_volume.h"

#include <gtest/gtest.h>

#include "volume/csi_translation.h"

namespace volumed {
namespace {

TEST(RecordedVolume, KeepsReferencesAndComesBackEqual) {
  PodVolume volume;
  volume.name = "creds";
  volume.source = SecretVolumeSource{.secret_name = "db-password", .items = {{"k", "p", 0400}}};
  const std::string json = EncodeRecordedVolume(VolumeSpec::FromVolume(volume));
  EXPECT_NE(json.find("db-password"), std::string::npos) << json;
  const auto spec = DecodeRecordedVolume(json);
  ASSERT_TRUE(spec.ok()) << spec.error().ToString();
  EXPECT_EQ(spec->name(), SpecName("creds"));
  EXPECT_EQ(*spec->volume(), volume);
}

TEST(RecordedVolume, OfAVolumeThatWasConstructedFromItsPlacesCanBeRead) {
  PersistentVolume volume;
  volume.metadata.name = "lun1";
  volume.spec.volume_mode = VolumeMode::kBlock;
  FcVolumeSource source;
  source.target_wwns = {"500a0982991b8dc5"};
  source.lun = 1;
  volume.spec.source = source;
  const auto spec =
      DecodeRecordedVolume(EncodeRecordedVolume(VolumeSpec::FromPersistentVolume(volume, false)));
  ASSERT_TRUE(spec.ok()) << spec.error().ToString();
  EXPECT_EQ(*spec->SourceAs<FcVolumeSource>(), source);
  EXPECT_TRUE(IsBlockVolume(*spec));
}

TEST(RecordedVolume, OneThatWasTranslatedForACsiDriverComesBackAsThat) {
  AzureDiskVolumeSource disk;
  disk.disk_uri = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d";
  disk.kind = AzureDataDiskKind::kManaged;
  PersistentVolume volume;
  volume.metadata.name = "pv-1";
  volume.metadata.annotations["a"] = "b";
  volume.spec.source = disk;
  for (const VolumeSpec& in_tree :
       {VolumeSpec::FromVolume({"data", disk}), VolumeSpec::FromPersistentVolume(volume, false)}) {
    SCOPED_TRACE(in_tree.Display());
    const VolumeSpec csi = TranslateToCsi(in_tree, "shop").value().value();
    const auto spec = DecodeRecordedVolume(EncodeRecordedVolume(csi));
    ASSERT_TRUE(spec.ok()) << spec.error().ToString();
    EXPECT_EQ(spec->name(), csi.name());
    EXPECT_EQ(spec->persistent_volume()->metadata, csi.persistent_volume()->metadata);
    EXPECT_EQ(*spec->SourceAs<CsiPersistentVolumeSource>(),
              *csi.SourceAs<CsiPersistentVolumeSource>());
    EXPECT_TRUE(spec->migrated());
    EXPECT_EQ(spec->inline_for_csi_migration(), in_tree.volume() != nullptr);
  }
}

TEST(RecordedVolume, AnAnnotationOfAManifestMakesNoMigrationOfIt) {
  PersistentVolume volume;
  volume.metadata.name = "pv-1";
  volume.metadata.annotations = {{"volumed.io/csi-migrated", "true"},
                                 {"volumed.io/csi-stand-in-name", "../../etc"}};
  volume.spec.source = NfsVolumeSource{"server", "/export", false};
  const auto spec =
      DecodeRecordedVolume(EncodeRecordedVolume(VolumeSpec::FromPersistentVolume(volume, false)));
  ASSERT_TRUE(spec.ok()) << spec.error().ToString();
  EXPECT_EQ(spec->name(), SpecName("pv-1"));
  EXPECT_FALSE(spec->migrated());
}

TEST(RecordedVolume, SaysWhyATextIsNoVolume) {
  for (const char* text : {"", "not json", "[]", "{}",
                           R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}})"}) {
    const auto spec = DecodeRecordedVolume(text);
    ASSERT_FALSE(spec.ok()) << text;
    EXPECT_EQ(spec.error().code(), Code::kDataLoss);
    EXPECT_NE(spec.error().message().find("snapshot is unreadable"), std::string::npos);
  }
}

}  // namespace
}  // namespace volumed
