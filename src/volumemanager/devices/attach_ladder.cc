#include "volumemanager/devices/attach_ladder.h"

namespace volumed {
namespace {

AttachStep ToMounted(const AttachSituation& now) {
  const ActualDevice& device = *now.device;
  switch (device.attachment) {
    case Attachment::kUnknown:
      return AttachStep::kVerify;
    case Attachment::kMissing:
      return now.used || !now.may_leave ? AttachStep::kNothing : AttachStep::kUnmount;
    case Attachment::kAttached:
      return IsMounted(device) ? AttachStep::kNothing : AttachStep::kMount;
  }
  __builtin_unreachable();
}

AttachStep Up(const AttachSituation& now) {
  if (!now.may_begin) return AttachStep::kNothing;
  if (now.device == nullptr) return AttachStep::kAttach;
  const ActualDevice& device = *now.device;
  switch (device.state) {
    case VolumeState::kDetached:
    case VolumeState::kAttaching:
    case VolumeState::kDetaching:
      return AttachStep::kAttach;
    case VolumeState::kAttached:
      // After a reboot it is not known whether the device is attached, nor under which path.
      if (device.uncertain || device.attachment == Attachment::kMissing) {
        return AttachStep::kAttach;
      }
      return ToMounted(now);
    case VolumeState::kUnmountingDevice:
      // It is attached anew before it is mounted, and only what is unmounted can be.
      if (device.attach_in_doubt) {
        return now.used || !now.may_leave ? AttachStep::kNothing : AttachStep::kUnmount;
      }
      return ToMounted(now);
    case VolumeState::kMountingDevice:
    case VolumeState::kDeviceMounted:
    case VolumeState::kExpanding:
      return ToMounted(now);
    case VolumeState::kNotSetUp:
    case VolumeState::kSettingUp:
    case VolumeState::kSetUp:
    case VolumeState::kTearingDown:
    case VolumeState::kMapping:
    case VolumeState::kMapped:
    case VolumeState::kUnmapping:
      return AttachStep::kNothing;  // not a state of a device
  }
  __builtin_unreachable();
}

AttachStep Down(const AttachSituation& now) {
  if (now.device == nullptr || now.used || !now.may_leave) return AttachStep::kNothing;
  switch (now.device->state) {
    case VolumeState::kDetached:
      return now.device->uncertain ? AttachStep::kDetach : AttachStep::kForget;
    case VolumeState::kDetaching:
      return AttachStep::kDetach;
    case VolumeState::kAttaching:  // also of one that was to be attached anew after a reboot
    case VolumeState::kAttached:
      // That a device is uncertain does not mean that it may be mounted: one that its plugin calls
      // missing is uncertain too, also after its unmount.
      return now.device->rest_of_mount ? AttachStep::kUnmount : AttachStep::kDetach;
    case VolumeState::kMountingDevice:
    case VolumeState::kDeviceMounted:
    case VolumeState::kUnmountingDevice:
    case VolumeState::kExpanding:
      return AttachStep::kUnmount;
    case VolumeState::kNotSetUp:
    case VolumeState::kSettingUp:
    case VolumeState::kSetUp:
    case VolumeState::kTearingDown:
    case VolumeState::kMapping:
    case VolumeState::kMapped:
    case VolumeState::kUnmapping:
      return AttachStep::kNothing;  // not a state of a device
  }
  __builtin_unreachable();
}

}  // namespace

AttachStep NextAttachStep(const AttachSituation& now) { return now.wanted ? Up(now) : Down(now); }

}  // namespace volumed
