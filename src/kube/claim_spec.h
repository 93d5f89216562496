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

// A volume fits a claim if it offers every mode that the claim asks for (volume/claim_matcher.h).
// In one list, ReadWriteOncePod excludes all other modes.
enum class AccessMode { kReadWriteOnce, kReadOnlyMany, kReadWriteMany, kReadWriteOncePod };
// Containers get a directory, or the block device itself.
enum class VolumeMode { kFilesystem, kBlock };

// kNotIn holds as well for a set that does not have the label.
enum class LabelOperator { kIn, kNotIn, kExists, kDoesNotExist };

// There are values with kIn and kNotIn, and none with the other operators
// (kube/validate_storage.cc).
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

// kNotIn holds as well for a node that does not have the label. kGt and kLt compare integers, and
// do not hold if the label's value is none.
enum class NodeOperator { kIn, kNotIn, kExists, kDoesNotExist, kGt, kLt };

// There are values with kIn and kNotIn, none with kExists and kDoesNotExist, and one integer with
// kGt and kLt. In match_fields only kIn and kNotIn are possible, with one value.
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

// The storage that a claim asks for, in bytes. The request is greater than zero, and the limit is
// not less than the request. The limit is kept as given; no volume is refused because of it.
struct StorageRequest {
  Quantity request;
  std::optional<Quantity> limit;
  friend bool operator==(const StorageRequest&, const StorageRequest&) = default;
};

// What a claim asks for; volume/claim_matcher.h compares it with a PersistentVolume.
struct PersistentVolumeClaimSpec {
  // Never empty in a claim that was decoded.
  std::vector<AccessMode> access_modes;
  StorageRequest storage;
  // Absent: the labels of a volume do not count.
  std::optional<LabelSelector> selector;
  // Absent: the default class, if there is one. "": a volume without a class.
  std::optional<std::string> storage_class_name;
  // A volume fits only if it has the same; absent counts as "".
  std::optional<std::string> volume_attributes_class_name;
  // The name of the only PersistentVolume that the claim may have; "" if it may have any that fits.
  std::string volume_name;
  VolumeMode volume_mode = VolumeMode::kFilesystem;
  // A JSON object as text, or "" if it is absent. Of these two only a volume populator could make
  // something; the hostPath provisioner refuses a claim that has one.
  std::string data_source_json;
  std::string data_source_ref_json;
  friend bool operator==(const PersistentVolumeClaimSpec&,
                         const PersistentVolumeClaimSpec&) = default;
};

// The claim template of a generic ephemeral volume. It gives no name, since the claim's name is
// made from those of the pod and the volume (kube/ephemeral_claim.h).
struct PersistentVolumeClaimTemplate {
  StringMap labels;
  StringMap annotations;
  PersistentVolumeClaimSpec spec;
  friend bool operator==(const PersistentVolumeClaimTemplate&,
                         const PersistentVolumeClaimTemplate&) = default;
};

}  // namespace volumed
