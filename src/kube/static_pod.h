// What a pod from a file gets when it has no uid: kubelet's static-pod identity.
#pragma once

#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "kube/objects.h"

namespace volumed {

inline constexpr std::string_view kConfigHashAnnotation = "kubernetes.io/config.hash";
inline constexpr std::string_view kConfigSourceAnnotation = "kubernetes.io/config.source";

// The name that a pod without a uid gets on this node.
std::string StaticPodName(std::string_view name, const NodeName& node_name);

// A pod that has a uid is left alone. Another gets a uid of 32 hex digits, "-<node>" behind its
// name, the node's name, and kubelet's two annotations.
//
// The uid is the first half of the SHA-256 of "host:<node>", "file:<file>" and the decoded pod as
// JSON, so any change of what is decoded makes it another pod, as with kubelet. It is not kubelet's
// number: that one is an MD5 over Go's print of the whole struct, with fields that are not kept
// here. Its shape is the same.
//
// Threads: any. Blocks: no. Errors: InvalidArgument (not applied) when the name with its suffix is
// longer than Kubernetes allows; the pod is unchanged then.
// Source: kubernetes pkg/kubelet/config/common.go@v1.36.2 (applyDefaults).
Status ApplyStaticPodDefaults(const NodeName& node_name, std::string_view file, Pod& pod);

}  // namespace volumed
