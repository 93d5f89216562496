// Values of the downward API as text: fields of a pod and resources of its containers.
// Threads: any. Blocks: no. Errors (not applied): InvalidArgument for a path or a resource that is
// not supported and for a negative divisor, NotFound for a container that the pod does not have,
// OutOfRange for an amount of cpu that does not fit 64 bits as thousandths.
// Source: kubernetes pkg/fieldpath/fieldpath.go and pkg/api/v1/resource/helpers.go@v1.36.2.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "kube/objects.h"

namespace volumed {

// Takes "metadata.labels['app']" and the other paths of rules::kFieldPath in kube/value_rules.h. A
// label or annotation that the pod does not have is "", as with kubelet. All labels together are a
// FormatStringMap(); several IP addresses are joined by ",".
Result<std::string> PodFieldValue(const Pod& pod, std::string_view field_path);

// The amount divided by the divisor, rounded up to an integer. If a limit is not set, the node's
// allocatable amount is used; if a request is not set, the limit, or 0 without a limit.
// `default_container` is used if containerName is empty, as in a container's own environment.
// Amounts of cpu are divided as thousandths of a processor, all others as whole numbers, such as
// bytes.
Result<std::string> ResourceFieldValue(const Pod& pod, const ResourceFieldSelector& selector,
                                       const ResourceList& node_allocatable,
                                       std::string_view default_container = {});

// Lines key="value", sorted by key, without a newline at the end. Values are quoted as by Go's %q;
// of Unicode's unprintable characters only the common ones are recognised and written as \u.
std::string FormatStringMap(const StringMap& map);

}  // namespace volumed
