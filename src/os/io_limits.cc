#include "os/io_limits.h"

#include "base/strings.h"

namespace volumed {
namespace {

// The names of the limits in a line of io.max, in the kernel's order.
struct IoMaxKey {
  std::string_view name;
  int64_t IoLimits::*limit;
};
constexpr IoMaxKey kIoMaxKeys[] = {{"rbps", &IoLimits::read_bps},
                                   {"wbps", &IoLimits::write_bps},
                                   {"riops", &IoLimits::read_iops},
                                   {"wiops", &IoLimits::write_iops}};
constexpr std::string_view kUnlimited = "max";

// The words of the line of a device, without its number.
std::vector<std::string> WordsOf(std::string_view content, const std::string& number) {
  for (const std::string& line : SplitNonEmpty(content, '\n')) {
    std::vector<std::string> words = SplitNonEmpty(line, ' ');
    if (words.empty() || words[0] != number) continue;
    words.erase(words.begin());
    return words;
  }
  return {};
}

bool IsLimit(int64_t value, bool is_iops) {
  if (value == 0) return true;
  return value >= kLeastIoLimit && (!is_iops || value <= kMostLimitedIops);
}

}  // namespace

Status CheckIoLimits(const SetIoLimits& request) {
  const std::string what = "limit what is asked of " + request.device;
  if (request.cgroups.empty()) {
    return Error::NotApplied(Code::kInvalidArgument, what + ": no cgroup is named");
  }
  for (const std::string& name : request.cgroups) {
    if (!name.empty()) continue;
    return Error::NotApplied(Code::kInvalidArgument, what + ": the root of all is no cgroup of it");
  }
  const IoLimits& limits = request.limits;
  if (IsLimit(limits.read_iops, true) && IsLimit(limits.write_iops, true) &&
      IsLimit(limits.read_bps, false) && IsLimit(limits.write_bps, false)) {
    return OkStatus();
  }
  return Error::NotApplied(Code::kInvalidArgument,
                           what + ": a limit is 0, or above 1 and one that the kernel keeps");
}

std::string IoDeviceNumber(const DeviceIdentity& device) {
  return std::to_string(device.device_major) + ":" + std::to_string(device.device_minor);
}

std::string IoMaxLine(const std::string& number, const IoLimits& limits) {
  std::string line = number;
  for (const IoMaxKey& key : kIoMaxKeys) {
    const int64_t limit = limits.*key.limit;
    line += " " + std::string(key.name) + "=" +
            (limit == 0 ? std::string(kUnlimited) : std::to_string(limit));
  }
  return line;
}

IoLimits IoMaxOf(std::string_view content, const std::string& number) {
  IoLimits limits;
  for (const std::string& word : WordsOf(content, number)) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) continue;
    for (const IoMaxKey& key : kIoMaxKeys) {
      if (std::string_view(word).substr(0, equals) != key.name) continue;
      limits.*key.limit = ParseInt64(std::string_view(word).substr(equals + 1)).value_or(0);
    }
  }
  return limits;
}

int64_t BlkioLimitOf(std::string_view content, const std::string& number) {
  const std::vector<std::string> words = WordsOf(content, number);
  return words.empty() ? 0 : ParseInt64(words[0]).value_or(0);
}

}  // namespace volumed
