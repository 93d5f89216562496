// PlainVolumePlugin: the answers of a plugin whose volumes are in no way special. A plugin derives
// from it and overrides what is different about its volumes, so that its header shows just that.
#pragma once

#include <string>

#include "pluginmgr/volume_plugin.h"

namespace volumed {

// A plain volume is set up once, takes neither mount options nor an SELinux label as one, and lies
// on the agent's own filesystem or a tmpfs.
//
// Whoever overrides Init() calls this one first: it keeps the parts of the node, which outlive the
// plugin. Threads and blocking: as VolumePlugin says. Before Init() the object can only be asked
// for what its derived class answers without the node.
class PlainVolumePlugin : public VolumePlugin {
 public:
  Status Init(PluginContext context) override {
    host_ = &context.host;
    wrapper_volumes_ = &context.wrapper_volumes;
    return OkStatus();
  }
  bool RequiresRemount(const VolumeSpec&) const override { return false; }
  bool SupportsMountOption() const override { return false; }
  bool SupportsSELinuxContextMount(const VolumeSpec&) const override { return false; }
  std::string FaultDomain(const VolumeSpec&) const override { return ""; }

 protected:
  // Not null after Init.
  VolumeHost* host_ = nullptr;
  WrapperVolumes* wrapper_volumes_ = nullptr;
};

}  // namespace volumed
