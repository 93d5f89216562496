// WrapperVolumes: volumes that a plugin puts its own content into (a secret is an emptyDir with
// files). They are here and not in VolumeHost because the host names no mounter.
// Source: kubernetes pkg/kubelet/volume_host.go@v1.36.2 (NewWrapperMounter, NewWrapperUnmounter).
#pragma once

#include <memory>

#include "base/ids.h"
#include "base/result.h"
#include "kube/objects.h"
#include "mounter/mounter.h"
#include "pluginmgr/volume_plugin.h"

namespace volumed {

class VolumePluginMgr;

// Threads: any. Blocks: as finding a plugin does (VolumePluginMgr). Errors: those of finding a
// plugin, and of its New function.
class WrapperVolumes {
 public:
  // `plugins` outlives this.
  explicit WrapperVolumes(const VolumePluginMgr& plugins) : plugins_(plugins) {}
  WrapperVolumes(const WrapperVolumes&) = delete;
  WrapperVolumes& operator=(const WrapperVolumes&) = delete;

  // A mounter of `source` at the target's place, whose own bookkeeping (the readiness marker) is
  // named "wrapped_<volume>".
  Result<std::unique_ptr<Mounter>> NewWrapperMounter(const SpecName& volume,
                                                     const VolumeSource& source,
                                                     VolumeTarget target) const;
  // The inverse, to be used with TearDownAt.
  Result<std::unique_ptr<Unmounter>> NewWrapperUnmounter(const SpecName& volume,
                                                         const VolumeSource& source,
                                                         const PodUid& pod) const;

 private:
  const VolumePluginMgr& plugins_;
};

}  // namespace volumed
