#include "volumehost/iscsi_names.h"

#include <regex>

#include "base/strings.h"

namespace volumed {

std::optional<IscsiNames> ParseIscsiNames(const std::string& path) {
  static const std::regex kPlace(
      R"(.*/iface-([^/]+)/([^/]+?:[0-9]+)-((?:iqn|eui|naa)\.[^/]+)-lun-([0-9]+))");
  std::smatch match;
  if (!std::regex_match(path, match, kPlace)) return std::nullopt;
  const std::optional<int64_t> lun = ParseInt64(match[4].str());
  if (!lun) return std::nullopt;
  return IscsiNames{match[1], match[2], match[3], *lun};
}

std::string IscsiVolumeName(const std::string& portal, const std::string& iqn, int64_t lun) {
  return portal + ":" + iqn + ":" + std::to_string(lun);
}

}  // namespace volumed
