#include "plugins/iscsi_sessions.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/strings.h"

namespace volumed {
namespace {

constexpr char kSessionClass[] = "class/iscsi_session";
constexpr char kConnectionClass[] = "class/iscsi_connection";

// ENODEV, ENXIO: what attributes answer while their device goes.
bool IsGone(const Error& error) {
  return error.code() == Code::kNotFound || error.sys_errno() == ENOENT ||
         error.sys_errno() == ENODEV || error.sys_errno() == ENXIO;
}

std::string PortalText(const std::string& address, const std::string& port) {
  const bool is_v6 = address.find(':') != std::string::npos;
  return (is_v6 ? "[" + address + "]" : address) + ":" + port;
}

// The number of "host3".
std::optional<int64_t> NumberAfter(const std::string& word, const std::string& part) {
  const auto number = StripPrefix(part, word);
  const bool is_number =
      number && !number->empty() && number->find_first_not_of("0123456789") == std::string::npos;
  return is_number ? ParseInt64(*number) : std::nullopt;
}

// "0000:00:05.0".
bool IsPciFunction(const std::string& part) {
  constexpr char kHex[] = "0123456789abcdef";
  const std::vector<std::string> parts = Split(part, ':');
  if (parts.size() != 3 || parts[0].size() < 4 || parts[1].size() != 2) return false;
  const std::string& last = parts[2];  // "05.0"
  const bool has_form = last.size() == 4 && last[2] == '.' && last[3] >= '0' && last[3] <= '7';
  return has_form &&
         (parts[0] + parts[1] + last.substr(0, 2)).find_first_not_of(kHex) == std::string::npos;
}

// "devices/pci0000:00/0000:00:05.0/host3/session1": the last PCI function before the host.
void AddPlace(IscsiSession& session) {
  for (const std::string& part : Split(session.sysfs_path, '/')) {
    if (IsPciFunction(part)) session.pci_address = part;
    if (const auto host = NumberAfter("host", part)) session.host = static_cast<int>(*host);
  }
}

}  // namespace

const IscsiSession* SessionAt(const std::vector<IscsiSession>& sessions,
                              const std::string& portal) {
  for (const IscsiSession& session : sessions) {
    for (const std::string& at : session.portals) {
      if (IsSamePortal(at, portal)) return &session;
    }
  }
  return nullptr;
}

SafePath IscsiSessions::Sys(const std::string& relative) const {
  return {sys_root_, relative, Resolve::kBeneath};
}

Result<std::string> IscsiSessions::Attribute(const std::string& relative, const CallOptions& call) {
  const Result<FileContent> content = kernel_.Call(ReadFile{Sys(relative)}, call);
  if (content.ok()) return std::string(TrimSpace(content->bytes));
  // ENOTCONN: where a connection leads that is down. Its session is there, and known by what it was
  // told. Source: Linux drivers/scsi/iscsi_tcp.c (iscsi_sw_tcp_conn_get_param).
  if (IsGone(content.error()) || content.error().sys_errno() == ENOTCONN) return std::string();
  return content.error();
}

Result<std::vector<std::string>> IscsiSessions::NamesIn(const std::string& relative,
                                                        const CallOptions& call) {
  const Result<DirectoryListing> listing = kernel_.Call(ListDirectory{Sys(relative)}, call);
  std::vector<std::string> names;
  if (!listing.ok()) {
    if (IsGone(listing.error())) return names;
    return listing.error();
  }
  for (const DirectoryEntry& entry : listing->entries) names.push_back(entry.name);
  return names;
}

Status IscsiSessions::AddPortals(IscsiSession& session, const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::vector<std::string> parts, NamesIn(session.sysfs_path, call));
  for (const std::string& part : parts) {
    if (!part.starts_with("connection")) continue;
    const std::string connection = std::string(kConnectionClass) + "/" + part + "/";
    for (const char* kind : {"persistent_", ""}) {
      ASSIGN_OR_RETURN(const std::string address, Attribute(connection + kind + "address", call));
      ASSIGN_OR_RETURN(const std::string port, Attribute(connection + kind + "port", call));
      if (address.empty() || port.empty()) continue;
      std::string portal = PortalText(address, port);
      if (std::find(session.portals.begin(), session.portals.end(), portal) ==
          session.portals.end()) {
        session.portals.push_back(std::move(portal));
      }
    }
  }
  return OkStatus();
}

