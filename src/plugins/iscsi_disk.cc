#include "plugins/iscsi_disk.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cinttypes>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/strings.h"

namespace volumed {
namespace {

constexpr char kDefaultPort[] = "3260";
constexpr char kIfacePrefix[] = "iface-";
// Of open-iscsi: with its end. Source: open-iscsi usr/config.h (ISCSI_MAX_IFACE_LEN).
constexpr size_t kLongestIface = 64;
// Source: RFC 3720 section 3.2.6.1.
constexpr size_t kLongestName = 223;

Error Invalid(const std::string& what) {
  return Error::NotApplied(Code::kInvalidArgument, "iscsi: " + what);
}

// They become names of directories and arguments of a program.
bool IsName(const std::string& text, std::string_view others) {
  if (text.empty() || text.size() > kLongestName || text == "." || text == "..") return false;
  if (std::isalnum(static_cast<unsigned char>(text.front())) == 0 && text.front() != '[') {
    return false;
  }
  return std::all_of(text.begin(), text.end(), [&](unsigned char c) {
    return std::isalnum(c) != 0 || others.find(static_cast<char>(c)) != std::string_view::npos;
  });
}

Status CheckDisk(const IscsiDisk& disk) {
  for (const std::string& portal : disk.portals) {
    const bool is_open = portal.starts_with('[') && portal.find("]:") == std::string::npos;
    if (is_open || !IsName(portal, ".:-_[]%")) return Invalid("\"" + portal + "\" is no portal");
  }
  const bool typed =
      disk.iqn.starts_with("iqn.") || disk.iqn.starts_with("eui.") || disk.iqn.starts_with("naa.");
  if (!typed || !IsName(disk.iqn, ".:-_")) return Invalid("\"" + disk.iqn + "\" is no target name");
  if (!IsName(disk.init_iface, ".:-_")) {
    return Invalid("\"" + disk.init_iface + "\" is no interface");
  }
  // One of its own is called as its portal and its volume.
  if (!IsName(disk.iface, ".:-_[]%")) return Invalid("\"" + disk.iface + "\" is no interface");
  if (!disk.initiator_name.empty() && !IsName(disk.initiator_name, ".:-_")) {
    return Invalid("\"" + disk.initiator_name + "\" is no initiator name");
  }
  if (disk.lun < 0) return Invalid("lun " + std::to_string(disk.lun) + " is negative");
  if (disk.iface.size() > kLongestIface) {
    return Invalid("interface \"" + disk.iface + "\", which the initiator name needs, is longer " +
                   "than the " + std::to_string(kLongestIface) +
                   " characters that open-iscsi takes");
  }
  return OkStatus();
}

const std::string& NamespaceOf(const SecretReference& ref) { return ref.name_space; }
std::string NamespaceOf(const LocalObjectReference&) { return ""; }

// Source: iscsi.go (createISCSIDisk).
template <typename Source>
Result<IscsiVolume> FromSource(const Source& source, const SpecName& name, bool read_only) {
  IscsiVolume volume;
  volume.fs_type = source.fs_type;
  volume.read_only = read_only;
  volume.chap_discovery = source.chap_auth_discovery;
  volume.chap_session = source.chap_auth_session;
  if (source.secret_ref) {
    volume.secret_name = source.secret_ref->name;
    volume.secret_namespace = NamespaceOf(*source.secret_ref);
  }
  IscsiDisk& disk = volume.disk;
  disk.vol_name = name.str();
  std::vector<std::string> portals = {source.target_portal};
  portals.insert(portals.end(), source.portals.begin(), source.portals.end());
  for (const std::string& portal : portals) {
    const std::string with_port = PortalWithPort(portal);
    const bool known =
        std::any_of(disk.portals.begin(), disk.portals.end(),
                    [&](const auto& other) { return IsSamePortal(other, with_port); });
    if (!known) disk.portals.push_back(with_port);
  }
  disk.iqn = source.iqn;
  disk.lun = source.lun;
  disk.init_iface = source.iscsi_interface;
  disk.initiator_name = source.initiator_name;
  disk.iface =
      disk.initiator_name.empty() ? disk.init_iface : disk.portals.front() + ":" + disk.vol_name;
  RETURN_IF_ERROR(CheckDisk(disk));
  return volume;
}

// Two texts of one address are one address.
std::string NormalAddress(const std::string& address) {
  in6_addr parsed{};
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (inet_pton(AF_INET6, address.c_str(), &parsed) != 1) return address;
  return inet_ntop(AF_INET6, &parsed, text.data(), text.size());
}

// "lun-5", "lun-0x0100000000000000"
std::string LunText(int64_t lun) {
  constexpr int64_t kPlain = 256;
  if (lun < kPlain) return "lun-" + std::to_string(lun);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "lun-0x%04" PRIx64 "%04" PRIx64 "00000000",
                static_cast<uint64_t>(lun) & 0xffff, (static_cast<uint64_t>(lun) >> 16) & 0xffff);
  return text.data();
}

std::string PlaceName(const IscsiDisk& disk) {
  return disk.portals.front() + "-" + disk.iqn + "-lun-" + std::to_string(disk.lun);
}

}  // namespace

