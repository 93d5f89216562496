// ActualStateOfWorld: what is known of the volumes on this node. The one place where the state of a
// volume in memory is assigned, and always by the transition table.
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
#include "operation/attach_requests.h"
#include "operation/volume_operations.h"
#include "operation/volume_state.h"
#include "pluginmgr/volume_plugin.h"

namespace volumed {

// The last failure of one thing, as long as it has not succeeded since.
struct FailureHistory {
  OperationFailure last;
  int64_t since_unix_ms = 0;  // of the first failure in a row
  uint64_t attempts = 0;
};

struct ActualVolume {
  std::string plugin_name;
  VolumeState state = VolumeState::kNotSetUp;
  bool uncertain = false;
  // Found at start and not set up by this process since: what is there may be in use by a
  // container, and a failure must leave it alone.
  bool reconstructed = false;
  // What was found in its place then: see MountRequest. Nothing once it is set up by this process.
  std::optional<std::string> found_as;
  int64_t since_unix_ms = 0;  // of the state

  // Of a persistent volume, which pods share; else empty. ActualStateOfWorld::SetUniqueName alone
  // changes it.
  UniqueVolumeName unique_name;
  bool has_device = false;  // it is bound from the device of that name
  bool is_block = false;    // the pod has the device itself: it is mapped, not set up
  // What its plugin made of it, where no record knew it.
  std::optional<VolumeSpec> constructed;

  bool in_flight = false;         // an operation of it runs
  bool uncertain_before = false;  // of the operation that runs
  uint64_t call_generation = 0;   // of the inputs that the operation that runs was given

  // Of the inputs that the last successful set-up was given; 0: none by this process.
  uint64_t applied_generation = 0;
  std::optional<MountedVolume> mounted;  // facts of the last successful set-up
  std::optional<FailureHistory> failure;
};

// Whether the volume of an attachable device is attached, as far as its plugin has said.
enum class Attachment {
  kUnknown,  // found at start, and not asked about since
  kAttached,
  kMissing,  // the plugin says that it is not, although it should be
};

// The device of a volume, which the pods of the node share.
struct ActualDevice {
  std::string plugin_name;
  SpecName spec;
  std::string device_mount_path;
  bool is_block = false;  // it is set up, and nothing is mounted
  // A volume that needs no attach begins, and ends, as attached.
  VolumeState state = VolumeState::kAttached;
  // ---- of one that the agent attaches
  bool attachable = false;
  Attachment attachment = Attachment::kUnknown;
  int64_t missing_since_unix_ms = 0;
  std::string device_path;  // on the node
  std::string limit_key;    // of the slot that it takes; "": none
  uint64_t operations = 0;  // rises with each that begins: dates an older answer
  // ----
  bool uncertain = false;
  bool reconstructed = false;  // found at start and not verified since
  // Found so, and no record knows it. Nobody knows then who attached it: it is not detached, unless
  // a pod has wanted it since, and this agent has attached it, which is nothing where it is there.
  bool unrecorded = false;
  int64_t since_unix_ms = 0;  // of the state

  bool in_flight = false;         // an operation of it runs
  bool uncertain_before = false;  // of the operation that runs
  std::optional<FailureHistory> failure;

  // Set when its record could not be read: nothing of it is touched.
  std::string quarantine_reason;
};

// A pod that is to leave, and why.
struct Leaving {
  std::string reason;  // "deleted by command", "removed from its sources" ...
  int64_t since_unix_ms = 0;
  int64_t grace_seconds = 0;  // from `since`, as long as no consumer was ever known
  bool commanded = false;     // by uid: needs no source to agree
  bool force = false;         // consumers and grace do not hold it back
  // No source has it any more: should one have it again, that is a new wish.
  bool left_sources = false;
  bool evicted = false;  // by the agent itself; `reason` says why
};

struct PodIdentity {
  std::string name_space;
  std::string name;
  std::string source;
  std::string file = {};  // of the source
  friend bool operator==(const PodIdentity&, const PodIdentity&) = default;
  std::string DisplayName() const { return name_space + "/" + name; }
};

struct ActualPod {
  PodIdentity identity;
  // As it was last wanted, or as its record has it; null when neither is known.
  PodPtr object;
  int64_t since_unix_ms = 0;    // when this process first knew it
  int64_t created_unix_ms = 0;  // when an agent of this root first knew it
  std::map<SpecName, ActualVolume> volumes;

