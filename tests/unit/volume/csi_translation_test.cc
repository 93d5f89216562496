// The translation of in-tree sources: what Kubernetes' own library makes of the same volumes, which
// testdata/csi_translation.json holds, and where this program differs from it.
#include "volume/csi_translation.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kube/decode.h"
#include "places.h"

namespace volumed {
namespace {

using Json = nlohmann::json;

Json Cases() {
  std::ifstream file(SourcePath("tests/unit/volume/testdata/csi_translation.json"));
  return Json::parse(file).at("cases");
}

Object DecodeJson(const Json& json) {
  const ManifestDecode decode = DecodeManifest("case", json.dump());
  for (const DecodeProblem& problem : decode.problems) ADD_FAILURE() << problem.ToString();
  return decode.objects.size() == 1 ? decode.objects.front().object : Object();
}

// Whichever of the two the case is about.
VolumeSpec SpecOf(const Json& one) {
  if (one.contains("volume_object")) {
    return VolumeSpec::FromPersistentVolume(
        std::get<PersistentVolume>(DecodeJson(one.at("volume_object"))), false);
  }
  const Json pod = {{"apiVersion", "v1"},
                    {"kind", "Pod"},
                    {"metadata", {{"name", "p"}}},
                    {"spec", {{"containers", {{{"name", "c"}}}}, {"volumes", {one.at("volume")}}}}};
  return VolumeSpec::FromVolume(std::get<Pod>(DecodeJson(pod)).spec.volumes.front());
}

// The volume that the library has made. That of an inline one has a name that no object may have,
// and no capacity.
PersistentVolume ExpectedOf(const Json& one) {
  Json manifest = one.at("out");
  const std::string name = manifest.at("metadata").at("name").get<std::string>();
  manifest["apiVersion"] = "v1";
  manifest["kind"] = "PersistentVolume";
  manifest["metadata"]["name"] = "name";
  const bool is_inline = !manifest.at("spec").contains("capacity");
  if (is_inline) manifest["spec"]["capacity"]["storage"] = "1";
  PersistentVolume volume = std::get<PersistentVolume>(DecodeJson(manifest));
  volume.metadata.name = name;
  if (is_inline) volume.spec.capacity = Quantity();
  return volume;
}

void CheckCase(const Json& one) {
  const VolumeSpec spec = SpecOf(one);
  const bool is_inline = spec.volume() != nullptr;
  const auto translated = TranslateToCsi(spec, one.value("pod_namespace", ""));
  if (one.contains("not_translated")) {
    EXPECT_FALSE(translated.has_value());
    return;
  }
  ASSERT_TRUE(translated.has_value());
  if (one.contains("error")) {
    ASSERT_FALSE(translated->ok());
    EXPECT_EQ(translated->error().code(), Code::kInvalidArgument);
    EXPECT_EQ(translated->error().outcome(), Outcome::kNotApplied);
    return;
  }
  ASSERT_TRUE(translated->ok()) << translated->error().ToString();
  const VolumeSpec& csi = **translated;
  ASSERT_NE(csi.persistent_volume(), nullptr);
  const PersistentVolume expected = ExpectedOf(one);
  EXPECT_TRUE(*csi.persistent_volume() == expected)
      << EncodeObjectJson(Object(*csi.persistent_volume())) << "\nis not\n"
      << EncodeObjectJson(Object(expected));
  EXPECT_EQ(csi.name().str(), expected.metadata.name);
  EXPECT_TRUE(csi.migrated());
  EXPECT_EQ(csi.inline_for_csi_migration(), is_inline);
  EXPECT_FALSE(TranslateToCsi(csi, "shop").has_value()) << "it is translated once";
  EXPECT_FALSE(spec.migrated());
}

TEST(CsiTranslation, IsThatOfKubernetesForEachSource) {
  std::map<std::string, int> seen;
  for (const Json& one : Cases()) {
    SCOPED_TRACE(one.at("case").get<std::string>());
    CheckCase(one);
    const VolumeSpec spec = SpecOf(one);
    const bool is_inline = spec.volume() != nullptr;
    ++seen[(is_inline ? "inline " : "persistent ") +
           (is_inline ? VolumeSourceKind(spec.volume()->source)
                      : VolumeSourceKind(spec.persistent_volume()->spec.source))];
  }
  for (const char* kind :
       {"awsElasticBlockStore", "gcePersistentDisk", "cinder", "azureDisk", "azureFile",
        "vsphereVolume", "portworxVolume", "rbd", "glusterfs", "cephfs", "csi"}) {
    EXPECT_GT(seen[std::string("inline ") + kind], 0) << kind;
    EXPECT_GT(seen[std::string("persistent ") + kind], 0) << kind;
  }
}

PersistentVolume VolumeOf(PersistentVolumeSource source) {
  PersistentVolume volume;
  volume.metadata.name = "pv-1";
  volume.spec.source = std::move(source);
  volume.spec.access_modes = {AccessMode::kReadWriteOnce};
  return volume;
}

Result<VolumeSpec> Translated(PersistentVolume volume, bool read_only = false) {
  return TranslateToCsi(VolumeSpec::FromPersistentVolume(std::move(volume), read_only), "").value();
}

TEST(CsiTranslation, TheClaimsReadOnlyIsKept) {
  const auto read_only = Translated(VolumeOf(CinderPersistentVolumeSource()), true);
  ASSERT_TRUE(read_only.ok());
  EXPECT_TRUE(read_only->read_only());
  const auto writable = Translated(VolumeOf(CinderPersistentVolumeSource()));
  ASSERT_TRUE(writable.ok());
  EXPECT_FALSE(writable->read_only());
}

TEST(CsiTranslation, AnErrorNamesTheVolumeTheDriverAndWhatIsWrong) {
  AzureDiskVolumeSource blob;
  blob.disk_uri = "https://account/vhds/d.vhd";
  const auto inline_blob = TranslateToCsi(VolumeSpec::FromVolume({"data", blob}), "shop");
  ASSERT_TRUE(inline_blob.has_value());
  ASSERT_FALSE(inline_blob->ok());
  EXPECT_EQ(inline_blob->error().message(),
            "volume data (azureDisk) cannot be given to the CSI driver disk.csi.azure.com: it is a "
            "disk of kind Shared, a blob, and the driver has Managed ones alone");
  const auto no_namespace =
      Translated(VolumeOf(AzureFilePersistentVolumeSource{"s", "f", false, {}}));
  ASSERT_FALSE(no_namespace.ok());
  EXPECT_EQ(no_namespace.error().message(),
            "persistent volume pv-1 (azureFile) cannot be given to the CSI driver "
            "file.csi.azure.com: nothing says in which namespace its Secret is: it has neither "
            "secretNamespace nor a claimRef");
  PersistentVolume regional = VolumeOf(GcePersistentDiskVolumeSource{"disk", "", 0, false});
  regional.metadata.labels["topology.kubernetes.io/zone"] = "us-central1-a__us-east1-b";
  const auto two_regions = Translated(regional);
  ASSERT_FALSE(two_regions.ok());
  EXPECT_NE(two_regions.error().message().find("us-central1, us-east1"), std::string::npos);
}

// The library makes ReadWriteOnce of it, and leaves it to the scheduler that no second pod comes.
TEST(CsiTranslation, AGceDiskOfOnePodStaysThatOfOnePod) {
  PersistentVolume volume = VolumeOf(GcePersistentDiskVolumeSource{"disk", "", 0, false});
  volume.spec.access_modes = {AccessMode::kReadWriteOncePod};
  const auto csi = Translated(volume);
  ASSERT_TRUE(csi.ok());
  EXPECT_EQ(csi->persistent_volume()->spec.access_modes,
            std::vector{AccessMode::kReadWriteOncePod});
}

// The library ends the program that asks it this.
TEST(CsiTranslation, AnInlineVsphereVolumeMayHaveAStoragePolicy) {
  VsphereVirtualDiskVolumeSource source;
  source.volume_path = "[store] d.vmdk";
  source.storage_policy_name = "gold";
  const auto csi = TranslateToCsi(VolumeSpec::FromVolume({"data", source}), "shop");
  ASSERT_TRUE(csi.has_value());
  ASSERT_TRUE(csi->ok());
  const auto* translated = (*csi)->SourceAs<CsiPersistentVolumeSource>();
  ASSERT_NE(translated, nullptr);
  EXPECT_EQ(translated->volume_attributes, (StringMap{{"storagepolicyname", "gold"}}));
}

// The library reads it as a URL, and so "vol-1" of each.
TEST(CsiTranslation, AnEbsIdWithWhatAUrlTreatsSpeciallyIsRefused) {
  for (const char* id : {"aws://z/vol-1?x", "aws://z/vol-1#x", "aws://z/vol%2D1",
                         "aws://z%41/vol-1", "aws://z/vol-1\n", "aws://z/vol-1\x7f"}) {
    const auto csi = Translated(VolumeOf(AwsElasticBlockStoreVolumeSource{id, "", 0, false}));
    ASSERT_FALSE(csi.ok()) << id;
    EXPECT_EQ(csi.error().code(), Code::kInvalidArgument);
  }
}

// An annotation may say anything, and a csi source names an object.
TEST(CsiTranslation, AnnotationsThatNameNoSecretAreRefused) {
  PersistentVolume volume = VolumeOf(PortworxVolumeSource{"p-1", "", false});
  volume.metadata.annotations = {{"openstorage.io/auth-secret-name", "../token"},
                                 {"openstorage.io/auth-secret-namespace", "px"}};
  EXPECT_FALSE(Translated(volume).ok());
  volume.metadata.annotations = {{"openstorage.io/auth-secret-name", "token"},
                                 {"openstorage.io/auth-secret-namespace", ""}};
  EXPECT_FALSE(Translated(volume).ok());
}

TEST(CsiTranslation, PodsWithTheSameStorageHaveOneNameForIt) {
  const auto name = [](const char* volume, VolumeSource source) {
    return TranslateToCsi(VolumeSpec::FromVolume({volume, std::move(source)}), "shop")
        .value()
        .value()
        .name();
  };
  const CinderVolumeSource cinder{"c-1", "", false, {}};
  EXPECT_EQ(name("a", cinder), name("b", cinder));
  EXPECT_EQ(name("a", AwsElasticBlockStoreVolumeSource{"aws://z/vol-1", "", 0, false}),
            name("b", AwsElasticBlockStoreVolumeSource{"vol-1", "ext4", 1, true}));
  const AzureFileVolumeSource share{"s", "f", false};
  EXPECT_NE(name("a", share), name("b", share)) << "its handle has the volume's name";
}

TEST(CsiTranslation, EveryPluginThatKubernetesMigratesIsKnownWithItsDriver) {
  const std::vector<MigratedPlugin> expected = {
      {"kubernetes.io/aws-ebs", "ebs.csi.aws.com"},
      {"kubernetes.io/gce-pd", "pd.csi.storage.gke.io"},
      {"kubernetes.io/cinder", "cinder.csi.openstack.org"},
      {"kubernetes.io/azure-disk", "disk.csi.azure.com"},
      {"kubernetes.io/azure-file", "file.csi.azure.com"},
      {"kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"},
      {"kubernetes.io/portworx-volume", "pxd.portworx.com"},
  };
  EXPECT_EQ(MigratedPlugins(), expected);
}

}  // namespace
}  // namespace volumed
