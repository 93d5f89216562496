#include "volume/volume_spec.h"

#include <utility>

namespace volumed {

VolumeSpec VolumeSpec::FromVolume(PodVolume volume) {
  VolumeSpec spec;
  spec.name_ = SpecName(volume.name);
  spec.volume_ = std::make_shared<const PodVolume>(std::move(volume));
  return spec;
}

VolumeSpec VolumeSpec::FromPersistentVolume(PersistentVolume volume, bool read_only) {
  VolumeSpec spec;
  spec.name_ = SpecName(volume.metadata.name);
  spec.persistent_volume_ = std::make_shared<const PersistentVolume>(std::move(volume));
  spec.read_only_ = read_only;
  return spec;
}

VolumeSpec VolumeSpec::WithCsiMigration() const {
  VolumeSpec spec = *this;
  spec.migrated_ = true;
  return spec;
}

VolumeSpec VolumeSpec::WithInlineForCsiMigration() const {
  VolumeSpec spec = WithCsiMigration();
  spec.inline_for_csi_migration_ = true;
  return spec;
}

const std::string* VolumeSpec::FlexDriver() const {
  // The two differ in what their secret reference is.
  if (const auto* flex = SourceAs<FlexVolumeSource>()) return &flex->driver;
  if (const auto* flex = SourceAs<FlexPersistentVolumeSource>()) return &flex->driver;
  return nullptr;
}

std::string VolumeSpec::KubeletExpandablePluginName() const {
  const std::string* driver = FlexDriver();
  return driver == nullptr ? "" : *driver;
}

std::string VolumeSpec::Display() const {
  if (volume_ != nullptr) {
    return "volume " + name_.str() + " (" + VolumeSourceKind(volume_->source) + ")";
  }
  if (persistent_volume_ != nullptr) {
    return "persistent volume " + name_.str() + " (" +
           VolumeSourceKind(persistent_volume_->spec.source) + ")";
  }
  return "no volume";
}

bool IsBlockVolume(const VolumeSpec& spec) {
  const PersistentVolume* volume = spec.persistent_volume();
  return volume != nullptr && volume->spec.volume_mode == VolumeMode::kBlock;
}

}  // namespace volumed
