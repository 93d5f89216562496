// PoolBackend: how the volumes of one kind are made, used and discarded. It keeps no record and
// decides nothing: PoolVolumes has written the intent before each call, and calls again after a
// crash.
//
// Threads: any; one call per volume at a time. Blocks: until the call's deadline. Errors: those of
// the effects, besides the ones that are named. All calls may be repeated; one that fails may have
// been applied unless its error says otherwise.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/kernel.h"
#include "pool/pool_layout.h"
#include "pool/pool_parameters.h"
#include "pool/pool_record.h"

namespace volumed {

// How a volume is had on the node.
struct OpenedVolume {
  std::string device;  // "/dev/loop3"
  DeviceIdentity identity;
  // Whether the device bypasses the cache of the pool's filesystem. Otherwise each block that is
  // read or written may be in memory twice.
  bool direct_io = false;
};

// What is on the disk of a volume.
struct MadeArtefact {
  StorageObject object;
  int64_t size_bytes = 0;
  int64_t allocated_bytes = 0;
};

// What an answer has of a volume that cannot be looked at.
enum class OfDamaged {
  kNothing,  // the others are not to wait for it
  kError     // nobody knows how much it has
};

class PoolBackend {
 public:
  virtual ~PoolBackend() = default;
  virtual PoolBackendKind kind() const = 0;

  // Makes it, empty and of `volume.capacity_bytes`. REQUIRES: nobody else knows the id. Errors:
  // ResourceExhausted, not applied; then nothing is left of it.
  virtual Result<MadeArtefact> Make(const PoolVolumeRecord& volume,
                                    const PoolParameters& parameters, const CallOptions& call) = 0;
  // Removes what is there, if it is the recorded object, or if none is on record; what is missing
  // is success. Errors: FailedPrecondition for another object, for what somebody else has put
  // there, and while somebody has the volume open.
  virtual Status Discard(const PoolVolumeRecord& volume, const CallOptions& call) = 0;
  // Makes it as large as that, also while it is open. Errors, not applied: ResourceExhausted;
  // FailedPrecondition, if it is larger already, for nobody else is to change its size.
  virtual Result<MadeArtefact> Grow(const PoolVolumeRecord& volume, int64_t bytes,
                                    const PoolParameters& parameters, const CallOptions& call) = 0;
  // Makes a device of it that is tuned so. Errors: FailedPrecondition, not applied, if its file is
  // not the recorded object; those of Tune, after which no device is left that this call made.
  virtual Result<OpenedVolume> Open(const PoolVolumeRecord& volume, const PoolTuning& tuning,
                                    bool read_only, const CallOptions& call) = 0;
  // Tunes the device that is open, and finds it so; success if none is. Errors: InvalidArgument, if
  // the pool's filesystem cannot do it.
  virtual Status Tune(const PoolVolumeRecord& volume, const PoolTuning& tuning,
                      const CallOptions& call) = 0;
  // The inverse. REQUIRES: nothing is mounted from it. Errors: FailedPrecondition, maybe applied,
  // while somebody has it open: then it goes when he closes it.
  virtual Status Close(const PoolId& volume, const CallOptions& call) = 0;
  // Of this pool's volumes those that are open, each once.
  virtual Result<std::vector<PoolId>> ListOpen(const CallOptions& call) = 0;
  // What these have on the disk. Those that are not there are missing from the answer, and with
  // kNothing those that cannot be looked at.
  virtual Result<std::map<PoolId, MadeArtefact>> Measure(const std::vector<PoolId>& volumes,
                                                         OfDamaged damaged,
                                                         const CallOptions& call) = 0;
};

// Volumes that are files with the content of a disk, used by way of loop devices. `kernel` outlives
// what is made. `pool_uuid` is for what is written for people.
std::unique_ptr<PoolBackend> MakeImageBackend(Kernel& kernel, PoolLayout layout,
                                              std::string pool_uuid);

}  // namespace volumed
