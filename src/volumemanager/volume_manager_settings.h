// What the volume manager is made with: the parts of the agent that it uses, its settings, and the
// hooks by which it asks and tells its owner. Only who makes a manager includes this header.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/scheduler.h"
#include "kube/object_catalog.h"
#include "operation/volume_operations.h"
#include "operation/volume_record.h"
#include "os/kernel.h"
#include "pluginmgr/volume_content.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "records/record_store.h"
#include "volume/secrets_of_volume.h"
#include "volumehost/volume_host.h"
#include "volumemanager/devices/verify_attached_period.h"
#include "volumemanager/reconstructor.h"
#include "volumemanager/take_over.h"
#include "volumemanager/watch/consumer_watch.h"
#include "volumemanager/watch/server_health.h"
#include "volumemanager/watch/size_limits.h"
#include "volumemanager/watch/volume_stats.h"

namespace volumed {

// All members outlive the manager.
struct VolumeManagerParts {
  Scheduler& scheduler;
  ObjectCatalog& catalog;
  VolumePluginMgr& plugins;
  VolumeOperations& operations;
  RecordStore& store;
  Kernel& kernel;
  VolumeHost& host;
  ConsumerWatch& consumer_watch;
  Logger& log;
  // Knows sources of a claim's data that are no claims; null: there are none.
  const VolumeContents* contents = nullptr;
};

struct VolumeManagerSettings {
  // A kubelet made the root (--adopt-root): pods that are found in it belong to this agent now.
  bool adopt_root = false;
  // Where the kubelet of an adopted root kept the logs of its pods; an absolute path.
  std::string pod_logs_directory = "/var/log/pods";
  // For each look of the start at what is on the node.
  Duration find_deadline = FindOptions().call_timeout;
  VolumeStatsSettings stats;
  ServerHealthSettings health;
  // How often plugins are asked which volumes are attached. Zero: only about devices that were
  // found at the start.
  Duration verify_attached_period = kVerifyAttachedPeriod;
  // How long an edit of the volumes must last before the pod is replaced. This is for pods whose
  // manifests name no uid.
  Duration replace_settle = kRemovalSettle;
  // The time from one decision about claims to the next. Each decision reads all claims and
  // volumes, so everything that happens in between is decided together.
  Duration decide_claims_period = std::chrono::milliseconds(50);
  // What becomes of a pod with an emptyDir that holds more than its sizeLimit.
  SizeLimitAction size_limit_action = SizeLimitAction::kEvict;
  // Sources in which the removal of an object that outlives pods deletes it.
  std::set<std::string> removal_deletes;
  // Rows of other parts of the agent that are to be loaded with the manager's.
  std::vector<OtherRecordKind> other_kinds;
};

// What the manager asks its owner, and tells him. Each may be empty, and is called on the control
// thread.
struct VolumeManagerHooks {
  // Called once, before all others, with what drivers may have been sent for the volumes on record
  // that nobody is to see: whoever shows the words of drivers knows of it from the start.
  std::function<void(SentSecretsByDriver)> secrets_on_record;
  // Called once for each of VolumeManagerSettings::other_kinds with the rows that the store has,
  // before restore_operations: what the plugins know by them has to be there when the first pod is
  // looked at. Those that cannot be read are among the quarantined ones.
  std::function<void(const std::string& kind, const LoadedRecords&)> restore_other;
  // Called in parts, before the first operation, with the volumes that the last agent left in the
  // store: the operation layer keeps the states of their records (NodeVolumeOperations::Restore).
  std::function<void(const std::vector<PodVolumeRecord>&, const std::vector<DeviceRecord>&)>
      restore_operations;
  // Called once, before the first operation, with what is mounted and on no record: it keeps its
  // volumes from others (UnrecordedMounts::Set).
  std::function<void(std::vector<UnrecordedMount>)> found_unrecorded;
  // Says whether a worker for this key (OperationKey::ToString()) could not be ended.
  std::function<bool(const std::string& key)> is_stuck;
  // Called with what the start found, for metrics.
  std::function<void(const TakeOver&)> taken_over;
  // Removes an object that a command with this number has ended from the source that volumectl
  // fills, unless a later command has given the object. Called again until it is gone.
  std::function<void(const ObjectKey&, uint64_t number)> remove_object;
  // Called when what was decided about a claim has changed, or what is on record of the deletion of
  // an object; without an object when uids are on record that were not.
  std::function<void(const std::optional<ObjectKey>&)> object_changed;
  // Makes a uid for an object whose manifest names none. If this is empty, uids are random.
  std::function<std::string(const ObjectKey&)> new_uid;
  // Starts the sources, with what the last agent knew of each. Called once, when everything that
  // the last agent left is loaded: a source that starts sooner could not tell what it has lost.
  std::function<void(std::map<std::string, SourceMemory>)> start_sources;
  // Called when a first volume is made from a Secret or ConfigMap, and when no volume is made from
  // it any more.
  std::function<void(const ObjectKey& object, bool is_named)> object_named;
  // Called with the volumes of a pod that the last process left here and that no source has, before
  // the pod leaves.
  std::function<void(const std::set<PodVolumeKey>&)> orphan_found;
  // Called after every measurement of a volume that succeeded.
  std::function<void(const PodVolumeKey&, const Metrics&)> volume_measured;
  // Whether volumes of this fault domain may be measured beside each other (VolumeStats::Hooks). If
  // this is empty, they may.
  std::function<bool(const std::string& fault_domain)> may_measure;
};

}  // namespace volumed
