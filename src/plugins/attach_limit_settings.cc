#include "plugins/attach_limit_settings.h"

#include <utility>

namespace volumed {

void AttachLimitSettings::Set(Limits limits) {
  MutexLock lock(mu_);
  limits_ = std::move(limits);
}

std::optional<int64_t> AttachLimitSettings::Of(const std::string& plugin_name) const {
  MutexLock lock(mu_);
  const auto found = limits_.find(plugin_name);
  return found == limits_.end() ? std::nullopt : std::optional(found->second);
}

Result<std::map<std::string, int64_t>> ConfiguredAttachLimits::GetVolumeLimits() const {
  std::map<std::string, int64_t> limits;
  const std::string name = owner_.GetPluginName();
  const std::optional<int64_t> limit = settings_ ? settings_->Of(name) : std::nullopt;
  if (limit) limits[AttachLimitKey(name)] = *limit;
  return limits;
}

std::string ConfiguredAttachLimits::VolumeLimitKey(const VolumeSpec&) const {
  return AttachLimitKey(owner_.GetPluginName());
}

}  // namespace volumed
