// VolumeConfig and VolumeOptions: how a plugin is configured, and what a new volume is to be like.
// Source: kubernetes pkg/volume/plugins.go@v1.36.2 (VolumeConfig, VolumeOptions).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/objects.h"
#include "pluginmgr/volume_content.h"

namespace volumed {

// The parameter of a StorageClass that names the filesystem of a new volume.
inline constexpr char kVolumeParameterFsType[] = "fstype";
// The annotation of a PersistentVolume that was made for a claim: by which provisioner.
// Source: kubernetes pkg/controller/volume/persistentvolume/pv_controller.go@v1.36.2
// (AnnDynamicallyProvisioned).
inline constexpr char kProvisionedBy[] = "pv.kubernetes.io/provisioned-by";

// A value. What it says is for several plugins; what is for one alone is that plugin's settings.
struct VolumeConfig {
  // What scrubs a released volume; each plugin puts its own volume into a copy of it.
  std::optional<Pod> recycler_pod_template;
  // The recycler pod may take the greater of the minimum, and the increment for each whole Gi of
  // capacity (recycler/recycler_pod_template.h).
  int recycler_minimum_timeout_seconds = 0;
  int recycler_timeout_increment_seconds = 0;
  std::string pv_name;  // of the volume that is recycled
  // Understood by the program and one plugin only.
  std::map<std::string, std::string> other_attributes;
  bool provisioning_enabled = false;
};

// What an earlier Provisioner of the same volume has planned, as it is on record.
struct VolumePlan {
  PersistentVolume volume;  // Provisioner::Plan()
  std::string text;         // Provisioner::PlanText()
};

// A value.
struct VolumeOptions {
  ReclaimPolicy reclaim_policy = ReclaimPolicy::kDelete;
  std::vector<std::string> mount_options;
  // Suggested, and unique in the cluster.
  std::string pv_name;
  // The claim that the new volume has to satisfy.
  PersistentVolumeClaim claim;
  // Of the seed; v1.36 has neither. For storage that keeps them beside the volume.
  std::string cluster_name;
  std::optional<std::map<std::string, std::string>> cloud_tags;
  // Of the StorageClass.
  std::map<std::string, std::string> parameters;
  std::vector<TopologyTerm> allowed_topologies;
  // What the claim names as the source of its data; set only for plugins that take it
  // (ProvisionableVolumePlugin::TakesContents).
  std::optional<VolumeContent> content;
  // Set if the volume was planned before and the plan has a text. Then nothing else here counts but
  // the name, and `may_be_new`: the very same volume is made, whatever claim and class say by now.
  std::optional<VolumePlan> plan;
  // Takes storage that was made for this volume, if nobody else has it by now; asked once it is
  // known which storage that is. An error, not applied, names who has it; it is Aborted if that
  // will end by itself. Empty: nobody knows. Threads: any. Blocks: until the store has answered.
  std::function<Status(const PersistentVolume& made)> may_be_new;
};

}  // namespace volumed
