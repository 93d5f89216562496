// The operations that attach the volume of a device to the node and detach it, and that ask whether
// volumes are attached still. The device's own mount is in
// device_operations.h, which waits for the attached device by a step from attach_steps.h.
//
// Detaching is the end: it is begun only when the unmount is on record, after the mount table and
// the records of pods have shown that nobody has the device, and after everything that the kernel
// kept of it has reached it.
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
// By the plugin's Attacher; and by its BulkVolumeVerifier, where it has one.
inline constexpr const char* kVerifyAttachedOperation = "verify_volumes_are_attached_per_node";
inline constexpr const char* kBulkVerifyAttachedOperation = "verify_volumes_are_attached";

// The volume is made present on the node, and taken from it again. Neither runs beside another
// operation of the device.
// Of each Run: Threads: one at a time per device. Blocks: until the steps' deadlines and the store.

// Errors: Unimplemented, not applied, when the plugin attaches nothing; those of the steps.
struct AttachVolume : OperationOf<AttachedVolume> {
  explicit AttachVolume(AttachRequest attach) : request(std::move(attach)) {}

  OperationKey key() const { return OperationKey(request.device); }
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      AttachedVolume& result) const;
  void Tell(const OperationParts& parts, const OperationOutcome<AttachedVolume>& outcome) const;

  AttachRequest request;
};

// The caller has made sure that no pod has the volume and that its device is not mounted.
// Errors: FailedPrecondition, not applied, when no record says that the agent has attached it, when
// its state forbids it (it is mounted), or while somebody has it; those of the steps.
struct DetachVolume : OperationOf<Unit> {
  explicit DetachVolume(DetachRequest detach) : request(std::move(detach)) {}

  OperationKey key() const { return OperationKey(request.device); }
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      Unit& result) const;

  DetachRequest request;
};

OperationKey VerifyAttachedKey(const std::string& plugin_name);

// Asks the plugin, in one call, whether these volumes are attached still; runs beside anything.
// Changes nothing, and has no record. Errors: an error says nothing of any of the volumes.
struct VerifyVolumesAreAttached : OperationOf<VerifiedAttachments> {
  explicit VerifyVolumesAreAttached(VerifyAttachedRequest verify) : request(std::move(verify)) {}

  OperationKey key() const { return VerifyAttachedKey(request.plugin_name); }
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      VerifiedAttachments& result) const;

  VerifyAttachedRequest request;
};

}  // namespace volumed
