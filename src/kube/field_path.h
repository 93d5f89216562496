// Values of the downward API: fields of a pod and resources of its containers, as text.
// Threads: any. Blocks: no. Errors (not applied): InvalidArgument for a path that is not supported,
// NotFound for a container that the pod does not have.
// Source: kubernetes pkg/fieldpath/fieldpath.go and pkg/api/v1/resource/helpers.go@v1.36.2.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "kube/objects.h"

namespace volumed {

// "metadata.labels['app']" and the others of kube/field_rules.h, kFieldPath. A label that is not
// there is "", as with kubelet.
Result<std::string> PodFieldValue(const Pod& pod, std::string_view field_path);

// The amount divided by the divisor, rounded up to an integer. A limit that is not set is the
// node's allocatable amount; a request that is not set is the limit that is, else 0.
// `default_container` stands for an empty containerName, as in a container's own environment.
Result<std::string> ResourceFieldValue(const Pod& pod, const ResourceFieldSelector& selector,
                                       const ResourceList& node_allocatable,
                                       std::string_view default_container = {});

// Lines key="value", sorted by key, without a newline at the end. Values are quoted as Go's %q
// does; of Unicode's unprintable characters only the common ones are known and written as \u.
std::string FormatStringMap(const StringMap& map);

}  // namespace volumed
