#include "pluginmgr/wrapper_volumes.h"

#include <utility>

#include "pluginmgr/volume_plugin_mgr.h"

namespace volumed {
namespace {

VolumeSpec WrappedSpec(const SpecName& volume, const VolumeSource& source) {
  return VolumeSpec::FromVolume(PodVolume{"wrapped_" + volume.str(), source});
}

}  // namespace

Result<std::unique_ptr<Mounter>> WrapperVolumes::NewWrapperMounter(const SpecName& volume,
                                                                   const VolumeSource& source,
                                                                   VolumeTarget target) const {
  const VolumeSpec spec = WrappedSpec(volume, source);
  ASSIGN_OR_RETURN(VolumePlugin * plugin, plugins_.FindPluginBySpec(spec));
  target.key.spec = spec.name();
  return plugin->NewMounter(spec, target);
}

Result<std::unique_ptr<Unmounter>> WrapperVolumes::NewWrapperUnmounter(const SpecName& volume,
                                                                       const VolumeSource& source,
                                                                       const PodUid& pod) const {
  const VolumeSpec spec = WrappedSpec(volume, source);
  ASSIGN_OR_RETURN(VolumePlugin * plugin, plugins_.FindPluginBySpec(spec));
  return plugin->NewUnmounter(spec.name(), pod);
}

}  // namespace volumed
