// What the volume manager shows of pods, volumes and claims: plain values, for people and programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "operation/volume_operations.h"

namespace volumed {

// Why something is not as it should be: the first step that blocks it, and what happens next.
struct ProblemView {
  std::string operation;  // "volume_mount"; "" if no operation could start
  std::string step;       // "SetUp", "WaitForSources", "Held" ...
  std::string code;       // CodeName; or ""
  std::string outcome;    // OutcomeName; or ""
  std::string message;
  std::string who_must_act;  // "nobody: retried", "the owner of secret ns/name", "an administrator"
  int64_t since_unix_ms = 0;
  int64_t next_try_unix_ms = 0;  // 0: the next try waits for an event
  uint64_t attempts = 0;
  bool is_warning = false;  // it keeps nothing from being done
};

// The step of a pod that was deleted by command and that a source still has: nothing of it is on
// the node.
inline constexpr const char* kDeletedStep = "Deleted";

// How much a volume holds, by the last measurement; nullopt: its filesystem or plugin does not
// tell.
struct VolumeUsageView {
  std::optional<int64_t> used_bytes, capacity_bytes, available_bytes;
  std::optional<int64_t> inodes_used, inodes, inodes_free;
  int64_t measured_unix_ms = 0;
};

// A volume of a pod, wanted or on the node. Paths are absolute paths on the node; "" if there is
// none.
struct VolumeView {
  PodUid pod;
  std::string pod_namespace;
  std::string pod_name;
  SpecName spec;
  std::vector<std::string> pod_volumes;  // its names in the pod's spec
  // "namespace/name" if a claim gives the volume.
  std::string claim;
  std::string persistent_volume;  // its name; "" for an inline volume, or if there is none yet
  std::string plugin_name;
  std::string state;             // of the transition table: "SetUp"
  std::string device_state;      // of the device from which it is bound: "DeviceMounted"; or ""
  bool needs_no_attach = false;  // the device is "Attached" without a step that attaches it
  std::string device_mount_path;
  bool is_block = false;         // host_path is the pod's link to the device
  std::string device_path;       // on the node, if attached or a block volume
  std::string device_node_path;  // the pod's device node in the global map directory
  bool uncertain = false;
  bool stuck = false;   // its worker could not be ended, or its server is silent
  bool wanted = false;  // the desired state has it
  std::string host_path;
  bool read_only = false;
  int64_t since_unix_ms = 0;
  // The step of the operation that runs, or waits for a worker, now; or "". It may be one of the
  // volume, of its device, or one that makes it larger.
  std::string running_step;
  // Another program that the step waits for, as of RunningOperation; or "".
  std::string awaited;
  int64_t awaited_since_unix_ms = 0;
  // Entries that the step has done, if it counts them (OperationProgress).
  int64_t progress = 0;
  std::vector<SubPathMount> sub_paths;
  std::optional<ProblemView> problem;
  std::optional<VolumeUsageView> usage;
};

// A pod that the node has or is to have, or one that was deleted by command and that a source still
// has.
struct PodView {
  PodUid uid;
  std::string ns;
  std::string name;
  // The name of the source that has the pod, or had it last; "" if none is known.
  std::string source;
  // "Pending" (not all volumes are set up), "Ready", "Terminating", "Refused", or "Held" (in an
  // adopted root; see AdoptedPodView).
  std::string phase;
  int64_t since_unix_ms = 0;
  // When an agent of this root first had the pod; 0: not known.
  int64_t created_unix_ms = 0;
  std::vector<std::string> held_by;  // "pid 4711 (runc)", "cgroup /kubepods/..."
  std::vector<VolumeView> volumes;
  std::vector<ProblemView> problems;  // of the pod itself
};

// Whether a command has deleted the pod and nothing of it is on the node, although a source may
// still have it. This function is pure.
inline bool IsDeletedByCommand(const PodView& pod) {
  return pod.phase == "Refused" && pod.volumes.empty() && !pod.problems.empty() &&
         pod.problems.front().step == kDeletedStep;
}

// A volume of the sources, or one that is kept although its manifest is gone. Times are in Unix
// milliseconds.
struct PersistentVolumeView {
  std::string name;
  std::string capacity;                   // "1Gi"
  std::vector<std::string> access_modes;  // "ReadWriteOnce"
  std::string reclaim_policy;             // "Retain"
  std::string phase;                      // "Available"
  // The claim ("namespace/name") to which it is, was or shall be bound; or "".
  std::string claim;
  std::string storage_class;
  std::string volume_mode;      // "Filesystem"
  std::string reason;           // of the phase, or the last failure to reclaim it; or ""
  bool deleting = false;        // it goes as soon as nothing needs it
  bool missing = false;         // it has left its source, but was not deleted
  int64_t created_unix_ms = 0;  // 0: not known
  // Why it cannot be undone or reclaimed at the moment, and who acts.
  std::optional<ProblemView> problem;
};

// The phase of a volume that was begun for a claim which does not wait for it any more: its maker
// is to take back what there may be of it.
inline constexpr const char* kUndoingPhase = "Undoing";

// Something that is to leave the node, or storage that is to be taken back, and what keeps it.
struct OwedView {
  std::string what;  // "volume pvc-1", "device kubernetes.io/csi/..."
  ProblemView problem;
};

// What a CSI driver is still to do with a volume that its claim has left.
struct PendingReclaim {
  std::string driver;
  std::string handle;
  // What keeps it from being done; "": nothing that one has to give up.
  std::string problem = {};
  bool waits_for_driver = false;
  bool may_be_done = false;  // the last try may have deleted the storage
  std::string device = {};   // the state of its device on this node; "": there is none
};

// A claim of the sources, one that was made for a pod's generic ephemeral volume, or one that is
// refused.
struct PersistentVolumeClaimView {
  std::string ns;
  std::string name;
  std::string uid;  // "" if the claim is refused
  // "Pod/web", in its namespace, if it was made for a pod.
  std::string owner;
  std::string phase;   // "Bound"
  std::string volume;  // that it has, had or names; or ""
  // Facts of the volume, if the claim is bound; else empty.
  std::string capacity;
  std::vector<std::string> access_modes;
  std::string storage_class;  // with the default class, if it applies
  std::string volume_mode;
  std::string reason;  // why it is not bound, or what is odd about its binding
  bool deleting = false;
  bool missing = false;
  int64_t created_unix_ms = 0;
};

// A pod of an adopted root that no source has and that has data on disk, or volumes mounted while
// a source may have pods that nobody knows. An administrator has to let it go.
struct AdoptedPodView {
  PodUid uid;
  std::string ns;                      // empty if the pod's name is not known
  std::string name;                    // likewise
  std::vector<std::string> disk_data;  // names of its volumes that have data
  std::vector<std::string> mounted;    // of those that are mounted, if it is held for them
  std::string why_held;                // likewise: "no source has any pod"
};

// The name of a pod, in the order in which pods are listed.
struct PodName {
  std::string ns;
  std::string name;
  PodUid uid;
  friend auto operator<=>(const PodName&, const PodName&) = default;
};

// The state of a PersistentVolumeClaim or PersistentVolume of this node. This is what a command on
// the object has to know.
struct StorageStatus {
  std::string phase;    // "Pending", "Bound", "Released" ...; "Terminating" once deleted
  std::string held_by;  // what keeps it; "" if it could go at once
  std::string reason;   // for people; "" if there is nothing to say
  std::string other;    // a claim's volume, a volume's claim; or ""
  // The following are about a volume:
  // Its claim is gone or being deleted, and its data is there.
  bool claim_goes = false;
  bool is_missing = false;  // it has left its source, but was not deleted
  // Why nothing here can do what its policy asks; "" if something can.
  std::string unreclaimable;
};

}  // namespace volumed
