// VolumeReclaimer: what becomes of a released persistent volume: its storage is scrubbed or deleted
// by its plugin. It changes no object; who owns the volume's phase does, by what is answered.
// Source: kubernetes pkg/controller/volume/persistentvolume/pv_controller.go@v1.36.2
// (recycleVolumeOperation, deleteVolumeOperation).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/objects.h"
#include "os/kernel.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "volumehost/volume_host.h"

namespace volumed {

// Kubelet's and the controller's reasons.
inline constexpr char kEventRecyclerPod[] = "RecyclerPod";
inline constexpr char kEventVolumeRecycled[] = "VolumeRecycled";
inline constexpr char kEventVolumeFailedRecycle[] = "VolumeFailedRecycle";
inline constexpr char kEventVolumeFailedDelete[] = "VolumeFailedDelete";
inline constexpr char kEventVolumeDelete[] = "VolumeDelete";

// An event about the PersistentVolume. Called on the thread that reclaims.
using VolumeEventRecorder =
    std::function<void(EventType type, const std::string& reason, const std::string& message)>;

// Threads: any. Blocks: until the plugin is done, or the deadline: to be run as a blocking task.
class VolumeReclaimer {
 public:
  enum class Outcome {
    kReclaimed,  // empty, or gone
    kPostponed,  // still in use: to be tried again, the volume has not failed
    kFailed,     // to be tried again; the volume's phase is Failed, with the message
  };
  struct Answer {
    Outcome outcome = Outcome::kReclaimed;
    std::string message;
  };

  // `plugins` outlives this.
  explicit VolumeReclaimer(const VolumePluginMgr& plugins) : plugins_(plugins) {}

  // `users` are the names of pods that still use it: then nothing is done.
  Answer Recycle(const PersistentVolume& volume, const std::vector<std::string>& users,
                 const VolumeEventRecorder& record, const CallOptions& call) const;
  Answer Delete(const PersistentVolume& volume, const VolumeEventRecorder& record,
                const CallOptions& call) const;

 private:
  const VolumePluginMgr& plugins_;
};

}  // namespace volumed
