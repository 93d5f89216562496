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

void AddSentSecrets(const VolumeSpec& volume, const std::string& pod_namespace,
                    SentSecretsByDriver& sent) {
  if (const auto* source = volume.SourceAs<CsiVolumeSource>()) {
    SentSecrets& to = sent[source->driver];
    const auto& secret = source->node_publish_secret_ref;
    if (secret) to.objects.insert({ObjectKind::kSecret, pod_namespace, secret->name});
    return;
  }
  const auto* source = volume.SourceAs<CsiPersistentVolumeSource>();
  if (source == nullptr) return;
  const PersistentVolume& object = *volume.persistent_volume();
  SentSecrets& to = sent[source->driver];
  to.objects.merge(SecretsNamedBy(object));
  to.mount_options.insert(object.spec.mount_options.begin(), object.spec.mount_options.end());
}

}  // namespace volumed
