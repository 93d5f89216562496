// The operations that attach the volume of a device to the node and detach it, and that ask whether
// volumes are still attached. The mount of the device is in device_operations.h; it waits for the
// attached device by a step from attach_steps.h.
//
// A detach cannot be undone. It begins only when the unmount is on record, when the mount table and
// the records of pods have shown that nobody has the device, and when everything that the kernel
// kept for the device has been written to it.
// Source: kubernetes pkg/volume/util/operationexecutor/operation_generator.go@v1.36.2
// (GenerateAttachVolumeFunc, GenerateDetachVolumeFunc, GenerateVolumesAreAttachedFunc;
// GenerateBulkVolumeVerifyFunc is of v1.21.1).
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "operation/attach_requests.h"
#include "operation/operation.h"

namespace volumed {

inline constexpr const char* kAttachOperation = "volume_attach";
inline constexpr const char* kDetachOperation = "volume_detach";
// The first name is for questions to the plugin's Attacher, the second for a plugin that has a
// BulkVolumeVerifier.
inline constexpr const char* kVerifyAttachedOperation = "verify_volumes_are_attached_per_node";
inline constexpr const char* kBulkVerifyAttachedOperation = "verify_volumes_are_attached";

// Make the volume present on the node, and take it away again. Neither runs beside another
// operation on the device.
// Of each Run: Threads: one at a time per device. Blocks: until the steps' deadlines and the store.

// Errors: Unimplemented, not applied, if the plugin attaches nothing; FailedPrecondition, not
// applied, if somebody has the volume in the other volumeMode; those of the steps.
struct AttachVolume : OperationOf<AttachedVolume> {
  explicit AttachVolume(AttachRequest attach) : request(std::move(attach)) {}

  OperationKey key() const { return OperationKey(request.device); }
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      AttachedVolume& result) const;
  void Tell(const OperationParts& parts, const OperationOutcome<AttachedVolume>& outcome) const;

  AttachRequest request;
};

// REQUIRES: the caller has made sure that no pod has the volume and that its device is not mounted.
// Errors: FailedPrecondition, not applied, if no record says that the agent has attached it, if its
// state forbids it (it is mounted), or if somebody has it; those of the steps.
struct DetachVolume : OperationOf<Unit> {
  explicit DetachVolume(DetachRequest detach) : request(std::move(detach)) {}

  OperationKey key() const { return OperationKey(request.device); }
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      Unit& result) const;

  DetachRequest request;
};

// The key "verify/<plugin>": it is no device, and excludes only another question to the same
// plugin.
OperationKey VerifyAttachedKey(const std::string& plugin_name);

// Asks the plugin in one call whether these volumes are still attached; runs beside any other
// operation, changes nothing and has no record. Errors: an error says nothing about any of the
// volumes.
struct VerifyVolumesAreAttached : OperationOf<VerifiedAttachments> {
  explicit VerifyVolumesAreAttached(VerifyAttachedRequest verify) : request(std::move(verify)) {}

  OperationKey key() const { return VerifyAttachedKey(request.plugin_name); }
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      VerifiedAttachments& result) const;

  VerifyAttachedRequest request;
};

}  // namespace volumed
