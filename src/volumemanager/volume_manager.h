// VolumeManager: keeps what pods should have (desired) and what the node has (actual) together.
// Driven by events; it owns both worlds on the control thread and starts operations, nothing else.
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

// Why something is not as it should be: the first blocking step and what happens next.
struct ProblemView {
  std::string operation;  // "volume_mount", or "" when no operation could start
  std::string step;       // "SetUp", "WaitForSources", "Held" ...
  std::string code;       // CodeName, or ""
  std::string outcome;    // OutcomeName, or ""
  std::string message;
  std::string who_must_act;  // "nobody: retried", "the owner of secret ns/name", "an administrator"
  int64_t since_unix_ms = 0;
  int64_t next_try_unix_ms = 0;  // 0: waits for an event
  uint64_t attempts = 0;
  bool is_warning = false;  // keeps nothing from being done
};

// The step of a pod that was deleted by command and that a source has all the same: nothing of it
// is on the node.
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
  std::string claim;                     // "namespace/name", of a volume that came by a claim
  std::string persistent_volume;  // its name; "" for an inline volume, or while there is none
  std::string plugin_name;
  std::string state;         // of the transition table: "SetUp"
  std::string device_state;  // of the device that it is bound from: "DeviceMounted"; "" without
  std::string device_mount_path;
  bool is_block = false;         // host_path is the pod's link to the device
  std::string device_path;       // on the node, of a volume that is attached or a block volume
  std::string device_node_path;  // the pod's node of it, in the global map directory
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
  // "Pending" (not all volumes are set up), "Ready", "Terminating", "Refused", or "Held" (of an
  // adopted root; see HeldPodView).
  std::string phase;
  int64_t since_unix_ms = 0;
  int64_t created_unix_ms = 0;       // when an agent of this root first had it; 0: not known
  std::vector<std::string> held_by;  // "pid 4711 (runc)", "cgroup /kubepods/..."
  std::vector<VolumeView> volumes;
  std::vector<ProblemView> problems;  // of the pod itself
};

// It was deleted by command, and nothing of it is on the node, though a source may have it. Pure.
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
  std::string claim;  // "namespace/name", that it is, was or shall be bound to; or ""
  std::string storage_class;
  std::string volume_mode;      // "Filesystem"
  std::string reason;           // of the phase, or the last failure to reclaim it; or ""
  bool deleting = false;        // it goes as soon as nothing needs it
  bool missing = false;         // it has left its source, and nobody has deleted it
  int64_t created_unix_ms = 0;  // 0: nobody has said
};

struct PersistentVolumeClaimView {
  std::string ns;
  std::string name;
  std::string uid;     // "" if it is refused
  std::string owner;   // "Pod/web", of its namespace, if it was made for one
  std::string phase;   // "Bound"
  std::string volume;  // that it has, had, or names; or ""
  // Of the volume, once it is bound; else empty.
  std::string capacity;
  std::vector<std::string> access_modes;
  std::string storage_class;  // with the default class, where that counts
  std::string volume_mode;
  std::string reason;  // why it is not bound, or what is odd about its binding
  bool deleting = false;
  bool missing = false;
  int64_t created_unix_ms = 0;
};

// A pod of an adopted root that no source has, and that has data on disk.
struct HeldPodView {
  PodUid uid;
  std::string ns;                      // empty if nothing tells the pod's name
  std::string name;                    // likewise
  std::vector<std::string> disk_data;  // its volumes that have data
};

// What a pod is called, in the order in which pods are listed.
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

// Where a PersistentVolumeClaim or PersistentVolume of this node stands.
struct StorageStatus {
  std::string phase;    // "Pending", "Bound", "Released" ...; "Terminating" once it is deleted
  std::string held_by;  // what keeps it; "" when it could go at once
  std::string reason;   // for people; "" when there is nothing to say
  std::string other;    // the volume of a claim, the claim of a volume; "" when there is none
  // Of a volume:
  bool claim_goes = false;    // its claim is gone or being deleted, and its data is there
  bool is_missing = false;    // it has left its source, and nobody has deleted it
  std::string unreclaimable;  // why nothing here can do as its policy asks; "" if something can
};

// Threads: the control thread, for every method. Blocks: never; `done` is called later, on the
// control thread.
class VolumeManager {
 public:
  virtual ~VolumeManager() = default;

  // Something in the sources changed (ObjectCatalog calls it).
  virtual void ObjectsChanged() = 0;

