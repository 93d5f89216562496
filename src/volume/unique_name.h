// Unique volume names: what identifies a volume on this node, for keys, records and metrics.
// Source: kubernetes pkg/volume/util/util.go@v1.36.2 (GetUniqueVolumeName,
// GetUniqueVolumeNameFromSpecWithPod, SplitUniqueName).
//
// Threads: any. Blocks: never.
#pragma once

#include <string>

#include "base/ids.h"
#include "base/result.h"

namespace volumed {

// "<plugin>/<volume name>": volumes that are attached or staged once for all pods of the node. The
// volume name is the plugin's own and may have slashes.
UniqueVolumeName GetUniqueVolumeName(const std::string& plugin_name,
                                     const std::string& volume_name);

// "<plugin>/<pod uid>-<spec name>": volumes that every pod has for itself.
UniqueVolumeName GetUniqueVolumeNameFromSpecWithPod(const PodUid& pod,
                                                    const std::string& plugin_name,
                                                    const SpecName& spec);

// A unique name, taken apart.
struct UniqueNameParts {
  std::string plugin_name;  // "kubernetes.io/empty-dir"
  std::string volume_name;  // everything behind the second slash
  friend bool operator==(const UniqueNameParts&, const UniqueNameParts&) = default;
};

// The name is cut at its second slash: a plugin's name is taken to have one. Errors:
// InvalidArgument, not applied, when there are fewer than two slashes.
Result<UniqueNameParts> SplitUniqueName(const UniqueVolumeName& name);

}  // namespace volumed
