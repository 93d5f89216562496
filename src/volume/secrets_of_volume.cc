#include "volume/secrets_of_volume.h"

#include <variant>

namespace volumed {

std::optional<SecretReference> DeletionSecretOf(const PersistentVolume& volume) {
  const StringMap& annotations = volume.metadata.annotations;
  const auto name = annotations.find(kDeletionSecretName);
  const auto name_space = annotations.find(kDeletionSecretNamespace);
  if (name == annotations.end() || name_space == annotations.end() || name->second.empty() ||
      name_space->second.empty()) {
    return std::nullopt;
  }
  return SecretReference{name->second, name_space->second};
}

std::set<ObjectKey> SecretsNamedBy(const PersistentVolume& volume) {
  const auto* source = std::get_if<CsiPersistentVolumeSource>(&volume.spec.source);
  if (source == nullptr) return {};
  std::set<ObjectKey> secrets;
  const auto add = [&secrets](const std::optional<SecretReference>& secret) {
    if (secret) secrets.insert({ObjectKind::kSecret, secret->name_space, secret->name});
  };
  add(DeletionSecretOf(volume));
  add(source->controller_publish_secret_ref);
  add(source->node_stage_secret_ref);
  add(source->node_publish_secret_ref);
  add(source->controller_expand_secret_ref);
  add(source->node_expand_secret_ref);
  return secrets;
}

}  // namespace volumed
