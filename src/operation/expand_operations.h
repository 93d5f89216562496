// The operation that makes a volume larger on the node while it is mounted or mapped.
//
// The device's record is its intent: it is Expanding and has the target size before the plugin is
// called, and it has the proven size before it rests. A volume without such a record (one that pods
// get as a block device, or whose plugin mounts no devices) has its intent only in the claim's
// status.
// Source: kubernetes pkg/volume/util/operationexecutor/{operation_generator,node_expander}.go
// @v1.36.2 (GenerateExpandInUseVolumeFunc, NodeExpander).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "operation/operation.h"
#include "operation/volume_requests.h"
#include "volumehost/volume_host.h"

namespace volumed {

// Kubelet's operation_name.
inline constexpr const char* kExpandVolumeOperation = "volume_fs_resize";
// Source: kubernetes pkg/kubelet/events/event.go@v1.36.2.
inline constexpr const char* kFileSystemResizeSuccessful = "FileSystemResizeSuccessful";
inline constexpr const char* kFileSystemResizeFailed = "FileSystemResizeFailed";
inline constexpr const char* kVolumeResizeFailed = "VolumeResizeFailed";

// The key "expand/<unique name>", which no other operation has.
OperationKey ExpandKey(const UniqueVolumeName& volume);

// Uses the device exclusively, like MountDevice, but has a key, and so a back-off, of its own.
// Whether it succeeds or not, the volume stays mounted. Run: Threads: one at a time per volume.
// Blocks: until the steps' deadlines and the store, and as long as a filesystem takes to grow.
// Errors: Unimplemented, not applied, if the plugin expands nothing; FailedPrecondition, not
// applied, if the volume is no block volume, and its device has no record, or, if its plugin mounts
// no devices or needs a pod, the request has no pod; Unavailable, maybe applied, if the plugin says
// that the volume is not of its new size yet; those of the plugin.
struct ExpandVolume : OperationOf<ExpandedVolume> {
  explicit ExpandVolume(ExpandRequest expand) : request(std::move(expand)) {}

  OperationKey key() const { return ExpandKey(request.volume); }
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      ExpandedVolume& result) const;
  void Tell(const OperationParts& parts, const OperationOutcome<ExpandedVolume>& outcome) const;

  ExpandRequest request;
};

// The objects that get an event about an expansion.
struct ExpansionAudience {
  std::vector<PodUid> pods;
  std::string claim;  // "namespace/name"
};
// The only function that records these events.
void TellOfExpansion(HostEvents& events, const ExpansionAudience& audience, EventType type,
                     const std::string& reason, const std::string& message);

// The message of kubelet's event.
std::string ExpansionReadOnlyText(const SpecName& spec);

}  // namespace volumed
