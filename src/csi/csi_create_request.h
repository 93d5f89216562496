// CreateVolume for a claim: what the class's parameters mean, as external-provisioner has it. Those
// whose keys begin with "csi.storage.k8s.io/" are for it; the driver gets the others.
//
// All functions are pure; threads: any. Blocks: never.
// Source: external-provisioner@v6.1 pkg/controller/controller.go (Provision, getSecretReference,
// removePrefixedParameters), topology.go.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "csi.pb.h"
#include "csi/csi_capabilities.h"
#include "csi/csi_driver_record.h"
#include "kube/storage_objects.h"
#include "volume/secrets_of_volume.h"

namespace volumed {

// What a new volume has in it from the beginning; at most one is set.
struct CsiContentSource {
  std::string snapshot_id;
  std::string volume_id;  // of a volume that is cloned
  friend bool operator==(const CsiContentSource&, const CsiContentSource&) = default;
};

struct CsiCreateWish {
  std::string pv_name;  // "pvc-<uid>": by it the driver knows the call again
  const PersistentVolumeClaim& claim;
  // Of the class.
  StringMap parameters;
  std::vector<std::string> mount_options = {};
  // Whether the driver is told of the names of claim and volume, as parameters.
  bool extra_create_metadata = false;
  // For a class that names none; empty: the driver decides.
  std::string default_fs_type = {};
  // Where the volume has to be usable, if the driver has VOLUME_ACCESSIBILITY_CONSTRAINTS: the
  // segments of this node. Empty: anywhere.
  StringMap topology = {};
  std::optional<CsiContentSource> content = {};
};

// What is to be asked of the driver, without secrets; and what the PersistentVolume then says.
struct CsiCreatePlan {
  ::csi::v1::CreateVolumeRequest request;
  std::string fs_type;
  std::optional<SecretReference> provisioner_secret;  // also for DeleteVolume
  std::optional<SecretReference> controller_publish_secret;
  std::optional<SecretReference> node_stage_secret;
  std::optional<SecretReference> node_publish_secret;
  std::optional<SecretReference> controller_expand_secret;
  std::optional<SecretReference> node_expand_secret;
};

// Errors, not applied: InvalidArgument for parameters that say nothing that can be done, and for
// access modes that CSI has no word for.
Result<CsiCreatePlan> PlanCreateVolume(const CsiDriverFacts& driver, const CsiCreateWish& wish);

// The Secrets that a class names outright. Which one a template means ("${pvc.name}") only the
// volume says that was made.
std::set<ObjectKey> SecretsNamedByClass(const StringMap& parameters);

// The request, ready to be sent. It is not to be stored, logged, or printed but by csi/rpc.
::csi::v1::CreateVolumeRequest WithSecrets(const ::csi::v1::CreateVolumeRequest& request,
                                           const CsiSecretValues& secrets);

}  // namespace volumed
