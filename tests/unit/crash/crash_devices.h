// What a correct agent owes to block devices, their mounts and the bindings of claims: rules for
// every effect and record, beside those of crash_monitor.h.
#pragma once

#include <string>

#include "os/kernel_requests.h"
#include "records/record_store.h"
#include "unit/crash/crash_world.h"

namespace volumed {

// Which rule of devices the effect would break; "" if none, or if it is about no device.
std::string BrokenDeviceRule(const CrashWorld& world, const AnyRequest& request);

// Before a volume of the array is attached, or detached: the record must say so; and a detach
// leaves nobody without it, and nothing unwritten.
void CheckAttach(CrashWorld& world, const std::string& volume);
void CheckDetach(CrashWorld& world, const std::string& volume);

// Established volumes of devices, and what is on them: at any time. `when` is for the text.
void CheckDevices(CrashWorld& world, const std::string& when);

// Of rows of kinds "volume-device" and "claim-binding", as far as two correct runs agree.
std::string DeviceRecordText(const Record& row);

// What the claim of this volume says of its size, on record; 0: nothing.
int64_t ClaimedBytes(const CrashWorld& world, const std::string& volume);

}  // namespace volumed
