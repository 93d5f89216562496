// What a pod has of a `local` volume is the directory that was there when it was set up, and it
// keeps that: by now another one may be at the path. Whoever asks for a retry is told.
#pragma once

#include <string>
#include <vector>

#include "agent.pb.h"
#include "base/clock.h"
#include "kube/object_catalog.h"
#include "os/kernel.h"
#include "volumemanager/volume_manager.h"

namespace volumed {

struct KeptDirectory {
  std::string volume;
  std::string path;   // that its PersistentVolume names
  std::string place;  // where the pod has it
};

// Of the volumes that the pod has. Threads: the control thread. Blocks: never.
std::vector<KeptDirectory> KeptDirectoriesOf(const ObjectCatalog& catalog, const PodView& pod);

// Says in the answer to a retry which of them are not what is at their path now. Of what cannot be
// looked at nothing is said. Threads: any. Blocks: until a deadline of its own.
void TellOfOtherDirectories(Kernel& kernel, const Clock& clock,
                            const std::vector<KeptDirectory>& kept, v1::RetryResponse* response);

}  // namespace volumed
