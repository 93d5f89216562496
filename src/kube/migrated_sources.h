// The volume sources of clouds and storage systems that Kubernetes' own tree served once and for
// which a CSI driver does now, so that each is translated into a source of kind csi
// (volume/csi_translation.h). Their fields are declared as kube/volume_sources.h describes it.
//
// None of them names objects that a pod waits for: the Secrets of a translated volume are those of
// its csi source. What the translation does not use is kept as it was given.
//
// Values; threads: any. No function here blocks or fails; CheckSource() tells problems.
// Source: kubernetes staging/src/k8s.io/api/core/v1/types.go@v1.36.3 (VolumeSource), defaults
// pkg/apis/core/v1/defaults.go; names of drivers and plugins: csi-translation-lib@v0.36.3,
// plugins/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kube/payload_sources.h"
#include "kube/source_facts.h"
#include "kube/value_rules.h"

namespace volumed {

// A source that is translated: it names the CSI driver that replaces it, and Kubernetes' plugin
// which served it.
template <typename Source>
concept MigratedSource = requires {
  Source::kCsiDriver;
  Source::kInTreePlugin;
};

// The volume is an EBS volume of AWS.
struct AwsElasticBlockStoreVolumeSource {
  static constexpr char kKind[] = "awsElasticBlockStore";
  static constexpr char kCsiDriver[] = "ebs.csi.aws.com";
  static constexpr char kInTreePlugin[] = "kubernetes.io/aws-ebs";
  static constexpr SourceFacts kFacts{SourceRules::kOfSingleFields, SourceObjects::kNone,
                                      SourceStorage::kUnnamed};
  std::string volume_id;  // "vol-0123", or "aws://<zone>/vol-0123" with or without the zone
  std::string fs_type;    // "": the driver's default
  int32_t partition = 0;  // 0: the whole volume
  bool read_only = false;
  friend bool operator==(const AwsElasticBlockStoreVolumeSource&,
                         const AwsElasticBlockStoreVolumeSource&) = default;
};

template <typename V>
void Fields(V& v, AwsElasticBlockStoreVolumeSource& o) {
  v.Text("volumeID", o.volume_id, rules::kNotEmpty, Presence::kRequired);
  v.Text("fsType", o.fs_type);
  v.Number("partition", o.partition, rules::kPartition);
  v.Bool("readOnly", o.read_only);
}

// The volume is a persistent disk of Google Cloud.
struct GcePersistentDiskVolumeSource {
  static constexpr char kKind[] = "gcePersistentDisk";
  static constexpr char kCsiDriver[] = "pd.csi.storage.gke.io";
  static constexpr char kInTreePlugin[] = "kubernetes.io/gce-pd";
  static constexpr SourceFacts kFacts{SourceRules::kOfSingleFields, SourceObjects::kNone,
                                      SourceStorage::kUnnamed};
  std::string pd_name;    // the disk's name; its project and zone are not in the source
  std::string fs_type;    // "": the driver's default
  int32_t partition = 0;  // 0: the whole disk
  bool read_only = false;
  friend bool operator==(const GcePersistentDiskVolumeSource&,
                         const GcePersistentDiskVolumeSource&) = default;
};

template <typename V>
void Fields(V& v, GcePersistentDiskVolumeSource& o) {
  v.Text("pdName", o.pd_name, rules::kNotEmpty, Presence::kRequired);
  v.Text("fsType", o.fs_type);
  v.Number("partition", o.partition, rules::kPartition);
  v.Bool("readOnly", o.read_only);
}

// The volume is one of OpenStack Cinder. The secret was for the in-tree plugin; the driver has its
// own credentials.
template <typename SecretRef>
struct BasicCinderVolumeSource {
  static constexpr char kKind[] = "cinder";
  static constexpr char kCsiDriver[] = "cinder.csi.openstack.org";
  static constexpr char kInTreePlugin[] = "kubernetes.io/cinder";
  static constexpr SourceFacts kFacts{SourceRules::kOfSingleFields, SourceObjects::kNone,
                                      SourceStorage::kUnnamed};
  std::string volume_id;
  std::string fs_type;  // "": the driver's default
  bool read_only = false;
  std::optional<SecretRef> secret_ref;
  friend bool operator==(const BasicCinderVolumeSource&, const BasicCinderVolumeSource&) = default;
};
using CinderVolumeSource = BasicCinderVolumeSource<LocalObjectReference>;
using CinderPersistentVolumeSource = BasicCinderVolumeSource<SecretReference>;

template <typename V, typename SecretRef>
void Fields(V& v, BasicCinderVolumeSource<SecretRef>& o) {
  v.Text("volumeID", o.volume_id, rules::kNotEmpty, Presence::kRequired);
  v.Text("fsType", o.fs_type);
  v.Bool("readOnly", o.read_only);
  v.Maybe("secretRef", o.secret_ref);
}

// How the host caches what is read from and written to an Azure disk.
enum class AzureDataDiskCachingMode { kNone, kReadOnly, kReadWrite };
// Where an Azure disk is: a blob in an account with others, a blob in an account of its own, or a
// managed disk. Only managed disks have a CSI driver.
enum class AzureDataDiskKind { kShared, kDedicated, kManaged };

// The volume is a disk of Azure. Its defaults are those of the API server: a manifest that names no
// kind is about a shared blob.
struct AzureDiskVolumeSource {
  static constexpr char kKind[] = "azureDisk";
  static constexpr char kCsiDriver[] = "disk.csi.azure.com";
  static constexpr char kInTreePlugin[] = "kubernetes.io/azure-disk";
  static constexpr SourceFacts kFacts{SourceRules::kOverFields, SourceObjects::kNone,
                                      SourceStorage::kUnnamed};
  std::string disk_name;
  std::string disk_uri;  // "/subscriptions/..." of a managed disk, "https://..." of a blob
  AzureDataDiskCachingMode caching_mode = AzureDataDiskCachingMode::kReadWrite;
  // A manifest may say "", which differs from leaving it out: then the driver decides. Nullopt is
  // what no manifest gives.
  std::optional<std::string> fs_type = "ext4";
  bool read_only = false;
  AzureDataDiskKind kind = AzureDataDiskKind::kShared;
  friend bool operator==(const AzureDiskVolumeSource&, const AzureDiskVolumeSource&) = default;
};

template <typename V>
void Fields(V& v, AzureDiskVolumeSource& o) {
  v.Text("diskName", o.disk_name, rules::kNotEmpty, Presence::kRequired);
  v.Text("diskURI", o.disk_uri, rules::kNotEmpty, Presence::kRequired);
  v.Enum("cachingMode", o.caching_mode);
  v.Text("fsType", o.fs_type);
  v.Bool("readOnly", o.read_only);
  v.Enum("kind", o.kind);
}

// The kind of disk and the form of its URI agree.
void CheckSource(const AzureDiskVolumeSource& source, const std::string& path,
                 ProblemSink& problems);

// The volume is a file share of Azure. The Secret, which has the account's key, is in the pod's
// namespace.
struct AzureFileVolumeSource {
  static constexpr char kKind[] = "azureFile";
  static constexpr char kCsiDriver[] = "file.csi.azure.com";
  static constexpr char kInTreePlugin[] = "kubernetes.io/azure-file";
  static constexpr SourceFacts kFacts{SourceRules::kOfSingleFields, SourceObjects::kNone,
                                      SourceStorage::kUnnamed};
  std::string secret_name;
  std::string share_name;
  bool read_only = false;
  friend bool operator==(const AzureFileVolumeSource&, const AzureFileVolumeSource&) = default;
};

template <typename V>
void Fields(V& v, AzureFileVolumeSource& o) {
  v.Text("secretName", o.secret_name, rules::kDnsSubdomain, Presence::kRequired);
  v.Text("shareName", o.share_name, rules::kNotEmpty, Presence::kRequired);
  v.Bool("readOnly", o.read_only);
}

// The same in a PersistentVolume.
struct AzureFilePersistentVolumeSource {
  static constexpr char kKind[] = "azureFile";
  static constexpr char kCsiDriver[] = "file.csi.azure.com";
  static constexpr char kInTreePlugin[] = "kubernetes.io/azure-file";
  static constexpr SourceFacts kFacts{SourceRules::kOverFields, SourceObjects::kNone,
                                      SourceStorage::kUnnamed};
  std::string secret_name;
  std::string share_name;
  bool read_only = false;
  // Absent: that of the claim.
  std::optional<std::string> secret_namespace;
  friend bool operator==(const AzureFilePersistentVolumeSource&,
                         const AzureFilePersistentVolumeSource&) = default;
};

template <typename V>
void Fields(V& v, AzureFilePersistentVolumeSource& o) {
  v.Text("secretName", o.secret_name, rules::kDnsSubdomain, Presence::kRequired);
  v.Text("shareName", o.share_name, rules::kNotEmpty, Presence::kRequired);
  v.Bool("readOnly", o.read_only);
  v.Text("secretNamespace", o.secret_namespace, rules::kDnsLabel);
}

// A namespace that is there is not empty.
void CheckSource(const AzureFilePersistentVolumeSource& source, const std::string& path,
                 ProblemSink& problems);

// The volume is a virtual disk of vSphere.
struct VsphereVirtualDiskVolumeSource {
  static constexpr char kKind[] = "vsphereVolume";
  static constexpr char kCsiDriver[] = "csi.vsphere.vmware.com";
  static constexpr char kInTreePlugin[] = "kubernetes.io/vsphere-volume";
  static constexpr SourceFacts kFacts{SourceRules::kOfSingleFields, SourceObjects::kNone,
                                      SourceStorage::kUnnamed};
  std::string volume_path;  // "[datastore] path/disk.vmdk"
  std::string fs_type;      // "": the driver's default
  std::string storage_policy_name;
  std::string storage_policy_id;
  friend bool operator==(const VsphereVirtualDiskVolumeSource&,
                         const VsphereVirtualDiskVolumeSource&) = default;
};

template <typename V>
void Fields(V& v, VsphereVirtualDiskVolumeSource& o) {
  v.Text("volumePath", o.volume_path, rules::kNotEmpty, Presence::kRequired);
  v.Text("fsType", o.fs_type);
  v.Text("storagePolicyName", o.storage_policy_name);
  v.Text("storagePolicyID", o.storage_policy_id);
}

// The volume is one of Portworx.
struct PortworxVolumeSource {
  static constexpr char kKind[] = "portworxVolume";
  static constexpr char kCsiDriver[] = "pxd.portworx.com";
  static constexpr char kInTreePlugin[] = "kubernetes.io/portworx-volume";
  static constexpr SourceFacts kFacts{SourceRules::kOfSingleFields, SourceObjects::kNone,
                                      SourceStorage::kUnnamed};
  std::string volume_id;
  std::string fs_type;  // "": the driver's default
  bool read_only = false;
  friend bool operator==(const PortworxVolumeSource&, const PortworxVolumeSource&) = default;
};

template <typename V>
void Fields(V& v, PortworxVolumeSource& o) {
  v.Text("volumeID", o.volume_id, rules::kNotEmpty, Presence::kRequired);
  v.Text("fsType", o.fs_type);
  v.Bool("readOnly", o.read_only);
}

}  // namespace volumed
