#include "plugins/iscsi_records.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "kube/about_object.h"

namespace volumed {
namespace {

constexpr char kDiscoveryPrefix[] = "discovery.sendtargets.auth.";
constexpr char kSessionPrefix[] = "node.session.auth.";
constexpr const char* kChapKeys[] = {"username", "password", "username_in", "password_in"};
// Source: open-iscsi usr/auth.h (AUTH_STR_MAX_LEN), with its end.
constexpr size_t kLongestValue = 255;
constexpr uint32_t kRecordMode = 0600;

// A line ends a value, and blanks at its ends are not kept: both would be another password.
Status CheckValue(const std::string& key, const std::string& value) {
  const bool printable = std::none_of(value.begin(), value.end(),
                                      [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (!value.empty() && value.size() <= kLongestValue && printable &&
      TrimSpace(value).size() == value.size() && value != "<empty>") {
    return OkStatus();
  }
  return Error::NotApplied(
      Code::kInvalidArgument,
      "iscsi: the secret's key \"" + key +
          "\" cannot stand in a record of open-iscsi: it is empty, longer than " +
          std::to_string(kLongestValue) +
          " bytes, or has a line break, a control character or blanks at its ends");
}

// Its owner acts, and the disk is tried again once it has changed.
Error AboutSecret(const Error& error, const SecretObject& secret) {
  return AboutObject(error,
                     {ObjectKind::kSecret, secret.metadata.name_space, secret.metadata.name});
}

std::string FileNameOf(const std::string& portal) {
  const PortalParts parts = SplitPortal(portal);
  return parts.address + "," + parts.port;
}

}  // namespace

Result<ChapSettings> ChapSettingsOf(const SecretObject& secret, ChapUse use) {
  const std::string prefix = use == ChapUse::kDiscovery ? kDiscoveryPrefix : kSessionPrefix;
  ChapSettings settings;
  settings.emplace_back(prefix + "authmethod", Secret<std::string>("CHAP"));
  bool has_password = false;
  for (const char* name : kChapKeys) {
    const auto found = secret.data.find(prefix + name);
    if (found == secret.data.end()) continue;
    const Status fits = CheckValue(found->first, found->second.Reveal());
    if (!fits.ok()) return AboutSecret(fits.error(), secret);
    has_password = has_password || std::string_view(name) == "password";
    settings.emplace_back(found->first, found->second);
  }
  if (has_password) return settings;
  return AboutSecret(
      Error::NotApplied(Code::kInvalidArgument, "iscsi: secret " + secret.metadata.name +
                                                    " has no key " + prefix + "password"),
      secret);
}

Secret<std::string> WithSettings(const std::string& record, const ChapSettings& settings) {
  constexpr char kEnd[] = "# END RECORD";
  std::set<std::string> names;
  std::string added;
  for (const auto& [name, value] : settings) {
    names.insert(name);
    added += name + " = " + value.Reveal() + "\n";
  }
  std::string text;
  bool ended = false;
  for (const std::string& line : Split(record, '\n')) {
    if (line.empty()) continue;
    if (line.starts_with(kEnd) && !ended) {
      text += added;
      ended = true;
    }
    const std::string name(TrimSpace(std::string_view(line).substr(0, line.find('='))));
    if (!names.contains(name)) text += line + "\n";
  }
  if (!ended) text += added;
  return Secret<std::string>(std::move(text));
}

Result<std::vector<DirectoryEntry>> IscsiRecords::EntriesOf(const SafePath& path,
                                                            const CallOptions& call) {
  Result<DirectoryListing> listing = kernel_.Call(ListDirectory{path}, call);
  if (listing.ok()) return std::move(listing->entries);
  if (listing.error().code() == Code::kNotFound) return std::vector<DirectoryEntry>();
  return listing.error();
}

Result<std::vector<SafePath>> IscsiRecords::FindDiscovery(const std::string& portal,
                                                          const CallOptions& call) {
  std::vector<SafePath> found;
  for (const std::string& root : roots_) {
    const SafePath file{root, "send_targets/" + FileNameOf(portal) + "/st_config",
                        Resolve::kBeneath};
    ASSIGN_OR_RETURN(const FileInfo info, kernel_.Call(Stat{.path = file}, call));
    if (info.type == FileType::kRegular) found.push_back(file);
  }
  return found;
}

Result<bool> IscsiRecords::HasDiscovery(const std::string& portal, const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::vector<SafePath> files, FindDiscovery(portal, call));
  return !files.empty();
}

// By its file, or by the directory of a portal group that has a file for each interface.
Result<std::vector<SafePath>> IscsiRecords::FindNode(const IscsiDisk& disk,
                                                     const std::string& portal,
                                                     const CallOptions& call) {
  const std::string name = FileNameOf(portal);
  std::vector<SafePath> found;
  for (const std::string& root : roots_) {
    const SafePath target{root, "nodes/" + disk.iqn, Resolve::kBeneath};
    ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, EntriesOf(target, call));
    for (const DirectoryEntry& entry : entries) {
      const SafePath path = target.Below(entry.name);
      if (entry.type == FileType::kRegular && entry.name == name) found.push_back(path);
      if (entry.type != FileType::kDirectory || !entry.name.starts_with(name + ",")) continue;
      ASSIGN_OR_RETURN(const FileInfo info,
                       kernel_.Call(Stat{.path = path.Below(disk.iface)}, call));
      if (info.type == FileType::kRegular) found.push_back(path.Below(disk.iface));
    }
  }
  return found;
}

Status IscsiRecords::Rewrite(const std::vector<SafePath>& files, const std::string& what,
                             const ChapSettings& settings, const CallOptions& call) {
  if (files.empty()) {
    return Error::NotApplied(
        Code::kNotFound, "open-iscsi has no record of " + what + " below " + Join(roots_, " or ") +
                             ": the CHAP secret has no place to be written to");
  }
  for (const SafePath& file : files) {
    ASSIGN_OR_RETURN(const FileContent record, kernel_.Call(ReadFile{file}, call));
    RETURN_IF_ERROR(
        kernel_.Call(WriteFile{file, WithSettings(record.bytes, settings), kRecordMode}, call));
  }
  return OkStatus();
}

Status IscsiRecords::SetDiscovery(const std::string& portal, const ChapSettings& settings,
                                  const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::vector<SafePath> files, FindDiscovery(portal, call));
  return Rewrite(files, "portal " + portal, settings, call);
}

Status IscsiRecords::SetNode(const IscsiDisk& disk, const std::string& portal,
                             const ChapSettings& settings, const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::vector<SafePath> files, FindNode(disk, portal, call));
  return Rewrite(files, "target " + disk.iqn + " at " + portal, settings, call);
}

}  // namespace volumed