  // A command: the pod with exactly this uid is to leave, whatever the sources say. With `force`,
  // consumers do not hold it back. `done` comes when the command is durable: no agent after this
  // one brings the pod back, whatever ends this one.
  // Errors: NotFound (not applied): no such pod is known; Unavailable (not applied): the records
  // are not loaded yet; FailedPrecondition (not applied): its records cannot be read and it is left
  // alone; those of RecordStore, always maybe applied: this agent takes the pod away, the next one
  // may bring it back.
  virtual void DeletePod(const PodUid& pod, bool force, std::function<void(Status)> done) = 0;

  // NotFound: no such pod; InvalidArgument; FailedPrecondition: no such process or cgroup.
  virtual void Hold(HoldRequest request, std::function<void(Status)> done) = 0;
  virtual void ReleaseHold(HoldRequest request, std::function<void(Status)> done) = 0;

  // Forgets back-offs and tries again at once.
  virtual Status Retry(const PodUid& pod) = 0;
  // Of one volume alone. NotFound: the pod neither has nor wants it.
  virtual Status RetryVolume(const PodVolumeKey& key) = 0;

  // A command to delete it is on record, and something protects it still.
  virtual bool IsBeingDeleted(const ObjectKey& object) const = 0;
  // A command has ended the very object.
  virtual bool HasEnded(const ObjectKey& object, const std::string& uid) const = 0;
  // Of a claim or a PersistentVolume; false for anything else.
  virtual bool IsBound(const ObjectKey& object) const = 0;
  // The pod for whose generic ephemeral volume this claim is; empty if it is for none.
  virtual PodUid PodOfClaim(const ObjectKey& claim) const = 0;
  // Of an object that nobody can read now; "" if none is known.
  virtual std::string UidOnRecord(const ObjectKey& object) const = 0;
  // When a pod begins to leave because its manifest has other volumes; nullopt for one that is not
  // to be replaced.
  virtual std::optional<int64_t> ReplacedAtUnixMillis(const ObjectKey& pod) const = 0;

  // Pods of an adopted root that are held: no source has them, and they have data on disk.
  virtual std::vector<HeldPodView> HeldAdoptedPods() const = 0;

  // As last decided; nothing for an object that nothing was decided about.
  virtual std::optional<StorageStatus> StorageStatusOf(const ObjectKey& object) const = 0;
  // A command: the object, which is no pod, is to go, whichever source has it; a claim or a
  // PersistentVolume as soon as nothing protects it. `done` comes when the command is durable: no
  // agent after this one takes the object for one that is there, and a manifest that still has it
  // is refused.
  // Errors: NotFound (not applied): no such object is known; Unavailable (not applied): what is
  // known is not loaded yet; those of RecordStore, not applied if the command got no number, maybe
  // applied if it could not be recorded yet, which is tried again.
  virtual void DeleteObject(const ObjectKey& object, std::function<void(Status)> done) = 0;
  // The number of a command that gives objects, higher than that of every command before.
  // Errors: Unavailable (not applied), as above; RecordStore's (not applied).
  virtual void NumberCommand(std::function<void(Result<uint64_t>)> done) = 0;

  // The claim's status as it is to be shown: the object's, with what the agent knows of it.
  virtual PersistentVolumeClaimStatus ClaimStatus(const PersistentVolumeClaim& claim) const = 0;

  virtual std::vector<PodView> Pods() const = 0;
  // Of those of Pods() the first so many after `after`, sorted, without looking at any: who lists
  // many looks at them by and by, so that nobody waits for the control thread meanwhile. One may
  // have gone by then. With an empty `after` from the first.
  virtual std::vector<PodName> PodNames(const PodName& after, size_t limit) const = 0;
  // FindPod() has it. Nothing is built.
  virtual bool HasPod(const PodUid& pod) const = 0;
  // Of one name, one goes on and others may leave. At the price of what is found.
  virtual std::vector<PodView> PodsNamed(const std::string& name_space,
                                         const std::string& name) const = 0;
  virtual std::optional<PodView> FindPod(const PodUid& pod) const = 0;
  // What the node has of it, whether a source has it or not.
  virtual PodOnNode FindOnNode(const PodUid& pod) const = 0;
  // Sorted by name, and by namespace and name.
  virtual std::vector<PersistentVolumeView> PersistentVolumes() const = 0;
  virtual std::vector<PersistentVolumeClaimView> PersistentVolumeClaims() const = 0;

  // Records are loaded and every configured source has delivered: unmounting is allowed.
  virtual bool Ready() const = 0;
  virtual std::string NotReadyReason() const = 0;

  // Calls `observer` after every change of a view, and with an empty uid when Ready() has become
  // true: wait and watch are built on it.
  virtual uint64_t AddObserver(std::function<void(const PodUid&)> observer) = 0;
  virtual void RemoveObserver(uint64_t id) = 0;
};

}  // namespace volumed
