// iSCSI volumes as raw block devices. Private to iscsi.
// Source: kubernetes pkg/volume/iscsi/iscsi.go@v1.36.2 (iscsiDiskMapper, iscsiDiskUnmapper).
#pragma once

#include <string>

#include "blockmapper/block_volume_mapper.h"
#include "plugins/iscsi_mounts.h"

namespace volumed {

// WaitForAttach brings the device and names it. Threads: one at a time. Blocks: only GetMetrics.
class IscsiMapper final : public BlockVolumeMapper {
 public:
  IscsiMapper(VolumeHost& host, SpecName spec, IscsiDisk disk, PodUid pod)
      : host_(host), spec_(std::move(spec)), disk_(std::move(disk)), pod_(std::move(pod)) {}

  // Errors, not applied: those of IscsiVolumeOf.
  Result<SafePath> GetGlobalMapPath(const VolumeSpec& spec) const override;
  PodDeviceMapPath GetPodDeviceMapPath() const override;
  bool SupportsMetrics() const override { return true; }
  // Measures the pod's device node, so it works once the volume is mapped.
  Result<Metrics> GetMetrics(const CallOptions& call) override;

 private:
  VolumeHost& host_;
  const SpecName spec_;
  const IscsiDisk disk_;
  const PodUid pod_;
};

// Takes a block volume away by its name and pod alone. Threads: one at a time. Blocks: only
// TearDownDevice, until the call's deadline.
class IscsiUnmapper final : public BlockVolumeUnmapper, public CustomBlockVolumeUnmapper {
 public:
  IscsiUnmapper(const IscsiParts& parts, SpecName spec, PodUid pod)
      : parts_(parts), spec_(std::move(spec)), pod_(std::move(pod)) {}

  // Errors, not applied: those of IscsiVolumeOf.
  Result<SafePath> GetGlobalMapPath(const VolumeSpec& spec) const override;
  PodDeviceMapPath GetPodDeviceMapPath() const override;
  // NotSupported, always: what is unmapped is known by its place alone.
  Result<Metrics> GetMetrics(const CallOptions& call) override;
  CustomBlockVolumeUnmapper* AsCustom() override { return this; }

  // Removes the disk from the node and ends the sessions; the caller removes the directory. Errors:
  // InvalidArgument, not applied, if the path is no place of a block volume of iSCSI's;
  // Unimplemented, not applied, without an initiator; those of IscsiInitiator::DetachDisk.
  Status TearDownDevice(const SafePath& map_path, const std::string& device_path,
                        const CallOptions& call) override;
  Status UnmapPodDevice(const CallOptions&) override { return OkStatus(); }

 private:
  const IscsiParts parts_;
  const SpecName spec_;
  const PodUid pod_;
};

}  // namespace volumed
