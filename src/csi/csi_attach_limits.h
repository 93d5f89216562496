// How many volumes of a CSI driver the node can have attached: as the driver says in NodeGetInfo.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/alive_guard.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "csi/csi_drivers.h"
#include "volume/volume_spec.h"
#include "volumehost/volume_host.h"

namespace volumed {

// "attachable-volumes-csi-<driver>". A key that would be longer than the name of a resource may be
// has the first 23 characters of the driver's name, and 16 digits of its SHA-1. Pure.
// Source: kubernetes pkg/volume/util/attach_limit.go@v1.36.2 (GetCSIAttachLimitKey).
std::string CsiAttachLimitKey(const std::string& driver);

// For CsiPlugin::VolumeLimitKey(): "" for a volume that is not of a CSI driver, or inline, for such
// a volume is never attached. Pure.
std::string CsiVolumeLimitKey(const VolumeSpec& spec);

// For CsiPlugin::GetVolumeLimits(): of all drivers that name one, also of those that are away.
// Blocks: never.
std::map<std::string, int64_t> CsiVolumeLimits(const CsiDrivers& drivers);

// Asks drivers again and again what they can do, as often as the CSIDriver of each says in
// nodeAllocatableUpdatePeriodSeconds: the limit of a node changes with what else it has. A driver
// whose object says nothing is not asked.
// Source: kubernetes pkg/volume/csi/nodeinfomanager@v1.36.2 (MutableCSINodeAllocatableCount).
//
// Threads: it is made and destroyed on the control thread. Blocks: never.
class CsiAllocatableTicker {
 public:
  // All outlive this object.
  CsiAllocatableTicker(Scheduler& scheduler, CsiDrivers& drivers, KubeletHost& kubelet);
  ~CsiAllocatableTicker();
  CsiAllocatableTicker(const CsiAllocatableTicker&) = delete;
  CsiAllocatableTicker& operator=(const CsiAllocatableTicker&) = delete;

 private:
  struct Ticking {
    Duration period = Duration::zero();
    TimerId timer = 0;
  };

  // `period` zero: never.
  void Set(const std::string& driver, Duration period);
  void Arm(const std::string& driver);

  Scheduler& scheduler_;
  CsiDrivers& drivers_;
  std::map<std::string, Ticking> ticking_;
  AliveGuard alive_;
};

}  // namespace volumed
