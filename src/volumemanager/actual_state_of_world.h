// ActualStateOfWorld: what is known of the volumes on this node. Only this class, and its part
// ActualDevices, assign the state of a volume in memory, and always by the transition table.
// Source: kubernetes pkg/kubelet/volumemanager/cache/actual_state_of_world.go@v1.36.2.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "kube/work_counter.h"
#include "operation/volume_operations.h"
#include "operation/volume_state.h"
#include "pluginmgr/volume_plugin.h"
#include "volumemanager/actual_devices.h"
#include "volumemanager/failure_history.h"

namespace volumed {

struct ActualVolume {
  std::string plugin_name;
  VolumeState state = VolumeState::kNotSetUp;
  bool uncertain = false;
  // The volume was found at the start and this process has not set it up since. A container may use
  // what is there, so a failure must leave it alone.
  bool reconstructed = false;
  // What was found in the volume's place at the start; see MountRequest. nullopt if that is not
  // known, and once this process has set the volume up or has begun to take it away.
  std::optional<std::string> found_as;
  int64_t since_unix_ms = 0;  // when it entered the state

  // Set for a persistent volume, which pods share; else empty. Only
  // ActualStateOfWorld::SetUniqueName changes it.
  UniqueVolumeName unique_name;
  bool has_device = false;  // it is bound from the device of that name
  bool is_block = false;    // the pod gets the device itself: it is mapped, not set up
  // The domain of the driver whose volume it is (VolumePlugin::WorksInLane); else "".
  std::string driver_domain;
  // What the plugin constructed from the disk, if no record knew the volume.
  std::optional<VolumeSpec> constructed;

  bool in_flight = false;         // an operation on it runs
  bool uncertain_before = false;  // `uncertain` before the operation that runs
  // The generation of the inputs that were given to the operation that runs.
  uint64_t call_generation = 0;

  // The generation of the inputs of the last successful set-up. 0 if this process has not set it
  // up, if it has begun to take it away, or if what is in its place has a content that is not
  // known: it is then set up once more.
  uint64_t applied_generation = 0;
  std::optional<MountedVolume> mounted;  // facts of the last successful set-up
  std::optional<FailureHistory> failure;
};

// Why and since when a pod is to leave. A pod leaves as long as this is set (ActualPod::leaving).
struct Leaving {
  std::string reason;  // "deleted by command", "removed from its sources" ...
  int64_t since_unix_ms = 0;
  // Counted from `since`; it holds only if no consumer was ever known.
  int64_t grace_seconds = 0;
  // A command named the pod by uid: no source has to agree.
  bool commanded = false;
  // Neither consumers nor grace hold it back. No record says this: after a restart of the agent the
  // command has to be given again.
  bool force = false;
  // No source has the pod any more. If a source has it again, it is wanted anew.
  bool left_sources = false;
  bool evicted = false;  // by the agent; `reason` says why
};

// What a pod is called, beside its uid, and where it comes from. Two pods of one name may be known
// at a time, of which one leaves.
struct PodIdentity {
  std::string name_space;
  std::string name;
  // The name of the source that has it, or had it last; empty if that is not known.
  std::string source;
  // The file of that source; empty if it has none, or if it is not known.
  std::string file = {};
  friend bool operator==(const PodIdentity&, const PodIdentity&) = default;
  std::string DisplayName() const { return name_space + "/" + name; }
};

struct ActualPod {
  PodIdentity identity;
  // As it was last wanted, or as its record has it; null if neither is known.
  PodPtr object;
  int64_t since_unix_ms = 0;    // when this process first knew it
  int64_t created_unix_ms = 0;  // when an agent of this root first knew it
  std::map<SpecName, ActualVolume> volumes;

  // The state of the pod's record, which is written before the pod's first operation.
  bool record_durable = false;
  bool record_writing = false;
  bool record_outdated = false;  // the record differs from what is so now
  std::string recorded_json;     // the pod as its record has it
  std::optional<FailureHistory> record_failure;

  // A source has delivered it to this process; otherwise only the last process knew it.
  bool delivered = false;
  // The root was adopted, and the pod's directories existed when this process started: they are
  // removed with the pod, whether it has a record or not.
  bool has_directories = false;

  std::optional<Leaving> leaving;
  bool teardown_begun = false;  // no new consumer is accepted
  bool removing = false;        // RemovePod runs
  // RemovePod leaves the record, since a command has deleted the pod.
  bool keeps_record = false;
  std::optional<FailureHistory> remove_failure;
  // The volumes with an operation under way when a mount below the pod's directory went, or when a
  // mount came or went at or above the volume's source; the empty name stands for the removal of
  // the pod. If such an operation fails, it is tried again at once, since the mount may have been
  // the cause.
  std::set<SpecName> mount_went_during;

