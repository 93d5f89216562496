#include "kube/objects.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace volumed {
namespace {

struct KindFacts {
  ObjectKind kind;
  std::string_view name;
  std::string_view plural;      // lower case
  std::string_view short_name;  // kubectl's; "" where it has none
  std::string_view api_version;
  bool cluster_scoped;
};

constexpr std::string_view kCore = "v1";
constexpr std::string_view kStorage = "storage.k8s.io/v1";

constexpr std::array<KindFacts, kAllObjectKinds.size()> kKinds = {{
    {ObjectKind::kPod, "Pod", "pods", "po", kCore, false},
    {ObjectKind::kSecret, "Secret", "secrets", "", kCore, false},
    {ObjectKind::kConfigMap, "ConfigMap", "configmaps", "cm", kCore, false},
    {ObjectKind::kNode, "Node", "nodes", "no", kCore, true},
    {ObjectKind::kPersistentVolume, "PersistentVolume", "persistentvolumes", "pv", kCore, true},
    {ObjectKind::kPersistentVolumeClaim, "PersistentVolumeClaim", "persistentvolumeclaims", "pvc",
     kCore, false},
    {ObjectKind::kStorageClass, "StorageClass", "storageclasses", "sc", kStorage, true},
    {ObjectKind::kCsiDriver, "CSIDriver", "csidrivers", "", kStorage, true},
}};

const KindFacts& FactsOf(ObjectKind kind) { return kKinds.at(static_cast<size_t>(kind)); }

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

// Of inline volumes and of persistent ones.
struct SourceKind {
  std::string operator()(const LocalVolumeSource&) const { return "local"; }
  std::string operator()(const CsiPersistentVolumeSource&) const { return "csi"; }
  std::string operator()(const IscsiPersistentVolumeSource&) const { return "iscsi"; }
  std::string operator()(const FlexPersistentVolumeSource&) const { return "flexVolume"; }
  std::string operator()(const EmptyDirVolumeSource&) const { return "emptyDir"; }
  std::string operator()(const HostPathVolumeSource&) const { return "hostPath"; }
  std::string operator()(const SecretVolumeSource&) const { return "secret"; }
  std::string operator()(const ConfigMapVolumeSource&) const { return "configMap"; }
  std::string operator()(const DownwardApiVolumeSource&) const { return "downwardAPI"; }
  std::string operator()(const ProjectedVolumeSource&) const { return "projected"; }
  std::string operator()(const PersistentVolumeClaimVolumeSource&) const {
    return "persistentVolumeClaim";
  }
  std::string operator()(const EphemeralVolumeSource&) const { return "ephemeral"; }
  std::string operator()(const CsiVolumeSource&) const { return "csi"; }
  std::string operator()(const NfsVolumeSource&) const { return "nfs"; }
  std::string operator()(const IscsiVolumeSource&) const { return "iscsi"; }
  std::string operator()(const FcVolumeSource&) const { return "fc"; }
  std::string operator()(const FlexVolumeSource&) const { return "flexVolume"; }
  std::string operator()(const GitRepoVolumeSource&) const { return "gitRepo"; }
  std::string operator()(const ImageVolumeSource&) const { return "image"; }
  std::string operator()(const RemovedVolumeSource& source) const { return source.kind; }
};

}  // namespace

std::string VolumeSourceKind(const VolumeSource& source) {
  return std::visit(SourceKind(), source);
}

std::string VolumeSourceKind(const PersistentVolumeSource& source) {
  return std::visit(SourceKind(), source);
}

bool operator==(const SecretObject& a, const SecretObject& b) {
  return a.metadata == b.metadata && a.type == b.type && a.immutable == b.immutable &&
         std::equal(a.data.begin(), a.data.end(), b.data.begin(), b.data.end(),
                    [](const auto& x, const auto& y) {
                      return x.first == y.first && x.second.Reveal() == y.second.Reveal();
                    });
}

std::string_view ObjectKindName(ObjectKind kind) { return FactsOf(kind).name; }

std::string_view ApiVersionOf(ObjectKind kind) { return FactsOf(kind).api_version; }

bool IsClusterScoped(ObjectKind kind) { return FactsOf(kind).cluster_scoped; }

std::optional<ObjectKind> ParseObjectKind(std::string_view name) {
  const std::string lower = Lower(name);
  if (lower.empty()) return std::nullopt;
  for (const KindFacts& kind : kKinds) {
    if (lower == Lower(kind.name) || lower == kind.plural || lower == kind.short_name) {
      return kind.kind;
    }
  }
  return std::nullopt;
}

std::string ToString(const ObjectKey& key) {
  std::string text(ObjectKindName(key.kind));
  text += ' ';
  if (!key.name_space.empty()) text += key.name_space + '/';
  return text + key.name;
}

ObjectKind KindOf(const Object& object) {
  static_assert(std::variant_size_v<Object> == kAllObjectKinds.size());
  return kAllObjectKinds.at(object.index());
}

const ObjectMeta& MetaOf(const Object& object) {
  return std::visit([](const auto& o) -> const ObjectMeta& { return o.metadata; }, object);
}

ObjectMeta& MetaOf(Object& object) {
  return std::visit([](auto& o) -> ObjectMeta& { return o.metadata; }, object);
}

ObjectKey KeyOf(const Object& object) {
  const ObjectMeta& meta = MetaOf(object);
  return {KindOf(object), meta.name_space, meta.name};
}

}  // namespace volumed
