// What a PersistentVolumeClaim asks for, and the selectors that storage objects use.
//
// Values; threads: any. Source: kubernetes core/v1 types.go@v1.36.2 (PersistentVolumeClaimSpec,
// NodeSelector), apimachinery meta/v1 (LabelSelector).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/quantity.h"
#include "kube/object_meta.h"

namespace volumed {

enum class AccessMode { kReadWriteOnce, kReadOnlyMany, kReadWriteMany, kReadWriteOncePod };
enum class VolumeMode { kFilesystem, kBlock };

enum class LabelOperator { kIn, kNotIn, kExists, kDoesNotExist };

struct LabelRequirement {
  std::string key;
  LabelOperator op = LabelOperator::kIn;
  std::vector<std::string> values;
  friend bool operator==(const LabelRequirement&, const LabelRequirement&) = default;
};

// A label set matches if every label and every requirement holds; an empty selector matches every
// set.
struct LabelSelector {
  StringMap match_labels;
  std::vector<LabelRequirement> match_expressions;
  friend bool operator==(const LabelSelector&, const LabelSelector&) = default;
};

enum class NodeOperator { kIn, kNotIn, kExists, kDoesNotExist, kGt, kLt };

struct NodeRequirement {
  std::string key;
  NodeOperator op = NodeOperator::kIn;
  std::vector<std::string> values;
  friend bool operator==(const NodeRequirement&, const NodeRequirement&) = default;
};

// A node matches if all requirements hold; a term without requirements matches no node.
struct NodeSelectorTerm {
  std::vector<NodeRequirement> match_expressions;  // over the node's labels
  std::vector<NodeRequirement> match_fields;       // metadata.name only
  friend bool operator==(const NodeSelectorTerm&, const NodeSelectorTerm&) = default;
};

// A node matches if at least one term holds.
struct NodeSelector {
  std::vector<NodeSelectorTerm> terms;
  friend bool operator==(const NodeSelector&, const NodeSelector&) = default;
};

// The storage that a claim asks for. The limit is kept as given; no volume is refused because of
// it.
struct StorageRequest {
  Quantity request;
  std::optional<Quantity> limit;
  friend bool operator==(const StorageRequest&, const StorageRequest&) = default;
};

struct PersistentVolumeClaimSpec {
  std::vector<AccessMode> access_modes;
  StorageRequest storage;
  std::optional<LabelSelector> selector;
  // Absent: the default class, if there is one. "": a volume without a class.
  std::optional<std::string> storage_class_name;
  std::optional<std::string> volume_attributes_class_name;
  std::string volume_name;
  VolumeMode volume_mode = VolumeMode::kFilesystem;
  std::string data_source_json;  // "" when absent; only a volume populator reads these two
  std::string data_source_ref_json;
  friend bool operator==(const PersistentVolumeClaimSpec&,
                         const PersistentVolumeClaimSpec&) = default;
};

// The claim template of a generic ephemeral volume.
struct PersistentVolumeClaimTemplate {
  StringMap labels;
  StringMap annotations;
  PersistentVolumeClaimSpec spec;
  friend bool operator==(const PersistentVolumeClaimTemplate&,
                         const PersistentVolumeClaimTemplate&) = default;
};

}  // namespace volumed
