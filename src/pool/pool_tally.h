// PoolTally: what calls ask of all rows of PoolVolumes at once, kept up to date as rows change, so
// that no call has to go through all of them.
//
// Not thread-safe: whoever owns the rows guards both by one lock. Blocks: never. Errors: none.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "pool/pool_record.h"

namespace volumed {

// Whether volumes of both get their bytes from the same place: the filesystem of the pool's
// directory, or its thin pool.
bool ShareRoom(PoolBackendKind one, PoolBackendKind other);

class PoolTally {
 public:
  // A row is there from now on; the row of the same id that was there before is left first.
  void Add(const PoolVolumeRecord& volume) { Count(volume, 1); }
  void Leave(const PoolVolumeRecord& volume) { Count(volume, -1); }
  void Add(const PoolCutRecord& cut);
  void Leave(const PoolCutRecord& cut);

  // What a pool has promised at the most, of what volumes of this backend share.
  struct Promised {
    int64_t bytes = 0;
    int64_t unbounded = 0;  // rows of which only a measure can say what they were promised
  };
  Promised PromisedOf(const std::string& pool, PoolBackendKind backend) const;

  // How many volumes the node has.
  int64_t LeasesOf(const std::string& node) const;

  // A cut that is still copied from the volume; empty: none is.
  std::string CopiedFrom(const std::string& volume) const;

 private:
  // A pool, and whether it is about its thin pool.
  using Room = std::pair<std::string, bool>;

  void Count(const PoolVolumeRecord& volume, int64_t sign);
  void CountPromise(const Room& room, int64_t bytes, bool is_bounded, int64_t sign);

  std::map<Room, Promised> promised_;
  std::map<std::string, int64_t> leases_;                // by node
  std::map<std::string, std::set<std::string>> copied_;  // volume -> cuts that are not whole
};

}  // namespace volumed
