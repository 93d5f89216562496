// Decides whether a selector matches labels, or a node.
// Threads: any. Blocks: no. Errors: none.
#pragma once

#include <string>
#include <vector>

#include "kube/claim_spec.h"
#include "kube/object_meta.h"
#include "kube/storage_objects.h"

namespace volumed {

// An empty selector matches every set of labels.
// Source: kubernetes apimachinery pkg/labels/selector.go@v1.36.2 (Requirement.Matches).
bool Matches(const LabelSelector& selector, const StringMap& labels);

// A selector without terms matches no node. A field other than "metadata.name" counts as one that
// the node does not have.
// Source: kubernetes component-helpers scheduling/corev1/nodeaffinity@v1.36.2 (NodeSelector.Match).
bool Matches(const NodeSelector& selector, const StringMap& node_labels,
             const std::string& node_name);

// Whether a class lets its volumes be made for a node with these labels. No terms: everywhere; a
// term without requirements matches no node.
// Source: kubernetes component-helpers scheduling/corev1/helpers.go@v1.36.2
// (MatchTopologySelectorTerms).
bool Matches(const std::vector<TopologyTerm>& allowed_topologies, const StringMap& node_labels);

}  // namespace volumed
