// ActualStateOfWorld: what is known of the volumes on this node. The one place where the state of a
// volume in memory is assigned, and always by the transition table.
// Source: kubernetes pkg/kubelet/volumemanager/cache/actual_state_of_world.go@v1.36.2.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
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
  int64_t since_unix_ms = 0;  // of the state

  bool in_flight = false;         // an operation of it runs
  bool uncertain_before = false;  // of the operation that runs
  uint64_t call_generation = 0;   // of the inputs that the operation that runs was given

  // Of the inputs that the last successful set-up was given; 0: none by this process.
  uint64_t applied_generation = 0;
  std::optional<MountedVolume> mounted;  // facts of the last successful set-up
  std::optional<FailureHistory> failure;
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
};

struct PodIdentity {
  std::string name_space;
  std::string name;
  std::string source;
  std::string DisplayName() const { return name_space + "/" + name; }
};

struct ActualPod {
  PodIdentity identity;
  int64_t since_unix_ms = 0;  // when this process first knew it
  std::map<SpecName, ActualVolume> volumes;

  // The pod's record: it is written before the pod's first operation.
  bool record_durable = false;
  bool record_writing = false;
  bool record_outdated = false;  // what was written last is no longer so
  std::string recorded_json;     // the pod, as its record has it
  std::optional<FailureHistory> record_failure;

  // Of an adopted root, and there when this process started: they go with it, record or not.
  bool has_directories = false;

  std::optional<Leaving> leaving;
  bool teardown_begun = false;  // no new consumer may come
  bool removing = false;        // RemovePod runs
  bool keeps_record = false;    // RemovePod leaves the record: its deletion was a command
  std::optional<FailureHistory> remove_failure;

  // Set when a record of this pod could not be read: nothing of it is touched.
  std::string quarantine_reason;
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
  void ErasePod(const PodUid& pod) { pods_.erase(pod); }
  const std::map<PodUid, ActualPod>& pods() const { return pods_; }

  const ActualVolume* FindVolume(const PodVolumeKey& key) const;

  // A volume that was found at start. It is uncertain, whatever its record says. With another boot
  // the state falls to what a reboot leaves of it.
  void AddReconstructed(const PodVolumeKey& key, const std::string& plugin_name,
                        VolumeState recorded, bool same_boot);

  // The intent to set up or bring up to date (which of them: by the state). Adds the volume if it
  // is not there. Returns true for a remount.
  bool MountStarted(const PodVolumeKey& key, const std::string& plugin_name, uint64_t generation);
  void MountDone(const PodVolumeKey& key, const OperationOutcome<MountedVolume>& outcome);
  void UnmountStarted(const PodVolumeKey& key);
  // Erases the volume on success.
  void UnmountDone(const PodVolumeKey& key, const OperationOutcome<Unit>& outcome);
  // Nothing of it is on the node.
  void EraseVolume(const PodVolumeKey& key);

  void NoteFailure(std::optional<FailureHistory>& history, const OperationFailure& failure) const;

 private:
  ActualVolume& VolumeAt(const PodVolumeKey& key);
  // The one assignment. An impossible transition is this program's own fault; it is kept from doing
  // harm by leaving the state as it is and marking it uncertain.
  void Apply(ActualVolume& volume, VolumeEvent event);
  void Failed(ActualVolume& volume, const std::optional<OperationFailure>& failure);

  const Clock& clock_;
  std::map<PodUid, ActualPod> pods_;
};

// It stands there and may be used: set up, and verified by this process.
bool IsSetUp(const ActualVolume& volume);
// Something of it may be on the node.
bool MayBePresent(const ActualVolume& volume);

}  // namespace volumed
