#include "plugins/iscsi_names.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/strings.h"

namespace volumed {
namespace {

constexpr std::string_view kIface = "iface-";
constexpr std::string_view kLun = "-lun-";

bool IsNumber(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "10.0.0.1:3260"
bool IsPortal(std::string_view text) {
  const size_t colon = text.rfind(':');
  return colon != std::string_view::npos && colon > 0 && IsNumber(text.substr(colon + 1));
}

bool IsTarget(std::string_view text) {
  constexpr size_t kType = 4;  // "iqn."
  const std::string_view type = text.substr(0, kType);
  return text.size() > kType && (type == "iqn." || type == "eui." || type == "naa.");
}

}  // namespace

// By hand: std::regex needs more stack than an executor's thread has for long names.
std::optional<IscsiNames> ParseIscsiNames(const std::string& path) {
  const std::vector<std::string> elements = Split(path, '/');
  if (elements.size() < 3) return std::nullopt;
  const auto iface = StripPrefix(elements[elements.size() - 2], kIface);
  const std::string_view names = elements.back();
  const size_t at_lun = names.rfind(kLun);
  if (!iface || iface->empty() || at_lun == std::string_view::npos) return std::nullopt;
  const std::string_view number = names.substr(at_lun + kLun.size());
  const std::optional<int64_t> lun = IsNumber(number) ? ParseInt64(number) : std::nullopt;
  if (!lun) return std::nullopt;
  // Both may have a '-': the first one that lies between a portal and a target.
  const std::string_view disk = names.substr(0, at_lun);
  for (size_t dash = disk.find('-'); dash != std::string_view::npos;
       dash = disk.find('-', dash + 1)) {
    const std::string_view portal = disk.substr(0, dash);
    const std::string_view target = disk.substr(dash + 1);
    if (!IsPortal(portal) || !IsTarget(target)) continue;
    return IscsiNames{std::string(*iface), std::string(portal), std::string(target), *lun};
  }
  return std::nullopt;
}

std::string IscsiVolumeName(const std::string& portal, const std::string& iqn, int64_t lun) {
  return portal + ":" + iqn + ":" + std::to_string(lun);
}

std::optional<KubeletPaths::DeviceMount> IscsiDeviceAt(const std::vector<std::string>& elements) {
  constexpr size_t kIfaceAt = 2;
  if (elements.size() <= kIfaceAt || elements[0] + "/" + elements[1] != kIscsiPluginName) {
    return std::nullopt;
  }
  const bool is_block = elements[kIfaceAt] == kVolumeDevicesDirName;
  if (elements.size() != (is_block ? kIfaceAt + 4 : kIfaceAt + 2)) return std::nullopt;
  const size_t at = is_block ? kIfaceAt + 1 : kIfaceAt;
  const auto names = ParseIscsiNames("/" + elements[at] + "/" + elements[at + 1]);
  if (!names) return std::nullopt;
  return KubeletPaths::DeviceMount{
      kIscsiPluginName, SpecName(IscsiVolumeName(names->portal, names->iqn, names->lun)), is_block};
}

}  // namespace volumed
