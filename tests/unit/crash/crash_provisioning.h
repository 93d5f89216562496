// What a correct agent owes to the volumes that it makes for claims, and to whose they are: rules
// for every effect and record, beside those of crash_monitor.h.
#pragma once

#include <optional>
#include <string>

#include "operation/volume_record.h"
#include "os/kernel_requests.h"
#include "records/record_store.h"
#include "unit/crash/crash_world.h"

namespace volumed {

// Below it nothing is anybody's but the provisioner's.
bool IsProvisioned(const std::string& path);

// What is on record of a volume that is made for a claim; nullopt if nothing is.
std::optional<ProvisionRecord> ProvisionOf(const CrashWorld& world, const std::string& volume);

// Why what was made for a claim may not be deleted; "" if it may.
std::string BrokenRemovalRule(const CrashWorld& world, const ProvisionRecord& record);

// Which rule the effect would break; "" if none, or if it is about no provisioned volume.
std::string BrokenProvisionRule(const CrashWorld& world, const AnyRequest& request);

// That the record is, or is no longer, and what it is about does not agree.
void CheckProvisionPut(CrashWorld& world, const Record& row);
void CheckProvisionRemove(CrashWorld& world, const std::string& volume);

// At the end of a step: no directory without a record, and one of a claim at most.
void CheckProvisioned(CrashWorld& world, const std::string& when);

// The volume as JSON, without the time at which it was made: a crash may have it made later.
std::string WithoutCreation(std::string json);

// As far as two correct runs agree.
std::string ProvisionRecordText(const Record& row);

}  // namespace volumed
