#include "volume/nfs_export.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>

namespace volumed {
namespace {

bool IsIpv6Address(const std::string& server) {
  in6_addr address = {};
  return ::inet_pton(AF_INET6, server.substr(0, server.find('%')).c_str(), &address) == 1;
}

}  // namespace

std::string NfsExport(const NfsVolumeSource& source) {
  const bool brackets = IsIpv6Address(source.server);
  return (brackets ? "[" + source.server + "]" : source.server) + ":" + source.path;
}

std::optional<NfsVolumeSource> ParseNfsExport(std::string_view text) {
  // The first ":/" ends the server: neither a name nor an address has one in it.
  const size_t end = text.find(":/");
  if (end == std::string_view::npos || end == 0) return std::nullopt;
  NfsVolumeSource source;
  source.server = text.substr(0, end);
  source.path = text.substr(end + 1);
  if (source.server.size() > 2 && source.server.front() == '[' && source.server.back() == ']') {
    const std::string address = source.server.substr(1, source.server.size() - 2);
    if (IsIpv6Address(address)) source.server = address;
  }
  return source;
}

std::string NfsFaultDomain(const NfsVolumeSource& source) {
  if (source.server.empty()) return "";
  std::string domain = "nfs:" + source.server;
  std::transform(domain.begin(), domain.end(), domain.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return domain;
}

std::string NfsServerName(const NfsVolumeSource& source) {
  return source.server.empty() ? "" : "NFS server " + source.server;
}

bool IsNfsType(std::string_view fs_type) { return fs_type == "nfs" || fs_type == "nfs4"; }

}  // namespace volumed
