// Expands $(NAME) in texts of a container, as subPathExpr has it.
// Source: kubernetes third_party/forked/golang/expansion/expand.go and
// pkg/kubelet/container/helpers.go@v1.36.2 (ExpandContainerVolumeMounts).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kube/objects.h"

namespace volumed {

// Replaces $(NAME) by the value that `value_of` gives for it; leaves it as it is if that is
// nullopt. "$$" becomes one "$". A "$" before any other character, and an open "$(", stay. Threads:
// any. Blocks: no.
std::string ExpandVariables(
    std::string_view text,
    const std::function<std::optional<std::string>(std::string_view name)>& value_of);

// Returns null if there is no such ConfigMap. It is called within the call to which it was given.
using ConfigMapLookup = std::function<std::shared_ptr<const ConfigMapObject>(
    std::string_view name_space, std::string_view name)>;

// Expands the sub-path of a mount with subPathExpr. Only the container's env is used: value,
// fieldRef, resourceFieldRef and configMapKeyRef. A variable from a Secret is refused, although
// kubelet allows it, since a path is visible to everybody; so is a variable whose value uses such a
// one. A key that its ConfigMap does not have is an error even if the reference is optional.
// Variables that the expression does not use count for nothing. `node_allocatable` is what a limit
// is that the container does not set (kube/field_path.h).
// Errors (not applied): InvalidArgument if a variable is not set or cannot be used, or if the
// result is not a relative path without ".."; those of kube/field_path.h for a fieldRef or
// resourceFieldRef, such as NotFound for a container that the pod does not have. Threads: any.
// Blocks: no.
Result<std::string> ExpandSubPathExpr(const Pod& pod, const Container& container,
                                      std::string_view expression,
                                      const ConfigMapLookup& find_config_map,
                                      const ResourceList& node_allocatable);

}  // namespace volumed
