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

}  // namespace volumed