Result<IscsiVolume> IscsiVolumeOf(const VolumeSpec& spec) {
  if (const auto* source = spec.SourceAs<IscsiVolumeSource>()) {
    return FromSource(*source, spec.name(), source->read_only);
  }
  if (const auto* source = spec.SourceAs<IscsiPersistentVolumeSource>()) {
    return FromSource(*source, spec.name(), spec.read_only());
  }
  return Error::NotApplied(Code::kInvalidArgument, "Spec does not reference an ISCSI volume type");
}

std::string GetIscsiVolumeName(const IscsiVolume& volume) {
  return IscsiVolumeName(volume.disk.portals.front(), volume.disk.iqn, volume.disk.lun);
}

std::string PortalWithPort(const std::string& portal) {
  if (portal.empty()) return portal;
  if (portal.front() == '[') {
    return portal.find("]:") == std::string::npos ? portal + ":" + kDefaultPort : portal;
  }
  const auto colons = std::count(portal.begin(), portal.end(), ':');
  if (colons == 0) return portal + ":" + kDefaultPort;
  if (colons == 1) return portal;
  return "[" + portal + "]:" + kDefaultPort;
}

PortalParts SplitPortal(const std::string& portal) {
  const size_t colon = portal.rfind(':');
  PortalParts parts{portal.substr(0, colon), portal.substr(colon + 1)};
  if (parts.address.starts_with('[') && parts.address.ends_with(']')) {
    parts.address = parts.address.substr(1, parts.address.size() - 2);
  }
  return parts;
}

bool IsSamePortal(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const PortalParts one = SplitPortal(a);
  const PortalParts other = SplitPortal(b);
  return one.port == other.port && NormalAddress(one.address) == NormalAddress(other.address);
}

bool HasPortal(const IscsiDisk& disk, const std::string& portal) {
  return std::any_of(disk.portals.begin(), disk.portals.end(),
                     [&](const std::string& other) { return IsSamePortal(other, portal); });
}

std::string ByPathLink(const IscsiDisk& disk, const std::string& portal,
                       const std::string& pci_address) {
  const PortalParts parts = SplitPortal(portal);
  return "/dev/disk/by-path/" + (pci_address.empty() ? "" : "pci-" + pci_address + "-") + "ip-" +
         parts.address + ":" + parts.port + "-iscsi-" + disk.iqn + "-" + LunText(disk.lun);
}

SafePath IscsiMountPlace(const KubeletPaths& paths, const IscsiDisk& disk) {
  return paths.GetPluginDir(kIscsiPluginName)
      .Below(kIfacePrefix + disk.iface)
      .Below(PlaceName(disk));
}

SafePath IscsiMapPlace(const KubeletPaths& paths, const IscsiDisk& disk) {
  return paths.GetVolumeDevicePluginDir(kIscsiPluginName)
      .Below(kIfacePrefix + disk.iface)
      .Below(PlaceName(disk));
}

bool IsIscsiMapPlace(const KubeletPaths& paths, const SafePath& place) {
  return place.Display().starts_with(paths.GetVolumeDevicePluginDir(kIscsiPluginName).Display() +
                                     "/");
}

std::optional<IscsiDisk> ParseIscsiPlace(const std::string& path) {
  const std::optional<IscsiNames> names = ParseIscsiNames(path);
  if (!names) return std::nullopt;
  IscsiDisk disk;
  disk.iface = names->iface;
  disk.init_iface = names->iface;
  disk.portals = {names->portal};
  disk.iqn = names->iqn;
  disk.lun = names->lun;
  return disk;
}

// The fields that Go's encoder finds exported in kubelet's iscsiDisk, in its order.
std::string EncodeIscsiDisk(const IscsiDisk& disk) {
  const nlohmann::ordered_json json = {{"VolName", disk.vol_name},
                                       {"Portals", disk.portals},
                                       {"Iqn", disk.iqn},
                                       {"Lun", std::to_string(disk.lun)},
                                       {"InitIface", disk.init_iface},
                                       {"Iface", disk.iface},
                                       {"InitiatorName", disk.initiator_name},
                                       {"MetricsProvider", nullptr}};
  return json.dump() + "\n";
}

Result<IscsiDisk> DecodeIscsiDisk(std::string_view text) {
  const auto bad = [](const std::string& why) {
    return Error::NotApplied(Code::kDataLoss, std::string(kIscsiFile) + ": " + why);
  };
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return bad("not a JSON object");
  const auto string_of = [&](const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  IscsiDisk disk;
  disk.vol_name = string_of("VolName");
  disk.iqn = string_of("Iqn");
  disk.init_iface = string_of("InitIface");
  disk.iface = string_of("Iface");
  disk.initiator_name = string_of("InitiatorName");
  const std::optional<int64_t> lun = ParseInt64(string_of("Lun"));
  if (!lun) return bad("no LUN");
  disk.lun = *lun;
  const auto portals = json.find("Portals");
  if (portals == json.end() || !portals->is_array() || portals->empty()) return bad("no portals");
  for (const auto& portal : *portals) {
    if (!portal.is_string()) return bad("a portal is no text");
    disk.portals.push_back(PortalWithPort(portal.get<std::string>()));
  }
  if (disk.init_iface.empty()) disk.init_iface = disk.iface;
  if (const Status checked = CheckDisk(disk); !checked.ok()) {
    return bad(checked.error().message());
  }
  return disk;
}

}  // namespace volumed
