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

// The object that owns another one.
struct OwnerReference {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  bool controller = false;
  friend bool operator==(const OwnerReference&, const OwnerReference&) = default;
};

struct ObjectMeta {
  std::string name;
  std::string generate_name;           // for a template: the prefix of the names to be made
  std::string name_space = "default";  // "" for an object without a namespace
  std::string uid;
  StringMap labels;
  StringMap annotations;
  std::optional<int64_t> creation_unix_millis;
  std::optional<int64_t> deletion_unix_millis;
  std::optional<int64_t> deletion_grace_period_seconds;
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
