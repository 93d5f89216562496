#include "plugins/attach_limit_settings.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "kube/digest.h"

namespace volumed {
namespace {

// Source: kubernetes pkg/volume/util/attach_limit.go@v1.21.1 (ResourceNameLengthLimit).
constexpr char kPrefix[] = "storage-limits-";
constexpr size_t kLongestKey = 63;

}  // namespace

void AttachLimitSettings::Set(Limits limits) {
  MutexLock lock(mu_);
  limits_ = std::move(limits);
}

std::optional<int64_t> AttachLimitSettings::Of(const std::string& plugin_name) const {
  MutexLock lock(mu_);
  const auto found = limits_.find(plugin_name);
  return found == limits_.end() ? std::nullopt : std::optional(found->second);
}

std::string AttachLimitKey(const std::string& plugin_name) {
  const auto in_tree = StripPrefix(plugin_name, "kubernetes.io/");
  std::string key = kPrefix + std::string(in_tree ? *in_tree : std::string_view(plugin_name));
  std::replace(key.begin(), key.end(), '/', '-');
  if (key.size() <= kLongestKey) return key;
  const std::string digest = HalfSha256Hex(plugin_name);
  return key.substr(0, kLongestKey - digest.size()) + digest;
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
