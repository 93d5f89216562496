#include "pluginmgr/volume_plugin_with_attach_limits.h"

#include <algorithm>
#include <string_view>

#include "base/strings.h"
#include "kube/digest.h"

namespace volumed {
namespace {

// Source: kubernetes pkg/volume/util/attach_limit.go@v1.21.1 (ResourceNameLengthLimit).
constexpr char kPrefix[] = "storage-limits-";
constexpr size_t kLongestKey = 63;

}  // namespace

std::string AttachLimitKey(const std::string& name) {
  const auto in_tree = StripPrefix(name, "kubernetes.io/");
  std::string key = kPrefix + std::string(in_tree ? *in_tree : std::string_view(name));
  std::replace(key.begin(), key.end(), '/', '-');
  if (key.size() <= kLongestKey) return key;
  const std::string digest = HalfSha256Hex(name);
  return key.substr(0, kLongestKey - digest.size()) + digest;
}

}  // namespace volumed
