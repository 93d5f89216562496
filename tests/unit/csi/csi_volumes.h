// Specs of CSI volumes, and what their driver can do, for tests.
#pragma once

#include <google/protobuf/map.h>

#include <string>
#include <utility>

#include "csi.pb.h"
#include "csi/csi_capabilities.h"
#include "csi/csi_driver_record.h"
#include "kube/objects.h"
#include "kube/storage_objects.h"
#include "volume/volume_spec.h"

namespace volumed {

inline constexpr char kTestDriver[] = "disk.example.com";

inline CsiDriverFacts DriverThatCan(std::vector<int32_t> node, std::vector<int32_t> controller = {},
                                    std::vector<int32_t> plugin = {}) {
  CsiDriverFacts facts;
  facts.name = kTestDriver;
  facts.node_id = "node-id-1";
  facts.node_capabilities = std::move(node);
  facts.controller_capabilities = std::move(controller);
  facts.plugin_capabilities = std::move(plugin);
  return facts;
}

// All that a PersistentVolume can say of one.
inline PersistentVolume CsiPersistentVolume() {
  PersistentVolume volume;
  volume.metadata.name = "pv-1";
  CsiPersistentVolumeSource source;
  source.driver = kTestDriver;
  source.volume_handle = "vol-1";
  source.fs_type = "xfs";
  source.volume_attributes = {{"tier", "gold"}};
  source.controller_publish_secret_ref = SecretReference{"attach", "secrets"};
  source.node_stage_secret_ref = SecretReference{"stage", "secrets"};
  source.node_publish_secret_ref = SecretReference{"publish", "secrets"};
  source.controller_expand_secret_ref = SecretReference{"grow", "secrets"};
  source.node_expand_secret_ref = SecretReference{"grow-node", "secrets"};
  volume.spec.source = source;
  volume.spec.access_modes = {AccessMode::kReadWriteOnce};
  volume.spec.mount_options = {"noatime", "discard"};
  return volume;
}

inline VolumeSpec CsiSpec(PersistentVolume volume = CsiPersistentVolume(), bool read_only = false) {
  return VolumeSpec::FromPersistentVolume(std::move(volume), read_only);
}

inline VolumeSpec CsiBlockSpec() {
  PersistentVolume volume = CsiPersistentVolume();
  volume.spec.volume_mode = VolumeMode::kBlock;
  return CsiSpec(std::move(volume));
}

inline VolumeSpec CsiInlineSpec() {
  CsiVolumeSource source;
  source.driver = kTestDriver;
  source.fs_type = "ext4";
  source.volume_attributes = {{"size", "1Gi"}};
  source.node_publish_secret_ref = LocalObjectReference{"publish"};
  return VolumeSpec::FromVolume({"scratch", source});
}

inline CsiSecretValues TestSecrets() { return {{"key", Secret<std::string>("hunter2")}}; }

// A map of a message.
inline StringMap TextsOf(const google::protobuf::Map<std::string, std::string>& map) {
  return {map.begin(), map.end()};
}

inline Pod CsiPod() {
  Pod pod;
  pod.metadata.name = "web";
  pod.metadata.name_space = "shop";
  pod.metadata.uid = "uid-1";
  pod.spec.service_account_name = "robot";
  return pod;
}

}  // namespace volumed
