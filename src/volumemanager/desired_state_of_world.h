// DesiredStateOfWorld: the pods that should have their volumes here, and for each of their volumes
// everything that a MountRequest needs.
//
// A volume's inputs are its source, the objects to which it refers, the pod's metadata if the
// volume shows them, and its sub-paths. A generation stands for them: a number that grows when one
// of them changes. The actual state remembers the generation that it applied, so a change updates
// only the volumes that it concerns. It is a number and not a digest, because inputs may be
// secrets.
//
// Source: kubernetes
// pkg/kubelet/volumemanager/populator/desired_state_of_world_populator.go@v1.36.2.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "kube/object_catalog.h"
#include "kube/objects.h"
#include "operation/volume_operations.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "volumehost/volume_host.h"
#include "volumemanager/claim_resolver.h"
#include "volumemanager/wanted_pod.h"
#include "volumemanager/wanted_pod_builder.h"

namespace volumed {

// Threads: the control thread. Blocks: never.
class DesiredStateOfWorld {
 public:
  // All arguments outlive this object; see WantedPodBuilder.
  DesiredStateOfWorld(const ObjectCatalog& catalog, const VolumePluginMgr& plugins,
                      const HostNode& node, ClaimResolver& claims);

  // Called for each object from which a first volume is made, and for each from which no volume is
  // made any more. While a pod is taken over, both may be called for the same object. It is called
  // within SetPod, RemovePod and ObjectChanged, and may not change this object.
  using ObjectNamed = std::function<void(const ObjectKey& object, bool is_named)>;
  void SetObjectNamed(ObjectNamed named) { object_named_ = std::move(named); }

  // Adds the pod, or takes over what changed in it. A volume whose inputs are the same keeps its
  // generation. REQUIRES: `pod` is not null.
  void SetPod(PodPtr pod);
  // False if the pod was not wanted.
  bool RemovePod(const PodUid& pod);

  // The object was added, changed or removed: the volumes made from it get a new generation.
  // Returns the pods that have such volumes.
  std::set<PodUid> ObjectChanged(const ObjectKey& key);
  // Whether a wanted pod has a volume of this claim, or one that is made from this object.
  bool IsNamed(const ObjectKey& object) const { return referrers_.contains(object); }
  // The pods that have volumes whose device is at this path. The path is compared as
  // VolumePlugin::DevicePaths names it. The reference is valid until the next change.
  const std::set<PodUid>& PodsWithDevicePath(const std::string& path) const;
  // The pods that have volumes whose device lies at or below this path. Such a device may also be a
  // directory, at which a disk is mounted.
  std::set<PodUid> PodsWithDevicePathBelow(const std::string& path) const;
  // Null if the pod is not wanted. The pointer is valid until the next change.
  const WantedPod* Find(const PodUid& pod) const;
  const WantedVolume* Find(const PodVolumeKey& key) const;
  const std::map<PodUid, WantedPod>& pods() const { return pods_; }
  // The pods that want this persistent volume and can have it mounted. The reference is valid until
  // the next change.
  const std::set<PodUid>& UsersOf(const UniqueVolumeName& volume) const;
  // The use of this volume by the pod; null if the pod does not use it. If several volumes of the
  // pod are this one, the first by name is meant. The pointer is valid until the next change.
  const WantedVolume* FindUse(const PodUid& pod, const UniqueVolumeName& volume) const;

 private:
  void AssignGenerations(WantedPod& now, const WantedPod* before);
  void Index(const PodUid& pod, const WantedPod& wanted);
  void Unindex(const PodUid& pod, const WantedPod& wanted);

  const WantedPodBuilder builder_;
  uint64_t last_generation_ = 0;
  std::map<PodUid, WantedPod> pods_;
  std::map<ObjectKey, std::set<PodUid>> referrers_;
  ObjectNamed object_named_;
  std::map<std::string, std::set<PodUid>> by_device_path_;
  std::map<UniqueVolumeName, std::set<PodUid>> users_;
};

// Of these pods' uses of a persistent volume, one that writes, if there is one. It decides for all,
// since a read-only claim gets a read-only bind. REQUIRES: there is at least one pod, and each of
// them uses the volume.
const WantedVolume* WritingUse(const DesiredStateOfWorld& desired, const std::vector<PodUid>& pods,
                               const UniqueVolumeName& volume);

}  // namespace volumed
