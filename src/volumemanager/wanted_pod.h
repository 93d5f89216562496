// WantedPod: a pod that should have its volumes here, with everything that a MountRequest needs of
// each of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "kube/object_catalog.h"
#include "kube/objects.h"
#include "operation/volume_operations.h"
#include "volumemanager/wanted_problem.h"

namespace volumed {

// A volume of a pod, and what was found out about it. If it is not mountable(), the other facts may
// be missing.
struct WantedVolume {
  VolumeSpec spec;
  // Names in the pod's spec: one, or several that name the same claim.
  std::vector<std::string> pod_volumes = {};
  std::optional<ObjectKey> claim = {};  // the claim that gives the volume
  // The uid of the claim to which the volume is bound; "" if it comes from no claim, or none is
  // bound yet.
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
  // With which its mount is made, so that nothing in it has to be labelled; "": none.
  std::string selinux_label = {};
  // "" if no plugin was found: the volume cannot be mounted.
  std::string plugin_name = {};
  // A mount keeps the request that was made for it first; see PlanSubPaths.
  std::vector<SubPathRequest> sub_paths = {};
  // See NestedMountPoints().
  std::vector<std::string> nested_mount_points = {};
  // The number of the inputs from which it is made; see DesiredStateOfWorld. 0: none was given yet.
  uint64_t generation = 0;
  // Objects from which its content comes, or that its sub-paths or its plugin need
  // (VolumePlugin::DependsOn).
  std::set<ObjectKey> objects = {};
  // VolumePlugin::DevicePaths: absolute paths whose appearance may let it be mounted.
  std::vector<std::string> device_paths = {};
  std::string server = {};         // VolumePlugin::FaultDomainName: "NFS server nas-1"; or ""
  std::string server_domain = {};  // its VolumePlugin::FaultDomain
  // The domain of the driver that its plugin's calls go to (VolumePlugin::WorksInLane); else "".
  // Also of a volume that is not mountable.
  std::string driver_domain = {};
  // What is wrong with it, or what it waits for. A volume may have problems and be mountable all
  // the same, if only one of its mounts cannot be had.
  std::vector<WantedProblem> problems = {};

  bool mountable() const { return !plugin_name.empty(); }
};

// The desired state of one pod: what is to be on the node for it.
struct WantedPod {
  PodPtr pod;
  // The key is the name of the volume's directory. A volume that no container uses is not made, as
  // in kubelet.
  std::map<SpecName, WantedVolume> volumes;
  std::vector<WantedProblem> problems;  // problems of no single volume
};

}  // namespace volumed