  // The pod's record: it is written before the pod's first operation.
  bool record_durable = false;
  bool record_writing = false;
  bool record_outdated = false;  // what was written last is no longer so
  std::string recorded_json;     // the pod, as its record has it
  std::optional<FailureHistory> record_failure;

  // A source has delivered it to this process; else only the last one knew it.
  bool delivered = false;
  // Of an adopted root, and there when this process started: they go with it, record or not.
  bool has_directories = false;

  std::optional<Leaving> leaving;
  bool teardown_begun = false;  // no new consumer may come
  bool removing = false;        // RemovePod runs
  bool keeps_record = false;    // RemovePod leaves the record: its deletion was a command
  std::optional<FailureHistory> remove_failure;
  // What was under way when a mount below the pod's directory went: its volumes, and the empty name
  // for the removal of the pod. What of these fails is tried again at once, as it may have failed
  // because of that mount.
  std::set<SpecName> mount_went_during;

  // Set when a record of this pod could not be read, or something was mounted over its directory
  // before the start: nothing of it is touched.
  std::string quarantine_reason;
  // The mount of the second case, with which the reason goes.
  std::string covered_by;
};

// What a mount is started with.
struct MountIntent {
  std::string plugin_name;
  uint64_t generation = 0;
  UniqueVolumeName unique_name = {};
  bool has_device = false;
  bool is_block = false;
};

// What an attach is started with.
struct AttachIntent {
  std::string plugin_name;
  SpecName spec;
  std::string limit_key = {};
};

// Threads: the control thread. Blocks: never.
// REQUIRES, where a key is taken: the volume (or pod) is there, unless said otherwise.
class ActualStateOfWorld {
 public:
  explicit ActualStateOfWorld(const Clock& clock) : clock_(clock) {}

  // Adds it if it is not there.
  ActualPod& AddPod(const PodUid& pod, const PodIdentity& identity);
  ActualPod* FindPod(const PodUid& pod);
  const ActualPod* FindPod(const PodUid& pod) const;
  // Nothing that was found at the start is known to be as its record says.
  void DoubtFoundVolumes();
  // Erases it, and answers what it was. REQUIRES: it is there.
  ActualPod TakePod(const PodUid& pod);
  // REQUIRES: the pod is there. What ActualPod::identity says is set by this alone.
  void SetIdentity(const PodUid& pod, const PodIdentity& identity);
  // Those of this name, of which one goes on and others leave.
  const std::set<PodUid>& PodsNamed(const std::string& name_space, const std::string& name) const;
  // Of all pods, by namespace and name.
  const std::map<std::pair<std::string, std::string>, std::set<PodUid>>& names() const {
    return by_name_;
  }
  const std::map<PodUid, ActualPod>& pods() const { return pods_; }

  const ActualVolume* FindVolume(const PodVolumeKey& key) const;

  // A volume that was found at start. It is uncertain, whatever its record says. With another boot
  // the state falls to what a reboot leaves of it.
  ActualVolume& AddReconstructed(const PodVolumeKey& key, const std::string& plugin_name,
                                 VolumeState recorded, bool same_boot, bool is_block = false);

  // The name by which pods share it; an empty one for none.
  void SetUniqueName(const PodVolumeKey& key, const UniqueVolumeName& name);

  // The intent to set up, to map, or to bring up to date (which of them: by the state). Adds the
  // volume if it is not there. Returns true for a remount.
  bool MountStarted(const PodVolumeKey& key, const MountIntent& intent);
  void MountDone(const PodVolumeKey& key, const OperationOutcome<MountedVolume>& outcome);
  void UnmountStarted(const PodVolumeKey& key);
  // Erases the volume on success.
  void UnmountDone(const PodVolumeKey& key, const OperationOutcome<Unit>& outcome);
  // Nothing of it is on the node.
  void EraseVolume(const PodVolumeKey& key);

