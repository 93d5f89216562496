// VolumeManager: brings what the node has (actual) nearer to what pods should have (desired). It is
// driven by events, owns both states on the control thread, and otherwise only starts operations.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "kube/object_catalog.h"
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

struct VolumeUsageView {
  std::optional<int64_t> used_bytes, capacity_bytes, available_bytes;
  std::optional<int64_t> inodes_used, inodes, inodes_free;
  int64_t measured_unix_ms = 0;
};

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
  std::string state;         // of the transition table: "SetUp"
  std::string device_state;  // of the device from which it is bound: "DeviceMounted"; or ""
  std::string device_mount_path;
  bool is_block = false;         // host_path is the pod's link to the device
  std::string device_path;       // on the node, if attached or a block volume
  std::string device_node_path;  // the pod's device node in the global map directory
  bool uncertain = false;
  bool stuck = false;   // a worker for it could not be ended
  bool wanted = false;  // the desired state has it
  std::string host_path;
  bool read_only = false;
  int64_t since_unix_ms = 0;
  std::string running_step;  // of the operation that runs now, or ""
  int64_t progress = 0;
  std::vector<SubPathMount> sub_paths;
  std::optional<ProblemView> problem;
  std::optional<VolumeUsageView> usage;
};

struct PodView {
  PodUid uid;
  std::string ns;
  std::string name;
  std::string source;
  // "Pending" (not all volumes are set up), "Ready", "Terminating", "Refused", or "Held" (in an
  // adopted root; see HeldPodView).
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

// A volume of the sources, or one that is kept although its manifest is gone.
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
};

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

// A pod of an adopted root that no source has and that has data on disk.
struct HeldPodView {
  PodUid uid;
  std::string ns;                      // empty if the pod's name is not known
  std::string name;                    // likewise
  std::vector<std::string> disk_data;  // names of its volumes that have data
};

// The name of a pod, in the order in which pods are listed.
struct PodName {
  std::string ns;
  std::string name;
  PodUid uid;
  friend auto operator<=>(const PodName&, const PodName&) = default;
};

struct HoldRequest {
  PodUid pod;
  int64_t pid = 0;     // exactly one of the two is set
  std::string cgroup;  // absolute path below the cgroup filesystem, or of a directory in it
};

// The state of a PersistentVolumeClaim or PersistentVolume of this node.
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

// Threads: the control thread, for every method. Blocks: never; `done` is called later, on the
// control thread.
class VolumeManager {
 public:
  virtual ~VolumeManager() = default;

  // The readiness of the sources has changed: looks at everything that waited for it.
  virtual void ObjectsChanged() = 0;

  // Commands the pod with exactly this uid to leave, whatever the sources say. With `force`,
  // consumers do not hold it back. `done` is called when the command is durable: no agent after
  // this one brings the pod back, even if this one ends.
  // Errors: NotFound (not applied): no such pod is known; Unavailable (not applied): the records
  // are not loaded yet; FailedPrecondition (not applied): the pod's records cannot be read, so it
  // is left alone; those of RecordStore, always maybe applied: this agent takes the pod away, but
  // the next one may bring it back.
  virtual void DeletePod(const PodUid& pod, bool force, std::function<void(Status)> done) = 0;

  // Errors: NotFound: no such pod; InvalidArgument; FailedPrecondition: no such process or cgroup.
  virtual void Hold(HoldRequest request, std::function<void(Status)> done) = 0;
  virtual void ReleaseHold(HoldRequest request, std::function<void(Status)> done) = 0;

  // Forgets back-offs and tries again at once.
  virtual Status Retry(const PodUid& pod) = 0;
  // The same for one volume. Errors: NotFound if the pod neither has nor wants it.
  virtual Status RetryVolume(const PodVolumeKey& key) = 0;

  // Whether a command to delete the object is on record, and something still protects the object.
  virtual bool IsBeingDeleted(const ObjectKey& object) const = 0;
  // Whether a command has ended this very object.
  virtual bool HasEnded(const ObjectKey& object, const std::string& uid) const = 0;
  // For a claim or a PersistentVolume; false for any other object.
  virtual bool IsBound(const ObjectKey& object) const = 0;
  // The pod for whose generic ephemeral volume the claim was made; empty if it was not made for
  // one.
  virtual PodUid PodOfClaim(const ObjectKey& claim) const = 0;
  // The uid of an object that may not be readable now; "" if none is known.
  virtual std::string UidOnRecord(const ObjectKey& object) const = 0;
  // When a pod begins to leave because its manifest has other volumes; nullopt if it is not to be
  // replaced.
  virtual std::optional<int64_t> ReplacedAtUnixMillis(const ObjectKey& pod) const = 0;

  // The held pods of an adopted root: no source has them, and they have data on disk.
  virtual std::vector<HeldPodView> HeldAdoptedPods() const = 0;

  // As of the last decision; nullopt if nothing was decided about the object.
  virtual std::optional<StorageStatus> StorageStatusOf(const ObjectKey& object) const = 0;
  // Commands the object, which is not a pod, to go, whichever source has it; a claim or a
  // PersistentVolume goes as soon as nothing protects it. `done` is called when the command is
  // durable: no agent after this one takes the object for an existing one, and a manifest that
  // still has it is refused.
  // Errors: NotFound (not applied): no such object is known; Unavailable (not applied): what is
  // known is not loaded yet; those of RecordStore, not applied if the command got no number, maybe
  // applied if it could not be recorded yet, which is tried again.
  virtual void DeleteObject(const ObjectKey& object, std::function<void(Status)> done) = 0;
  // Gives the number of a command that gives objects; it is higher than that of every command
  // before.
  // Errors: Unavailable (not applied), as above; RecordStore's (not applied).
  virtual void NumberCommand(std::function<void(Result<uint64_t>)> done) = 0;

  // The claim's status as it is to be shown: that of the object, with what the agent knows.
  virtual PersistentVolumeClaimStatus ClaimStatus(const PersistentVolumeClaim& claim) const = 0;

  virtual std::vector<PodView> Pods() const = 0;
  // The names of Pods() after `after`, sorted, at most `limit` of them; an empty `after` means from
  // the first. No view is built: a caller that lists many pods asks for their views in small steps,
  // so that others do not wait for the control thread. A pod may be gone by then.
  virtual std::vector<PodName> PodNames(const PodName& after, size_t limit) const = 0;
  // Whether FindPod() has the pod; no view is built.
  virtual bool HasPod(const PodUid& pod) const = 0;
  // The pods of one name; at most one of them goes on, and the others leave. The cost depends on
  // what is found.
  virtual std::vector<PodView> PodsNamed(const std::string& name_space,
                                         const std::string& name) const = 0;
  virtual std::optional<PodView> FindPod(const PodUid& pod) const = 0;
  // What the node has of the pod, whether a source has it or not.
  virtual PodOnNode FindOnNode(const PodUid& pod) const = 0;
  // Volumes are sorted by name, claims by namespace and name.
  virtual std::vector<PersistentVolumeView> PersistentVolumes() const = 0;
  virtual std::vector<PersistentVolumeClaimView> PersistentVolumeClaims() const = 0;

  // True once records are loaded and every configured source has delivered: unmounting is allowed.
  virtual bool Ready() const = 0;
  virtual std::string NotReadyReason() const = 0;

  // Calls `observer` after every change of a view, and with an empty uid when Ready() has become
  // true; wait and watch use this.
  virtual uint64_t AddObserver(std::function<void(const PodUid&)> observer) = 0;
  virtual void RemoveObserver(uint64_t id) = 0;
};

}  // namespace volumed
