#include "os/device_requests.h"

#include "base/printable_text.h"
#include "base/strings.h"

namespace volumed {
namespace {

std::string Number(uint32_t device_major, uint32_t device_minor) {
  return std::to_string(device_major) + ":" + std::to_string(device_minor);
}

std::string Words(std::string_view what, const std::string& expected, const std::string& now) {
  const auto shown = [](const std::string& text) {
    return text.empty() ? "none" : PrintableText(text);
  };
  return std::string(what) + " is " + shown(now) + ", not " + shown(expected);
}

}  // namespace

std::string IdentityDifference(const DeviceIdentity& expected, const DeviceIdentity& now) {
  std::vector<std::string> differences;
  if (expected.device_major != now.device_major || expected.device_minor != now.device_minor) {
    differences.push_back(Words("its number", Number(expected.device_major, expected.device_minor),
                                Number(now.device_major, now.device_minor)));
  }
  if (expected.disk_sequence != now.disk_sequence) {
    differences.push_back(Words("its disk sequence", std::to_string(expected.disk_sequence),
                                std::to_string(now.disk_sequence)));
  }
  if (expected.stable_id != now.stable_id) {
    differences.push_back(Words("its own identity", expected.stable_id, now.stable_id));
  }
  if (expected.size_bytes != now.size_bytes) {
    differences.push_back(
        Words("its size", std::to_string(expected.size_bytes), std::to_string(now.size_bytes)));
  }
  if (!expected.uuid.empty() && expected.uuid != now.uuid) {
    differences.push_back(Words("its filesystem's UUID", expected.uuid, now.uuid));
  }
  return Join(differences, "; ");
}

std::string DeviceDomain(const std::string& device) { return "device:" + device; }

std::string_view CheckResultName(CheckResult result) {
  switch (result) {
    case CheckResult::kClean:
      return "clean";
    case CheckResult::kFixed:
      return "fixed";
    case CheckResult::kUncorrected:
      return "errors left uncorrected";
    case CheckResult::kOperationalError:
      return "operational error";
    case CheckResult::kSkipped:
      return "skipped";
  }
  return "unknown";
}

CheckResult ClassifyCheck(std::string_view fs_type, int exit_code) {
  if (exit_code == 0) return CheckResult::kClean;
  if (fs_type == "xfs" || fs_type == "btrfs") {
    return exit_code == 1 ? CheckResult::kUncorrected : CheckResult::kOperationalError;
  }
  // A sum of bits: 1 corrected, 2 corrected and the node should reboot (only said of a mounted
  // root), 4 errors left, 8 operational, 16 usage, 32 cancelled, 128 shared library.
  constexpr int kErrorsLeft = 4;
  constexpr int kCorrected = 1 | 2;
  if (exit_code < 0 || exit_code > 255) return CheckResult::kOperationalError;
  if ((exit_code & kErrorsLeft) != 0) return CheckResult::kUncorrected;
  if ((exit_code & ~kCorrected) != 0) return CheckResult::kOperationalError;
  return CheckResult::kFixed;
}

}  // namespace volumed
