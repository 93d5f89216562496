// What PoolVolumes is asked for, and what it says of volumes and of pools: values without a
// behaviour.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "pluginmgr/volume_content.h"
#include "pool/pool.h"
#include "pool/pool_parameters.h"
#include "pool/pool_record.h"
#include "pool/static_export.h"

namespace volumed {

// What is on the node already and is to become a volume of the pool on whose filesystem it lies.
struct PoolImportWish {
  std::string name;  // by which a repeated call finds the volume
  std::string pool;
  PoolBackendKind backend = PoolBackendKind::kImage;
  ImportedFile source;
  int64_t bytes = 0;
  bool is_block = false;
  PoolFilesystem filesystem;  // that is on it; empty of a directory and of a block volume
};

// What a volume is to be.
struct PoolVolumeWish {
  std::string id;    // drawn by PlanId(); empty: one is drawn
  std::string name;  // by which a repeated call finds the volume
  PoolSize size;
  bool is_block = false;
  StringMap parameters;
  // PoolTuning. Of a volume that is there already they are not looked at, as they may have been
  // changed since.
  StringMap mutable_parameters = {};
  // What is in it from the beginning, of this driver; its handle is the id of a snapshot, which is
  // that of a cut, or of a volume. Nullopt: nothing.
  std::optional<VolumeContent> content = std::nullopt;
  // Of an inline volume of a pod; empty: it is none.
  PoolInline inline_use = {};
};

// A device that is there already, or an export, that an administrator has listed as a volume.
struct StaticVolume {
  std::string name;    // in the list
  std::string pool;    // whose ids it gets
  std::string device;  // a path that lasts: "/dev/disk/by-id/..."; empty of an export
  bool is_block = false;
  StaticExport exported = {};  // its source is empty of a device
};

// What an id is to this node. kNone: the text is no id of a volume, or one of a pool of this node
// that has no such volume. kUnreadable: its row cannot be read, or it has files and no row.
// kNotKnownYet: it has no row, and its pool was not looked through for files without one since the
// agent's start.
enum class PoolIdMeaning { kNone, kOfAnotherPool, kHere, kUnreadable, kNotKnownYet };

struct PoolPage {
  std::vector<PoolVolumeRecord> volumes;  // by id
  std::string next;                       // the id to go on after; empty: that is all
};

// How much room a pool has, as far as that is known.
struct PoolGlance {
  Status state;                        // why the figures are not of now: also since when
  std::optional<PoolAccount> account;  // of now, or else as they last were
};

// What was last found of the room of a pool's directory.
struct PoolSeen {
  std::optional<PoolAccount> account;            // nullopt: it was never measured
  int64_t measured_unix_ms = 0;                  // the account
  std::optional<int64_t> failing_since_unix_ms;  // nullopt: it has answered when it was last asked
};

// What can be seen of a pool without looking into its volumes.
struct PoolHealth {
  Status reachable;       // the rest is known if it is OK
  bool is_short = false;  // PoolAccount::is_short
  // The ids of volumes whose files are not there as they were made, and why.
  std::map<std::string, std::string> lost;
  // Those whose directories are not bounded as they are to be, and why.
  std::map<std::string, std::string> unbounded;
};

}  // namespace volumed
