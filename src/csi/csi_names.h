// How the volumes of CSI drivers are called, and where they lie: kubelet's names and paths, so that
// what one of the two has made is found by the other.
//
//   <root>/plugins/kubernetes.io/csi/<driver>/<sha256 of the handle>/globalmount   staged
//   <root>/plugins/kubernetes.io/csi/pv/<persistent volume>/globalmount            before 1.24
//   <root>/plugins/kubernetes.io/csi/volumeDevices/staging/<spec name>             a block volume's
//   <root>/plugins/kubernetes.io/csi/volumeDevices/publish/<spec name>/<uid>
//   <root>/plugins/kubernetes.io/csi/volumeDevices/<esc spec name>/dev/<uid>
//   <root>/plugins/kubernetes.io/csi/volumeDevices/<esc spec name>/data/vol_data.json
//   <root>/pods/<uid>/volumes/kubernetes.io~csi/<esc spec name>/mount              published
//   <root>/pods/<uid>/volumeDevices/kubernetes.io~csi/<spec name>                  link to a device
// vol_data.json is beside globalmount and mount. A slash in a spec name, which only a translated
// inline volume has, is a '~' where it says "esc", and makes a directory elsewhere.
//
// All functions are pure; threads: any. Blocks: never. No path is touched; handles and names may be
// any bytes.
// Source: kubernetes pkg/volume/csi/csi_plugin.go, csi_attacher.go, csi_mounter.go,
// csi_block.go@v1.36.2.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "kube/object_meta.h"
#include "volumehost/kubelet_paths.h"

namespace volumed {

inline constexpr char kCsiPluginName[] = "kubernetes.io/csi";
inline constexpr char kCsiVolDataFile[] = "vol_data.json";

// Keys of vol_data.json (csi/vol_data.h).
inline constexpr char kVolDataSpecVolId[] = "specVolID";  // the spec's name
inline constexpr char kVolDataVolumeHandle[] = "volumeHandle";
inline constexpr char kVolDataDriverName[] = "driverName";
inline constexpr char kVolDataNodeName[] = "nodeName";
inline constexpr char kVolDataLifecycleMode[] = "volumeLifecycleMode";
inline constexpr char kVolDataAttachmentId[] = "attachmentID";
inline constexpr char kVolDataSeLinuxContext[] = "seLinuxMountContext";
// Values of kVolDataLifecycleMode.
inline constexpr char kVolDataPersistent[] = "Persistent";
inline constexpr char kVolDataEphemeral[] = "Ephemeral";

// A volume as its driver knows it.
struct CsiVolumeId {
  std::string driver;
  std::string handle;
  friend bool operator==(const CsiVolumeId&, const CsiVolumeId&) = default;
};

// "<driver>^<handle>": what the plugin's GetVolumeName() answers for a persistent volume.
std::string CsiVolumeName(std::string_view driver, std::string_view handle);
// The inverse: cut at the first '^', for a driver's name has none and a handle may have some.
// Nullopt for what is none: without '^', without a driver, or with a slash in it.
std::optional<CsiVolumeId> ParseCsiVolumeName(std::string_view volume_name);
// "kubernetes.io/csi/<driver>^<handle>", and the inverse.
UniqueVolumeName CsiUniqueName(std::string_view driver, std::string_view handle);
std::optional<CsiVolumeId> ParseCsiUniqueName(const UniqueVolumeName& unique);

// "kubernetes.io/csi:<driver>": how metrics name the plugin of this driver's volumes.
std::string CsiFullPluginName(const std::string& driver);

// By which a path names a volume: 64 hex digits.
std::string CsiHandleHash(std::string_view handle);
// "csi-<hash>": the VolumeAttachment of the volume on this node. Source: getAttachmentName.
std::string CsiAttachmentName(std::string_view handle, std::string_view driver,
                              std::string_view node);
// "csi-<hash>": how a driver knows a pod's inline volume. Source: makeVolumeHandle.
std::string CsiInlineHandle(const PodUid& pod, const SpecName& spec);
// Whether it is made as those are; whose it is, it does not say.
bool IsLikeCsiInlineHandle(std::string_view handle);

// The directory of a staged volume, which has vol_data.json; and the staging path in it.
SafePath CsiStageDir(const KubeletPaths& paths, const std::string& driver,
                     const std::string& handle);
SafePath CsiStagingPath(const KubeletPaths& paths, const std::string& driver,
                        const std::string& handle);
// The same, where kubelets before 1.24 had them.
SafePath CsiOldStageDir(const KubeletPaths& paths, const SpecName& persistent_volume);
SafePath CsiOldStagingPath(const KubeletPaths& paths, const SpecName& persistent_volume);

// The directory of a pod's volume, which has vol_data.json; and the target path in it.
SafePath CsiPodVolumeDir(const KubeletPaths& paths, const PodUid& pod, const SpecName& spec);
SafePath CsiTargetPath(const KubeletPaths& paths, const PodUid& pod, const SpecName& spec);

// Whether a block volume of this name, which a PersistentVolume may have, would have a directory of
// all others as its own: what is made or removed there would be theirs. Kubelet's layout is so.
bool HasSharedBlockDir(const SpecName& spec);
// A block volume's directory; in it the map with a bind of the device per pod, and the directory
// that has vol_data.json.
SafePath CsiBlockDir(const KubeletPaths& paths, const SpecName& spec);
SafePath CsiBlockMapDir(const KubeletPaths& paths, const SpecName& spec);
SafePath CsiBlockDataDir(const KubeletPaths& paths, const SpecName& spec);
SafePath CsiBlockStagingPath(const KubeletPaths& paths, const SpecName& spec);
// Has a target path per pod.
SafePath CsiBlockPublishDir(const KubeletPaths& paths, const SpecName& spec);
SafePath CsiBlockPublishPath(const KubeletPaths& paths, const SpecName& spec, const PodUid& pod);

// Where devices of CSI volumes lie, as a KubeletPaths::DeviceLayout: both staging paths, and of
// block volumes the binds, the target paths, and the staging path and what lies in it. A path has
// but the hash of a handle, or no word of it; so the volume that is answered is a stand-in, which
// is no volume's name (ParseCsiVolumeName() takes none of them): "staged/<driver>/<hash>",
// "staged/pv/<persistent volume>", "block/<esc spec name>". What vol_data.json beside it says is
// the volume.
std::optional<KubeletPaths::DeviceMount> CsiDeviceAt(const std::vector<std::string>& elements);

}  // namespace volumed
