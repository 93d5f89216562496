// What a pod from a file gets when it has no uid: kubelet's static-pod identity.
#pragma once

#include <string_view>

#include "base/ids.h"
#include "kube/objects.h"

namespace volumed {

inline constexpr std::string_view kConfigHashAnnotation = "kubernetes.io/config.hash";
inline constexpr std::string_view kConfigSourceAnnotation = "kubernetes.io/config.source";

// A pod that has a uid is left alone. Another gets a uid of 32 hex digits, "-<node>" behind its
// name, the node's name, and kubelet's two annotations.
//
// The uid is the MD5 of "host:<node>", "file:<file>" and the decoded pod as JSON, so any change of
// what we decode makes it another pod, as with kubelet. It is not kubelet's number: that one hashes
// Go's print of the whole struct, fields included that this program does not keep.
//
// Threads: any. Blocks: no.
// Source: kubernetes pkg/kubelet/config/common.go@v1.36.2 (applyDefaults).
void ApplyStaticPodDefaults(const NodeName& node_name, std::string_view file, Pod& pod);

}  // namespace volumed
