#include "volume/csi_translation.h"

#include <algorithm>
#include <set>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/strings.h"
#include "kube/storage_enums.h"
#include "kube/value_rules.h"
#include "volume/csi_topology.h"

namespace volumed {
namespace {

// What a driver's node affinity calls zone and region; others have no key of their own.
constexpr char kEbsZone[] = "topology.ebs.csi.aws.com/zone";
constexpr char kPdZone[] = "topology.gke.io/zone";
constexpr char kCinderZone[] = "topology.cinder.csi.openstack.org/zone";
constexpr char kVsphereZone[] = "topology.csi.vmware.com/zone";
constexpr char kVsphereRegion[] = "topology.csi.vmware.com/region";

// Annotations of a PersistentVolume that belong to its in-tree source.
constexpr char kAzureResourceGroup[] = "kubernetes.io/azure-file-resource-group";
constexpr char kPortworxSecretName[] = "openstorage.io/auth-secret-name";
constexpr char kPortworxSecretNamespace[] = "openstorage.io/auth-secret-namespace";

constexpr char kDefaultSecretNamespace[] = "default";

Error Invalid(const std::string& why) { return Error::NotApplied(Code::kInvalidArgument, why); }

template <typename Source>
CsiPersistentVolumeSource CsiSource(const Source&, std::string volume_handle) {
  CsiPersistentVolumeSource csi;
  csi.driver = Source::kCsiDriver;
  csi.volume_handle = std::move(volume_handle);
  return csi;
}

std::string AnnotationOf(const PersistentVolume& volume, const char* name) {
  const auto found = volume.metadata.annotations.find(name);
  return found == volume.metadata.annotations.end() ? "" : found->second;
}

// ---- what inline and persistent volumes have in common -----------------------------------------

// "aws://<zone>/vol-0123" -> "vol-0123"; an id without that scheme is taken as it is. What a URL
// would treat specially (an escape, a query) is in no id that AWS gives, and is refused.
Result<std::string> EbsVolumeId(const std::string& volume_id) {
  const std::optional<std::string_view> rest = StripPrefix(volume_id, "aws://");
  if (!rest) return volume_id;
  std::string_view id = rest->substr(std::min(rest->find('/'), rest->size()));
  while (id.starts_with('/')) id.remove_prefix(1);
  while (id.ends_with('/')) id.remove_suffix(1);
  const bool special = std::any_of(rest->begin(), rest->end(), [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == '\x7f' || c == '%' || c == '?' || c == '#';
  });
  if (special || !id.starts_with("vol-") || id.find('/') != std::string_view::npos) {
    return Invalid("volumeID " + volume_id + " is not of the form aws://<zone>/vol-<id>");
  }
  return std::string(id);
}

Result<CsiPersistentVolumeSource> ToCsi(const AwsElasticBlockStoreVolumeSource& source) {
  ASSIGN_OR_RETURN(std::string id, EbsVolumeId(source.volume_id));
  CsiPersistentVolumeSource csi = CsiSource(source, std::move(id));
  csi.fs_type = source.fs_type;
  csi.read_only = source.read_only;
  csi.volume_attributes["partition"] = std::to_string(source.partition);
  return csi;
}

// Where a disk is of which nobody says it.
constexpr char kSomewhere[] = "zones/UNSPECIFIED";

// `location` is "zones/<zone>" or "regions/<region>". The driver finds out what is UNSPECIFIED.
CsiPersistentVolumeSource ToCsi(const GcePersistentDiskVolumeSource& source,
                                const std::string& location) {
  CsiPersistentVolumeSource csi =
      CsiSource(source, "projects/UNSPECIFIED/" + location + "/disks/" + source.pd_name);
  csi.fs_type = source.fs_type;
  csi.read_only = source.read_only;
  csi.volume_attributes["partition"] =
      source.partition == 0 ? "" : std::to_string(source.partition);
  return csi;
}

template <typename SecretRef>
Result<CsiPersistentVolumeSource> ToCsi(const BasicCinderVolumeSource<SecretRef>& source) {
  CsiPersistentVolumeSource csi = CsiSource(source, source.volume_id);
  csi.fs_type = source.fs_type;
  csi.read_only = source.read_only;
  return csi;
}

Result<CsiPersistentVolumeSource> ToCsi(const AzureDiskVolumeSource& source) {
  if (source.kind != AzureDataDiskKind::kManaged) {
    return Invalid("it is a disk of kind " + std::string(EnumText(source.kind)) +
                   ", a blob, and the driver has Managed ones alone");
  }
  CsiPersistentVolumeSource csi = CsiSource(source, source.disk_uri);
  csi.read_only = source.read_only;
  csi.volume_attributes = {{"kind", "Managed"},
                           {"cachingmode", std::string(EnumText(source.caching_mode))}};
  if (source.fs_type) {
    csi.fs_type = *source.fs_type;
    csi.volume_attributes["fstype"] = *source.fs_type;
  }
  return csi;
}

// "azure-storage-account-<account>-secret" -> "<account>"; any other name is the account's itself.
std::string AzureAccountOf(const std::string& secret_name) {
  constexpr std::string_view kBefore = "azure-storage-account-";
  constexpr std::string_view kAfter = "-secret";
  const size_t before = secret_name.find(kBefore);
  const size_t after = secret_name.rfind(kAfter);
  if (before == std::string::npos || after == std::string::npos) return secret_name;
  const size_t begin = before + kBefore.size();
  return after <= begin ? secret_name : secret_name.substr(begin, after - begin);
}

template <typename Source>
CsiPersistentVolumeSource AzureFileToCsi(const Source& source, const std::string& resource_group,
                                         const std::string& volume_name,
                                         const std::string& secret_namespace) {
  CsiPersistentVolumeSource csi = CsiSource(
      source, Join(std::vector<std::string>{resource_group, AzureAccountOf(source.secret_name),
                                            source.share_name, volume_name, secret_namespace},
                   "#"));
  csi.read_only = source.read_only;
  csi.volume_attributes["sharename"] = source.share_name;
  csi.node_stage_secret_ref = SecretReference{source.secret_name, secret_namespace};
  return csi;
}

Result<CsiPersistentVolumeSource> ToCsi(const VsphereVirtualDiskVolumeSource& source) {
  CsiPersistentVolumeSource csi = CsiSource(source, source.volume_path);
  csi.fs_type = source.fs_type;
  if (!source.storage_policy_name.empty()) {
    csi.volume_attributes["storagepolicyname"] = source.storage_policy_name;
  }
  return csi;
}

// Whether it is read-only is said by the access mode of an inline volume, and else not at all.
Result<CsiPersistentVolumeSource> ToCsi(const PortworxVolumeSource& source) {
  CsiPersistentVolumeSource csi = CsiSource(source, source.volume_id);
  csi.fs_type = source.fs_type;
  return csi;
}

// ---- persistent volumes ------------------------------------------------------------------------

// What a source needs of the volume around it. The first is for those that need nothing.
template <typename Source>
Result<CsiPersistentVolumeSource> OfVolume(const Source& source, const PersistentVolume&) {
  return ToCsi(source);
}

// "us-central1-a", "us-central1-b" -> "us-central1".
Result<std::string> GceRegionOf(const std::vector<std::string>& zones) {
  std::set<std::string> regions;
  for (const std::string& zone : zones) {
    if (std::count(zone.begin(), zone.end(), '-') != 2) {
      return Invalid("the zone \"" + zone + "\" in its label is not of the form <area>-<region>-" +
                     "<zone>");
    }
    regions.insert(zone.substr(0, zone.rfind('-')));
  }
  if (regions.size() == 1) return *regions.begin();
  return Invalid("the zones in its label are of several regions: " + Join(regions, ", "));
}

Result<std::string> GceLocationOf(const PersistentVolume& volume) {
  // Unlike for the node affinity, the beta label goes first here.
  const StringMap& labels = volume.metadata.labels;
  auto label = labels.find(kBetaZoneLabel);
  if (label == labels.end() || label->second.empty()) label = labels.find(kZoneLabel);
  if (label == labels.end() || label->second.empty()) return std::string(kSomewhere);
  const std::vector<std::string> zones = ZonesOf(label->second);
  if (zones.size() == 1) return "zones/" + zones.front();
  ASSIGN_OR_RETURN(const std::string region, GceRegionOf(zones));
  return "regions/" + region;
}

Result<CsiPersistentVolumeSource> OfVolume(const GcePersistentDiskVolumeSource& source,
                                           const PersistentVolume& volume) {
  ASSIGN_OR_RETURN(const std::string location, GceLocationOf(volume));
  return ToCsi(source, location);
}

Result<CsiPersistentVolumeSource> OfVolume(const AzureFilePersistentVolumeSource& source,
                                           const PersistentVolume& volume) {
  std::string secret_namespace;
  if (source.secret_namespace) {
    secret_namespace = *source.secret_namespace;
  } else if (volume.spec.claim_ref) {
    secret_namespace = volume.spec.claim_ref->name_space;
  }
  if (secret_namespace.empty()) {
    return Invalid(
        "nothing says in which namespace its Secret is: it has neither secretNamespace "
        "nor a claimRef");
  }
  return AzureFileToCsi(source, AnnotationOf(volume, kAzureResourceGroup), volume.metadata.name,
                        secret_namespace);
}

// The Secret that two annotations name; nullopt unless both are there.
Result<std::optional<SecretReference>> PortworxSecretOf(const PersistentVolume& volume) {
  const StringMap& annotations = volume.metadata.annotations;
  if (!annotations.contains(kPortworxSecretName) ||
      !annotations.contains(kPortworxSecretNamespace)) {
    return std::optional<SecretReference>();
  }
  SecretReference secret{AnnotationOf(volume, kPortworxSecretName),
                         AnnotationOf(volume, kPortworxSecretNamespace)};
  if (rules::kDnsSubdomain.broken(secret.name) || rules::kDnsLabel.broken(secret.name_space)) {
    return Invalid(std::string("its annotations ") + kPortworxSecretName + " and " +
                   kPortworxSecretNamespace + " are no name of a Secret and its namespace");
  }
  return std::optional<SecretReference>(std::move(secret));
}

Result<CsiPersistentVolumeSource> OfVolume(const PortworxVolumeSource& source,
                                           const PersistentVolume& volume) {
  ASSIGN_OR_RETURN(CsiPersistentVolumeSource csi, ToCsi(source));
  ASSIGN_OR_RETURN(const std::optional<SecretReference> secret, PortworxSecretOf(volume));
  csi.controller_publish_secret_ref = secret;
  csi.node_stage_secret_ref = secret;
  csi.node_publish_secret_ref = secret;
  csi.controller_expand_secret_ref = secret;
  csi.node_expand_secret_ref = secret;
  return csi;
}

// What else of the volume changes with its source. The first is for those of which nothing does.
template <typename Source>
void Adapt(const Source&, PersistentVolume&) {}

void Adapt(const AwsElasticBlockStoreVolumeSource&, PersistentVolume& volume) {
  TranslateZone(kEbsZone, volume);
}

template <typename SecretRef>
void Adapt(const BasicCinderVolumeSource<SecretRef>&, PersistentVolume& volume) {
  TranslateZone(kCinderZone, volume);
}

void Adapt(const VsphereVirtualDiskVolumeSource&, PersistentVolume& volume) {
  TranslateZoneAndRegion(kVsphereZone, kVsphereRegion, volume);
}

// The in-tree plugin attached a disk for one node whatever the modes were; the driver refuses
// ReadWriteMany, and ReadWriteOnce together with ReadOnlyMany. ReadWriteOncePod stays, unlike in
// Kubernetes, where the scheduler sees to it by the claim: here the volume's modes are what keeps a
// second pod out.
void Adapt(const GcePersistentDiskVolumeSource&, PersistentVolume& volume) {
  TranslateZone(kPdZone, volume);
  std::vector<AccessMode>& modes = volume.spec.access_modes;
  if (modes.empty() || modes == std::vector{AccessMode::kReadWriteOncePod}) return;
  const bool only_read = std::all_of(modes.begin(), modes.end(), [](AccessMode mode) {
    return mode == AccessMode::kReadOnlyMany;
  });
  modes = {only_read ? AccessMode::kReadOnlyMany : AccessMode::kReadWriteOnce};
}

template <MigratedSource Source>
Result<VolumeSpec> TranslateVolume(const Source& source, const VolumeSpec& spec) {
  PersistentVolume volume = *spec.persistent_volume();
  ASSIGN_OR_RETURN(CsiPersistentVolumeSource csi, OfVolume(source, volume));
  Adapt(source, volume);
  volume.spec.source = std::move(csi);
  return VolumeSpec::FromPersistentVolume(std::move(volume), spec.read_only()).WithCsiMigration();
}

// ---- inline volumes ----------------------------------------------------------------------------

// What stands in for an inline volume: a csi source, and what the volume around it would say.
struct StandIn {
  CsiPersistentVolumeSource csi;
  std::string name;
  AccessMode mode = AccessMode::kReadWriteOnce;
};

// The name of most: what the staging directory is called must be unique for the storage.
std::string NameByDriver(const CsiPersistentVolumeSource& csi, const std::string& storage) {
  return csi.driver + "-" + storage;
}

AccessMode OneNodeUnless(bool read_only) {
  return read_only ? AccessMode::kReadOnlyMany : AccessMode::kReadWriteOnce;
}

// The first is for those sources that stand in as their handles say.
template <typename Source>
Result<StandIn> OfInline(const Source& source, const std::string& /*volume_name*/,
                         const std::string& /*pod_namespace*/) {
  ASSIGN_OR_RETURN(CsiPersistentVolumeSource csi, ToCsi(source));
  std::string name = NameByDriver(csi, csi.volume_handle);
  return StandIn{std::move(csi), std::move(name)};
}

Result<StandIn> OfInline(const GcePersistentDiskVolumeSource& source, const std::string&,
                         const std::string&) {
  CsiPersistentVolumeSource csi = ToCsi(source, kSomewhere);
  std::string name = NameByDriver(csi, source.pd_name);
  return StandIn{std::move(csi), std::move(name), OneNodeUnless(source.read_only)};
}

Result<StandIn> OfInline(const AzureDiskVolumeSource& source, const std::string&,
                         const std::string&) {
  ASSIGN_OR_RETURN(CsiPersistentVolumeSource csi, ToCsi(source));
  return StandIn{std::move(csi), source.disk_uri};
}

Result<StandIn> OfInline(const AzureFileVolumeSource& source, const std::string& volume_name,
                         const std::string& pod_namespace) {
  CsiPersistentVolumeSource csi = AzureFileToCsi(
      source, "", volume_name, pod_namespace.empty() ? kDefaultSecretNamespace : pod_namespace);
  std::string name = csi.volume_handle;
  return StandIn{std::move(csi), std::move(name), AccessMode::kReadWriteMany};
}

Result<StandIn> OfInline(const PortworxVolumeSource& source, const std::string&,
                         const std::string&) {
  ASSIGN_OR_RETURN(CsiPersistentVolumeSource csi, ToCsi(source));
  std::string name = NameByDriver(csi, csi.volume_handle);
  return StandIn{std::move(csi), std::move(name), OneNodeUnless(source.read_only)};
}

template <MigratedSource Source>
Result<VolumeSpec> TranslateInline(const Source& source, const std::string& volume_name,
                                   const std::string& pod_namespace) {
  ASSIGN_OR_RETURN(StandIn stand_in, OfInline(source, volume_name, pod_namespace));
  PersistentVolume volume;
  volume.metadata.name = std::move(stand_in.name);
  volume.spec.source = std::move(stand_in.csi);
  volume.spec.access_modes = {stand_in.mode};
  return VolumeSpec::FromPersistentVolume(std::move(volume), false).WithInlineForCsiMigration();
}

// ---- all of them -------------------------------------------------------------------------------

template <typename Source>
void AddMigrated(std::vector<MigratedPlugin>& plugins) {
  if constexpr (MigratedSource<Source>) {
    plugins.push_back({Source::kInTreePlugin, Source::kCsiDriver});
  }
}

template <typename... Sources>
std::vector<MigratedPlugin> MigratedOf(std::type_identity<std::variant<Sources...>>) {
  std::vector<MigratedPlugin> plugins;
  (AddMigrated<Sources>(plugins), ...);
  return plugins;
}

// The translation, whose error names volume and driver.
template <MigratedSource Source>
Result<VolumeSpec> ForDriver(Result<VolumeSpec> translated, const VolumeSpec& spec) {
  return std::move(translated)
      .With(spec.Display() + " cannot be given to the CSI driver " + Source::kCsiDriver);
}

}  // namespace

std::optional<Result<VolumeSpec>> TranslateToCsi(const VolumeSpec& spec,
                                                 const std::string& pod_namespace) {
  using Answer = std::optional<Result<VolumeSpec>>;
  const auto of_inline = [&]<typename Source>(const Source& source) -> Answer {
    if constexpr (MigratedSource<Source>) {
      return ForDriver<Source>(TranslateInline(source, spec.name().str(), pod_namespace), spec);
    } else {
      return std::nullopt;
    }
  };
  const auto of_volume = [&]<typename Source>(const Source& source) -> Answer {
    if constexpr (MigratedSource<Source>) {
      return ForDriver<Source>(TranslateVolume(source, spec), spec);
    } else {
      return std::nullopt;
    }
  };
  if (spec.volume() != nullptr) return std::visit(of_inline, spec.volume()->source);
  if (spec.persistent_volume() == nullptr) return std::nullopt;
  return std::visit(of_volume, spec.persistent_volume()->spec.source);
}

VolumeSpec AsUsed(const VolumeSpec& spec) {
  std::optional<Result<VolumeSpec>> translated = TranslateToCsi(spec, "");
  if (!translated || !translated->ok()) return spec;
  return std::move(*translated).value();
}

const std::vector<MigratedPlugin>& MigratedPlugins() {
  static const std::vector<MigratedPlugin> plugins =
      MigratedOf(std::type_identity<PersistentVolumeSource>());
  return plugins;
}

}  // namespace volumed
