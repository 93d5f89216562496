// Decides whether a selector matches labels, or a node.
// Threads: any. Blocks: no. Errors: none.
#pragma once

#include <string>

#include "kube/claim_spec.h"
#include "kube/object_meta.h"

namespace volumed {

// An empty selector matches every set of labels.
// Source: kubernetes apimachinery pkg/labels/selector.go@v1.36.2 (Requirement.Matches).
bool Matches(const LabelSelector& selector, const StringMap& labels);

// A selector without terms matches no node. A field other than "metadata.name" counts as one that
// the node does not have.
// Source: kubernetes component-helpers scheduling/corev1/nodeaffinity@v1.36.2 (NodeSelector.Match).
bool Matches(const NodeSelector& selector, const StringMap& node_labels,
             const std::string& node_name);

}  // namespace volumed
