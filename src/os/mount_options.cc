#include "os/mount_options.h"

#include <sys/mount.h>
#include <sys/statvfs.h>

#include <array>
#include <string_view>

#include "base/strings.h"

namespace volumed {
namespace {

// MOUNT_ATTR__ATIME is a field of several bits, not a flag.
constexpr uint64_t kAtimeField = MOUNT_ATTR__ATIME;

struct AttributeWord {
  std::string_view word;
  uint64_t attribute;
  bool set;
};
constexpr AttributeWord kAttributeWords[] = {
    {"ro", MOUNT_ATTR_RDONLY, true},
    {"rw", MOUNT_ATTR_RDONLY, false},
    {"nosuid", MOUNT_ATTR_NOSUID, true},
    {"suid", MOUNT_ATTR_NOSUID, false},
    {"nodev", MOUNT_ATTR_NODEV, true},
    {"dev", MOUNT_ATTR_NODEV, false},
    {"noexec", MOUNT_ATTR_NOEXEC, true},
    {"exec", MOUNT_ATTR_NOEXEC, false},
    {"nodiratime", MOUNT_ATTR_NODIRATIME, true},
    {"diratime", MOUNT_ATTR_NODIRATIME, false},
};

struct AtimeWord {
  std::string_view word;
  uint64_t value;
};
constexpr AtimeWord kAtimeWords[] = {
    {"relatime", MOUNT_ATTR_RELATIME},       {"atime", MOUNT_ATTR_RELATIME},
    {"norelatime", MOUNT_ATTR_STRICTATIME},  {"noatime", MOUNT_ATTR_NOATIME},
    {"strictatime", MOUNT_ATTR_STRICTATIME}, {"nostrictatime", MOUNT_ATTR_RELATIME},
};

constexpr std::array<std::string_view, 12> kProgramWords = {
    "defaults", "_netdev", "auto",  "noauto", "nofail",  "user",
    "nouser",   "users",   "owner", "group",  "noowner", "nogroup"};

constexpr std::array<std::string_view, 12> kOtherRequests = {
    "bind",  "rbind",  "move",    "remount",  "shared",     "rshared",
    "slave", "rslave", "private", "rprivate", "unbindable", "runbindable"};

template <typename List>
bool Contains(const List& list, std::string_view word) {
  for (const std::string_view entry : list) {
    if (entry == word) return true;
  }
  return false;
}

bool IsForPrograms(std::string_view word) {
  return Contains(kProgramWords, word) || word.substr(0, 2) == "x-" || word.substr(0, 2) == "X-" ||
         word.substr(0, 8) == "comment=";
}

bool ApplyAttributeWord(std::string_view word, MountOptions& parsed) {
  for (const AttributeWord& entry : kAttributeWords) {
    if (word != entry.word) continue;
    (entry.set ? parsed.attributes : parsed.clear_attributes) |= entry.attribute;
    (entry.set ? parsed.clear_attributes : parsed.attributes) &= ~entry.attribute;
    return true;
  }
  for (const AtimeWord& entry : kAtimeWords) {
    if (word != entry.word) continue;
    parsed.attributes = (parsed.attributes & ~kAtimeField) | entry.value;
    parsed.sets_atime = true;
    return true;
  }
  return false;
}

void ApplyWord(const std::string& word, MountOptions& parsed) {
  if (ApplyAttributeWord(word, parsed)) return;
  const size_t equals = word.find('=');
  SuperParameter parameter;
  parameter.key = word.substr(0, equals);
  if (equals != std::string::npos) {
    parameter.value = word.substr(equals + 1);
    parameter.is_flag = false;
  }
  parsed.parameters.push_back(std::move(parameter));
}

}  // namespace

Result<MountOptions> ParseMountOptions(const std::vector<std::string>& options) {
  MountOptions parsed;
  for (const std::string& joined : options) {
    size_t begin = 0;
    while (begin <= joined.size()) {
      size_t end = joined.find(',', begin);
      if (end == std::string::npos) end = joined.size();
      const std::string word = joined.substr(begin, end - begin);
      begin = end + 1;
      if (word.empty() || IsForPrograms(word)) continue;
      if (Contains(kOtherRequests, word)) {
        return Error::NotApplied(Code::kInvalidArgument,
                                 "mount option \"" + word + "\" is a request of its own");
      }
      if (word[0] == '=' || word.find('\0') != std::string::npos) {
        return Error::NotApplied(Code::kInvalidArgument, "a mount option without a name");
      }
      ApplyWord(word, parsed);
    }
  }
  return parsed;
}

std::string OptionsForHelper(const std::vector<std::string>& options) {
  std::vector<std::string> words;
  for (const std::string& word : Split(Join(options, ","), ',')) {
    if (!word.empty() && !IsForPrograms(word)) words.push_back(word);
  }
  return Join(words, ",");
}

unsigned long AttributesToMountFlags(uint64_t attributes) {
  unsigned long flags = 0;
  if (attributes & MOUNT_ATTR_RDONLY) flags |= MS_RDONLY;
  if (attributes & MOUNT_ATTR_NOSUID) flags |= MS_NOSUID;
  if (attributes & MOUNT_ATTR_NODEV) flags |= MS_NODEV;
  if (attributes & MOUNT_ATTR_NOEXEC) flags |= MS_NOEXEC;
  if (attributes & MOUNT_ATTR_NODIRATIME) flags |= MS_NODIRATIME;
  const uint64_t atime = attributes & kAtimeField;
  if (atime == MOUNT_ATTR_NOATIME) flags |= MS_NOATIME;
  if (atime == MOUNT_ATTR_STRICTATIME) flags |= MS_STRICTATIME;
  if (atime == MOUNT_ATTR_RELATIME) flags |= MS_RELATIME;
  return flags;
}

uint64_t AttributesFromStatfsFlags(uint64_t flags) {
  uint64_t attributes = 0;
  if (flags & ST_RDONLY) attributes |= MOUNT_ATTR_RDONLY;
  if (flags & ST_NOSUID) attributes |= MOUNT_ATTR_NOSUID;
  if (flags & ST_NODEV) attributes |= MOUNT_ATTR_NODEV;
  if (flags & ST_NOEXEC) attributes |= MOUNT_ATTR_NOEXEC;
  if (flags & ST_NODIRATIME) attributes |= MOUNT_ATTR_NODIRATIME;
  if (flags & ST_NOATIME) {
    attributes |= MOUNT_ATTR_NOATIME;
  } else if ((flags & ST_RELATIME) == 0) {
    attributes |= MOUNT_ATTR_STRICTATIME;
  }
  return attributes;
}

}  // namespace volumed
