// An export of an NFS server that an administrator lists as a volume: which text names one, and
// which options it is mounted with.
//
// All are pure; threads: any. Blocks: never.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kube/objects.h"

namespace volumed {

// A value.
struct StaticExport {
  std::string source;                // "nas-1:/srv/media", as the mount table shows it
  std::vector<std::string> options;  // sorted, each once; without "ro" and "rw"
  bool read_only = false;
  friend bool operator==(const StaticExport&, const StaticExport&) = default;
};

// Takes "server:/path", and behind blanks options with commas between them, as in fstab(5):
// "nas-1:/srv/media nfsvers=4.2,ro". The path is absolute and clean, and has no blank; an IPv6
// address is in brackets. Errors, not applied: InvalidArgument for what is no export, and for an
// option that IsAllowedExportOption() does not know, or that contradicts another one.
Result<StaticExport> ParseStaticExport(std::string_view text);

// Whether an export may be listed with this option: those that say how its server is spoken to and
// how long it is waited for, what is cached, and those that take rights away. Not those that say
// what is mounted or where ("addr=", "bind"), that leave a mount to a daemon ("bg"), or that are
// another key's ("ro"). Source: nfs(5), mount(8).
bool IsAllowedExportOption(std::string_view option);

// Whether an export may be mounted so for whoever asks for a volume: those of IsAllowedExportOption
// that mean the same for every filesystem, and "ro", "rw", "defaults".
bool IsOptionOfAnyMount(std::string_view option);

// Of a source that ParseStaticExport() has taken; empty for another text.
NfsVolumeSource ServerOfExport(const std::string& source);

// Whether what the mount table has as the source of an NFS mount is this export. The server may be
// shown by another name: of two mounts of one export the kernel shows the first one's for both.
bool IsShownExport(const std::string& shown, const std::string& source);

// An option that has a value, and which values it may have.
inline constexpr std::string_view kAnyNumber = "#";  // without a sign
struct OptionValues {
  std::string_view name;
  std::string_view values;  // with blanks between them; or kAnyNumber
};
// Whether the option is one of the plain ones, or has one of its values. A list in one word
// ("noatime,nosuid") is none.
bool IsListedOption(std::string_view option, std::span<const std::string_view> plain,
                    std::span<const OptionValues> with_values);

}  // namespace volumed
