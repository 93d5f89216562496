#include "csi/csi_caller.h"

#include "base/strings.h"

namespace volumed {
namespace {

constexpr std::string_view kOwner = "csi: socket owner ";

}  // namespace

Error OfSocketOwner(const Error& error, uint32_t uid) {
  return error.About(std::string(kOwner) + std::to_string(uid));
}

std::optional<uint32_t> SocketOwnerOf(const Error& error) {
  for (const std::string& subject : error.about()) {
    const std::optional<std::string_view> digits = StripPrefix(subject, kOwner);
    const std::optional<int64_t> uid = digits ? ParseInt64(*digits) : std::nullopt;
    if (uid) return static_cast<uint32_t>(*uid);
  }
  return std::nullopt;
}

}  // namespace volumed
