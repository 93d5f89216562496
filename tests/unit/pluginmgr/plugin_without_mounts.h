// PluginWithoutMounts: a plugin of the tests that sets up nothing for pods; whoever derives from it
// says what it does instead.
#pragma once

#include <memory>

#include "pluginmgr/plain_volume_plugin.h"

namespace volumed {

class PluginWithoutMounts : public PlainVolumePlugin {
 public:
  Result<std::unique_ptr<Mounter>> NewMounter(const VolumeSpec&, const VolumeTarget&) override {
    return NotUsed();
  }
  Result<std::unique_ptr<Unmounter>> NewUnmounter(const SpecName&, const PodUid&) override {
    return NotUsed();
  }
  Result<ReconstructedVolume> ConstructVolumeSpec(const SpecName&, const SafePath&,
                                                  const CallOptions&) override {
    return NotUsed();
  }

 protected:
  static Error NotUsed() { return Error::NotApplied(Code::kUnimplemented, "not used"); }
};

}  // namespace volumed
