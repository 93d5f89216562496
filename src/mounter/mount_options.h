// Mount options as lists: joining what a user asked for with what a plugin needs.
// Source: kubernetes pkg/volume/util/util.go@v1.36.2 (JoinMountOptions, MountOptionFromSpec).
//
// Threads: any. Blocks: never.
#pragma once

#include <string>
#include <vector>

#include "kube/objects.h"

namespace volumed {

// The set union of both, in lexical order: an option that stands in both is there once. Empty user
// options are dropped.
std::vector<std::string> JoinMountOptions(const std::vector<std::string>& user_options,
                                          const std::vector<std::string>& system_options);

// The options of a persistent volume, joined with `system_options`. The beta annotation
// "volume.beta.kubernetes.io/mount-options" (comma-separated), if present, replaces `spec_options`
// (spec.mountOptions). With neither, `system_options` are returned as they are, order included.
std::vector<std::string> MountOptionFromSpec(const StringMap& annotations,
                                             const std::vector<std::string>& spec_options,
                                             const std::vector<std::string>& system_options);

}  // namespace volumed
