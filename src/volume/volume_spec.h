// VolumeSpec: what the pipelines know about a volume: an inline volume of a pod, or a persistent
// volume. Source: kubernetes pkg/volume/plugins.go@v1.36.2 (Spec).
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <variant>

#include "base/ids.h"
#include "kube/objects.h"

namespace volumed {

// Whether a variant has T among its alternatives.
template <typename T, typename Variant>
inline constexpr bool kIsAlternative = false;
template <typename T, typename... Alternatives>
inline constexpr bool kIsAlternative<T, std::variant<Alternatives...>> =
    (std::is_same_v<T, Alternatives> || ...);

// An immutable value, whose copies share the objects; threads: any. Exactly one of volume() and
// persistent_volume() is set; neither is in one that was moved from. Pointers and references are
// valid as long as any copy.
class VolumeSpec {
 public:
  // Source: NewSpecFromVolume.
  static VolumeSpec FromVolume(PodVolume volume);
  // `read_only` is the claim's, as the pod gives it. Source: NewSpecFromPersistentVolume.
  static VolumeSpec FromPersistentVolume(PersistentVolume volume, bool read_only);

  // The same volume, seen as one whose source was translated for the CSI driver that replaces it
  // (volume/csi_translation.h). Source: Spec.Migrated.
  VolumeSpec WithCsiMigration() const;
  // The same, and as one that stands in for an inline volume, which has no persistent volume of its
  // own.
  VolumeSpec WithInlineForCsiMigration() const;

  // The inline volume's name, or the PV's; the last element of the volume's path.
  const SpecName& name() const { return name_; }
  // Null if the spec is not an inline volume.
  const PodVolume* volume() const { return volume_.get(); }
  // Null if the spec is not a persistent volume.
  const PersistentVolume* persistent_volume() const { return persistent_volume_.get(); }
  // Only one that was moved from is.
  bool empty() const { return volume_ == nullptr && persistent_volume_ == nullptr; }
  // The claim's readOnly: always false for an inline volume, whose source speaks for itself.
  bool read_only() const { return read_only_; }
  bool migrated() const { return migrated_; }
  // Only one that is migrated is.
  bool inline_for_csi_migration() const { return inline_for_csi_migration_; }

  // The source, if it is of this type; null otherwise. Sources that an inline and a persistent
  // volume have in the same form (hostPath, nfs, fc) are found in both.
  template <typename Source>
  const Source* SourceAs() const {
    if constexpr (kIsAlternative<Source, VolumeSource>) {
      if (volume_ != nullptr) return std::get_if<Source>(&volume_->source);
    }
    if constexpr (kIsAlternative<Source, PersistentVolumeSource>) {
      if (persistent_volume_ != nullptr) {
        return std::get_if<Source>(&persistent_volume_->spec.source);
      }
    }
    return nullptr;
  }

  // Such a volume can be grown by the node and by nobody else: flexVolume.
  bool IsKubeletExpandable() const { return FlexDriver() != nullptr; }
  // The driver of such a volume; "" for others.
  std::string KubeletExpandablePluginName() const;

  // "volume logs (hostPath)", "persistent volume pv-1 (local)", and "no volume" for one that is
  // empty: for messages.
  std::string Display() const;

 private:
  VolumeSpec() = default;
  const std::string* FlexDriver() const;

  SpecName name_;
  std::shared_ptr<const PodVolume> volume_;
  std::shared_ptr<const PersistentVolume> persistent_volume_;
  bool read_only_ = false;
  bool migrated_ = false;
  bool inline_for_csi_migration_ = false;
};

// Whether pods have it as a raw block device, which an inline volume never is. Source: kubernetes
// pkg/volume/util/util.go@v1.36.2 (GetVolumeMode, CheckVolumeModeFilesystem).
bool IsBlockVolume(const VolumeSpec& spec);

}  // namespace volumed
