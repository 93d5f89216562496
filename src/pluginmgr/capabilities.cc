#include <string_view>

#include "pluginmgr/deletable_volume_plugin.h"
#include "pluginmgr/node_expandable_volume_plugin.h"

namespace volumed {
namespace {

// What tells such an error from others of its code: kubelet has a type for it.
constexpr std::string_view kInUse = "volume is in use: ";

}  // namespace

Error NewDeletedVolumeInUseError(const std::string& message) {
  return Error::NotApplied(Code::kFailedPrecondition, std::string(kInUse) + message);
}

bool IsDeletedVolumeInUse(const Error& error) {
  return error.code() == Code::kFailedPrecondition && error.message().starts_with(kInUse);
}

std::string_view CsiVolumePhaseName(CsiVolumePhase phase) {
  switch (phase) {
    case CsiVolumePhase::kStaged:
      return "staged";
    case CsiVolumePhase::kPublished:
      return "published";
  }
  return "";
}

}  // namespace volumed