  // Set if a record of this pod could not be read, or if something was mounted over its directory
  // before the start: then no operation touches the pod.
  std::string quarantine_reason;
  // The mount point in the second case; the reason is dropped when that mount goes.
  std::string covered_by;
};

// What is known when a mount starts. See the members of the same names in ActualVolume;
// `generation` becomes call_generation.
struct MountIntent {
  std::string plugin_name;
  uint64_t generation = 0;
  UniqueVolumeName unique_name = {};
  bool has_device = false;
  bool is_block = false;
  std::string driver_domain = {};
};

// Threads: the control thread. Blocks: never.
// REQUIRES, for methods that take a key: the volume (or pod) exists, unless the comment says
// otherwise.
class ActualStateOfWorld {
 public:
  explicit ActualStateOfWorld(const Clock& clock) : clock_(clock), devices_(clock) {}

  // Adds the pod if it does not exist. A pod that exists keeps the identity that it has. The
  // reference is valid until the pod is erased.
  ActualPod& AddPod(const PodUid& pod, const PodIdentity& identity);
  // Null if the pod is not known. The pointer is valid until the pod is erased.
  ActualPod* FindPod(const PodUid& pod);
  const ActualPod* FindPod(const PodUid& pod) const;
  // Forgets what was found in the places of volumes at the start: none of it counts as proven any
  // more.
  void DoubtFoundVolumes();
  // Erases the pod and returns it. REQUIRES: it exists.
  ActualPod TakePod(const PodUid& pod);
  // Only this method sets ActualPod::identity. REQUIRES: the pod exists.
  void SetIdentity(const PodUid& pod, const PodIdentity& identity);
  // The pods of this name; at most one of them goes on, and the others leave. Empty if there are
  // none. The reference is valid until the next change.
  const std::set<PodUid>& PodsNamed(const std::string& name_space, const std::string& name) const;
  // All pods by namespace and name.
  const std::map<std::pair<std::string, std::string>, std::set<PodUid>>& names() const {
    return by_name_;
  }
  const std::map<PodUid, ActualPod>& pods() const { return pods_; }

  // Null if the pod or the volume is not known. The pointer is valid until the volume is erased.
  const ActualVolume* FindVolume(const PodVolumeKey& key) const;

  // The devices of the volumes.
  ActualDevices& devices() { return devices_; }
  const ActualDevices& devices() const { return devices_; }

  // Adds a volume that was found at the start. It is uncertain, whatever its record says. If the
  // node was booted since, its state falls to what a reboot leaves of it. REQUIRES: the pod exists.
  // The reference is valid until the volume is erased.
  ActualVolume& AddReconstructed(const PodVolumeKey& key, const std::string& plugin_name,
                                 VolumeState recorded, bool same_boot, bool is_block = false);

  // Sets the name by which pods share the volume; an empty name if they do not.
  void SetUniqueName(const PodVolumeKey& key, const UniqueVolumeName& name);

  // Notes that an operation starts to set the volume up, to map it, or to bring it up to date,
  // depending on its state. Adds the volume if it does not exist. Returns true for a remount.
  // REQUIRES: the pod exists, and no operation on the volume runs.
  bool MountStarted(const PodVolumeKey& key, const MountIntent& intent);
  // After a success the volume is verified. After a failure it is what it was before if nothing was
  // applied, and uncertain otherwise.
  void MountDone(const PodVolumeKey& key, const OperationOutcome<MountedVolume>& outcome);
  void UnmountStarted(const PodVolumeKey& key);
  // Erases the volume on success.
  void UnmountDone(const PodVolumeKey& key, const OperationOutcome<Unit>& outcome);
  // Erases the volume, of which nothing is on the node. Has no effect if the volume does not exist.
  void EraseVolume(const PodVolumeKey& key);

  // Volumes of pods that use this volume: some of it may be on the node, or an operation runs.
  std::vector<PodVolumeKey> UsersOf(const UniqueVolumeName& volume) const;
  // How many volumes of pods UsersOf has looked at.
  const WorkCounter& work() const { return work_; }

  // Takes the content of `found`, which is empty afterwards. REQUIRES: this object is empty.
  void TakeOver(ActualStateOfWorld& found);

 private:
  void ForgetName(const PodUid& pod, const PodIdentity& identity);
  void ForgetUniqueName(const PodVolumeKey& key, const UniqueVolumeName& name);
  ActualVolume& VolumeAt(const PodVolumeKey& key);

  const Clock& clock_;
  std::map<PodUid, ActualPod> pods_;
  // By the identities of the pods.
  std::map<std::pair<std::string, std::string>, std::set<PodUid>> by_name_;
  // The pods' volumes by this name: what happens to a shared volume concerns only these.
  std::map<UniqueVolumeName, std::set<PodVolumeKey>> by_unique_name_;
  ActualDevices devices_;
  mutable WorkCounter work_;
};

// Whether the volume may be used: it is set up or mapped, and this process has verified that.
bool IsSetUp(const ActualVolume& volume);
// Whether some of the volume may be on the node: it is in another state than kNotSetUp, or it is
// uncertain.
bool MayBePresent(const ActualVolume& volume);

}  // namespace volumed
