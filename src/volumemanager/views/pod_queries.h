// PodQueries: the pods of this node, as others ask for them: by uid, by name, or all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "kube/object_catalog.h"
#include "volumemanager/views/view_types.h"

namespace volumed {

class ActualStateOfWorld;
class AdoptedPods;
class DesiredStateOfWorld;
class PodReplacements;
class PodTombstones;
class PodViews;
class Readiness;

// The part of a pod's view that costs only a look at the pod's volumes. `set_up` is true for a
// volume that is mounted, certain or not; a block volume is mapped, and never counts as set up
// here.
struct VolumeProgress {
  SpecName spec;
  bool wanted = false;
  bool set_up = false;
};

// How far a count of the volumes has come; a new object has counted none.
struct VolumeCounting {
  struct OfPlugin {
    int64_t desired = 0;
    int64_t actual = 0;
  };
  std::map<std::string, OfPlugin> counts;  // by plugin, and driver
  bool desired_done = false;
  PodUid last;  // the last pod that was counted, of the desired or of the actual ones

  // For volume_manager_total_volumes: (plugin name, "desired_state_of_world" or
  // "actual_state_of_world") -> number of volumes. Source: kubernetes
  // pkg/kubelet/volumemanager/metrics.
  std::map<std::pair<std::string, std::string>, int64_t> Figures() const;
};

// What the node has of the pod, whether a source has it or not. Threads: that of `actual`.
PodOnNode FindPodOnNode(const ActualStateOfWorld& actual, const PodUid& pod);

// Threads: the control thread. Blocks: never. Errors: none. Before the records are loaded, the pods
// of the sources are shown as Pending, for that reason.
class PodQueries {
 public:
  // All members outlive this object.
  struct Parts {
    const ObjectCatalog& catalog;
    const Readiness& readiness;
    const DesiredStateOfWorld& desired;
    const ActualStateOfWorld& actual;
    const PodTombstones& tombstones;
    const AdoptedPods& adopted;
    const PodReplacements& replacements;
    const PodViews& views;
  };

  explicit PodQueries(Parts parts) : parts_(parts) {}

  // Unavailable, not applied, before the records of the last run are loaded. Who asks whether there
  // is a pod, or for all of them, asks this too: that a pod is not found then means nothing.
  Status CheckLoaded() const;

  // All pods that the node has or is to have, and those that were deleted by command and that a
  // source still has; in no particular order. The cost depends on all pods.
  std::vector<PodView> All() const;
  // The names of All() after `after`, sorted, at most `limit` of them; an empty `after` means from
  // the first. No view is built: a caller that lists many pods asks for their views in small steps,
  // so that others do not wait for the control thread. A pod may be gone by then.
  std::vector<PodName> Names(const PodName& after, size_t limit) const;
  // The pods of one name; at most one of them goes on, and the others leave. The cost depends on
  // what is found.
  std::vector<PodView> Named(const std::string& name_space, const std::string& name) const;
  // nullopt if the pod is not known, or has ended and left nothing here.
  std::optional<PodView> Find(const PodUid& pod) const;
  // Whether Find() has the pod; no view is built.
  bool Has(const PodUid& pod) const;
  // Whether it is here, and on its way out.
  bool IsLeaving(const PodUid& pod) const;
  // What the node has of the pod, whether a source has it or not.
  PodOnNode FindOnNode(const PodUid& pod) const { return FindPodOnNode(parts_.actual, pod); }
  // Who has the device of a volume here, in words: "pod shop/web", or "this node" if only the
  // device is there. Empty: nobody has.
  std::string WhoHas(const UniqueVolumeName& device) const;
  // The volumes of pods that are, or may be, bound from this device.
  std::vector<PodVolumeKey> UsersOf(const UniqueVolumeName& device) const;
  // The volumes that the pod has or wants; empty if the node does not have the pod.
  std::vector<VolumeProgress> VolumesOf(const PodUid& pod) const;
  // When a pod begins to leave because its manifest has other volumes; nullopt if it is not to be
  // replaced.
  std::optional<int64_t> ReplacedAtUnixMillis(const ObjectKey& pod) const;
  // The pods of an adopted root that no source has and that have data on disk, or volumes mounted
  // while a source may have pods that nobody knows: they stay until an administrator lets them go.
  std::vector<AdoptedPodView> AwaitingAcceptance() const;
  // Counts the volumes of some more pods. Returns true if these were the last.
  bool CountVolumes(VolumeCounting& counting) const;

 private:
  // The view of a pod that was deleted by command and that a source still has.
  PodView BuildDeleted(const Pod& pod) const;

  const Parts parts_;
};

}  // namespace volumed
