#include "csidriver/node_specs.h"

#include <utility>

#include "base/strings.h"
#include "operation/recorded_volume.h"
#include "pool/pool_names.h"

namespace volumed {
namespace {

using Modes = ::csi::v1::VolumeCapability::AccessMode;

std::string AnnotationOf(const PersistentVolume& volume, const char* name) {
  const auto found = volume.metadata.annotations.find(name);
  return found == volume.metadata.annotations.end() ? "" : found->second;
}

CsiCapabilityWish CapabilityOf(const VolumeSpec& spec) {
  CsiCapabilityWish capability;
  const PersistentVolume* const volume = spec.persistent_volume();
  if (volume == nullptr) return capability;
  capability.is_block = IsBlockVolume(spec);
  capability.mount_flags = volume->spec.mount_options;
  // A name that is none leaves the mode unknown.
  (void)Modes::Mode_Parse(AnnotationOf(*volume, kCsiAccessModeAnnotation), &capability.access_mode);
  capability.fs_group = ParseInt64(AnnotationOf(*volume, kCsiMountGroupAnnotation));
  return capability;
}

}  // namespace

VolumeSpec NodeSpecOf(PersistentVolume of_pool, const std::string& id,
                      const CsiCapabilityWish& capability, bool read_only, const std::string& pod) {
  of_pool.metadata.name = id;
  of_pool.metadata.annotations[kCsiAccessModeAnnotation] = Modes::Mode_Name(capability.access_mode);
  if (capability.fs_group) {
    of_pool.metadata.annotations[kCsiMountGroupAnnotation] = std::to_string(*capability.fs_group);
  }
  if (!pod.empty()) of_pool.metadata.annotations[kPoolPodUidAnnotation] = pod;
  of_pool.spec.mount_options = capability.mount_flags;
  if (auto* source = std::get_if<CsiPersistentVolumeSource>(&of_pool.spec.source)) {
    source->read_only = read_only || IsReadOnlyMode(capability.access_mode);
    if (!capability.fs_type.empty()) source->fs_type = capability.fs_type;
  }
  return VolumeSpec::FromPersistentVolume(std::move(of_pool), false);
}

CsiCapabilityWish CapabilityOnRecord(const std::string& volume_json) {
  const std::optional<VolumeSpec> spec = ReadRecordedVolume(volume_json);
  return spec ? CapabilityOf(*spec) : CsiCapabilityWish();
}

CsiPublication PublicationOnRecord(const PodVolumeRecord& published) {
  CsiPublication publication;
  publication.target_path = published.place;
  const std::optional<VolumeSpec> spec = ReadRecordedVolume(published.volume_json);
  if (!spec) return publication;
  publication.capability = CapabilityOf(*spec);
  const auto* const source = spec->SourceAs<CsiPersistentVolumeSource>();
  publication.read_only = source != nullptr && source->read_only;
  return publication;
}

CsiPublication PublicationWanted(const std::string& target_path, CsiCapabilityWish capability,
                                 bool read_only) {
  capability.fs_type.clear();
  const bool only_reads = read_only || IsReadOnlyMode(capability.access_mode);
  return {target_path, std::move(capability), only_reads};
}

bool IsStagedAlike(const CsiCapabilityWish& staged, const CsiCapabilityWish& wanted) {
  return staged.is_block == wanted.is_block && staged.access_mode == wanted.access_mode &&
         staged.mount_flags == wanted.mount_flags;
}

}  // namespace volumed
