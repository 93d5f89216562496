// The Secrets that a persistent volume names for calls to its driver.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "kube/objects.h"
#include "volume/volume_spec.h"

namespace volumed {

// Annotations of a PersistentVolume that was made by a driver; by them its deletion finds the
// Secret with which it was made. Source: external-provisioner@v6.1 pkg/controller/controller.go.
inline constexpr char kDeletionSecretName[] =
    "volume.kubernetes.io/provisioner-deletion-secret-name";
inline constexpr char kDeletionSecretNamespace[] =
    "volume.kubernetes.io/provisioner-deletion-secret-namespace";

// Threads: any. Blocks: never. Errors: none.

// The Secret with which the volume was made and is deleted; nullopt if its annotations name none.
std::optional<SecretReference> DeletionSecretOf(const PersistentVolume& volume);

// All Secrets of a volume of a CSI driver: by one of them it is made and deleted, by the others it
// is attached, staged, published and made larger. Empty for a volume of another kind.
std::set<ObjectKey> SecretsNamedBy(const PersistentVolume& volume);

// What a driver may have been sent for its volumes that nobody is to see.
struct SentSecrets {
  std::set<ObjectKey> objects;          // of which the content was sent
  std::set<std::string> mount_options;  // which may have passwords
  friend bool operator==(const SentSecrets&, const SentSecrets&) = default;
};
using SentSecretsByDriver = std::map<std::string, SentSecrets>;

// Adds what the volume's driver may have been sent for it; `pod_namespace` is that of the pod that
// has an inline volume. Nothing for a volume of another kind.
void AddSentSecrets(const VolumeSpec& volume, const std::string& pod_namespace,
                    SentSecretsByDriver& sent);

}  // namespace volumed
