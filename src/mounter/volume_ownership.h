// SetVolumeOwnership: gives a volume's tree to the pod's fsGroup, and tells the pod when that takes
// long. The walk itself is the kernel effect ChangeOwnership.
// Source: kubernetes pkg/volume/volume_linux.go@v1.36.2.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "kube/objects.h"
#include "metrics/exported_families.h"
#include "os/kernel.h"
#include "volumehost/volume_host.h"

namespace volumed {

// Whose a volume's tree is to be.
struct OwnershipRequest {
  SafePath dir;
  std::optional<int64_t> fs_group;            // absent: nothing is done
  std::optional<FsGroupChangePolicy> policy;  // absent: Always
  bool read_only = false;
  PodUid pod;  // whom the events are about
  // Who counts a walk, as "volume_apply_access_control" of this plugin; null: nobody.
  ExportedFamilies* metrics = nullptr;
  std::string plugin_name = {};
};

// The group as chown(2) takes it. InvalidArgument, not applied, outside of 0..2^32-2.
Result<uint32_t> GroupId(int64_t fs_group);

// Threads: any. Blocks: until the deadline. While it runs, a VolumePermissionChangeInProgress event
// is recorded after 30 s, which names the faster policy, and then every 60 s, with the number of
// entries done.
// Errors: those of GroupId and of ChangeOwnership.
// A run that was interrupted is resumed by the next: what is right is skipped, the root comes last.
Result<OwnershipInfo> SetVolumeOwnership(Kernel& kernel, HostEvents& events, const Clock& clock,
                                         const OwnershipRequest& request, const CallOptions& call);

// Counts a run over a volume that an effect has made as "volume_apply_access_control"; nothing if
// the effect has made none (nullopt).
void ObserveOwnership(ExportedFamilies& metrics, const std::string& plugin_name,
                      const std::optional<int64_t>& elapsed_ns);

}  // namespace volumed
