// FakeArrayPlugin: a volume plugin for disks of a storage array that must be attached to the node,
// with real effects on a FakeKernel: an attached disk has a device node, and its filesystem is
// mounted and bound as any other. The array outlives the agents of a test.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fakes/fake_kernel.h"
#include "pluginmgr/attachable_volume_plugin.h"
#include "pluginmgr/volume_plugin_with_attach_limits.h"
#include "volume/driver_domain.h"

namespace volumed {

inline constexpr const char* kFakeArrayPlugin = "test.io/array";

// The array, and what is to happen in it. A value.
struct FakeArray {
  std::map<std::string, std::string> disks;  // volume -> device path on a node that has it
  std::set<std::string> attached;
  std::map<std::string, int> flushes;  // of each disk's device when it was attached
  std::map<std::string, int64_t> limits;
  bool is_exhausted = false;  // what VerifyExhaustedResource() says of each volume
  bool in_bulk = false;       // BulkVerifyVolumes is offered
  std::string attached_as;    // if set, an attach answers this name in place of the path
  std::string driver;         // if set, all calls are this driver's, which has a lane of its own
  // "Attach", "WaitForAttach", "MountDevice", "Detach" or "VolumesAreAttached": the next one fails;
  // where it may have been applied, it was.
  std::map<std::string, Error> failures;
  // One line per call: "Attach disk", "MountDevice disk /dev/array/disk".
  std::vector<std::string> calls;
  Deadline last_deadline = Deadline::Infinite();
};

// `node` is the kernel on which device nodes appear; effects of the agent go through the host's.
class FakeArrayPlugin final : public VolumePlugin,
                              public AttachableVolumePlugin,
                              public VolumePluginWithAttachLimits,
                              public BulkVolumeVerifier {
 public:
  // Told before the effect, with the volume.
  struct Watch {
    std::function<void(const std::string&)> attaching, detaching;
  };
  FakeArrayPlugin(FakeArray& array, FakeKernel& node, Watch watch = {})
      : array_(array), node_(node), watch_(std::move(watch)) {}

  VolumePlugin& plugin() override { return *this; }
  Status Init(PluginContext context) override {
    host_ = &context.host;
    return OkStatus();
  }
  std::string GetPluginName() const override { return kFakeArrayPlugin; }
  Result<std::string> GetVolumeName(const VolumeSpec& spec) const override {
    return spec.name().str();
  }
  // A flexVolume of the driver "test.io/array".
  bool CanSupport(const VolumeSpec& spec) const override;
  bool RequiresRemount(const VolumeSpec&) const override { return false; }
  Result<std::unique_ptr<Mounter>> NewMounter(const VolumeSpec& spec,
                                              const VolumeTarget& target) override;
  Result<std::unique_ptr<Unmounter>> NewUnmounter(const SpecName& spec, const PodUid& pod) override;
  Result<ReconstructedVolume> ConstructVolumeSpec(const SpecName&, const SafePath&,
                                                  const CallOptions&) override;
  bool SupportsMountOption() const override { return false; }
  bool SupportsSELinuxContextMount(const VolumeSpec&) const override { return false; }
  std::string FaultDomain(const VolumeSpec&) const override {
    return array_.driver.empty() ? "array" : DriverDomain(array_.driver);
  }
  bool WorksInLane(const VolumeSpec&) const override { return !array_.driver.empty(); }
  AttachableVolumePlugin* AsAttachable() override { return this; }
  DeviceMountableVolumePlugin* AsDeviceMountable() override { return this; }
  VolumePluginWithAttachLimits* AsWithAttachLimits() override { return this; }

  Result<std::unique_ptr<Attacher>> NewAttacher() override;
  Result<std::unique_ptr<Detacher>> NewDetacher() override;
  Result<std::unique_ptr<DeviceMounter>> NewDeviceMounter() override;
  Result<std::unique_ptr<DeviceUnmounter>> NewDeviceUnmounter() override;
  Result<std::vector<std::string>> GetDeviceMountRefs(const SafePath& place,
                                                      const CallOptions& call) override;
  Result<bool> CanDeviceMount(const VolumeSpec&) const override { return true; }
  Result<bool> CanAttach(const VolumeSpec&) const override { return true; }
  bool VerifyExhaustedResource(const VolumeSpec&) const override { return array_.is_exhausted; }
  BulkVolumeVerifier* AsBulkVolumeVerifier() override { return array_.in_bulk ? this : nullptr; }
  Result<AttachedByNode> BulkVerifyVolumes(const SpecsByNode& specs,
                                           const CallOptions& call) override;
  Result<std::map<std::string, int64_t>> GetVolumeLimits() const override { return array_.limits; }
  std::string VolumeLimitKey(const VolumeSpec&) const override { return "storage-limits-array"; }

 private:
  class AttacherOf;
  class DetacherOf;
  class PodVolumeOf;

  // Nothing happens, but for a call of the kernel: an agent may end here.
  Status Look(const std::string& volume, const CallOptions& call);
  std::optional<Error> TakeFailure(const std::string& call);
  std::vector<bool> Ask(const std::vector<VolumeSpec>& specs) const;

  FakeArray& array_;
  FakeKernel& node_;
  const Watch watch_;
  VolumeHost* host_ = nullptr;
};

}  // namespace volumed
