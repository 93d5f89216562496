// AttachLimitSettings: how many volumes of a plugin the node takes at once, as its administrator
// has set it; and the capability of the plugins with such a limit. Kubernetes had such limits for
// the disks of clouds, and got them from the cloud. Only the administrator knows what a storage
// network or an array allows a node, and what the node's adapter can address.
// Source: kubernetes pkg/volume/plugins.go, pkg/volume/util/attach_limit.go@v1.21.1.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "pluginmgr/volume_plugin_with_attach_limits.h"

namespace volumed {

// Threads: any. Blocks: never. Set() replaces all limits at once.
class AttachLimitSettings {
 public:
  using Limits = std::map<std::string, int64_t>;  // by name of the plugin

  void Set(Limits limits) EXCLUDES(mu_);
  // nullopt: there is no limit.
  std::optional<int64_t> Of(const std::string& plugin_name) const EXCLUDES(mu_);

 private:
  mutable Mutex mu_;
  Limits limits_ GUARDED_BY(mu_);
};

// Threads: any. Blocks: never.
class ConfiguredAttachLimits final : public VolumePluginWithAttachLimits {
 public:
  // `owner` and `settings` outlive this object. If `settings` is null, there is no limit.
  ConfiguredAttachLimits(VolumePlugin& owner, const AttachLimitSettings* settings)
      : owner_(owner), settings_(settings) {}

  VolumePlugin& plugin() override { return owner_; }
  // Empty if no limit is set.
  Result<std::map<std::string, int64_t>> GetVolumeLimits() const override;
  // All volumes of the plugin have the same key.
  std::string VolumeLimitKey(const VolumeSpec& spec) const override;

 private:
  VolumePlugin& owner_;
  const AttachLimitSettings* const settings_;
};

}  // namespace volumed
