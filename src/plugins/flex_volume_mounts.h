// A pod's flexVolume: mounted by its driver, or bound from the mount of its device. Private to
// flexVolume. Source: kubernetes pkg/volume/flexvolume/mounter.go and unmounter.go@v1.36.2.
#pragma once

#include <memory>
#include <string>

#include "mounter/mounter.h"
#include "pluginmgr/volume_plugin.h"
#include "plugins/flex_volume_driver.h"

namespace volumed {

// Threads: one at a time per volume. Blocks: until the call's deadline, which also ends the driver.
class FlexVolumeMounter final : public Mounter {
 public:
  // REQUIRES: `spec` is a flexVolume of this driver, and the target has a pod.
  FlexVolumeMounter(VolumeHost& host, std::shared_ptr<FlexVolumeDriver> driver,
                    const FlexCapabilities& capabilities, VolumeSpec spec,
                    const VolumeTarget& target);

  std::string GetPath() const override { return place_.Display(); }
  SafePath GetSafePath() const override { return place_; }
  // Managed unless the volume is read-only; whether labels can be changed, the driver has said.
  Attributes GetAttributes() const override;
  // The figures of the filesystem if the driver says that it supports metrics, else NotSupported.
  Result<Metrics> GetMetrics(const CallOptions& call) override;
  Status SetUp(const MounterArgs& args) override { return SetUpAt(place_, args); }
  // Errors: those of FlexVolumeDriver::Call and FlexMountOptions; FailedPrecondition, not applied,
  // if the driver has no `mount` and nothing is mounted for the node. What is mounted there already
  // is kept, and the driver is not called. The group is applied by the agent, unless the volume is
  // read-only or the driver says fsGroup=false; a failure of that is maybe applied.
  Status SetUpAt(const SafePath& dir, const MounterArgs& args) override;

 private:
  Status MountAt(const SafePath& dir, const MounterArgs& args);
  Status BindDevice(const SafePath& dir, const CallOptions& call);

  VolumeHost& host_;
  const std::shared_ptr<FlexVolumeDriver> driver_;
  const FlexCapabilities capabilities_;
  const VolumeSpec spec_;
  const PodPtr pod_;
  const SafePath place_;
  const bool read_only_;
};

// Threads: one at a time per volume. Blocks: until the call's deadline.
class FlexVolumeUnmounter final : public Unmounter {
 public:
  FlexVolumeUnmounter(VolumeHost& host, std::shared_ptr<FlexVolumeDriver> driver,
                      const FlexCapabilities& capabilities, SafePath place)
      : host_(host),
        driver_(std::move(driver)),
        capabilities_(capabilities),
        place_(std::move(place)) {}

  std::string GetPath() const override { return place_.Display(); }
  // As FlexVolumeMounter.
  Result<Metrics> GetMetrics(const CallOptions& call) override;
  Status TearDown(const CallOptions& call) override { return TearDownAt(place_, call); }
  // Calls the driver's `unmount`, if it supports that, and then unmounts and removes the place. If
  // the place does not exist, the driver is not called. It is called also if nothing is mounted
  // there any more, as in kubelet. A driver that is not installed is passed over.
  Status TearDownAt(const SafePath& dir, const CallOptions& call) override;

 private:
  VolumeHost& host_;
  const std::shared_ptr<FlexVolumeDriver> driver_;
  const FlexCapabilities capabilities_;
  const SafePath place_;
};

}  // namespace volumed
