// VolumeOperations: what the volume manager may have done to the node. Each call is one operation:
// a list of steps with intent records, run off the control thread, one at a time per key, with
// back-off after a failure. The operation layer writes the records, measures and logs; nobody else.
// Source: kubernetes pkg/volume/util/operationexecutor/operation_executor.go@v1.36.2.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/quantity.h"
#include "base/result.h"
#include "mounter/mounter.h"
#include "operation/attach_requests.h"
#include "operation/volume_state.h"
#include "pluginmgr/volume_options.h"
#include "pluginmgr/volume_plugin.h"
#include "volume/claim_binding.h"
#include "volume/expansion_decision.h"
#include "volume/storage_name.h"
#include "volume/volume_spec.h"

namespace volumed {

// A volume of a pod: the key of its operations, its record and its views.
struct PodVolumeKey {
  PodUid pod;
  SpecName spec;
  friend auto operator<=>(const PodVolumeKey&, const PodVolumeKey&) = default;
  std::string ToString() const { return pod.str() + "/" + spec.str(); }
};

// What an operation is of, for its back-off and for whoever shows it: a volume of a pod, a whole
// pod (an empty spec), or the device of a volume that pods of the node share.
struct OperationKey {
  PodUid pod;
  SpecName spec;
  UniqueVolumeName device;

  OperationKey() = default;
  OperationKey(PodUid of_pod, SpecName of_spec)
      : pod(std::move(of_pod)), spec(std::move(of_spec)) {}
  OperationKey(const PodVolumeKey& key)
      : pod(key.pod), spec(key.spec) {}  // NOLINT: one of the three
  explicit OperationKey(UniqueVolumeName of_device) : device(std::move(of_device)) {}

  bool is_device() const { return !device.empty(); }
  PodVolumeKey pod_volume() const { return {pod, spec}; }
  friend auto operator<=>(const OperationKey&, const OperationKey&) = default;
  std::string ToString() const { return is_device() ? device.str() : pod_volume().ToString(); }
};

// A container's mount of a part of a volume.
struct SubPathRequest {
  std::string container;
  int index = 0;         // of the volumeMount in the container
  std::string sub_path;  // expanded, relative, without ".."
  bool read_only = false;
  friend bool operator==(const SubPathRequest&, const SubPathRequest&) = default;
};

struct SubPathMount {
  std::string container;
  int index = 0;
  std::string host_path;
  friend bool operator==(const SubPathMount&, const SubPathMount&) = default;
};

struct MountRequest {
  PodPtr pod;
  VolumeSpec spec;
  std::vector<SubPathRequest> sub_paths;
  std::vector<std::string> nested_mount_points;
  bool is_remount = false;     // it is set up; bring its content up to date
  bool reconstructed = false;  // it was found at start, uncertain
  // Of a persistent volume, which pods share; else empty.
  UniqueVolumeName unique_name = {};
  bool has_device = false;     // it is bound from the device of that name
  std::string claim_uid = {};  // of a persistent volume: whose it is
  // Found at the agent's start in its place, with all its sub-paths: the filesystem that is mounted
  // there, "" for a directory. Nothing: it was not, or it cannot be told.
  std::optional<std::string> found_as = std::nullopt;

