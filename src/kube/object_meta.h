// Metadata that every Kubernetes object has, such as its name.
//
// Values; threads: any. Source: kubernetes apimachinery pkg/apis/meta/v1/types.go@v1.36.2.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/quantity.h"

namespace volumed {

// Sorted, so that two equal maps print alike.
using StringMap = std::map<std::string, std::string>;
// Resource name ("memory", "hugepages-2Mi") -> amount.
using ResourceList = std::map<std::string, Quantity>;

// The object that owns another one. The owner has the namespace of the object that it owns, or
// none.
struct OwnerReference {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  // Whether the owner is the one that manages the object; only such an owner counts for a pod's
  // claim.
  bool controller = false;
  friend bool operator==(const OwnerReference&, const OwnerReference&) = default;
};

// An object's name, and what all kinds have in common. Times are unix milliseconds.
struct ObjectMeta {
  std::string name;
  std::string generate_name;           // for a template: the prefix of the names to be made
  std::string name_space = "default";  // "" for an object without a namespace
  // "" if the manifest names none. A pod, a PersistentVolume and a PersistentVolumeClaim have one
  // as soon as the catalog has them (ObjectIdentities); its text is a safe name for a directory.
  std::string uid;
  StringMap labels;
  StringMap annotations;
  // When the object was made. deletion_unix_millis is there if the object is being deleted.
  std::optional<int64_t> creation_unix_millis;
  std::optional<int64_t> deletion_unix_millis;
  std::optional<int64_t> deletion_grace_period_seconds;
  // What has to be done before a deleted object ends; each is named like a label.
  std::vector<std::string> finalizers;
  std::vector<OwnerReference> owner_references;
  friend bool operator==(const ObjectMeta&, const ObjectMeta&) = default;
};

// Metadata for a kind whose objects belong to no namespace.
inline ObjectMeta ClusterScopedMeta() {
  ObjectMeta meta;
  meta.name_space.clear();
  return meta;
}

}  // namespace volumed
