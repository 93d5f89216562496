// What the traits of operations, and their events, have in common. Only the operations' own source
// files include this.
#pragma once

#include <optional>
#include <string>

#include "operation/operation.h"
#include "operation/operation_parts.h"
#include "operation/volume_record.h"
#include "operation/volume_requests.h"

namespace volumed {

// Threads: the control thread. Blocks: never.

// The traits for a volume whose plugin is found by its spec; without a plugin the plugin's name is
// empty.
OperationTraits TraitsOf(const OperationParts& parts, OperationKey key, const char* name,
                         const VolumeSpec& spec);
// What the volume may hang with; empty if there is no plugin.
FaultDomain DomainOf(const OperationParts& parts, const VolumeSpec& spec);
// The same for a volume of a pod; where its set-up is proven by the record (as_recorded.h), its
// place, since no driver is called.
FaultDomain DomainOf(const OperationParts& parts, const MountRequest& request);
// The same for an operation that need not touch anything of the volume on the node, as an attach:
// empty unless the plugin works in the lane of a driver (VolumePlugin::WorksInLane).
FaultDomain DriverLaneOf(const OperationParts& parts, const VolumeSpec& spec);
OperationTraits UnmountTraits(const OperationParts& parts, const char* name,
                              const UnmountRequest& request);
// The traits of an operation that has the device's key and uses the device exclusively. `record`:
// the device's, if it has one.
OperationTraits DeviceTraits(const UniqueVolumeName& device, const char* name,
                             const std::string& plugin_name,
                             const std::optional<DeviceRecord>& record);

// Records the event that tells the pod of the failure. Source: kubernetes
// pkg/volume/util/operationexecutor/operation_generator.go@v1.36.2 (GenerateError).
void TellOfFailure(HostEvents& events, const PodUid& pod, const SpecName& spec, bool is_block,
                   const OperationFailure& failure);

}  // namespace volumed
