// What a pod from a file gets when it has no uid: kubelet's static-pod identity.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "kube/objects.h"

namespace volumed {

inline constexpr std::string_view kConfigHashAnnotation = "kubernetes.io/config.hash";
inline constexpr std::string_view kConfigSourceAnnotation = "kubernetes.io/config.source";

// All functions: Threads: any. Blocks: no.

// A node's name as a kubelet has it: in lower case.
// Source: kubernetes pkg/util/node/node.go@v1.36.2 (GetHostname).
std::string NormalNodeName(std::string name);

// A pod that has a uid is left alone. Another becomes a static pod of this node: it gets "-<node>"
// behind its name, the node's name, and the annotation of its source. It has no uid yet: that
// belongs to its namespace and name, and whoever knows which one is on record gives it
// (SetPodUid). With kubelet it is a hash of node, file and content, so that it ends with any
// of them.
// Errors: InvalidArgument (not applied) when the name with its suffix is longer than Kubernetes
// allows; the pod is unchanged then.
// Source: kubernetes pkg/kubelet/config/common.go@v1.36.2 (applyDefaults).
Status ApplyStaticPodDefaults(const NodeName& node_name, Pod& pod);

// Gives the pod its uid, and with it a static pod kubelet's annotation of the uid.
void SetPodUid(Pod& pod, const std::string& uid);

// The name before the node's suffix; nullopt for a pod that is no static pod.
std::optional<std::string> StaticPodBaseName(const Pod& pod);
// The name that a static pod of this base name has on this node.
std::string StaticPodName(std::string_view base_name, const NodeName& node_name);
// What the object is called once it is on this node: a pod without a uid is a static pod then.
ObjectKey KeyOnNode(const Object& object, const NodeName& node_name);

}  // namespace volumed
