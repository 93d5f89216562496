#include "pool/pool_names.h"

#include <optional>
#include <utility>

#include "base/printable_text.h"
#include "pluginmgr/device_volume.h"
#include "pool/pool_id.h"
#include "pool/pool_plugin.h"

namespace volumed {
namespace {

constexpr size_t kShownHandle = 128;  // bytes of a handle in a message

bool IsIdOfVolume(const std::string& text) {
  const std::optional<PoolId> id = ParsePoolId(text);
  return id && id->object == PoolObject::kVolume;
}

}  // namespace

Result<std::string> PoolVolumeIdOf(const VolumeSpec& spec, const std::string& driver) {
  const auto refused = [](const std::string& why) {
    return Error::NotApplied(Code::kInvalidArgument, why);
  };
  if (spec.SourceAs<CsiVolumeSource>() != nullptr) {
    return refused(spec.Display() + " is an inline csi volume, which driver " + driver +
                   " does not make here: use a generic ephemeral volume (\"ephemeral\" with a "
                   "volumeClaimTemplate) of a class with this provisioner");
  }
  const auto* const source = spec.SourceAs<CsiPersistentVolumeSource>();
  if (source == nullptr || source->driver != driver) {
    return refused(spec.Display() + " is no volume of driver " + driver);
  }
  if (IsIdOfVolume(source->volume_handle)) return source->volume_handle;
  return refused(Quoted(source->volume_handle, kShownHandle) + ", the handle of " + spec.Display() +
                 ", is no id of a pool's volume");
}

Result<std::string> RecordedPoolVolumeId(const VolumeSpec& recorded) {
  const auto* const source = recorded.SourceAs<CsiPersistentVolumeSource>();
  return PoolVolumeIdOf(recorded, source == nullptr ? "" : source->driver);
}

bool IsReadOnlyPoolVolume(const VolumeSpec& spec) {
  const auto* const source = spec.SourceAs<CsiPersistentVolumeSource>();
  return spec.read_only() || (source != nullptr && source->read_only) ||
         IsReadOnlyVolume(spec.persistent_volume());
}

VolumeSpec PoolVolumeSpec(const SpecName& spec, const std::string& driver, const std::string& id,
                          VolumeMode mode) {
  CsiPersistentVolumeSource source;
  source.driver = driver;
  source.volume_handle = id;
  PersistentVolume volume;
  volume.metadata.name = spec.str();
  volume.spec.volume_mode = mode;
  volume.spec.source = std::move(source);
  return VolumeSpec::FromPersistentVolume(std::move(volume), false);
}

PersistentVolume PoolPersistentVolume(const std::string& driver, const std::string& id,
                                      const std::string& fs_type, VolumeMode mode, int64_t bytes,
                                      const std::string& node) {
  CsiPersistentVolumeSource source;
  source.driver = driver;
  source.volume_handle = id;
  if (mode != VolumeMode::kBlock) source.fs_type = fs_type;
  PersistentVolume volume;
  volume.spec.volume_mode = mode;
  volume.spec.capacity = Quantity::FromBytes(bytes);
  volume.spec.source = std::move(source);
  NodeSelectorTerm here;
  here.match_expressions.push_back({PoolTopologyLabel(driver), NodeOperator::kIn, {node}});
  volume.spec.node_affinity = VolumeNodeAffinity{{{std::move(here)}}};
  return volume;
}

SafePath PoolDevicePlace(const KubeletPaths& paths, const std::string& id) {
  return paths.GetDeviceMountDir(kPoolPluginName, SpecName(id));
}

SafePath PoolMapPlace(const KubeletPaths& paths, const std::string& id) {
  return paths.GetBlockMapDir(kPoolPluginName, SpecName(id));
}

Result<std::string> PoolVolumeIdAt(const KubeletPaths& paths, const SafePath& place) {
  const std::string path = place.Display();
  const std::string id = path.substr(path.rfind('/') + 1);
  const bool is_ours = IsIdOfVolume(id) && (path == PoolDevicePlace(paths, id).Display() ||
                                            path == PoolMapPlace(paths, id).Display());
  if (is_ours) return id;
  return Error::NotApplied(Code::kInvalidArgument,
                           "\"" + path + "\" is not a place of a pool's volume");
}

}  // namespace volumed
