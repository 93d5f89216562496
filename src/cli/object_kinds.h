// The kinds that `describe`, `delete`, `get`, `events` and completion know; a new kind is a row of
// kCliKinds and, for `get`, a noun. For `describe`, `delete` and `events` the agent decides what a
// word means, so a kind without a row works there, but is not offered. `get` refuses a word without
// a noun.
#pragma once

#include <string>
#include <string_view>

namespace volumed {

struct CliKind {
  std::string_view name;  // as completion offers it
  // False for a volume, which is a part of a pod, and for a snapshot, which goes by the verb
  // snapshot. A CSI driver is a program, and what is deleted is all that is known of it.
  bool can_be_deleted = false;
};

inline constexpr CliKind kCliKinds[] = {
    {"pod", true},
    {"volume", false},
    {"secret", true},
    {"configmap", true},
    {"node", true},
    {"persistentvolume", true},
    {"persistentvolumeclaim", true},
    {"storageclass", true},
    {"csidriver", true},
    {"csinode", true},
    {"volumeattachment", true},
    {"volumesnapshot", true},
    {"volumesnapshotcontent", true},
    {"volumesnapshotclass", true},
    {"driver", true},
    {"snapshot", false},
};

// "pod, volume, ...", in the order of kCliKinds, for help; with `to_delete` only those that can be
// deleted.
std::string KindNames(bool to_delete);

// A word that `get` accepts, as kubectl names it. All three forms mean the same; one that kubectl
// does not have repeats another.
struct CliNoun {
  std::string_view plural;
  std::string_view singular;
  std::string_view short_name;
  std::string_view names_of;  // names of this kind may follow

  bool Means(std::string_view word) const {
    return word == plural || word == singular || word == short_name;
  }
};

inline constexpr CliNoun kPodNoun = {"pods", "pod", "po", "pod"};
// The volumes of the pod that is named.
inline constexpr CliNoun kVolumeNoun = {"volumes", "volume", "vol", "pod"};
inline constexpr CliNoun kPersistentVolumeNoun = {"persistentvolumes", "persistentvolume", "pv",
                                                  "persistentvolume"};
inline constexpr CliNoun kClaimNoun = {"persistentvolumeclaims", "persistentvolumeclaim", "pvc",
                                       "persistentvolumeclaim"};
inline constexpr CliNoun kStorageClassNoun = {"storageclasses", "storageclass", "sc",
                                              "storageclass"};
inline constexpr CliNoun kSecretNoun = {"secrets", "secret", "secret", "secret"};
inline constexpr CliNoun kConfigMapNoun = {"configmaps", "configmap", "cm", "configmap"};
inline constexpr CliNoun kNodeNoun = {"nodes", "node", "no", "node"};
inline constexpr CliNoun kCsiDriverNoun = {"csidrivers", "csidriver", "csidriver", "csidriver"};
inline constexpr CliNoun kCsiNodeNoun = {"csinodes", "csinode", "csinode", "csinode"};
inline constexpr CliNoun kVolumeAttachmentNoun = {"volumeattachments", "volumeattachment",
                                                  "volumeattachment", "volumeattachment"};
inline constexpr CliNoun kVolumeSnapshotNoun = {"volumesnapshots", "volumesnapshot", "vs",
                                                "volumesnapshot"};
inline constexpr CliNoun kVolumeSnapshotContentNoun = {
    "volumesnapshotcontents", "volumesnapshotcontent", "vsc", "volumesnapshotcontent"};
inline constexpr CliNoun kVolumeSnapshotClassNoun = {"volumesnapshotclasses", "volumesnapshotclass",
                                                     "vsclass", "volumesnapshotclass"};
// CSI drivers that have registered; CSIDriver is what their manifests say.
inline constexpr CliNoun kDriverNoun = {"drivers", "driver", "driver", "driver"};
// The node's own storage, which no manifest gives.
inline constexpr CliNoun kPoolNoun = {"pools", "pool", "pool", "pool"};
inline constexpr CliNoun kPoolVolumeNoun = {"pool-volumes", "pool-volume", "pool-volume",
                                            "pool-volume"};
inline constexpr CliNoun kSnapshotNoun = {"snapshots", "snapshot", "snap", "snapshot"};
// Kinds whose objects are shown as they are.
inline constexpr CliNoun kKeptNouns[] = {kSecretNoun,
                                         kConfigMapNoun,
                                         kNodeNoun,
                                         kCsiDriverNoun,
                                         kCsiNodeNoun,
                                         kVolumeAttachmentNoun,
                                         kVolumeSnapshotNoun,
                                         kVolumeSnapshotContentNoun,
                                         kVolumeSnapshotClassNoun};
// Every noun of `get`, in the order in which they are offered.
inline constexpr CliNoun kGetNouns[] = {kPodNoun,
                                        kVolumeNoun,
                                        kPersistentVolumeNoun,
                                        kClaimNoun,
                                        kStorageClassNoun,
                                        kSecretNoun,
                                        kConfigMapNoun,
                                        kNodeNoun,
                                        kCsiDriverNoun,
                                        kCsiNodeNoun,
                                        kVolumeAttachmentNoun,
                                        kVolumeSnapshotNoun,
                                        kVolumeSnapshotContentNoun,
                                        kVolumeSnapshotClassNoun,
                                        kDriverNoun,
                                        kPoolNoun,
                                        kPoolVolumeNoun,
                                        kSnapshotNoun};

// "pods (po), volumes (vol), ...", in the order of kGetNouns, for help.
std::string NounNames();

// The kinds other than pods of which completion offers names after `events`: `events KIND/NAME`.
inline constexpr std::string_view kEventKinds[] = {"pv", "pvc", "node"};

}  // namespace volumed
