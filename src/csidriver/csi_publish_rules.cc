#include "csidriver/csi_publish_rules.h"

#include "base/printable_text.h"

namespace volumed {
namespace {

using Modes = ::csi::v1::VolumeCapability::AccessMode;

constexpr size_t kShownPath = 512;  // bytes of a path in a message

}  // namespace

bool IsOneTargetMode(CsiAccessMode mode) {
  return mode == Modes::SINGLE_NODE_SINGLE_WRITER || mode == Modes::SINGLE_NODE_READER_ONLY;
}

Result<CsiPublishAnswer> DecideCsiPublish(const CsiPublication& wanted,
                                          const std::vector<CsiPublication>& there) {
  for (const CsiPublication& published : there) {
    if (published.target_path != wanted.target_path) continue;
    if (published.capability == wanted.capability && published.read_only == wanted.read_only) {
      return CsiPublishAnswer::kIsThere;
    }
    return Error::NotApplied(Code::kAlreadyExists,
                             "the volume is published at " +
                                 Quoted(wanted.target_path, kShownPath) +
                                 " with another capability, or with another readonly");
  }
  for (const CsiPublication& published : there) {
    const CsiAccessMode wants = wanted.capability.access_mode;
    const CsiAccessMode has = published.capability.access_mode;
    if (!IsOneTargetMode(wants) && !IsOneTargetMode(has)) continue;
    return Error::NotApplied(
        Code::kFailedPrecondition,
        "the volume is published at " + Quoted(published.target_path, kShownPath) + ", and " +
            Modes::Mode_Name(IsOneTargetMode(has) ? has : wants) + " allows one place alone");
  }
  return CsiPublishAnswer::kPublish;
}

}  // namespace volumed
