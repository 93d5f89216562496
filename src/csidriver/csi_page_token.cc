#include "csidriver/csi_page_token.h"

#include <optional>

#include "base/strings.h"

namespace volumed {
namespace {

std::string PrefixOf(PoolObject list) {
  switch (list) {
    case PoolObject::kVolume:
      return "volumes/";
    case PoolObject::kCut:
      return "snapshots/";
    case PoolObject::kGroup:
      return "groups/";
  }
  __builtin_unreachable();
}

}  // namespace

std::string CsiPageToken(std::string_view last_id) {
  const std::optional<PoolId> id = ParsePoolId(last_id);
  return id ? PrefixOf(id->object) + id->ToString() : "";
}

Result<std::string> ParseCsiPageToken(std::string_view token, PoolObject list) {
  if (token.empty()) return std::string();
  const std::optional<std::string_view> text = StripPrefix(token, PrefixOf(list));
  const std::optional<PoolId> id = text ? ParsePoolId(*text) : std::nullopt;
  if (id && id->object == list) return id->ToString();
  return Error::NotApplied(Code::kAborted,
                           "starting_token is no next_token of this list: begin without one");
}

}  // namespace volumed