Result<std::optional<IscsiSession>> IscsiSessions::Look(const std::string& name,
                                                        const IscsiDisk& disk,
                                                        const CallOptions& call) {
  const std::string place = std::string(kSessionClass) + "/" + name;
  ASSIGN_OR_RETURN(const std::string target, Attribute(place + "/targetname", call));
  if (target != disk.iqn) return std::optional<IscsiSession>();
  IscsiSession session;
  session.name = name;
  ASSIGN_OR_RETURN(session.iface, Attribute(place + "/ifacename", call));
  if (session.iface != disk.iface) return std::optional<IscsiSession>();
  const Result<FileContent> link = kernel_.Call(ReadLink{Sys(place)}, call);
  if (!link.ok()) {
    if (IsGone(link.error())) return std::optional<IscsiSession>();
    return link.error();
  }
  // .. / session1 / iscsi_session / session1
  session.sysfs_path = (std::filesystem::path(kSessionClass) / link->bytes)
                           .lexically_normal()
                           .parent_path()
                           .parent_path()
                           .native();
  AddPlace(session);
  RETURN_IF_ERROR(AddPortals(session, call));
  return std::optional(std::move(session));
}

Result<std::vector<IscsiSession>> IscsiSessions::Of(const IscsiDisk& disk,
                                                    const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(kSessionClass, call));
  std::vector<IscsiSession> sessions;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(std::optional<IscsiSession> session, Look(name, disk, call));
    if (session) sessions.push_back(*std::move(session));
  }
  return sessions;
}

Result<std::optional<IscsiSession>> IscsiSessions::UnderDisk(const std::string& sysfs_path,
                                                             const IscsiDisk& disk,
                                                             const CallOptions& call) {
  for (const std::string& part : Split(sysfs_path, '/')) {
    if (NumberAfter("session", part)) return Look(part, disk, call);
  }
  return std::optional<IscsiSession>();
}

Result<std::vector<IscsiSessionDisk>> IscsiSessions::DisksOf(const IscsiSession& session,
                                                             const CallOptions& call) {
  std::vector<IscsiSessionDisk> disks;
  ASSIGN_OR_RETURN(const std::vector<std::string> targets, NamesIn(session.sysfs_path, call));
  for (const std::string& target : targets) {
    if (!target.starts_with("target")) continue;
    const std::string target_path = session.sysfs_path + "/" + target;
    ASSIGN_OR_RETURN(const std::vector<std::string> units, NamesIn(target_path, call));
    for (const std::string& unit : units) {
      // host : channel : target : LUN
      const std::vector<std::string> address = Split(unit, ':');
      const std::optional<int64_t> lun =
          address.size() == 4 ? ParseInt64(address[3]) : std::nullopt;
      if (!lun) continue;
      IscsiSessionDisk disk{*lun, target_path + "/" + unit, "", ""};
      ASSIGN_OR_RETURN(const std::vector<std::string> names,
                       NamesIn(disk.sysfs_path + "/block", call));
      if (!names.empty()) disk.name = names.front();
      ASSIGN_OR_RETURN(disk.wwid, Attribute(disk.sysfs_path + "/wwid", call));
      // A disk by its type, even where the kernel has not named it yet: what else a target has (its
      // controller) is none.
      ASSIGN_OR_RETURN(const std::string type, Attribute(disk.sysfs_path + "/type", call));
      if (!disk.name.empty() || type == "0") disks.push_back(std::move(disk));
    }
  }
  return disks;
}

}  // namespace volumed
