// Finds the volume of a pool that a person names, and who has a volume. Threads: the control
// thread. Blocks: never.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/objects.h"
#include "pool/pool_record.h"
#include "volume/claim_binding.h"

namespace volumed {

struct ControlBackend;

// The id of the volume that a person calls so: by that id, by the name of its PersistentVolume
// (also "pv/NAME"), or by its claim ("pvc/NAME", "pvc/NAMESPACE/NAME", "NAMESPACE/NAME"; NAME alone
// if nothing else has it). A claim without a namespace is in `name_space`, which is "default" if it
// is empty. Errors, not applied: NotFound, which says what was looked for; FailedPrecondition for a
// claim that has no volume. REQUIRES: the node has pools (ControlBackend::snapshots).
Result<std::string> FindPoolVolume(const ControlBackend& backend, const std::string& name_space,
                                   const std::string& volume);

// How who has the device of a pool's volume (PodQueries::WhoHas) is shown: "pod shop/web", or what
// the node has of it. Pure.
std::string ShownPoolVolumeUser(std::string who_has);

// Who has a volume.
struct PoolVolumeHolding {
  std::string persistent_volume{};  // the first that names it; empty: none does
  ClaimKey claim{};                 // to which that is bound, or for which it is made; may be empty
  std::vector<std::string> had_by{};  // everybody, for people; empty: nobody has it
};

// Looks through the objects once, for many volumes. To be used at once, while nothing changes.
class PoolVolumeHolders {
 public:
  // REQUIRES: as FindPoolVolume().
  explicit PoolVolumeHolders(const ControlBackend& backend);

  PoolVolumeHolding Of(const PoolVolumeRecord& volume) const;

 private:
  const ControlBackend& backend_;
  std::map<std::string, std::vector<std::string>> named_;  // PersistentVolumes, by the volume's id
  std::map<std::string, ClaimKey>
      wanted_;  // claims by the name of the volume that is made for them
};

// Whether a person may delete the volume, by the objects and the rows of this node; the rest is
// asked with the volume held (DeletePoolVolume). Errors, not applied: Unavailable while an object
// that nobody has seen yet may name it; NotFound; FailedPrecondition, naming who has it, or if an
// orchestrator has made it, which alone knows whether anybody wants it, unless it is `abandoned`.
// REQUIRES: as FindPoolVolume().
Status CheckPoolVolumeIsFree(const ControlBackend& backend, const std::string& id, bool abandoned);

}  // namespace volumed
