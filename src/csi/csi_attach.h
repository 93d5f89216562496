// CsiAttaching: how volumes of CSI drivers come to this node and leave it: by a program of the
// cluster, as VolumeAttachment objects tell, or by the agent's own calls to the driver's
// controller.
// Source: kubernetes pkg/volume/csi/csi_attacher.go, csi_plugin.go@v1.36.2 (CanAttach,
// VerifyExhaustedResource); external-attacher, for the calls that it makes.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "attacher/attacher.h"
#include "base/alive_guard.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "csi/csi_attach_limits.h"
#include "csi/csi_context.h"
#include "csi/csi_controller.h"
#include "volume/volume_spec.h"

namespace volumed {

// What the attachers and detachers of the plugin have in common. The way of a volume is on its
// record, as long as it may be attached: it is attached again and detached by that way alone,
// whatever the settings, the objects and the driver say by then. The record has the way before
// anything is sent to a controller, and what the controller answered before the volume is used.
//
// A volume without a recorded way gets one by the setting csi-attach. By objects, nobody here
// attaches: Attach() waits for whoever does. By the controller, no VolumeAttachment of the driver
// may be there, for then two would attach. Where neither is possible the attach is refused; it is
// never left out.
//
// Threads: any, but it is made and destroyed on the control thread.
class CsiAttaching {
 public:
  // Both outlive this object, and what it makes.
  CsiAttaching(const CsiContext& context, Scheduler& scheduler);

  // What is staged is left to `stager` and `unstager`. This object outlives what it makes.
  std::unique_ptr<Attacher> NewAttacher(std::unique_ptr<DeviceMounter> stager);
  std::unique_ptr<Detacher> NewDetacher(std::unique_ptr<DeviceUnmounter> unstager);

  // Whether the volume is attached before it is used: not an inline one, and none of a driver whose
  // CSIDriver says attachRequired=false. What a record says of a volume that may be here counts
  // more, and so does not change with the driver or its object. Blocks: never. Errors, not applied:
  // Unavailable, if the driver was never seen here, or if it is not known whether it has a
  // CSIDriver; InvalidArgument for a volume of another plugin.
  Result<bool> CanAttach(const VolumeSpec& spec) const;
  // Whether the last attach of this volume has failed because the node can take no more. Blocks:
  // never.
  bool VerifyExhaustedResource(const VolumeSpec& spec) const EXCLUDES(mu_);

  // The rest is for what this has made.
  const CsiContext& context() const { return context_; }
  CsiPublishedNodes& published() { return published_; }
  Scheduler& scheduler() { return scheduler_; }
  // The node can take no more: remembers it, asks the driver for its limit at once, and tells it.
  void Exhausted(const VolumeSpec& spec, const std::string& driver, const UniqueVolumeName& device,
                 const Error& error) EXCLUDES(mu_);
  void NotExhausted(const UniqueVolumeName& device) EXCLUDES(mu_);
  // What the driver says of itself is asked anew, on the control thread.
  void Refresh(const std::string& driver);
  // Whether a source has, or had since the agent's start, a VolumeAttachment of the driver.
  bool HasObjects(const std::string& driver) EXCLUDES(mu_);

 private:
  const CsiContext& context_;
  Scheduler& scheduler_;
  CsiPublishedNodes published_;
  mutable Mutex mu_;
  std::set<UniqueVolumeName> exhausted_ GUARDED_BY(mu_);
  std::set<std::string> has_objects_ GUARDED_BY(mu_);
  std::unique_ptr<CsiAllocatableTicker> ticker_;  // null: nobody knows CSIDrivers
  AliveGuard alive_;
};

}  // namespace volumed
