// The limits of devices as the files of cgroups have them: io.max of version 2, and four files of
// version 1. Pure; threads: any. Blocks: never.
// Source: Linux block/blk-throttle.c (tg_prfill_limit, tg_set_limit, tg_set_conf).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "os/cgroup_requests.h"

namespace volumed {

inline constexpr char kIoMaxFile[] = "io.max";

// A file of version 1, and the limit that it holds for each device.
struct BlkioThrottle {
  const char* file;
  int64_t IoLimits::*limit;
};
inline constexpr BlkioThrottle kBlkioThrottles[] = {
    {"blkio.throttle.read_iops_device", &IoLimits::read_iops},
    {"blkio.throttle.write_iops_device", &IoLimits::write_iops},
    {"blkio.throttle.read_bps_device", &IoLimits::read_bps},
    {"blkio.throttle.write_bps_device", &IoLimits::write_bps}};

// Of a request, before anything else is looked at. Errors: as SetIoLimits says.
Status CheckIoLimits(const SetIoLimits& request);

// "7:3", as the files name a device.
std::string IoDeviceNumber(const DeviceIdentity& device);
// What is written to io.max for a device: "7:3 rbps=1048576 wbps=max riops=max wiops=max".
std::string IoMaxLine(const std::string& number, const IoLimits& limits);
// What io.max says of a device; without a line of it there is no limit.
IoLimits IoMaxOf(std::string_view content, const std::string& number);
// The same of a file of version 1; 0 without a line of the device.
int64_t BlkioLimitOf(std::string_view content, const std::string& number);

}  // namespace volumed
