// Manifests of a claim "data" whose volume the hostPath provisioner makes, and deletes with it.
#pragma once

#include <string>

namespace volumed {

inline std::string ProvisionedClaim() {
  return "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: made}\n"
         "provisioner: kubernetes.io/host-path\nreclaimPolicy: Delete\n---\n"
         "apiVersion: v1\nkind: PersistentVolumeClaim\n"
         "metadata: {name: data, namespace: default}\nspec:\n  accessModes: [ReadWriteOnce]\n"
         "  storageClassName: made\n  resources: {requests: {storage: 100Mi}}\n";
}

}  // namespace volumed
