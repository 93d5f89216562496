// The operations that attach the volume of a device to the node and detach it, and that ask whether
// volumes are attached still. Used by PodVolumeOperations; the device's own mount is in
// device_operations.h, which waits for the attached device by a step from here.
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

#include "operation/attach_requests.h"
#include "operation/device_operations.h"
#include "operation/step_runner.h"

namespace volumed {

inline constexpr const char* kAttachOperation = "volume_attach";
inline constexpr const char* kDetachOperation = "volume_detach";
// By the plugin's Attacher; and by its BulkVolumeVerifier, where it has one.
inline constexpr const char* kVerifyAttachedOperation = "verify_volumes_are_attached_per_node";
inline constexpr const char* kBulkVerifyAttachedOperation = "verify_volumes_are_attached";

// Threads: one at a time per device. Blocks: until the steps' deadlines and the store.
// Errors: Unimplemented, not applied, when the plugin attaches nothing; those of the steps.
std::optional<OperationFailure> RunAttach(const DeviceOperationParts& parts,
                                          const AttachRequest& request, AttachedVolume& result,
                                          OperationProgress& progress);

// Errors: FailedPrecondition, not applied, when no record says that the agent has attached it, when
// its state forbids it (it is mounted), or while somebody has it; those of the steps.
std::optional<OperationFailure> RunDetach(const DeviceOperationParts& parts,
                                          const DetachRequest& request,
                                          OperationProgress& progress);

// What kubelet calls the question: it is another one where the plugin has a BulkVolumeVerifier.
const char* VerifyAttachedOperationName(const VolumePluginMgr& plugins,
                                        const std::string& plugin_name);

// Changes nothing, and has no record. Errors: an error says nothing of any of the volumes.
std::optional<OperationFailure> RunVerifyAttached(const DeviceOperationParts& parts,
                                                  const VerifyAttachedRequest& request,
                                                  VerifiedAttachments& result,
                                                  OperationProgress& progress);

// The step of "mount_device" that waits for the device of an attached volume. `device_path` begins
// as the record has it; what the plugin answers is put there, and on record.
// Errors: Unimplemented, not applied, when the plugin attaches nothing; those of NewAttacher.
// `parts`, `request` and `device_path` outlive the step.
Result<Step> MakeWaitForAttachStep(const DeviceOperationParts& parts, VolumePlugin& plugin,
                                   const MountDeviceRequest& request, std::string& device_path);

// Whether nothing on this node uses the device of an attached volume any more: no pod by its
// record, no mount at its place, and nobody who has the device for himself (CheckDeviceLetGo).
// Errors: FailedPrecondition, not applied, naming who uses it; those of ListMounts.
Status CheckDeviceUnused(const DeviceOperationParts& parts, const DeviceRecord& device,
                         const CallOptions& call);

}  // namespace volumed
