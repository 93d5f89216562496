// VolumeOperations: what the volume manager may have done to the node. Each call is one operation:
// a list of steps with intent records, run off the control thread, one at a time per key, with
// back-off after a failure. The operation layer writes the records, measures and logs; nobody else.
// Source: kubernetes pkg/volume/util/operationexecutor/operation_executor.go@v1.36.2.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "mounter/mounter.h"
#include "operation/volume_state.h"
#include "pluginmgr/volume_plugin.h"
#include "volume/volume_spec.h"

namespace volumed {

// A volume of a pod: the key of its operations, its record and its views.
struct PodVolumeKey {
  PodUid pod;
  SpecName spec;
  friend auto operator<=>(const PodVolumeKey&, const PodVolumeKey&) = default;
  std::string ToString() const { return pod.str() + "/" + spec.str(); }
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
};

struct MountedVolume {
  std::string plugin_name;
  std::string host_path;
  Attributes attributes;
  std::vector<SubPathMount> sub_paths;
  std::optional<int64_t> refresh_unix_ms;
};

struct UnmountRequest {
  PodUid pod;
  SpecName spec;
  std::string plugin_name;
  std::string pod_display_name;  // "namespace/name", for logs
};

// Which step failed, for explain.
struct OperationFailure {
  std::string operation;  // "volume_mount"
  std::string step;       // "SetUp"
  Error error;
};

template <typename T>
struct OperationOutcome {
  std::optional<T> value;                   // set on success
  std::optional<OperationFailure> failure;  // set otherwise
};

enum class StartResult {
  kStarted,  // done will be called once, on the control thread, unless the agent ends first
  kPending,  // an operation of this key is running; done is not called
  kBackoff,  // see NextTry; done is not called
};

// An operation that runs now, for explain, top and the stuck list.
struct RunningOperation {
  PodVolumeKey key;
  std::string operation;
  std::string step;
  int64_t since_unix_ms = 0;
  int64_t step_since_unix_ms = 0;  // 0: no step has begun
  int64_t progress = 0;            // entries done, where the step reports it
};

// What becomes of a pod's record when its directories are gone. kKeep: it says that the pod was
// deleted by command, which must hold as long as a source has the pod.
enum class PodRecordEnd { kRemove, kKeep };

// Threads: the control thread, for every method. Blocks: never.
class VolumeOperations {
 public:
  virtual ~VolumeOperations() = default;

  virtual StartResult MountVolume(MountRequest request,
                                  std::function<void(OperationOutcome<MountedVolume>)> done) = 0;
  virtual StartResult UnmountVolume(UnmountRequest request,
                                    std::function<void(OperationOutcome<Unit>)> done) = 0;
  // Once no volume of the pod is left: its directories, and its record as said. Never removes what
  // it does not know: a directory with foreign content stays, and is named in the error.
  virtual StartResult RemovePod(PodUid pod, std::string pod_display_name, PodRecordEnd record,
                                std::function<void(OperationOutcome<Unit>)> done) = 0;

  virtual bool IsPending(const PodVolumeKey& key) const = 0;
  // When the key may be tried again, if it is backing off.
  virtual std::optional<TimePoint> NextTry(const PodVolumeKey& key) const = 0;
  // Forgets the back-off: something happened that may have removed the cause.
  virtual void ResetBackoff(const PodVolumeKey& key) = 0;
  virtual std::vector<RunningOperation> Running() const = 0;
};

}  // namespace volumed
