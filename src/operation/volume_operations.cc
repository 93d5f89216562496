#include "operation/volume_operations.h"

namespace volumed {

std::vector<StartResult> VolumeOperations::MountVolumes(std::vector<MountRequest> requests,
                                                        GroupDone<MountedVolume> done) {
  std::vector<StartResult> started;
  for (size_t number = 0; number < requests.size(); ++number) {
    started.push_back(MountVolume(
        std::move(requests[number]),
        [number, done](const OperationOutcome<MountedVolume>& outcome) { done(number, outcome); }));
  }
  return started;
}

std::vector<StartResult> VolumeOperations::UnmountVolumes(std::vector<UnmountRequest> requests,
                                                          GroupDone<Unit> done) {
  std::vector<StartResult> started;
  for (size_t number = 0; number < requests.size(); ++number) {
    started.push_back(UnmountVolume(
        std::move(requests[number]),
        [number, done](const OperationOutcome<Unit>& outcome) { done(number, outcome); }));
  }
  return started;
}

}  // namespace volumed
