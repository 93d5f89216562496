#include "os/statmount.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "os/mount_table.h"
#include "os/syscall_numbers.h"

namespace volumed {
namespace {

// Debian 12's headers have none of these. Source: linux/mount.h, linux/nsfs.h, linux/stat.h.
struct MountIdRequest {
  uint32_t size;
  uint32_t spare;
  uint64_t mount_id;
  uint64_t param;         // statmount: what is asked; listmount: the last id that is known
  uint64_t namespace_id;  // Linux 6.11; zero: the caller's
};
constexpr uint32_t kFirstRequestSize = 24;  // without namespace_id

struct StatMountAnswer {
  uint32_t size;
  uint32_t mnt_opts;
  uint64_t mask;
  uint32_t sb_dev_major;
  uint32_t sb_dev_minor;
  uint64_t sb_magic;
  uint32_t sb_flags;
  uint32_t fs_type;
  uint64_t mnt_id;
  uint64_t mnt_parent_id;
  uint32_t mnt_id_old;
  uint32_t mnt_parent_id_old;
  uint64_t mnt_attr;
  uint64_t mnt_propagation;
  uint64_t mnt_peer_group;
  uint64_t mnt_master;
  uint64_t propagate_from;
  uint32_t mnt_root;
  uint32_t mnt_point;
  uint64_t mnt_ns_id;
  uint32_t fs_subtype;
  uint32_t sb_source;
  uint64_t later[48];  // fields of later kernels; not asked for
};
// Texts follow it, each as an offset from here.
static_assert(sizeof(StatMountAnswer) == 512);
static_assert(offsetof(StatMountAnswer, mnt_ns_id) == 112);

constexpr uint64_t kSuperBasic = 0x1;
constexpr uint64_t kMountBasic = 0x2;
constexpr uint64_t kPropagateFrom = 0x4;
constexpr uint64_t kMountRoot = 0x8;
constexpr uint64_t kMountPoint = 0x10;
constexpr uint64_t kFsType = 0x20;
constexpr uint64_t kMountOptions = 0x80;  // Linux 6.11
constexpr uint64_t kFsSubtype = 0x100;    // Linux 6.13
constexpr uint64_t kSuperSource = 0x200;  // Linux 6.13
constexpr uint64_t kWholeEntry = kSuperBasic | kMountBasic | kPropagateFrom | kMountRoot |
                                 kMountPoint | kFsType | kMountOptions | kFsSubtype | kSuperSource;
// The kernel clears the bit of a text that is empty; these never are.
constexpr uint64_t kAlwaysThere = kSuperBasic | kMountBasic | kMountRoot | kFsType;

constexpr uint64_t kAllMounts = ~uint64_t{0};                              // LSMT_ROOT
constexpr unsigned long kGetMountNamespaceId = _IOR(0xb7, 0x5, uint64_t);  // NS_GET_MNTNS_ID
constexpr unsigned kStatxUniqueMountId = 0x4000;                           // STATX_MNT_ID_UNIQUE
constexpr uint64_t kAttrNoSymfollow = 0x200000;                            // MOUNT_ATTR_NOSYMFOLLOW
constexpr uint64_t kSuperLazyTime = uint64_t{1} << 25;                     // SB_LAZYTIME

constexpr size_t kIdsAtOnce = 1024;
constexpr size_t kMaxTexts = size_t{1} << 20;  // beyond any list of options that the kernel makes

// One answer with its texts. The first buffer is enough for all but long lists of options.
class Answer {
 public:
  // Whether there is such a mount. Errors: errno, not applied.
  Result<bool> Ask(uint64_t namespace_id, uint64_t mount_id, uint64_t what) {
    MountIdRequest request = {};
    request.size = namespace_id == 0 ? kFirstRequestSize : sizeof(request);
    request.mount_id = mount_id;
    request.param = what;
    request.namespace_id = namespace_id;
    while (true) {
      if (::syscall(kSysStatmount, &request, data(), size(), 0) == 0) return true;
      if (errno == ENOENT) return false;
      if (errno == EINTR) continue;
      if (errno != EOVERFLOW || size() > kMaxTexts) break;
      more_.resize(size() * 2 / sizeof(uint64_t));
    }
    return Error::FromErrno(errno, "statmount", Outcome::kNotApplied);
  }

  const StatMountAnswer& operator*() const {
    return *reinterpret_cast<const StatMountAnswer*>(data());
  }
  const StatMountAnswer* operator->() const { return &**this; }
  bool Has(uint64_t what) const { return ((**this).mask & what) == what; }
  // Empty when the kernel did not give it.
  std::string Text(uint64_t what, uint32_t offset) const {
    if (!Has(what)) return "";
    return reinterpret_cast<const char*>(data()) + sizeof(StatMountAnswer) + offset;
  }

