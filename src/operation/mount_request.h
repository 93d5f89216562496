// Translates a request for a set-up into what a Mounter takes; shared by the operations on one
// volume and on several. Only the operations' own source files include this.
#pragma once

#include "mounter/mounter.h"
#include "mounter/subpath.h"
#include "operation/volume_record_keeper.h"
#include "operation/volume_requests.h"

namespace volumed {

// Kubelet's operation_name. Source: kubernetes
// pkg/volume/util/operationexecutor/operation_generator.go@v1.36.2.
inline constexpr const char* kVolumeMount = "volume_mount";
inline constexpr const char* kVolumeUnmount = "volume_unmount";

// Threads: any. Blocks: never.

// What a set-up is given besides the volume: whose files it has, what lies in it, and whether it is
// new.
MounterArgs ArgsFor(const MountRequest& request, const CallOptions& call);
// The part of the volume that a container mounts, with its place below the pod's directory.
SafeSubpathRequest SubpathOf(const MountRequest& request, const SubPathRequest& wanted,
                             const Mounter& mounter);
// A remount changes the content of a volume that stays set up; every other event sets the volume
// up.
VolumeEvent MountEvent(const MountRequest& request, const VolumeRecordKeeper& keeper);
// Fills in what is known of the volume once it is set up, except its sub-paths.
void DescribeMounted(const std::string& plugin_name, const Mounter& mounter, MountedVolume& result);

}  // namespace volumed
