// RecordsLoader: reads what the last agent left, beside the control thread, and makes the actual
// state from it. A store or kernel that does not answer is asked again.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/alive_guard.h"
#include "base/backoff.h"
#include "base/log.h"
#include "base/scheduler.h"
#include "base/work_in_steps.h"
#include "operation/volume_record.h"
#include "os/kernel.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "records/record_store.h"
#include "volume/secrets_of_volume.h"
#include "volumehost/kubelet_paths.h"
#include "volumemanager/actual_state_of_world.h"
#include "volumemanager/readiness.h"
#include "volumemanager/reconstructor.h"

namespace volumed {

// What the last agent left, as it is taken over. It may be as large as all that the node has, so it
// is neither copied nor destroyed on the control thread.
struct LoadedState {
  FoundAtStart found;
  ReconstructResult result;
  ActualStateOfWorld actual;  // made from what was found
};

// Threads: the control thread. Blocks: never; the store and the kernel are asked on other threads.
// Errors: none; why loading has failed is logged and told to Readiness, and it is tried again with
// back-off, from the beginning.
class RecordsLoader {
 public:
  // All members outlive this object and the tasks that it has started.
  struct Parts {
    Scheduler& scheduler;
    RecordStore& store;
    Kernel& kernel;
    const VolumePluginMgr& plugins;
    const KubeletPaths& paths;
    Logger& log;
    Readiness& readiness;  // it is told why the records cannot be loaded
  };
  struct Hooks {
    // VolumeManagerHooks::secrets_on_record; may be empty. It is called once, before all others.
    std::function<void(SentSecretsByDriver)> secrets_on_record;
    // VolumeManagerSettings::other_kinds, and VolumeManagerHooks::restore_other, which is called
    // once for each of them, before those below.
    std::vector<OtherRecordKind> other_kinds;
    std::function<void(const std::string& kind, const LoadedRecords&)> restore_other;
    // VolumeManagerHooks::restore_operations; may be empty. It is called before take_over: first
    // with all devices, then with all that is at places of COs, if anything is, and then with some
    // of the volumes at a time. The devices are as they were recorded, the volumes as AfterRestart
    // leaves them.
    std::function<void(const std::vector<PodVolumeRecord>&, const std::vector<DeviceRecord>&)>
        restore_operations;
    // Takes over what was loaded. Called once, in one task, so that nobody sees a part of it. It
    // may move from its argument.
    std::function<void(LoadedState&)> take_over;
  };

  RecordsLoader(Parts parts, BootId boot_id, FindOptions options, Hooks hooks);
  RecordsLoader(const RecordsLoader&) = delete;
  RecordsLoader& operator=(const RecordsLoader&) = delete;

  // REQUIRES: it is called once.
  void Start() { Load(); }

 private:
  struct Loading;  // what was read, and how far it was taken over
  void Load();
  void Loaded(const std::shared_ptr<Loading>& loading);
  void RestoreTargets(const FoundAtStart& found);
  // Tells the operations what they have to know. Returns true when that is all.
  bool RestoreSome(Loading& loading, TaskLimit& limit);
  void LoadAgain(const Error& error);  // after a while

  const Parts parts_;
  const BootId boot_id_;
  const FindOptions options_;
  const Hooks hooks_;
  WorkInSteps work_;
  Backoff backoff_;
  AliveGuard alive_;
};

}  // namespace volumed
