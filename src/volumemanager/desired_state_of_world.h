// DesiredStateOfWorld: the pods that should have their volumes here, and for each of their volumes
// everything that a MountRequest needs.
//
// A volume's inputs (its source, the objects it refers to, the pod's metadata where it shows them,
// its sub-paths) are summed up in a generation: a number that grows when one of them changes. The
// actual state remembers the generation it applied, so that a change brings up to date the volumes
// that it concerns and no other. It is a number and not a digest, because inputs may be secrets.
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
  // Of the pod's spec: one, or several that name the same claim.
  std::vector<std::string> pod_volumes = {};
  std::optional<ObjectKey> claim = {};  // that it came by
  std::string claim_uid = {};
  // The claim has no volume, or none that is known yet: `spec` is named as the pod names it.
  bool is_open_claim = false;
  // Of what pods share: a persistent volume, or one that has a device; else empty.
  UniqueVolumeName unique_name = {};
  bool has_device = false;       // it is bound from the device of that name
  bool is_block = false;         // the pod gets the device itself
  bool attachable = false;       // that device is attached to the node before it is mounted
  std::string limit_key = {};    // of its plugin's attach limits; "": has none
  bool one_pod_only = false;     // ReadWriteOncePod
  std::string plugin_name = {};  // "" when no plugin was found: the volume cannot be mounted
  std::vector<SubPathRequest> sub_paths = {};
  std::vector<std::string> nested_mount_points = {};
  uint64_t generation = 0;
  std::set<ObjectKey> objects = {};  // that its content comes from, or that its sub-paths need
  std::vector<std::string> device_paths = {};  // VolumePlugin::DevicePaths
  std::string server = {};         // VolumePlugin::FaultDomainName: "NFS server nas-1"; "": none
  std::string server_domain = {};  // its VolumePlugin::FaultDomain
  std::vector<WantedProblem> problems = {};

  bool mountable() const { return !plugin_name.empty(); }
};

struct WantedPod {
  PodPtr pod;
  std::map<SpecName, WantedVolume> volumes;
  std::vector<WantedProblem> problems;  // of no single volume
};

// Threads: the control thread. Blocks: never.
class DesiredStateOfWorld {
 public:
  // All outlive this. The catalog is read for sub-paths whose variables come from objects; the
  // host's node facts for those that come from the pod's resources.
  DesiredStateOfWorld(const ObjectCatalog& catalog, const VolumePluginMgr& plugins,
                      const HostNode& node, ClaimResolver& claims);

  // Told of each object that a first volume is made from, and of each that no volume is made from
  // any more; of both while a pod is taken over.
  using ObjectNamed = std::function<void(const ObjectKey& object, bool is_named)>;
  void SetObjectNamed(ObjectNamed named) { object_named_ = std::move(named); }

  // Adds the pod, or takes over what changed in it.
  void SetPod(PodPtr pod);
  // False if it was not there.
  bool RemovePod(const PodUid& pod);

  // The object was added, changed or removed: the volumes made from it get a new generation.
  // Returns their pods.
  std::set<PodUid> ObjectChanged(const ObjectKey& key);
  // The pods with volumes whose device is at this path.
  const std::set<PodUid>& PodsWithDevicePath(const std::string& path) const;
  // The same of all that lie at or below this path: also directories that a disk is mounted at.
  std::set<PodUid> PodsWithDevicePathBelow(const std::string& path) const;
  // Null if the pod is not wanted. Valid until the next change.
  const WantedPod* Find(const PodUid& pod) const;
  const WantedVolume* Find(const PodVolumeKey& key) const;
  const std::map<PodUid, WantedPod>& pods() const { return pods_; }
  // The pods that want this persistent volume and can have it mounted.
  const std::set<PodUid>& UsersOf(const UniqueVolumeName& volume) const;
  // The pod's volume that is this one. Null if there is none.
  const WantedVolume* FindUse(const PodUid& pod, const UniqueVolumeName& volume) const;

 private:
  WantedPod Build(PodPtr pod, const WantedPod* before) const;
  WantedVolume BuildVolume(const Pod& pod, const PodVolume& volume, bool is_device,
                           const WantedPod* before) const;
  // The volume behind a claim; where there is none, a volume that cannot be mounted.
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

// Of the uses of a persistent volume by these pods, one that writes, if there is one: it decides
// for all, since a read-only claim has a read-only bind. REQUIRES: each of them uses it; there is
// one.
const WantedVolume* WritingUse(const DesiredStateOfWorld& desired, const std::vector<PodUid>& pods,
                               const UniqueVolumeName& volume);

// Directories that a container's other mounts need inside this volume, relative to its root:
// "data/cache" for a volume at /srv with another one at /srv/data/cache. A mount of a sub-path is
// not looked at, since its root is not the volume's.
std::vector<std::string> NestedMountPoints(const Pod& pod, const std::string& volume_name);

// The secrets and config maps that a volume's content comes from.
std::set<ObjectKey> ObjectsOfVolume(const std::string& name_space, const VolumeSource& source);

}  // namespace volumed
