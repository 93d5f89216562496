// RecyclerVolumes: where the volumes of a recycler pod are on this node. A hostPath is where it is;
// an NFS export is mounted for the run, below a directory of the agent's own.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "kube/objects.h"
#include "os/kernel.h"

namespace volumed {

// Threads: one call at a time per pod. Blocks: until the call's deadline.
class RecyclerVolumes {
 public:
  // Both outlive this. `directory` is absolute, and made when it is needed; empty: nothing can be
  // mounted.
  RecyclerVolumes(Kernel& kernel, const Clock& clock, std::string directory)
      : kernel_(kernel), clock_(clock), directory_(std::move(directory)) {}

  // InvalidArgument or Unimplemented, not applied, for a volume that cannot be scrubbed here.
  Status Check(const PodVolume& volume) const;
  // What may hang with the volume; CallOptions::domain.
  static std::string DomainOf(const PodVolume& volume);
  // The absolute path at which the volume is, or will be.
  std::string PlaceOf(const Pod& pod, const PodVolume& volume) const;
  // Mounts what has to be mounted, anew: what an earlier run left there is unmounted first.
  Status MakePresent(const Pod& pod, const PodVolume& volume, const CallOptions& call);
  // Binds the approved directory of a hostPath to a place of the agent's own, anew, so that whoever
  // works there works in no other; its absolute path. Errors, not applied: FailedPrecondition if
  // another directory is at its path by now; Unimplemented without a place.
  Result<std::string> BindApproved(const Pod& pod, const PodVolume& volume,
                                   const StorageObject& approved, const CallOptions& call);
  // Takes away what was mounted for the pod of this name, by whichever agent. Blocks: up to a
  // minute for each mount, whatever the call's deadline. Errors: those of Unmount. What is mounted
  // is unmounted until the kernel says that nothing is; then its directory goes, if it is empty.
  Status Remove(const std::string& name_space, const std::string& name, const CallOptions& call);
  // Namespaces and names of the pods for which something is, or was, mounted. Names of another form
  // are nobody's of the recycler, and left out.
  Result<std::set<std::pair<std::string, std::string>>> PodsWithPlaces(const CallOptions& call);

 private:
  SafePath Directory(const std::string& entry = "") const { return {directory_, entry}; }
  // The names in the directory; none if it is missing.
  Result<std::vector<std::string>> Names(const CallOptions& call);
  // An empty one; what was mounted there is gone.
  Result<SafePath> MakeOwnPlace(const Pod& pod, const PodVolume& volume, const CallOptions& call);
  Status RemoveAt(const SafePath& place, const CallOptions& call);

  Kernel& kernel_;
  const Clock& clock_;
  const std::string directory_;
};

}  // namespace volumed
