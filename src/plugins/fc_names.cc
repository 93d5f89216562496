#include "plugins/fc_names.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "base/strings.h"

namespace volumed {
namespace {

constexpr std::string_view kLun = "-lun-";
// Of an NAA identifier, with or without the type of its designator before it.
constexpr size_t kShortestWwid = 16;

bool IsHex(const std::string& text) {
  return text.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
}

}  // namespace

Status ValidateFcNames(const FcNames& names) {
  const auto invalid = [](const std::string& why) {
    return Error::NotApplied(Code::kInvalidArgument, "fc: " + why);
  };
  if (names.target_wwns.empty() == names.wwids.empty()) {
    return invalid(names.wwids.empty() ? "neither targetWWNs and lun nor wwids are given"
                                       : "targetWWNs and wwids exclude each other");
  }
  if (!names.target_wwns.empty() && (!names.lun || *names.lun < 0)) {
    return invalid("targetWWNs without a lun");
  }
  std::vector<std::string> all = names.target_wwns;
  all.insert(all.end(), names.wwids.begin(), names.wwids.end());
  for (const std::string& name : all) {
    const bool is_clean = !name.empty() && name != "." && name != ".." &&
                          name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
    if (!is_clean || name == kVolumeDevicesDirName)
      return invalid("\"" + name + "\" names no device");
  }
  return OkStatus();
}

std::string FcVolumeName(const FcNames& names) {
  if (names.target_wwns.empty()) return "[" + Join(names.wwids, " ") + "]";
  return "[" + Join(names.target_wwns, " ") + "]:" + std::to_string(names.lun.value_or(0));
}

std::string FcDirectoryName(const FcNames& names) {
  if (names.target_wwns.empty()) return Join(names.wwids, "-");
  return Join(names.target_wwns, "-") + std::string(kLun) + std::to_string(names.lun.value_or(0));
}

FcNames ParseFcDirectoryName(const std::string& name) {
  FcNames names;
  const size_t at = name.rfind(kLun);
  if (at != std::string::npos && at > 0) {
    const std::optional<int64_t> lun = ParseInt64(std::string_view(name).substr(at + kLun.size()));
    if (lun && *lun >= 0 && *lun <= std::numeric_limits<int32_t>::max()) {
      names.target_wwns = Split(std::string_view(name).substr(0, at), '-');
      names.lun = static_cast<int32_t>(*lun);
      return names;
    }
  }
  names.wwids = Split(name, '-');
  const bool apart = std::all_of(names.wwids.begin(), names.wwids.end(), [](const auto& wwid) {
    return wwid.size() >= kShortestWwid && IsHex(wwid);
  });
  if (!apart) names.wwids = {name};
  return names;
}

std::optional<KubeletPaths::DeviceMount> FcDeviceAt(const std::vector<std::string>& elements) {
  constexpr size_t kNames = 2;
  if (elements.size() <= kNames || elements[0] + "/" + elements[1] != kFcPluginName) {
    return std::nullopt;
  }
  const bool is_block = elements[kNames] == kVolumeDevicesDirName;
  if (elements.size() != (is_block ? kNames + 3 : kNames + 1)) return std::nullopt;
  const FcNames names = ParseFcDirectoryName(elements[is_block ? kNames + 1 : kNames]);
  return KubeletPaths::DeviceMount{kFcPluginName, SpecName(FcVolumeName(names)), is_block};
}

}  // namespace volumed
