// Several PersistentVolumes may have the same storage, which has one device on the node: one after
// another, each with its own name and mode. Where the device is depends on them, and its record has
// one place: what is at that place, or may be, leaves before the device comes for another volume.
#pragma once

#include <string>

#include "base/ids.h"
#include "volumemanager/actual_state_of_world.h"
#include "volumemanager/desired_state_of_world.h"
#include "volumemanager/wanted_pod.h"

namespace volumed {

// All: Threads: the control thread. Blocks: never.

// Whether the device is at its place, or may be, as what this use of it does not want. `used`: a
// pod may have some of it; then the name alone says nothing, for pods share a device under several.
bool IsThereForAnother(const ActualDevice& device, const WantedVolume& wanted, bool used);

// Whether pods want the volume, and each of them as another one than its device is there for.
bool HasToLeaveFirst(const DesiredStateOfWorld& desired, const ActualStateOfWorld& actual,
                     const UniqueVolumeName& name);

// "the volume is still UnmountingDevice at /x for volume p, and has to leave that place first".
std::string StillThereText(const ActualDevice& device);

// Why the volume has another filesystem than its PersistentVolume asks for: the device was mounted
// for `there`, another one of the same storage, which asks for that. Empty if it has not.
std::string OtherFsTypeText(const VolumeSpec& wanted, const PersistentVolume& there);

}  // namespace volumed