  UniqueVolumeName device() const { return has_device ? unique_name : UniqueVolumeName(); }
};

// Where a block volume's device is.
struct MappedDevice {
  std::string device_path;  // "/dev/sdb"
  std::string node_path;    // the pod's node of it, in the global map directory
  friend bool operator==(const MappedDevice&, const MappedDevice&) = default;
};

struct MountedVolume {
  std::string plugin_name;
  std::string host_path;  // of a block volume: the pod's link to the device
  Attributes attributes;
  std::vector<SubPathMount> sub_paths;
  std::optional<Freshness> freshness;
  std::optional<MappedDevice> mapped = std::nullopt;  // of a block volume
  // It is in its place as an agent before this one has made it, and what it should hold by now
  // cannot be told: a Secret of it is missing.
  bool content_unknown = false;
};

struct UnmountRequest {
  PodUid pod;
  SpecName spec;
  std::string plugin_name;
  std::string pod_display_name;  // "namespace/name", for logs
  UniqueVolumeName device = {};  // as of the mount
  // What its plugin made of it, where it was found and no record knew it.
  std::optional<VolumeSpec> constructed = std::nullopt;
};

struct MountDeviceRequest {
  UniqueVolumeName device;
  VolumeSpec spec;
  std::vector<PodUid> pods;  // that wait for it: a failure is an event of each
  std::optional<int64_t> fs_group = std::nullopt;  // of the first of them
  // Some of them, while `spec` is read-only only if all do.
  bool some_pods_only_read = false;
  // The first of them, for volumes that are attachable or block volumes.
  PodPtr first_pod = nullptr;
  // What the claim says of its size; zero: it is not known.
  Quantity size = {};
  // It is to be made this large; what can only be grown unmounted is, before the mount.
  std::optional<Quantity> grow_to = std::nullopt;
  bool attachable = false;  // it was attached, and its device is waited for
};

struct MountedDevice {
  std::string plugin_name;
  std::string device_mount_path;
  std::string device_path = {};  // of an attachable volume
  Quantity size = {};            // as of the request
};

// A volume that is on the node is made larger.
struct ExpandRequest {
  UniqueVolumeName volume;
  VolumeSpec spec;
  PodPtr pod;                // one that has it
  std::vector<PodUid> pods;  // all of them, for events
  std::string claim;         // "namespace/name", likewise
  Quantity new_size;
  Quantity old_size;
  // What a failure would mean, for events.
  ExpansionDecision decision;
};

struct ExpandedVolume {
  std::string note;  // what was done, for people; may be empty
};

struct UnmountDeviceRequest {
  UniqueVolumeName device;
  std::string plugin_name;
  SpecName spec;
  std::string device_mount_path;
  bool is_block = false;
};

// What is done with a volume that its claim has left.
struct ReclaimRequest {
  std::shared_ptr<const PersistentVolume> volume;
  ReclaimAction action = ReclaimAction::kNone;
  std::string claim_uid = {};  // that it was bound with
  // All other volumes that anybody knows: none may have its data in the same place.
  std::vector<std::shared_ptr<const PersistentVolume>> others = {};
  // The pods of this node: what they have on it of their own (a hostPath) may lie in it, also
  // before they are set up, as after a reboot.
  std::vector<std::shared_ptr<const Pod>> pods = {};
};

// A PersistentVolume that is there, and whose object nobody can read: nobody knows what storage it
// has, unless that is on record.
struct UnknownVolume {
  std::string volume;
  std::string file;                                // that had its object; may be empty
  std::string reason;                              // why that is not known, for people
  std::optional<StorageName> name = std::nullopt;  // as a claim's record has it
  friend bool operator==(const UnknownVolume&, const UnknownVolume&) = default;
};

// A volume that is made for a claim, as its record has it.
struct ProvisionRequest {
  std::string plugin_name;
  VolumeOptions options;
  std::vector<TopologyTerm> allowed_topologies;
  PersistentVolume planned;
};

// Which step failed, for explain.
struct OperationFailure {
  std::string operation;  // "volume_mount"
  std::string step;       // "SetUp"
  Error error;            // its outcome is the operation's
  // The outcome of the step alone, if it is another one: a refusal after a step that has changed
  // the volume.
  std::optional<Outcome> step_outcome = std::nullopt;
};

template <typename T>
struct OperationOutcome {
  std::optional<T> value;                   // set on success
  std::optional<OperationFailure> failure;  // set otherwise
};

template <typename T>
OperationOutcome<T> OutcomeOf(const std::optional<OperationFailure>& failure, T value) {
  OperationOutcome<T> outcome;
  if (failure) {
    outcome.failure = failure;
  } else {
    outcome.value = std::move(value);
  }
  return outcome;
}

enum class StartResult {
  kStarted,  // done will be called once, on the control thread, unless the agent ends first
  kPending,  // an operation of this key is running; done is not called
  kBackoff,  // see NextTry; done is not called
};

// What an operation waits for before it begins.
struct LaneWait {
  // "filesystem 0:45 (nfs4 at /mnt) has 4 workers that do not answer since ..."
  std::string text;
  bool does_not_answer = false;  // it waits until somebody mends what hangs
};

// An operation that runs now, for explain, top and the stuck list.
struct RunningOperation {
  OperationKey key;
  std::string operation;
  std::string step;
  int64_t since_unix_ms = 0;
  int64_t step_since_unix_ms = 0;  // 0: no step has begun
  int64_t progress = 0;            // entries done, where the step reports it
  // Set while it waits for room in its lane and has not begun.
  std::optional<LaneWait> waits_for = {};
};

// What becomes of a pod's record when its directories are gone. kKeep: it says that the pod was
// deleted by command, which must hold as long as a source has the pod.
enum class PodRecordEnd { kRemove, kKeep };

OperationKey ReclaimKey(const std::string& volume_name);
OperationKey ProvisionKey(const std::string& volume_name);
OperationKey ExpandKey(const UniqueVolumeName& volume);
OperationKey VerifyAttachedKey(const std::string& plugin_name);

// Threads: the control thread, for every method. Blocks: never.
class VolumeOperations {
 public:
  virtual ~VolumeOperations() = default;

  // An operation of this key that has not begun, because what it would hang with has no room for
  // it, is not wanted any more: its end comes soon, as Cancelled and not applied. One that runs
  // goes on.
  virtual void GiveUpWaiting(const OperationKey& /*key*/) {}

  // Several volumes of one pod, of which those that can be are made as one operation: at the price
  // of one, and each for itself. An answer for each, in this order; `done` is called with the
  // number of each that was started.
  template <typename T>
  using GroupDone = std::function<void(size_t number, const OperationOutcome<T>& outcome)>;
  virtual std::vector<StartResult> MountVolumes(std::vector<MountRequest> requests,
                                                GroupDone<MountedVolume> done);
  virtual std::vector<StartResult> UnmountVolumes(std::vector<UnmountRequest> requests,
                                                  GroupDone<Unit> done);

