// The requests to the node's service of a CSI driver, built from what is known of the volume.
//
// All functions are pure; threads: any. Blocks: never. Paths are absolute. What they answer has
// secrets in it: it is not to be logged, stored, or printed but by csi/rpc.
// Source: kubernetes pkg/volume/csi/csi_client.go, csi_mounter.go, csi_block.go,
// csi_util.go@v1.36.2.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/quantity.h"
#include "csi.pb.h"
#include "csi/csi_capabilities.h"
#include "csi/csi_driver_record.h"
#include "kube/objects.h"
#include "kube/storage_objects.h"
#include "volumehost/volume_host.h"

namespace volumed {

struct CsiStageWish {
  StringMap publish_context;  // what attaching gave
  std::string staging_path;
  CsiSecretValues secrets = {};  // of node_stage_secret
  CsiMountWish mount = {};
};
::csi::v1::NodeStageVolumeRequest NodeStageRequest(const CsiDriverFacts& driver,
                                                   const CsiVolume& volume,
                                                   const CsiStageWish& wish);

// A token that the driver's CSIDriver asks for.
struct CsiToken {
  std::string audience;  // as the CSIDriver has it
  ServiceAccountToken token;
};

// The pod for which a volume is published. `object` is the driver's CSIDriver; null: there is none.
struct CsiPublishWish {
  StringMap publish_context;
  // Empty: the volume was not staged. Of a block volume it is given in any case.
  std::string staging_path;
  std::string target_path;
  CsiSecretValues secrets = {};  // of node_publish_secret
  CsiMountWish mount = {};
  const CsiDriverObject* object = nullptr;
  // Whoever is to be told of the pod needs one; null: nobody is.
  const Pod* pod = nullptr;
  std::vector<CsiToken> tokens = {};  // as many as the CSIDriver asks for
};
// An inline volume has neither a publish context, a staging path nor mount options; a block volume
// has no tokens. Of a key that is in the volume's attributes and among what the agent adds, the
// agent's counts.
::csi::v1::NodePublishVolumeRequest NodePublishRequest(const CsiDriverFacts& driver,
                                                       const CsiVolume& volume,
                                                       const CsiPublishWish& wish);
// Whether a NodePublishRequest would name the pod, or carry tokens: of podInfoOnMount and
// tokenRequests.
bool WantsPodInfo(const CsiDriverObject* object);
bool WantsTokens(const CsiVolume& volume, const CsiDriverObject* object);

::csi::v1::NodeUnpublishVolumeRequest NodeUnpublishRequest(const std::string& handle,
                                                           const std::string& target_path);
::csi::v1::NodeUnstageVolumeRequest NodeUnstageRequest(const std::string& handle,
                                                       const std::string& staging_path);

struct CsiNodeExpandWish {
  std::string volume_path;   // the mount, or a block volume's device
  std::string staging_path;  // empty: the volume was not staged
  int64_t required_bytes = 0;
  CsiSecretValues secrets = {};  // of node_expand_secret
};
::csi::v1::NodeExpandVolumeRequest NodeExpandRequest(const CsiDriverFacts& driver,
                                                     const CsiVolume& volume,
                                                     const CsiNodeExpandWish& wish);

::csi::v1::NodeGetVolumeStatsRequest NodeStatsRequest(const std::string& handle,
                                                      const std::string& volume_path);
// Of 1.13. Either path may be empty: the volume is not there.
::csi::v1::NodeGetVolumeHealthRequest NodeHealthRequest(const std::string& handle,
                                                        const std::string& publish_path,
                                                        const std::string& staging_path);

}  // namespace volumed
