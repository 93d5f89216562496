// The pool of a CrashWorld, and what a correct agent owes to it and to its volumes: rules for every
// effect and record, beside those of crash_monitor.h. There is one volume at a time.
#pragma once

#include <optional>
#include <string>

#include "os/kernel_requests.h"
#include "pool/pool_record.h"
#include "unit/crash/crash_world.h"

namespace volumed {

inline constexpr const char* kCrashPool = "/srv/pool";
inline constexpr const char* kCrashPoolDriver = "pool.volumed.io";
// The PersistentVolume that is made for the claim of uid "claim-data", and the loop device that it
// gets.
inline constexpr const char* kCrashPoolVolume = "pvc-claim-data";
inline constexpr const char* kCrashPoolDevice = "/dev/loop0";

// ---- the world

// An empty directory for a pool, and a loop device that is free.
void AddPool(CrashWorld& world);
// The row of the volume that was made by this name.
std::optional<PoolVolumeRecord> PoolVolumeNamed(const CrashWorld& world, const std::string& name);
SafePath PoolImageOf(const std::string& id);

// ---- the rules

// Which rule the effect would break; "" if none, or if it is about no volume of the pool.
std::string BrokenPoolRule(const CrashWorld& world, const AnyRequest& request);

// That a volume of a claim is recorded as made, or not recorded any more, and the pool does not
// agree.
void CheckPoolProvisionPut(CrashWorld& world, const std::string& volume);
void CheckPoolProvisionRemove(CrashWorld& world, const std::string& volume);

// At the end of a step: no directory without a row, and no row that is of no claim.
void CheckPoolProvisioned(CrashWorld& world, const std::string& when);

// "" if no volume of the pool is open; else what.
std::string LeftOfPool(const CrashWorld& world);

// The ids of volumes are random, and so is what the files for people say of them.
std::string WithoutPoolIds(std::string text);

}  // namespace volumed