  virtual StartResult MountVolume(MountRequest request,
                                  std::function<void(OperationOutcome<MountedVolume>)> done) = 0;
  virtual StartResult UnmountVolume(UnmountRequest request,
                                    std::function<void(OperationOutcome<Unit>)> done) = 0;
  // The same of a block volume: the pod is given the device itself, or loses it. Sub-paths and
  // nested mount points mean nothing here; the device must be set up (MountDevice).
  virtual StartResult MapVolume(MountRequest request,
                                std::function<void(OperationOutcome<MountedVolume>)> done) = 0;
  virtual StartResult UnmapVolume(UnmountRequest request,
                                  std::function<void(OperationOutcome<Unit>)> done) = 0;
  // Once no volume of the pod is left: its directories, and its record as said. Never removes what
  // it does not know: a directory with foreign content stays, and is named in the error.
  virtual StartResult RemovePod(PodUid pod, std::string pod_display_name, PodRecordEnd record,
                                std::function<void(OperationOutcome<Unit>)> done) = 0;

  // The device of a volume, mounted once for all pods of the node; of a block volume, set up, and
  // no more than that. Neither runs beside the other, nor beside a mount or unmount of a pod's
  // volume that names the device.
  virtual StartResult MountDevice(MountDeviceRequest request,
                                  std::function<void(OperationOutcome<MountedDevice>)> done) = 0;
  // The caller has made sure that no pod has the volume.
  virtual StartResult UnmountDevice(UnmountDeviceRequest request,
                                    std::function<void(OperationOutcome<Unit>)> done) = 0;

  // Makes a volume larger on the node; alone, as MountDevice is. Its key is ExpandKey(volume), so
  // that its back-off is its own. Whether it succeeded or not, the volume stays mounted.
  virtual StartResult ExpandVolume(ExpandRequest request,
                                   std::function<void(OperationOutcome<ExpandedVolume>)> done) = 0;

  // The volume is made present on the node, and taken from it again. As the two above, neither runs
  // beside another operation of the device.
  virtual StartResult AttachVolume(AttachRequest request,
                                   std::function<void(OperationOutcome<AttachedVolume>)> done) = 0;
  // The caller has made sure that no pod has the volume and that its device is not mounted.
  virtual StartResult DetachVolume(DetachRequest request,
                                   std::function<void(OperationOutcome<Unit>)> done) = 0;
  // Asks the plugin, in one call, whether these volumes are attached still; runs beside anything.
  // Its key is VerifyAttachedKey(plugin's name).
  virtual StartResult VerifyVolumesAreAttached(
      VerifyAttachedRequest request,
      std::function<void(OperationOutcome<VerifiedAttachments>)> done) = 0;

  // The volume is no more, and what its record says of its filesystem may go. Success when there is
  // no record; a device that is mounted is FailedPrecondition.
  virtual StartResult ForgetDevice(UniqueVolumeName device,
                                   std::function<void(OperationOutcome<Unit>)> done) = 0;
  // A PersistentVolume is no more, and what is on record of its storage may go.
  virtual StartResult ForgetStorage(std::string volume_name,
                                    std::function<void(OperationOutcome<Unit>)> done) = 0;
  // The same of all volumes but these: an agent that ended may have left some of it.
  virtual StartResult ForgetStorageBut(std::set<std::string> volume_names,
                                       std::function<void(OperationOutcome<Unit>)> done) = 0;
  // These are all unknown volumes from now on. As long as the storage of one is not on record,
  // nothing is formatted, deleted or recycled for another volume. The answer names the volumes for
  // which that was refused since the last call: what they wanted may be tried again.
  virtual std::set<std::string> SetUnknownVolumes(std::vector<UnknownVolume> unknown) = 0;
  // Deletes or recycles a volume that nobody uses. Its key is ReclaimKey(volume's name).
  virtual StartResult ReclaimVolume(ReclaimRequest request,
                                    std::function<void(OperationOutcome<Unit>)> done) = 0;

  // Makes what was planned; nothing else, whatever the configuration says by now. Its key is
  // ProvisionKey(volume's name).
  virtual StartResult ProvisionVolume(
      ProvisionRequest request, std::function<void(OperationOutcome<PersistentVolume>)> done) = 0;
  // Takes back what ProvisionVolume may have left, before anybody has used it. The same key.
  virtual StartResult UndoProvision(ProvisionRequest request,
                                    std::function<void(OperationOutcome<Unit>)> done) = 0;

  virtual bool IsPending(const OperationKey& key) const = 0;
  // When the key may be tried again, if it is backing off.
  virtual std::optional<TimePoint> NextTry(const OperationKey& key) const = 0;
  // Forgets the back-off: something happened that may have removed the cause.
  virtual void ResetBackoff(const OperationKey& key) = 0;
  virtual std::vector<RunningOperation> Running() const = 0;
  // Of this key, at the cost of one look-up; nothing if none runs.
  virtual std::optional<RunningOperation> FindRunning(const OperationKey& key) const = 0;
};

}  // namespace volumed
