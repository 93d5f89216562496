// An inline volume of a pod, as a kubelet asks for one: NodePublishVolume makes it and
// NodeUnpublishVolume deletes it, by a handle that the kubelet has drawn and that nobody has
// created.
//
// Whoever may make a pod says what is in `volumeAttributes`. So only what says how large the volume
// is and of which kind is taken from there, and nothing that a class has for its administrator, as
// `overcommit` and a `quota` that need not hold.
//
// Source: kubernetes pkg/volume/csi/csi_mounter.go (SetUpAt, getPodInfoAttrs),
// csi_plugin.go (makeVolumeHandle) @v1.36.2; CSI spec v1.13.0, NodePublishVolume.
//
// All are pure; threads: any. Blocks: never.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "csi.pb.h"
#include "csidriver/csi_capability_wish.h"
#include "os/safe_path.h"
#include "pool/pool_volumes.h"

namespace volumed {

// Of a volume_context: the uid of the pod, if the CSIDriver object asks for it.
inline constexpr char kCsiPodUidKey[] = "csi.storage.k8s.io/pod.uid";

// Whether a kubelet gives such handles to inline volumes: "csi-" and 64 hex digits. No id of a
// pool's volume is one.
bool IsInlineHandle(std::string_view volume_id);
// The name of the pool's volume. It has a colon, which no PersistentVolume's name has, and no name
// that a CO's CreateVolume gives begins so (PoolNameOfCsi).
std::string PoolNameOfInline(const std::string& handle);
// The handle of an inline volume.
std::string InlineHandleOf(const PoolVolumeRecord& volume);

// Whether the request says that its volume is an inline one.
bool IsInlinePublish(const ::csi::v1::NodePublishVolumeRequest& request);

// The volume that is to be there, without an id. `target` is the request's target path. Errors, not
// applied: InvalidArgument for an id that is no such handle, which is that of a volume with a life
// of its own, or for a staging path, which a kubelet has for none but these: the PersistentVolume
// has the mark among its attributes by hand; for a block volume, for a request without the pod
// (podInfoOnMount), and for an attribute that is not known, is an administrator's or has a value
// that is none.
Result<PoolVolumeWish> ParseCsiInlineWish(const ::csi::v1::NodePublishVolumeRequest& request,
                                          const CsiCapabilityWish& capability,
                                          const SafePath& target);

// CheckNotInline of an id that may be such a handle, or one of no volume.
Status CheckNotInline(const PoolVolumes& volumes, const std::string& volume_id);

}  // namespace volumed
