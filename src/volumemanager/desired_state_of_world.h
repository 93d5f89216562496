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
// pkg/kubelet/volumemanager/populator/desired_state_of_world_populator.go@v1.36.2 and
// pkg/volume/util/nested_volumes.go@v1.36.2 (GetNestedMountpoints).
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
#include "volumemanager/wanted_problem.h"

namespace volumed {

struct WantedVolume {
  VolumeSpec spec;
  // Names in the pod's spec: one, or several that name the same claim.
  std::vector<std::string> pod_volumes = {};
  std::optional<ObjectKey> claim = {};  // the claim that gives the volume
  std::string claim_uid = {};
  // The claim has no volume, or none that is known yet; `spec` then has the name that the pod uses.
  bool is_open_claim = false;
  // The name of a volume that pods share, or that has a device; else empty.
  UniqueVolumeName unique_name = {};
  bool has_device = false;     // it is bound from the device of that name
  bool is_block = false;       // the pod gets the device itself
  bool attachable = false;     // the device is attached to the node before it is mounted
  std::string limit_key = {};  // of its plugin's attach limits; "": the plugin has none
  bool one_pod_only = false;   // ReadWriteOncePod
  // "" if no plugin was found: the volume cannot be mounted.
  std::string plugin_name = {};
  std::vector<SubPathRequest> sub_paths = {};
  std::vector<std::string> nested_mount_points = {};
  uint64_t generation = 0;
  // Objects from which its content comes, or that its sub-paths need.
  std::set<ObjectKey> objects = {};
  std::vector<std::string> device_paths = {};  // VolumePlugin::DevicePaths
  std::string server = {};         // VolumePlugin::FaultDomainName: "NFS server nas-1"; or ""
  std::string server_domain = {};  // its VolumePlugin::FaultDomain
  std::vector<WantedProblem> problems = {};

  bool mountable() const { return !plugin_name.empty(); }
};

struct WantedPod {
  PodPtr pod;
  std::map<SpecName, WantedVolume> volumes;
  std::vector<WantedProblem> problems;  // problems of no single volume
};

// Threads: the control thread. Blocks: never.
class DesiredStateOfWorld {
 public:
  // All arguments outlive this object. The catalog is read for sub-paths whose variables come from
  // objects; the node's facts for variables that come from the pod's resources.
  DesiredStateOfWorld(const ObjectCatalog& catalog, const VolumePluginMgr& plugins,
                      const HostNode& node, ClaimResolver& claims);

  // Called for each object from which a first volume is made, and for each from which no volume is
  // made any more. While a pod is taken over, both may be called for the same object.
  using ObjectNamed = std::function<void(const ObjectKey& object, bool is_named)>;
  void SetObjectNamed(ObjectNamed named) { object_named_ = std::move(named); }

  // Adds the pod, or takes over what changed in it.
  void SetPod(PodPtr pod);
  // False if the pod was not wanted.
  bool RemovePod(const PodUid& pod);

  // The object was added, changed or removed: the volumes made from it get a new generation.
  // Returns the pods that have such volumes.
  std::set<PodUid> ObjectChanged(const ObjectKey& key);
  // The pods that have volumes whose device is at this path.
  const std::set<PodUid>& PodsWithDevicePath(const std::string& path) const;
  // The pods that have volumes whose device lies at or below this path. Such a device may also be a
  // directory, at which a disk is mounted.
  std::set<PodUid> PodsWithDevicePathBelow(const std::string& path) const;
  // Null if the pod is not wanted. The pointer is valid until the next change.
  const WantedPod* Find(const PodUid& pod) const;
  const WantedVolume* Find(const PodVolumeKey& key) const;
  const std::map<PodUid, WantedPod>& pods() const { return pods_; }
  // The pods that want this persistent volume and can have it mounted.
  const std::set<PodUid>& UsersOf(const UniqueVolumeName& volume) const;
  // The use of this volume by the pod; null if the pod does not use it.
  const WantedVolume* FindUse(const PodUid& pod, const UniqueVolumeName& volume) const;

 private:
  WantedPod Build(PodPtr pod, const WantedPod* before) const;
  WantedVolume BuildVolume(const Pod& pod, const PodVolume& volume, bool is_device,
                           const WantedPod* before) const;
  // The volume behind a claim; if there is none, a volume that cannot be mounted.
  WantedVolume ResolveClaim(const Pod& pod, const PodVolume& volume, const WantedPod* before) const;
  void FindPlugin(WantedVolume& wanted) const;
  void FindDevice(VolumePlugin& plugin, WantedVolume& wanted) const;
  void FindAttachment(VolumePlugin& plugin, WantedVolume& wanted) const;
  void CheckNodeAffinity(WantedVolume& wanted) const;
  void AssignGenerations(WantedPod& now, const WantedPod* before);
  void Index(const PodUid& pod, const WantedPod& wanted);
  void Unindex(const PodUid& pod, const WantedPod& wanted);

  const ObjectCatalog& catalog_;
  const VolumePluginMgr& plugins_;
  const HostNode& node_;
  ClaimResolver& claims_;
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

// Directories that a container's other mounts need inside this volume, relative to the volume's
// root: "data/cache" for a volume at /srv and another one at /srv/data/cache. Mounts of sub-paths
// are not considered, since their root is not the volume's.
std::vector<std::string> NestedMountPoints(const Pod& pod, const std::string& volume_name);

// The Secrets and ConfigMaps from which the content of a volume comes.
std::set<ObjectKey> ObjectsOfVolume(const std::string& name_space, const VolumeSource& source);

}  // namespace volumed
