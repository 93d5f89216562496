#include "pool/static_export.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include "base/printable_text.h"
#include "base/strings.h"
#include "kube/field_rules.h"
#include "volume/nfs_export.h"

namespace volumed {
namespace {

constexpr size_t kShownExport = 512;  // bytes of a listed text, in a message
constexpr char kReadOnlyWord[] = "ro";
constexpr char kReadWriteWord[] = "rw";

constexpr std::array<std::string_view, 15> kOptionsOfAnyMount = {
    "nosuid",     "suid",     "nodev",    "dev",        "noexec", "exec",    "noatime", "atime",
    "nodiratime", "diratime", "relatime", "norelatime", "sync",   "dirsync", "async"};
constexpr std::array<std::string_view, 24> kExportOptions = {
    "hard",       "soft",         "softerr",  "softreval",  "nosoftreval", "tcp",
    "tcp6",       "udp",          "udp6",     "rdma",       "lock",        "nolock",
    "cto",        "nocto",        "ac",       "noac",       "rdirplus",    "nordirplus",
    "sharecache", "nosharecache", "resvport", "noresvport", "fsc",         "nofsc"};
constexpr std::array kExportOptionsWithValues{
    OptionValues{"nfsvers", "3 4 4.0 4.1 4.2"},
    OptionValues{"vers", "3 4 4.0 4.1 4.2"},
    OptionValues{"minorversion", "0 1 2"},
    OptionValues{"proto", "tcp tcp6 udp udp6 rdma rdma6"},
    OptionValues{"mountproto", "tcp tcp6 udp udp6"},
    OptionValues{"sec", "sys krb5 krb5i krb5p none"},
    OptionValues{"xprtsec", "none tls mtls"},
    OptionValues{"local_lock", "all flock posix none"},
    OptionValues{"lookupcache", "all none pos positive"},
    OptionValues{"port", kAnyNumber},
    OptionValues{"mountport", kAnyNumber},
    OptionValues{"timeo", kAnyNumber},
    OptionValues{"retrans", kAnyNumber},
    OptionValues{"retry", kAnyNumber},
    OptionValues{"rsize", kAnyNumber},
    OptionValues{"wsize", kAnyNumber},
    OptionValues{"nconnect", kAnyNumber},
    OptionValues{"acregmin", kAnyNumber},
    OptionValues{"acregmax", kAnyNumber},
    OptionValues{"acdirmin", kAnyNumber},
    OptionValues{"acdirmax", kAnyNumber},
    OptionValues{"actimeo", kAnyNumber},
};

Error NoExport(const std::string& why) { return Error::NotApplied(Code::kInvalidArgument, why); }

bool IsOneOfValues(std::string_view value, std::string_view values) {
  if (values == kAnyNumber) return ParseUint64(value).has_value();
  const std::vector<std::string> all = SplitNonEmpty(values, ' ');
  return std::find(all.begin(), all.end(), value) != all.end();
}

// Of a host's name or an address, which mount.nfs looks up itself.
bool IsServer(std::string_view server) {
  return !server.empty() && server.front() != '-' &&
         std::all_of(server.begin(), server.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c == ':' || c == '%';
         });
}

Status CheckExport(const std::string& text) {
  const std::optional<NfsVolumeSource> source = ParseNfsExport(text);
  const std::string shown = Quoted(text, kShownExport);
  if (!source || !IsServer(source->server)) {
    return NoExport(shown + " is no export: it is to be server:/path");
  }
  // An address without brackets is none.
  if (NfsExport(*source) != text) return NoExport(shown + ": an IPv6 address is in brackets");
  const bool goes_up = (source->path + "/").find("/../") != std::string::npos;
  if (IsText(source->path) && CleanPath(source->path) == source->path && !goes_up) {
    return OkStatus();
  }
  return NoExport(shown + ": its path is to have no '.', '..', '//' or '/' at its end");
}

std::string_view NameOf(std::string_view option) { return option.substr(0, option.find('=')); }

// Which of the two would count depends on their order, which no list of options keeps.
bool AreContrary(std::string_view a, std::string_view b) {
  const auto is_either = [](std::string_view option, std::string_view words) {
    return IsOneOfValues(NameOf(option), words);
  };
  for (const std::string_view words :
       {"hard soft softerr", "vers nfsvers", "tcp tcp6 udp udp6 rdma proto"}) {
    if (is_either(a, words) && is_either(b, words)) return true;
  }
  return NameOf(a) == NameOf(b) || a == "no" + std::string(b) || b == "no" + std::string(a);
}

Status TakeOption(const std::string& option, StaticExport& listed, bool& is_writable) {
  if (option == kReadOnlyWord || option == kReadWriteWord) {
    (option == kReadOnlyWord ? listed.read_only : is_writable) = true;
    if (listed.read_only && is_writable) return NoExport("it has both ro and rw");
    return OkStatus();
  }
  if (!IsAllowedExportOption(option)) {
    return NoExport("option " + Quoted(option, kShownExport) +
                    " is none that an export is listed "
                    "with");
  }
  for (const std::string& other : listed.options) {
    if (other == option) return OkStatus();
    if (AreContrary(other, option)) {
      return NoExport("it has both " + other + " and " + option);
    }
  }
  listed.options.push_back(option);
  return OkStatus();
}

}  // namespace

bool IsListedOption(std::string_view option, std::span<const std::string_view> plain,
                    std::span<const OptionValues> with_values) {
  const size_t equals = option.find('=');
  if (equals == std::string_view::npos) {
    return std::find(plain.begin(), plain.end(), option) != plain.end();
  }
  return std::any_of(with_values.begin(), with_values.end(), [&](const OptionValues& allowed) {
    return allowed.name == NameOf(option) &&
           IsOneOfValues(option.substr(equals + 1), allowed.values);
  });
}

bool IsAllowedExportOption(std::string_view option) {
  return IsListedOption(option, kOptionsOfAnyMount, {}) ||
         IsListedOption(option, kExportOptions, kExportOptionsWithValues);
}

bool IsOptionOfAnyMount(std::string_view option) {
  return option == kReadOnlyWord || option == kReadWriteWord || option == "defaults" ||
         IsListedOption(option, kOptionsOfAnyMount, {});
}

Result<StaticExport> ParseStaticExport(std::string_view text) {
  const std::vector<std::string> words = SplitNonEmpty(text, ' ');
  if (words.empty() || words.size() > 2) {
    return NoExport(Quoted(std::string(text), kShownExport) +
                    " is no export: it is to be server:/path, and behind a blank its options");
  }
  StaticExport listed;
  listed.source = words.front();
  RETURN_IF_ERROR(CheckExport(listed.source));
  bool is_writable = false;
  if (words.size() == 2) {
    for (const std::string& option : SplitNonEmpty(words.back(), ',')) {
      RETURN_IF_ERROR(TakeOption(option, listed, is_writable).With(listed.source));
    }
  }
  std::sort(listed.options.begin(), listed.options.end());
  return listed;
}

NfsVolumeSource ServerOfExport(const std::string& source) {
  return ParseNfsExport(source).value_or(NfsVolumeSource());
}

bool IsShownExport(const std::string& shown, const std::string& source) {
  if (shown == source) return true;
  const std::optional<NfsVolumeSource> there = ParseNfsExport(shown);
  return there && there->path == ServerOfExport(source).path;
}

}  // namespace volumed
