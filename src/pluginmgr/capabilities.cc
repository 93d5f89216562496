#include <string_view>

#include "pluginmgr/deletable_volume_plugin.h"
#include "pluginmgr/node_expandable_volume_plugin.h"

namespace volumed {
namespace {

// The subject that tells such an error from others of its code: kubelet has a type for it.
constexpr std::string_view kAboutVolumeInUse = "volume in use";

}  // namespace

Error NewDeletedVolumeInUseError(const std::string& message) {
  return Error::NotApplied(Code::kFailedPrecondition, "volume is in use: " + message)
      .About(std::string(kAboutVolumeInUse));
}

bool IsDeletedVolumeInUse(const Error& error) { return error.IsAbout(kAboutVolumeInUse); }

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
