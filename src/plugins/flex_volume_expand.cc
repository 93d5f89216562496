// Expansion of flexVolumes. Source: kubernetes pkg/volume/flexvolume/expander.go@v1.36.2.
#include <optional>
#include <utility>

#include "mounter/mount_refs.h"
#include "mounter/resize_fs.h"
#include "plugins/flex_volume.h"
#include "plugins/flex_volume_places.h"

namespace volumed {
namespace {

std::string Bytes(const Quantity& size) { return std::to_string(size.Value()); }

}  // namespace

Result<Quantity> FlexVolumePlugin::ExpandVolumeDevice(const VolumeSpec& spec,
                                                      const Quantity& new_size,
                                                      const Quantity& old_size,
                                                      const CallOptions& call) {
  RETURN_IF_ERROR(GetVolumeName(spec));
  const std::string place =
      FlexDeviceMountDir(host_->paths, driver_->name(), SpecName(FlexVolumeName(spec))).Display();
  ASSIGN_OR_RETURN(
      const std::optional<FlexStatus> status,
      driver_->Call(FlexCommand::kExpandVolume,
                    {FlexOptions(spec), place, Bytes(new_size), Bytes(old_size)}, call));
  if (!status || status->new_size_bytes <= 0) return new_size;
  return Quantity::FromBytes(status->new_size_bytes);
}

Result<bool> FlexVolumePlugin::NodeExpander::NodeExpand(const NodeResizeOptions& options,
                                                        const CallOptions& call) {
  FlexVolumeDriver& driver = *owner_.driver_;
  ASSIGN_OR_RETURN(const Quantity size, owner_.ExpandVolumeDevice(options.spec, options.new_size,
                                                                  options.old_size, call));
  if (size.Value() < options.new_size.Value()) {
    return Error::MaybeApplied(Code::kInternal, "flexVolume driver " + driver.name() +
                                                    ": the volume is to have " +
                                                    Bytes(options.new_size) +
                                                    " bytes, and expandvolume says " + Bytes(size));
  }
  if (!owner_.RequiresFsResize()) return true;
  Result<bool> grown = GrowFilesystem(options, call);
  if (grown.ok() || driver.IsKnownUnsupported(FlexCommand::kExpandVolume)) return grown;
  return grown.error().AsMaybeApplied();  // the driver has made the volume larger
}

Result<bool> FlexVolumePlugin::NodeExpander::GrowFilesystem(const NodeResizeOptions& options,
                                                            const CallOptions& call) const {
  std::string device = options.device_path;
  const std::string place = options.device_mount_path.Display();
  if (device.empty()) {
    ASSIGN_OR_RETURN(const std::optional<MountEntry> mount,
                     FindMountAt(owner_.host_->kernel, place, call));
    if (mount) device = mount->source;
  }
  ASSIGN_OR_RETURN(const std::optional<FlexStatus> status,
                   owner_.driver_->Call(FlexCommand::kExpandFs,
                                        {FlexOptions(options.spec), device, place,
                                         Bytes(options.new_size), Bytes(options.old_size)},
                                        call));
  return status ? Result<bool>(true) : GrowFilesystemItself(options, device, call);
}

Result<bool> FlexVolumePlugin::NodeExpander::GrowFilesystemItself(const NodeResizeOptions& options,
                                                                  const std::string& device,
                                                                  const CallOptions& call) const {
  const std::string driver = "flexVolume driver " + owner_.driver_->name();
  ResizeFs resize(owner_.host_->kernel);
  const auto growth = resize.Resize({device, options.device_mount_path}, call);
  if (!growth.ok()) return growth.error().With(driver + ", which has no expandfs");
  if (!*growth) {
    return Error::NotApplied(Code::kDataLoss, driver + ": device " + device + " has no filesystem");
  }
  if (!ProvesSize(**growth, options.new_size.Value())) {
    return Error::MaybeApplied(Code::kInternal, driver + ": the volume is to have " +
                                                    Bytes(options.new_size) +
                                                    " bytes, and there is " + GrowthText(**growth));
  }
  if (options.note) options.note(GrowthText(**growth));
  return true;
}

}  // namespace volumed
