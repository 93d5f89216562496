// What is walked: one pod with every volume type that a node has of its own, a sub-path of three of
// them and an fsGroup, beside a second pod that nothing may happen to.
#pragma once

#include <vector>

#include "unit/crash/crash_harness.h"

namespace volumed {

// Where the scenarios keep their manifests, and the pods of those files.
inline constexpr const char* kFiles = "manifests";
inline constexpr const char* kFirst = "u-first";
inline constexpr const char* kSecond = "u-second";
inline constexpr const char* kOther = "u-other";

Scenario SetUpScenario();
Scenario ChangeScenario();         // configMap, secret and labels change; the token is rotated
Scenario RemovedObjectScenario();  // teardown: the object leaves its source
Scenario DeletedByUidScenario();   // teardown: by command, while the source still has it
Scenario HeldPodScenario();        // teardown: a process holds the pod, then ends
Scenario ForeignMountScenario();   // teardown: somebody's own mount, with data, lies in a volume
Scenario ShortLifeScenario();      // removed while it is being set up; comes back while it leaves

// Persistent volumes; see crash_device_scenarios.cc.
Scenario DeviceScenario();         // a new disk is formatted, shared by two pods, and left
Scenario JoiningWriterScenario();  // the first pod of the device only reads
Scenario BindingScenario();        // the sources bring volume and claim, then their pod
Scenario CutFormatScenario();      // the worker dies amid mkfs, which left its mark
Scenario LostFormatScenario();     // likewise, without a mark: until somebody wipes the disk
Scenario HalfFormatScenario();     // it dies after mkfs, whose end did not reach the disk
Scenario ExpandScenario();         // a volume grows while a pod has it, and while none has
Scenario CheckedDiskScenario();    // fsck; a second pod after the first
Scenario ReleasedClaimScenario();  // Retain: a claim leaves, another comes, the volume goes
Scenario AttachScenario();         // a disk of an array, shared by two pods, and left
Scenario ShortAttachScenario();    // its pod leaves while it is being attached
// Disks of a flexVolume driver; see crash_flex_scenarios.cc.
Scenario FlexVolumeScenario();       // a new disk, shared by two pods, and left
Scenario ShortFlexVolumeScenario();  // its pod leaves while it is being attached
Scenario FcScenario();  // a LUN by two paths, shared by two pods; map and disks go with the last
// A raw block volume of two pods, for one of which a kubelet has left a loop device.
Scenario BlockScenario();
inline constexpr const char* kOtherBlockDevice = "/dev/vdc";  // of nobody
Scenario RecycleScenario();       // Recycle: the claim leaves before its pod
Scenario ReusedVolumeScenario();  // the second claim has written to it, and its pods come and go

// Disks of an iSCSI target; see crash_iscsi_scenarios.cc.
Scenario IscsiScenario();       // two pods, each on a LUN, share the sessions of two portals
Scenario ShortIscsiScenario();  // its pod leaves while the agent logs in

// Volumes of a CSI driver; see crash_csi_scenarios.cc.
Scenario CsiStagedScenario();      // staged once, for two pods
Scenario CsiAttachedScenario();    // attached by the driver's controller, for two pods
Scenario CsiBlockScenario();       // raw, for two pods
Scenario CsiProvisionScenario();   // made for a claim, and deleted with it
Scenario CsiExpandScenario();      // made larger while a pod has it
Scenario CsiInlineScenario();      // it begins and ends with its pod
Scenario CsiOnePodScenario();      // ReadWriteOncePod, and two pods want it
Scenario CsiObjectsScenario();     // attached by somebody else, as a VolumeAttachment says
Scenario CsiDriverAwayScenario();  // nobody runs the driver while its pod leaves
Scenario CsiUnstagingScenario();   // its next release does not stage what is staged
// Of the older-records walk: deleted, and there again.
Scenario CsiReturnedClaimScenario();

// Volumes that the node makes; see crash_provision_scenarios.cc.
Scenario ReturnedClaimScenario();   // of the older-records walk: deleted, and there again
Scenario ProvisionScenario();       // Immediate and WaitForFirstConsumer; one is deleted, one stays
Scenario ShortClaimScenario();      // the claim leaves while its volume is being made
Scenario MissingClaimScenario();    // Delete: absence of claim and class is no command
Scenario CommandedClaimScenario();  // Delete: refused until its file has lost it
Scenario RemadeClaimScenario();     // without a uid, Retain: the next of its name is another one

// Volumes of the node's own pool; see crash_pool_scenarios.cc.
Scenario PoolScenario();        // made for a claim, mounted, grown in use, unmounted, deleted
Scenario StagedPoolScenario();  // claim and volume are deleted while a pod has it

// Exports of an NFS server; see crash_nfs_scenarios.cc.
Scenario NfsScenario();         // mounted for two pods
Scenario NfsRecycleScenario();  // by a mount of the recycler's own

// Whose storage it is; see crash_storage_scenarios.cc.
Scenario NestedVolumesScenario();       // one volume's directory lies in that of a recycled one
Scenario RetainedVolumeScenario();      // a volume in a recycled one is deleted, its data stays
Scenario ExchangedDirectoryScenario();  // another directory is at the path of a recycled one
Scenario MarkedDirectoryScenario();     // the directory of a recycled one is another claim's by now
Scenario ExchangedDeviceScenario();     // another disk is at the path of a block volume
Scenario UnmountedDiskScenario();       // a pod comes while its disk is not at its path
Scenario RenamedDirectoryScenario();    // one volume's directory comes to be at another one's path
Scenario UnreadableVolumeScenario();    // the object of a volume in a recycled one is damaged
Scenario TwinDevicesScenario();         // two loop devices of one file, each a volume
Scenario OwnDirectoriesScenario();      // a directory of the agent's lies in a recycled volume

// Who an object is, and what of it is known; see crash_identity_scenarios.cc.
Scenario MovedClaimScenario();          // a claim without a uid moves from one source to another
Scenario DoubledObjectScenario();       // a second source has a ConfigMap of the same name
Scenario UnconfiguredSourceScenario();  // the source of a running pod is not configured any more
Scenario UnknownObjectScenario();       // the file of an optional ConfigMap is in disorder
Scenario MovedPodScenario();            // a pod without a uid moves, and its labels change
Scenario EditedPodScenario();           // its volumes are edited, while a process holds it
Scenario ReplacedPodScenario();         // a command replaces it, while a process holds it

// Commands; see crash_command_scenarios.cc.
Scenario NumberedCommandsScenario();  // delete and apply: the last one that was answered holds
Scenario DamagedObjectScenario();     // files of applied objects that nobody can read
Scenario RemovalDeletesScenario();    // a claim leaves a directory where that is the command

// Operations that have to do with each other at one time; see crash_overlap_scenarios.cc.
Scenario TwoVolumesOnADiskScenario();    // each wants to format it
Scenario RawAndMountedScenario();        // one wants to format it, one to hand it out
Scenario TwoPodsAtOnceScenario();        // on one claim of a new disk
Scenario TwoPodsOnADirectoryScenario();  // on one claim, of a directory that gets a mark
Scenario HandOverScenario();             // one pod leaves as the next one comes
Scenario RawHandOverScenario();          // likewise, of a block volume
Scenario EmptiedBesideScenario();        // a recycle beside the set-up of a pod's own volume in it
Scenario EmptiedBesideVolumeScenario();  // beside that of another persistent volume in it
Scenario EmptiedAsAPodComesScenario();   // the pod comes amid it
Scenario CsiTwoPodsAtOnceScenario();     // on one claim of a volume of a CSI driver

std::vector<Scenario> AllScenarios();
// Of these, those with a CSI driver.
std::vector<Scenario> CsiScenarios();
std::vector<Scenario> OverlapScenarios();

}  // namespace volumed
