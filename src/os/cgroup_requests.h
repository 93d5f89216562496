// The request of the Kernel seam that bounds what the processes of a cgroup ask of a block device,
// with its answer. Part of os/kernel_requests.h, which lists it in AnyRequest.
//
// What is said of errors in os/kernel_requests.h holds here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "os/device_requests.h"
#include "os/lane_kind.h"

namespace volumed {

// What may be asked of a device in one second at most. 0: there is no limit.
struct IoLimits {
  int64_t read_iops = 0;
  int64_t write_iops = 0;
  int64_t read_bps = 0;
  int64_t write_bps = 0;
  static void WireFields(auto& v, auto& m) {
    v(1, m.read_iops);
    v(2, m.write_iops);
    v(3, m.read_bps);
    v(4, m.write_bps);
  }
  friend bool operator==(const IoLimits&, const IoLimits&) = default;
};

// The largest number of requests that the kernel keeps; more is no limit to it.
// Source: Linux block/blk-throttle.c (tg_set_limit: min with UINT_MAX, which is "max").
inline constexpr int64_t kMostLimitedIops = 4294967294;
// Version 2 refuses a limit of 1. Source: likewise ("val > 1").
inline constexpr int64_t kLeastIoLimit = 2;

// What a cgroup has once it was limited.
struct CgroupIoLimits {
  static constexpr uint32_t kWireNumber = 37;
  std::string cgroup;  // the path of its directory
  IoLimits limits = {};
  // Of version 1: there every cgroup has limits for itself alone, so those below it were limited
  // likewise, and one that is made below it later is not.
  bool is_each_alone = false;
  bool changed = false;  // false: all of it was so
  static void WireFields(auto& v, auto& m) {
    v(1, m.cgroup);
    v(2, m.limits);
    v(3, m.is_each_alone);
    v(4, m.changed);
  }
  friend bool operator==(const CgroupIoLimits&, const CgroupIoLimits&) = default;
};

// Bounds what the processes of a cgroup, and of those below it, ask of a device; finds it so in the
// kernel's files afterwards. `cgroups` are the names that the cgroup may have, from the root of its
// hierarchy ("a/b"); the first one that is there and has limits is taken, of version 2 (io.max) or
// of version 1 (blkio.throttle.*). No link is followed, and no other cgroup is looked at.
//
// The limits stay until they are changed or the cgroup goes, also if the device has another content
// by then.
// Errors, not applied: NotFound, for a device that is not there; InvalidArgument without a name,
// and for a limit that the kernel does not know: below zero, 1, more requests than
// kMostLimitedIops; FailedPrecondition, for another device than `expected`, if no cgroup of these
// names has limits of devices, or if its file cannot be written, saying which. Maybe applied:
// ResourceExhausted for more cgroups below it than 1024 (version 1); Internal, if the kernel then
// shows something else.
// Source: Documentation/admin-guide/cgroup-v2.rst (io.max), cgroup-v1/blkio-controller.rst.
struct SetIoLimits {
  using Answer = CgroupIoLimits;
  static constexpr const char* kName = "SetIoLimits";
  static constexpr uint32_t kWireNumber = 67;
  static constexpr LaneKind kLane = LaneKind::kDevice;
  static constexpr bool kMustFinish = false;
  std::string device;
  DeviceIdentity expected;
  std::vector<std::string> cgroups;
  IoLimits limits = {};
  static void WireFields(auto& v, auto& m) {
    v(1, m.device);
    v(2, m.expected);
    v(3, m.cgroups);
    v(4, m.limits);
  }
};

}  // namespace volumed
