// What an address of the configuration may be: host:port.
#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "agent/config_checks.h"
#include "base/strings.h"

namespace volumed {
namespace {

constexpr size_t kLongestHost = 253;

bool IsHostName(std::string_view host) {
  if (host.empty() || host.size() > kLongestHost) return false;
  for (const std::string& label : Split(host, '.')) {
    const bool is_label =
        !label.empty() && label.size() <= 63 && label.front() != '-' && label.back() != '-' &&
        std::all_of(label.begin(), label.end(),
                    [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; });
    if (!is_label) return false;
  }
  // A host whose last label is a number could only be an address, and it is not one.
  const std::string_view last = host.substr(host.rfind('.') + 1);
  return last.find_first_not_of("0123456789") != std::string_view::npos;
}

bool IsAddress(int family, const std::string& host) {
  unsigned char bytes[sizeof(in6_addr)];
  return ::inet_pton(family, host.c_str(), bytes) == 1;
}

}  // namespace

Status CheckAddress(std::string_view address) {
  const auto refuse = [&](const std::string& why) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "must be host:port, not '" + std::string(address) + "': " + why);
  };
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return refuse("it has no host, or no port");
  const std::string_view port_text = address.substr(colon + 1);
  const char* const end = port_text.data() + port_text.size();
  uint16_t port = 0;
  const auto parsed = std::from_chars(port_text.data(), end, port);
  if (parsed.ec != std::errc() || parsed.ptr != end || port_text.empty()) {
    return refuse("the port is not a number from 0 to 65535");
  }
  std::string host(address.substr(0, colon));
  if (host.front() == '[') {
    if (host.back() != ']' || !IsAddress(AF_INET6, host.substr(1, host.size() - 2))) {
      return refuse("there is no IPv6 address in the brackets");
    }
    return OkStatus();
  }
  if (IsAddress(AF_INET, host) || IsAddress(AF_INET6, host) || IsHostName(host)) return OkStatus();
  return refuse("the host is neither an address nor a name");
}

}  // namespace volumed