 private:
  const uint64_t* data() const { return more_.empty() ? first_.data() : more_.data(); }
  uint64_t* data() { return more_.empty() ? first_.data() : more_.data(); }
  size_t size() const { return (more_.empty() ? first_.size() : more_.size()) * sizeof(uint64_t); }

  std::array<uint64_t, 192> first_;  // 1.5 KiB
  std::vector<uint64_t> more_;
};

// The words and their order are mountinfo's. Source: Linux fs/proc_namespace.c (show_mnt_opts).
std::vector<std::string> MountWords(uint64_t attributes) {
  constexpr uint64_t kFlags[] = {MOUNT_ATTR_NOSUID, MOUNT_ATTR_NODEV, MOUNT_ATTR_NOEXEC};
  constexpr const char* kWords[] = {"nosuid", "nodev", "noexec"};
  std::vector<std::string> words = {(attributes & MOUNT_ATTR_RDONLY) != 0 ? "ro" : "rw"};
  for (size_t i = 0; i < std::size(kFlags); ++i) {
    if ((attributes & kFlags[i]) != 0) words.emplace_back(kWords[i]);
  }
  const uint64_t atime = attributes & static_cast<uint64_t>(MOUNT_ATTR__ATIME);
  if (atime == MOUNT_ATTR_NOATIME) words.emplace_back("noatime");
  if ((attributes & MOUNT_ATTR_NODIRATIME) != 0) words.emplace_back("nodiratime");
  if (atime == MOUNT_ATTR_RELATIME) words.emplace_back("relatime");
  if ((attributes & kAttrNoSymfollow) != 0) words.emplace_back("nosymfollow");
  if ((attributes & MOUNT_ATTR_IDMAP) != 0) words.emplace_back("idmapped");
  return words;
}

// "\\040" and the like. Source: Linux lib/string_helpers.c (ESCAPE_OCTAL).
std::string Unescaped(std::string_view text) {
  const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && is_octal(text[i + 1]) && is_octal(text[i + 2]) &&
        is_octal(text[i + 3])) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                 (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// Likewise (show_sb_opts); the filesystem's own words follow.
std::vector<std::string> SuperWords(uint64_t flags, const std::string& own) {
  std::vector<std::string> words = {(flags & MS_RDONLY) != 0 ? "ro" : "rw"};
  if ((flags & MS_SYNCHRONOUS) != 0) words.emplace_back("sync");
  if ((flags & MS_DIRSYNC) != 0) words.emplace_back("dirsync");
  if ((flags & kSuperLazyTime) != 0) words.emplace_back("lazytime");
  for (const std::string& word : SplitNonEmpty(own, ',')) words.push_back(Unescaped(word));
  return words;
}

std::vector<std::string> PropagationWords(const StatMountAnswer& answer) {
  std::vector<std::string> words;
  if ((answer.mnt_propagation & MS_SHARED) != 0) {
    words.push_back("shared:" + std::to_string(answer.mnt_peer_group));
  }
  if ((answer.mnt_propagation & MS_SLAVE) != 0) {
    words.push_back("master:" + std::to_string(answer.mnt_master));
    if (answer.propagate_from != 0 && answer.propagate_from != answer.mnt_master) {
      words.push_back("propagate_from:" + std::to_string(answer.propagate_from));
    }
  }
  if ((answer.mnt_propagation & MS_UNBINDABLE) != 0) words.emplace_back("unbindable");
  return words;
}

MountEntry ToEntry(const Answer& answer) {
  MountEntry entry;
  entry.mount_id = answer->mnt_id_old;
  entry.parent_id = answer->mnt_parent_id_old;
  entry.device_major = answer->sb_dev_major;
  entry.device_minor = answer->sb_dev_minor;
  entry.root = answer.Text(kMountRoot, answer->mnt_root);
  entry.mount_point = answer.Text(kMountPoint, answer->mnt_point);
  entry.options = MountWords(answer->mnt_attr);
  entry.propagation = PropagationWords(*answer);
  entry.fs_type = answer.Text(kFsType, answer->fs_type);
  const std::string subtype = answer.Text(kFsSubtype, answer->fs_subtype);
  if (!subtype.empty()) entry.fs_type += "." + subtype;
  entry.source = answer.Text(kSuperSource, answer->sb_source);
  if (entry.source.empty()) entry.source = "none";
  entry.super_options = SuperWords(answer->sb_flags, answer.Text(kMountOptions, answer->mnt_opts));
  return entry;
}

Result<std::optional<MountEntry>> FindInTable(uint64_t mount_id) {
  ASSIGN_OR_RETURN(std::vector<MountEntry> entries, ReadMountTable());
  for (MountEntry& entry : entries) {
    if (entry.mount_id == mount_id) return std::optional<MountEntry>(std::move(entry));
  }
  return std::optional<MountEntry>();
}

Result<uint64_t> MountIdOf(int fd, unsigned wanted) {
  struct statx info = {};
  if (::statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, wanted, &info) != 0) {
    return Error::FromErrno(errno, "statx", Outcome::kNotApplied);
  }
  if ((info.stx_mask & wanted) == 0) {
    return Error::NotApplied(Code::kUnimplemented, "statx gives no mount id");
  }
  return info.stx_mnt_id;
}

}  // namespace

Result<StatMounts> StatMounts::Of(int ns_fd) {
  uint64_t id = 0;
  if (::ioctl(ns_fd, kGetMountNamespaceId, &id) != 0) {
    return Error::FromErrno(errno, "the mount namespace's id", Outcome::kNotApplied);
  }
  return StatMounts(id);
}

Result<std::vector<uint64_t>> StatMounts::Ids() const {
  MountIdRequest request = {};
  request.size = sizeof(request);
  request.mount_id = kAllMounts;
  request.namespace_id = namespace_id_;
  std::vector<uint64_t> ids;
  while (true) {
    const size_t before = ids.size();
    ids.resize(before + kIdsAtOnce);
    const long count = ::syscall(kSysListmount, &request, ids.data() + before, kIdsAtOnce, 0);
    if (count < 0 && errno != EINTR) {
      return Error::FromErrno(errno, "listmount", Outcome::kNotApplied);
    }
    ids.resize(before + static_cast<size_t>(count < 0 ? 0 : count));
    if (count >= 0 && static_cast<size_t>(count) < kIdsAtOnce) return ids;
    if (!ids.empty()) request.param = ids.back();
  }
}

Result<std::optional<MountPlace>> StatMounts::Place(uint64_t unique_id) const {
  Answer answer;
  ASSIGN_OR_RETURN(const bool found,
                   answer.Ask(namespace_id_, unique_id, kSuperBasic | kMountRoot | kMountPoint));
  if (!found || !answer.Has(kMountPoint)) return std::optional<MountPlace>();
  return std::optional<MountPlace>(
      {answer.Text(kMountPoint, answer->mnt_point),
       {answer->sb_dev_major, answer->sb_dev_minor, answer.Text(kMountRoot, answer->mnt_root)}});
}

Result<std::optional<MountEntry>> StatMounts::Entry(uint64_t unique_id) const {
  Answer answer;
  ASSIGN_OR_RETURN(const bool found, answer.Ask(namespace_id_, unique_id, kWholeEntry));
  if (!found || !answer.Has(kMountPoint)) return std::optional<MountEntry>();
  if (!answer.Has(kAlwaysThere)) {
    return Error::NotApplied(Code::kUnimplemented, "this kernel's statmount leaves out fields");
  }
  return std::optional<MountEntry>(ToEntry(answer));
}

Result<std::optional<MountOfFile>> FindMountOf(int fd, const KernelFeatures& features) {
  if (!features.statmount) {
    ASSIGN_OR_RETURN(const uint64_t id, MountIdOf(fd, STATX_MNT_ID));
    ASSIGN_OR_RETURN(const std::optional<MountEntry> entry, FindInTable(id));
    if (!entry) return std::optional<MountOfFile>();
    MountOfFile found{entry->mount_point, false};
    for (const std::string& field : entry->propagation) {
      if (StripPrefix(field, "shared:")) found.shared = true;
    }
    return std::optional<MountOfFile>(std::move(found));
  }
  ASSIGN_OR_RETURN(const uint64_t id, MountIdOf(fd, kStatxUniqueMountId));
  Answer answer;
  ASSIGN_OR_RETURN(const bool found, answer.Ask(0, id, kMountBasic | kMountPoint));
  if (!found || !answer.Has(kMountPoint)) return std::optional<MountOfFile>();
  return std::optional<MountOfFile>(MountOfFile{answer.Text(kMountPoint, answer->mnt_point),
                                                (answer->mnt_propagation & MS_SHARED) != 0});
}

Result<std::optional<MountEntry>> FindMountEntryOf(int fd, const KernelFeatures& features) {
  if (features.statmount) {
    ASSIGN_OR_RETURN(const uint64_t id, MountIdOf(fd, kStatxUniqueMountId));
    Answer answer;
    ASSIGN_OR_RETURN(const bool found, answer.Ask(0, id, kWholeEntry));
    if (!found || !answer.Has(kMountPoint)) return std::optional<MountEntry>();
    if (answer.Has(kAlwaysThere | kSuperSource)) return std::optional<MountEntry>(ToEntry(answer));
  }
  ASSIGN_OR_RETURN(const uint64_t id, MountIdOf(fd, STATX_MNT_ID));
  return FindInTable(id);
}

}  // namespace volumed
