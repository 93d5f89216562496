#include "kube/objects.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace volumed {
namespace {

constexpr std::array<std::pair<ObjectKind, std::string_view>, 4> kKindNames = {{
    {ObjectKind::kPod, "Pod"},
    {ObjectKind::kSecret, "Secret"},
    {ObjectKind::kConfigMap, "ConfigMap"},
    {ObjectKind::kNode, "Node"},
}};

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

struct SourceKind {
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

bool operator==(const SecretObject& a, const SecretObject& b) {
  return a.metadata == b.metadata && a.type == b.type && a.immutable == b.immutable &&
         std::equal(a.data.begin(), a.data.end(), b.data.begin(), b.data.end(),
                    [](const auto& x, const auto& y) {
                      return x.first == y.first && x.second.Reveal() == y.second.Reveal();
                    });
}

std::string_view ObjectKindName(ObjectKind kind) {
  for (const auto& [value, name] : kKindNames) {
    if (value == kind) return name;
  }
  return "";  // unreachable: the table names every kind
}

std::optional<ObjectKind> ParseObjectKind(std::string_view name) {
  const std::string lower = Lower(name);
  for (const auto& [kind, kind_name] : kKindNames) {
    const std::string known = Lower(kind_name);
    if (lower == known || lower == known + "s") return kind;
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
  struct Kind {
    ObjectKind operator()(const Pod&) const { return ObjectKind::kPod; }
    ObjectKind operator()(const SecretObject&) const { return ObjectKind::kSecret; }
    ObjectKind operator()(const ConfigMapObject&) const { return ObjectKind::kConfigMap; }
    ObjectKind operator()(const NodeObject&) const { return ObjectKind::kNode; }
  };
  return std::visit(Kind(), object);
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
