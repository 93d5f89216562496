// CSI migration: a volume of an in-tree source (kube/migrated_sources.h) as a volume of the CSI
// driver that replaces it, with the handle, attributes and node affinity that the driver knows it
// by. Who looks for a volume's plugin translates first, so that behind it there is nothing but a
// csi source.
//
// All functions are pure; threads: any. Blocks: never.
// Source: csi-translation-lib@v0.36.3, plugins/; kubernetes@v1.36.3
// pkg/volume/csimigration/plugin_manager.go (TranslateInTreeSpecToCSI).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "volume/volume_spec.h"

namespace volumed {

// Nullopt if the source is not one that is translated: of another kind, or of kind csi already.
// Else a spec with a persistent volume that has a csi source, marked as migrated().
//
// A persistent volume keeps its name, and all that the source does not decide. An inline volume
// becomes one that no source has and no claim is bound to, inline_for_csi_migration(), with a name
// that is the same for each pod that uses the same storage (for azureFile: that calls its volume by
// the same name). The name is no object's: it may have slashes and blanks, and becomes a directory
// only by EscapeQualifiedName() (base/strings.h). `pod_namespace` is that of the pod that has the
// inline volume, for the Secret of azureFile; a persistent volume needs none.
//
// Errors: InvalidArgument, not applied, if the source says something that its driver does not have,
// in words that name volume and driver.
std::optional<Result<VolumeSpec>> TranslateToCsi(const VolumeSpec& spec,
                                                 const std::string& pod_namespace);

// The spec by which a persistent volume is used on the node: its translation, or itself if its
// source is of another kind, or cannot be translated, in which case no plugin has it.
VolumeSpec AsUsed(const VolumeSpec& spec);

// A plugin of Kubernetes' own tree, and the driver that replaces it.
struct MigratedPlugin {
  std::string_view in_tree_plugin;  // "kubernetes.io/aws-ebs"
  std::string_view csi_driver;      // "ebs.csi.aws.com"
  friend bool operator==(const MigratedPlugin&, const MigratedPlugin&) = default;
};

// All whose sources are translated, in the order of the sources. The reference is valid for ever.
const std::vector<MigratedPlugin>& MigratedPlugins();

}  // namespace volumed
