// PoolLayout: every path below a pool's directory, built from parsed ids alone.
//
// Pure; threads: any. Blocks: never. Errors: none.
#pragma once

#include <string>
#include <utility>

#include "os/safe_path.h"
#include "pool/pool_id.h"

namespace volumed {

// Says that the directory is a pool, and which one. It is written once.
inline constexpr char kPoolMarkerFile[] = "pool.volumed";
// Locked by the agent that has the pool. Its content says who that is, and is not synced, so that
// it may be lost in a power cut: hence it is not in the marker.
inline constexpr char kPoolLockFile[] = "pool.lock";

// `root` is the pool's directory: absolute, clean, without links (FindPoolDirectory follows them).
class PoolLayout {
 public:
  explicit PoolLayout(std::string root) : root_(std::move(root)) {}
  const std::string& root() const { return root_; }
  SafePath Directory() const;  // <pool>
  SafePath Marker() const;     // <pool>/pool.volumed
  SafePath Lock() const;       // <pool>/pool.lock
  SafePath Volumes() const;    // <pool>/volumes
  SafePath Cuts() const;       // <pool>/cuts
  // REQUIRES of these: the id is a volume's or a cut's, which lies in cuts likewise.
  SafePath ArtefactDir(const PoolId& id) const;  // <pool>/volumes/<id>
  SafePath Image(const PoolId& id) const;        // <pool>/volumes/<id>/image
  SafePath Data(const PoolId& id) const;         // <pool>/volumes/<id>/data
  // What it is, for people.
  SafePath Description(const PoolId& id) const;  // <pool>/volumes/<id>/volume.json

 private:
  std::string root_;
};

// The names in the directory of a volume, or of a cut. The program never reads the description.
inline constexpr char kPoolImageFile[] = "image";
inline constexpr char kPoolDataDirectory[] = "data";
inline constexpr char kPoolDescriptionFile[] = "volume.json";
inline constexpr char kPoolCutDescriptionFile[] = "cut.json";
// The one of these that an object of this kind has.
const char* PoolDescriptionFile(PoolObject object);

// The name of what a WriteFile of this name leaves if its worker ends amid it; the next one takes
// that over.
std::string UnfinishedName(const std::string& name);

}  // namespace volumed
