// AttachLimitSettings: how many volumes of a plugin the node takes at once, as its administrator
// has set it; and the capability of the plugins that it limits. Kubernetes had such limits of
// clouds' disks, told by the cloud. What a storage network or an array allows a node, and what its
// adapter can address, only the administrator knows.
// Source: kubernetes pkg/volume/plugins.go, pkg/volume/util/attach_limit.go@v1.21.1.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "pluginmgr/volume_plugin_with_attach_limits.h"

namespace volumed {

// Threads: any. Blocks: never.
class AttachLimitSettings {
 public:
  using Limits = std::map<std::string, int64_t>;  // by name of the plugin

  void Set(Limits limits) EXCLUDES(mu_);
  // nullopt: as many as you like.
  std::optional<int64_t> Of(const std::string& plugin_name) const EXCLUDES(mu_);

 private:
  mutable Mutex mu_;
  Limits limits_ GUARDED_BY(mu_);
};

// "storage-limits-iscsi" of "kubernetes.io/iscsi", "storage-limits-acme-array" of "acme/array"; one
// that would be longer than a name of a resource may be ends in a digest of the plugin's name.
// Pure.
std::string AttachLimitKey(const std::string& plugin_name);

// Threads: any. Blocks: never.
class ConfiguredAttachLimits final : public VolumePluginWithAttachLimits {
 public:
  // Both outlive it. `settings` null: nothing is limited.
  ConfiguredAttachLimits(VolumePlugin& owner, const AttachLimitSettings* settings)
      : owner_(owner), settings_(settings) {}

  VolumePlugin& plugin() override { return owner_; }
  // Empty where nothing is set.
  Result<std::map<std::string, int64_t>> GetVolumeLimits() const override;
  // The same for all volumes of the plugin.
  std::string VolumeLimitKey(const VolumeSpec& spec) const override;

 private:
  VolumePlugin& owner_;
  const AttachLimitSettings* const settings_;
};

}  // namespace volumed
