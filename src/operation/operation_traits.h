// What the traits of operations, and the events about them, have in common. For the operations' own
// source files alone.
#pragma once

#include <string>

#include "operation/operation.h"
#include "operation/operation_parts.h"
#include "operation/volume_requests.h"

namespace volumed {

// Threads: the control thread. Blocks: never.

// Of a volume whose plugin is found by its spec; without a plugin its name is empty.
OperationTraits TraitsOf(const OperationParts& parts, OperationKey key, const char* name,
                         const VolumeSpec& spec);
// What the volume may hang with; nothing if there is no plugin.
FaultDomain DomainOf(const OperationParts& parts, const VolumeSpec& spec);
OperationTraits UnmountTraits(const OperationParts& parts, const char* name,
                              const UnmountRequest& request);
// Alone with the device, whose key it has.
OperationTraits DeviceTraits(const UniqueVolumeName& device, const char* name,
                             const std::string& plugin_name);

// What the pod is told of its volume. Source: kubernetes
// pkg/volume/util/operationexecutor/operation_generator.go@v1.36.2 (GenerateError).
void TellOfFailure(HostEvents& events, const PodUid& pod, const SpecName& spec, bool is_block,
                   const OperationFailure& failure);

}  // namespace volumed
