// Finds pods whose `local` volume is not the directory that lies at the volume's path now. A pod
// keeps the directory that was there when the volume was set up. The answer to a retry says so.
#pragma once

#include <string>
#include <vector>

#include "agent.pb.h"
#include "agent/look_limit.h"
#include "kube/object_catalog.h"
#include "os/kernel.h"
#include "volumemanager/views/view_types.h"

namespace volumed {

struct KeptDirectory {
  std::string volume;
  std::string path;   // the path that the PersistentVolume names
  std::string place;  // where the pod has the directory
};

// The paths of the `local` volumes that are set up for the pod, have no problem and are not block
// volumes. A path may be that of a device, of which TellOfOtherDirectories says nothing. Threads:
// the control thread. Blocks: never.
std::vector<KeptDirectory> KeptDirectoriesOf(const ObjectCatalog& catalog, const PodView& pod);

// Adds to the answer of a retry, for each volume that is in it, that another directory or none lies
// at its path now. A directory that cannot be looked at is not mentioned. Threads: any but the
// control thread. Blocks: for each directory it looks at two places, each until the limit from then
// on.
void TellOfOtherDirectories(Kernel& kernel, const LookLimit& limit,
                            const std::vector<KeptDirectory>& kept, v1::RetryResponse* response);

}  // namespace volumed
