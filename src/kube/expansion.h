// $(NAME) in texts of a container, as subPathExpr has it.
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

// Replaces $(NAME) by what `value_of` gives for it and leaves it as it is for nullopt; "$$" is one
// "$". A "$" before anything else, and an open "$(", stay. Threads: any. Blocks: no.
std::string ExpandVariables(
    std::string_view text,
    const std::function<std::optional<std::string>(std::string_view name)>& value_of);

// Null when there is no such config map.
using ConfigMapLookup = std::function<std::shared_ptr<const ConfigMapObject>(
    std::string_view name_space, std::string_view name)>;

// The sub-path of a mount with subPathExpr. Only the container's env is known: value, fieldRef,
// resourceFieldRef and configMapKeyRef. A variable from a secret is refused, since a path is shown
// to everybody (kubelet allows it).
// Errors (not applied): InvalidArgument for a variable that is not set or cannot be used, and when
// the outcome is no relative path without "..". Threads: any. Blocks: no.
Result<std::string> ExpandSubPathExpr(const Pod& pod, const Container& container,
                                      std::string_view expression,
                                      const ConfigMapLookup& find_config_map,
                                      const ResourceList& node_allocatable);

}  // namespace volumed
