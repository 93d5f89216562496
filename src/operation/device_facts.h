// What the operations on devices share: the facts of a device's record, and the question whether a
// pod may have any of the device.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "operation/operation_parts.h"
#include "operation/volume_operations.h"
#include "operation/volume_record.h"
#include "operation/volume_record_keeper.h"
#include "pluginmgr/volume_plugin.h"

namespace volumed {

// Threads: any. Blocks: never, unless the comment says otherwise.

// What a call on the device records besides its state (RecordKeeper::BeginCall): names, place,
// fault domain and the volume as JSON.
DeviceRecord DeviceFactsOf(const UniqueVolumeName& device, const VolumePlugin& plugin,
                           const VolumeSpec& spec, const SafePath& device_mount_path);

// The CallOptions::domain of the calls that unmount a device. A device that no record knows has a
// domain of its own, "found:<unique name>", since it may hang with anything.
std::string FaultDomainOf(const UnmountDeviceRequest& request, const DeviceRecordKeeper& devices);

// Whether what an attach has answered (DeviceRecord::device_path) is a path on the node, and not
// only a name, as that of a driver's attachment is.
inline bool IsDevicePath(const std::string& path) { return path.starts_with('/'); }

// Whether the device is to be detached once it is unmounted, and so has to be free by then. A
// driver's devices are asked one by one: its plugin stands for drivers that attach and for others.
bool IsDetachedNext(VolumePlugin& plugin, const DeviceRecord& facts);

// A row has one place. What is mounted, staged or mapped at the one that it has, or may be, would
// be forgotten with it, and nobody would ever take it back. Errors: FailedPrecondition, not
// applied, if the row has another place, or the other kind, than these facts of a mount or of a
// map.
Status CheckNotElsewhere(const DeviceRecordKeeper& devices, const DeviceRecord& facts);

// Where a volume's device is: its mount, or its global map directory. Blocks: never.
using PlaceOfVolume = std::function<Result<SafePath>(const VolumeSpec&)>;

// The row of the device may be lost, or say nothing of a place, while pods have the device still:
// by their own rows, or by mounts of which no record tells. As a filesystem such a device would be
// formatted under a pod that has it raw. Errors: FailedPrecondition, not applied, naming the pod or
// the mount, if somebody has the device in the other volumeMode than `wanted`, or at another place;
// those of ListMounts. Without a place in `wanted`, and then without `place_of`, the modes alone
// are compared. Costs what this one device has.
Status CheckNotHadOtherwise(const OperationParts& parts, const DeviceRecord& wanted,
                            const PlaceOfVolume& place_of);

// Errors: FailedPrecondition, not applied, naming a pod that has the device by its record.
Status CheckNoPodHas(const VolumeRecordKeeper& volumes, const UniqueVolumeName& device);

// The same, also of pods whose mounts are on no record. Blocks: as ListMounts. Errors: that one;
// FailedPrecondition, not applied, with pod and path; those of ListMounts.
Status CheckNoPodHas(const OperationParts& parts, const DeviceRecord& device,
                     const CallOptions& call);

}  // namespace volumed
