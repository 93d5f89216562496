// What a claim names as the source of its data (spec.dataSource, spec.dataSourceRef).
// Source: kubernetes core/v1 types.go@v1.36.2 (TypedLocalObjectReference, TypedObjectReference).
//
// Threads: any. Blocks: never.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "kube/claim_spec.h"

namespace volumed {

struct DataSource {
  std::string api_group;  // "": the core group, which has claims
  std::string kind;
  std::string name;
  std::string name_space;  // "": the claim's own
  friend bool operator==(const DataSource&, const DataSource&) = default;
};

// Nullopt if the claim names none. An API server gives both fields the same content; where only a
// manifest does, dataSourceRef counts. Errors, not applied: InvalidArgument for what is no
// reference.
Result<std::optional<DataSource>> DataSourceOf(const PersistentVolumeClaimSpec& claim);

}  // namespace volumed
