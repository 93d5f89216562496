// WantedPodBuilder: makes the wanted volumes of a pod: resolves claims, finds the plugin, says
// which of them have a device, are attached or have sub-paths, and what keeps one from being
// mounted.
#pragma once

#include "kube/object_catalog.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "volumehost/volume_host.h"
#include "volumemanager/claim_resolver.h"
#include "volumemanager/wanted_pod.h"

namespace volumed {

// Threads: the control thread. Blocks: never. Errors: none; what is wrong with a volume is among
// its problems.
class WantedPodBuilder {
 public:
  // All arguments outlive this object. The catalog is read for sub-paths whose variables come from
  // objects; the node's facts for variables that come from the pod's resources.
  WantedPodBuilder(const ObjectCatalog& catalog, const VolumePluginMgr& plugins,
                   const HostNode& node, ClaimResolver& claims);

  // `before` is what was built of the pod last; null if nothing was. The generations are left zero.
  // It is read during the call alone: a volume whose claim has no volume any more keeps the one
  // that it had, and sub-paths keep their requests. REQUIRES: `pod` is not null.
  WantedPod Build(PodPtr pod, const WantedPod* before) const;

 private:
  WantedVolume BuildVolume(const Pod& pod, const PodVolume& volume, bool is_device,
                           const WantedPod* before) const;
  // The volume behind a claim; if there is none, a volume that cannot be mounted.
  WantedVolume ResolveClaim(const Pod& pod, const PodVolume& volume, const WantedPod* before) const;
  // A source that a CSI driver has replaced is translated first: the spec is its driver's then.
  // `old`: what the pod had as this volume before; may be null.
  void FindPlugin(const Pod& pod, const WantedVolume* old, WantedVolume& wanted) const;
  void FindDevice(VolumePlugin& plugin, WantedVolume& wanted) const;
  void FindAttachment(VolumePlugin& plugin, WantedVolume& wanted) const;
  // REQUIRES: all volumes of the pod that are this one are merged.
  void FindLabel(const Pod& pod, WantedVolume& wanted) const;
  void CheckNodeAffinity(WantedVolume& wanted) const;

  const ObjectCatalog& catalog_;
  const VolumePluginMgr& plugins_;
  const HostNode& node_;
  ClaimResolver& claims_;
};

}  // namespace volumed