  const std::map<UniqueVolumeName, ActualDevice>& devices() const { return devices_; }
  const ActualDevice* FindDevice(const UniqueVolumeName& device) const;
  // Those of pods that may have something of it, or for which an operation runs.
  std::vector<PodVolumeKey> UsersOf(const UniqueVolumeName& volume) const;
  // How many volumes of pods were looked at for it.
  const WorkCounter& work() const { return work_; }
  // Found at start, by its record as AfterRestart leaves it, or else by its mount. It is uncertain;
  // one that is attached and no more is as its record says, and unverified.
  void AddReconstructedDevice(const UniqueVolumeName& name, ActualDevice device);
  // Adds the device if it is not there.
  void MountDeviceStarted(const UniqueVolumeName& name, const std::string& plugin_name,
                          const SpecName& spec, bool is_block = false);
  void MountDeviceDone(const UniqueVolumeName& name,
                       const OperationOutcome<MountedDevice>& outcome);
  void UnmountDeviceStarted(const UniqueVolumeName& name);
  // On success: erases a device that needs no attach; another one is attached still.
  void UnmountDeviceDone(const UniqueVolumeName& name, const OperationOutcome<Unit>& outcome);
  // Nothing where the volume has no device. Whatever becomes of it, the device stays mounted.
  void ExpandDeviceStarted(const UniqueVolumeName& name);
  void ExpandDeviceDone(const UniqueVolumeName& name,
                        const OperationOutcome<ExpandedVolume>& outcome);
  void EraseDevice(const UniqueVolumeName& name);
  // Those that are counted against this attach limit if something of them may be present.
  const std::set<UniqueVolumeName>& DevicesOfLimit(const std::string& limit_key) const;

  // Adds the device if it is not there.
  void AttachStarted(const UniqueVolumeName& name, const AttachIntent& intent);
  void AttachDone(const UniqueVolumeName& name, const OperationOutcome<AttachedVolume>& outcome);
  void DetachStarted(const UniqueVolumeName& name);
  // Erases the device on success.
  void DetachDone(const UniqueVolumeName& name, const OperationOutcome<Unit>& outcome);
  // Its plugin has said whether it is attached. True if that is news.
  bool AttachmentVerified(const UniqueVolumeName& name, bool attached);

  // Nothing of it is touched until its record is repaired. Adds it if it is not there.
  void QuarantineDevice(const UniqueVolumeName& name, const std::string& reason);

  void NoteFailure(std::optional<FailureHistory>& history, const OperationFailure& failure) const;

  // Has what `found` has, which is empty after it. REQUIRES: this one is empty.
  void TakeOver(ActualStateOfWorld& found);

 private:
  void ForgetName(const PodUid& pod, const PodIdentity& identity);
  void ForgetUniqueName(const PodVolumeKey& key, const UniqueVolumeName& name);
  ActualVolume& VolumeAt(const PodVolumeKey& key);
  // The one assignment. An impossible transition is this program's own fault; it is kept from doing
  // harm by leaving the state as it is and marking it uncertain.
  template <typename Thing>
  void Apply(Thing& thing, VolumeEvent event);
  template <typename Thing>
  void Start(Thing& thing, VolumeEvent call);
  void SetLimitKey(const UniqueVolumeName& name, ActualDevice& device,
                   const std::string& limit_key);
  static void BeginAs(ActualDevice& device, bool attachable);
  template <typename Thing>
  void Failed(Thing& thing, const std::optional<OperationFailure>& failure);

  const Clock& clock_;
  std::map<PodUid, ActualPod> pods_;
  std::map<std::pair<std::string, std::string>, std::set<PodUid>> by_name_;  // of their identities
  // The volumes of pods that have this name: what happens to a shared volume concerns these alone.
  std::map<UniqueVolumeName, std::set<PodVolumeKey>> by_unique_name_;
  std::map<UniqueVolumeName, ActualDevice> devices_;
  std::map<std::string, std::set<UniqueVolumeName>> by_limit_;  // of devices_, by limit_key
  mutable WorkCounter work_;
};

// It stands there and may be used: set up or mapped, and verified by this process.
bool IsSetUp(const ActualVolume& volume);
// Something of it may be on the node.
bool MayBePresent(const ActualVolume& volume);
// It is mounted, and verified by this process: pods may be given their binds.
bool IsMounted(const ActualDevice& device);
bool MayBePresent(const ActualDevice& device);

}  // namespace volumed
