// NodeEvents: what happens on the node and with what pods depend on (plugins, devices, mounts,
// objects, the wall clock): whoever failed for lack of it is tried again at once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/log.h"
#include "base/scheduler.h"
#include "kube/object_catalog.h"
#include "operation/volume_operations.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "volumehost/volume_host.h"
#include "volumemanager/storage_trouble.h"

namespace volumed {

class ActualStateOfWorld;
class Claims;
class DesiredStateOfWorld;
class DeviceReconciler;
class LostMounts;
class PodLifecycle;
class PodObservers;
class Provisioning;
class Readiness;
class Reconciler;
class StorageExpander;
class VolumeExpander;
class VolumeStats;
struct WantedVolume;

// What failed for lack of something is marked for a later pass, and its back-off is forgotten;
// nothing here starts an operation itself. Paths are absolute and are compared as texts.
//
// Threads: the control thread. Blocks: never. Errors: none; an event that concerns nobody has no
// effect.
class NodeEvents {
 public:
  // All members outlive this object.
  struct Parts {
    Scheduler& scheduler;
    const VolumePluginMgr& plugins;
    VolumeOperations& operations;
    VolumeHost& host;
    Logger& log;
    const Readiness& readiness;
    const PodObservers& observers;
    DesiredStateOfWorld& desired;
    ActualStateOfWorld& actual;
    Claims& claims;
    Provisioning& provisioning;
    VolumeExpander& expander;
    StorageExpander& storage_expander;
    DeviceReconciler& devices;
    Reconciler& reconciler;
    PodLifecycle& lifecycle;
    VolumeStats& stats;
    LostMounts& lost_mounts;
  };
  // What is said of a volume that is on the node while its device is not; nullopt for other
  // volumes.
  using VanishedText =
      std::function<std::optional<std::string>(const PodVolumeKey&, const WantedVolume&)>;

  NodeEvents(Parts parts, VanishedText vanished_text)
      : parts_(parts), vanished_text_(std::move(vanished_text)) {}
  NodeEvents(const NodeEvents&) = delete;
  NodeEvents& operator=(const NodeEvents&) = delete;

  // An object, or what is decided about a claim, has changed: the pods that name it are built
  // again. The back-offs of their volumes that are made from it are forgotten.
  void ObjectChanged(const ObjectKey& object);
  // A plugin came, changed or went: pods that wait for it are tried again at once.
  void PluginChanged(const std::string& plugin_name);
  // What a plugin answers about the volumes of one driver has changed (`fault_domain` is the
  // driver's, volume/driver_domain.h): their pods are built again and tried at once, what of them
  // is to leave is tried too, and those that it could not measure are measured. Volumes of the
  // plugin's other drivers are left alone.
  void DriverChanged(const std::string& plugin_name, const std::string& fault_domain);
  // The driver is there again, and answers as before: the same, but no pod is built again.
  void DriverIsBack(const std::string& plugin_name, const std::string& fault_domain);
  // What is said of a driver that is to make volumes may be something else now: claims are decided.
  void MakersChanged();
  // What makes, grows and deletes volumes here has been away: what it failed at is tried at once.
  void MakersAreBack();
  // A device with these names has appeared, or has another size: what failed for lack of it is
  // tried again.
  void DeviceAppeared(const std::vector<std::string>& paths);
  // The device with these names has gone: the pods that have it are told. The event is
  // VolumeConditionAbnormal, once for each volume that has some of it on the node.
  void DeviceVanished(const std::vector<std::string>& paths);
  // What the volumes with this path (VolumePlugin::DevicePaths) lie on is not well: the pods that
  // have them are told by the same event, and their views say so until it is mended.
  void StorageTroubled(const std::string& path, const StorageTrouble& trouble);
  void StorageMended(const std::string& path);
  // The volume's driver says that it is not well: the pod is told by the same event.
  void VolumeAbnormal(const PodVolumeKey& volume, const std::string& message);
  // Mounts at these paths went. A pod that leaves, and could not because of such a mount, is tried
  // again at once; what a mount on no record has left there goes with it. Before the records are
  // loaded, the paths are kept for UncoverGoneWhileLoading().
  void MountsGone(const std::vector<std::string>& mount_points);
  // Mounts came or went at these paths, which are not below the root's pods: what failed for lack
  // of a directory there is tried again.
  void MountsChangedElsewhere(const std::vector<std::string>& mount_points);
  // What kept the storage of this volume from being made, deleted or recycled may be gone. `name`
  // is that of its PersistentVolume, or its unique name. Whether there is anything of it: a volume,
  // one that is to be made, or one that a pod wants.
  bool RetryStorage(const std::string& name);
  // The node has labels that it had not: pods that were refused because of a volume's node affinity
  // are built again, and claims are decided. What a pod has is not taken away by a label.
  void NodeLabelsChanged();
  // Looks again at everything that depends on the wall time, such as tokens that are not valid yet
  // or not any more.
  void WallClockWasSet();
  // GetVolumeLimits may have other answers from now on: volumes that wait for a slot are looked at
  // again.
  void AttachLimitsChanged();

  // To be called when what was found at the start is taken over: takes up those of these pods whose
  // cover went meanwhile.
  void UncoverGoneWhileLoading(const std::set<PodUid>& covered);

  // Paths of devices of wanted volumes that have gone -> when each went, in Unix milliseconds.
  const std::map<std::string, int64_t>& vanished_devices() const { return vanished_devices_; }
  // By path.
  const std::map<std::string, StorageTrouble>& storage_troubles() const {
    return storage_troubles_;
  }

 private:
  // The pods that want a volume of the plugin, or have one.
  std::set<PodUid> PodsOfPlugin(const std::string& plugin_name) const;
  // The pods that want a volume of the driver.
  std::set<PodUid> PodsWanting(const std::string& fault_domain) const;
  // Tries again what has failed of volumes that are on the node, wanted or not, and of devices.
  void RetryActualOf(const std::string& plugin_name, const std::string& fault_domain);
  // The devices whose path is one of these. It is known once the device was attached or mounted.
  std::vector<UniqueVolumeName> DevicesAt(const std::vector<std::string>& paths) const;
  // Forgets the back-offs of those of the pod's volumes that this concerns, and tells of the pod.
  // REQUIRES: the pod is wanted.
  void RetryVolumes(const PodUid& uid, const std::function<bool(const WantedVolume&)>& concerns);
  // Takes up the pod if it was left alone because of one of these mounts.
  void Uncover(const PodUid& uid, const std::vector<std::string>& mount_points);

  // Tells the pods that have some of these volumes on the node.
  void TellVanished(const std::set<PodUid>& pods);

  const Parts parts_;
  const VanishedText vanished_text_;
  std::map<std::string, int64_t> vanished_devices_;
  std::map<std::string, StorageTrouble> storage_troubles_;
  // Mount points that went during loading; what was found may still name them.
  std::set<std::string> gone_while_loading_;
};

}  // namespace volumed
