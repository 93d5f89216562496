// VolumeSpec: what the pipelines know about a volume: an inline pod volume, or (a later step) a
// persistent volume. Source: kubernetes pkg/volume/plugins.go@v1.36.2 (Spec).
#pragma once

#include <memory>
#include <string>

#include "base/ids.h"
#include "kube/objects.h"

namespace volumed {

// An immutable value; threads: any. Exactly one source is set (persistent volumes join here).
class VolumeSpec {
 public:
  // Source: NewSpecFromVolume.
  static VolumeSpec FromVolume(PodVolume volume);

  // The inline volume's name, or the PV's; the last element of the volume's path.
  const SpecName& name() const { return name_; }
  // Null where the spec is not an inline volume.
  const PodVolume* volume() const { return volume_.get(); }
  // The claim's readOnly: always false for an inline volume, whose source speaks for itself.
  bool read_only() const { return read_only_; }

 private:
  VolumeSpec() = default;
  SpecName name_;
  std::shared_ptr<const PodVolume> volume_;
  bool read_only_ = false;
};

}  // namespace volumed
