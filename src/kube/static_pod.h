// The identity of a pod from a file that names no uid: kubelet's static-pod identity. A pod is
// static if its annotation kConfigSourceAnnotation is "file", and its name ends with "-" and the
// name of the node that its spec names, in lower case.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "kube/objects.h"

namespace volumed {

// kubelet's annotations of a static pod: its uid, and "file".
inline constexpr std::string_view kConfigHashAnnotation = "kubernetes.io/config.hash";
inline constexpr std::string_view kConfigSourceAnnotation = "kubernetes.io/config.source";

// All functions: Threads: any. Blocks: no.

// A node's name in lower case, as kubelet has it.
// Source: kubernetes pkg/util/node/node.go@v1.36.2 (GetHostname).
std::string NormalNodeName(std::string name);

// Leaves a pod with a uid alone. Any other pod becomes a static pod of this node: it gets "-<node>"
// at the end of its name, the node's name, and the annotation of its source. It does not get a uid
// yet: the uid belongs to namespace and name, and SetPodUid gives the one that is on record. In
// kubelet the uid is a hash of node, file and content, so a change of any of them makes another
// pod.
// Errors: InvalidArgument (not applied) if the name with its suffix is longer than Kubernetes
// allows; the pod is unchanged then.
// Source: kubernetes pkg/kubelet/config/common.go@v1.36.2 (applyDefaults).
Status ApplyStaticPodDefaults(const NodeName& node_name, Pod& pod);

// Gives the pod its uid; a static pod also gets kubelet's annotation of the uid. `uid` is not
// checked.
void SetPodUid(Pod& pod, const std::string& uid);

// The name before the node's suffix; nullopt if the pod is not a static pod.
std::optional<std::string> StaticPodBaseName(const Pod& pod);
// The name that a static pod of this base name has on this node.
std::string StaticPodName(std::string_view base_name, const NodeName& node_name);
// The object's name once it is on this node: a pod without a uid becomes a static pod.
ObjectKey KeyOnNode(const Object& object, const NodeName& node_name);

}  // namespace volumed
