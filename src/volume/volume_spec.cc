#include "volume/volume_spec.h"

#include <utility>

namespace volumed {

VolumeSpec VolumeSpec::FromVolume(PodVolume volume) {
  VolumeSpec spec;
  spec.name_ = SpecName(volume.name);
  spec.volume_ = std::make_shared<const PodVolume>(std::move(volume));
  return spec;
}

}  // namespace volumed
