// emptyDir: a directory of the pod's own, on the agent's disk, on a tmpfs or on huge pages.
// Source: kubernetes pkg/volume/emptydir/empty_dir.go@v1.36.2.
#pragma once

#include <memory>
#include <string>

#include "pluginmgr/plain_volume_plugin.h"

namespace volumed {

inline constexpr char kEmptyDirPluginName[] = "kubernetes.io/empty-dir";
inline constexpr char kMediumMemory[] = "Memory";

// The volume is <root>/pods/<uid>/volumes/kubernetes.io~empty-dir/<name> with the mode 0777. The
// file <root>/pods/<uid>/plugins/kubernetes.io~empty-dir/<name>/ready says that it is complete; the
// file is written last and removed first.
//
// Memory: a tmpfs, whose size= is the least of the node's allocatable memory, the pod's memory
// limit and sizeLimit; it has noswap if the kernel supports that.
//
// HugePages, HugePages-<size>: a hugetlbfs with pages of that size (plugins/huge_pages.h).
//
// On disk a sizeLimit is watched, but not enforced: volumemanager/watch/size_limits.h acts on it.
//
// There are two deliberate differences from kubelet. A failed change of ownership fails the set-up
// (kubelet ignores it, and the pod gets "permission denied"). Tear-down stays on the volume's own
// filesystem (kubelet's enters other mounts).
class EmptyDirPlugin final : public PlainVolumePlugin {
 public:
  std::string GetPluginName() const override { return kEmptyDirPluginName; }
  // The name that the pod gives the volume: it is unique in the pod alone. Errors: InvalidArgument,
  // not applied, if the spec is no emptyDir.
  Result<std::string> GetVolumeName(const VolumeSpec& spec) const override;
  bool CanSupport(const VolumeSpec& spec) const override;
  // Errors: those of GetVolumeName; that of NoPod if the volume is on huge pages and has no pod,
  // which alone says their size. An unknown medium is an error of the set-up (InvalidArgument, not
  // applied).
  Result<std::unique_ptr<Mounter>> NewMounter(const VolumeSpec& spec,
                                              const VolumeTarget& target) override;
  Result<std::unique_ptr<Unmounter>> NewUnmounter(const SpecName& spec, const PodUid& pod) override;
  // The medium is taken from what the kernel says is mounted there: "Memory" for a tmpfs,
  // "HugePages" for a hugetlbfs, whatever the size of its pages; else none. Nothing tells the
  // sizeLimit.
  Result<ReconstructedVolume> ConstructVolumeSpec(const SpecName& spec, const SafePath& volume_path,
                                                  const CallOptions& call) override;
};

}  // namespace volumed
