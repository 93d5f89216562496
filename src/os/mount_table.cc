#include "os/mount_table.h"

#include <fcntl.h>
#include <libmount/libmount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

namespace volumed {
namespace {

// Not /proc/self: a thread may have a mount namespace of its own.
constexpr char kMountInfo[] = "/proc/thread-self/mountinfo";

struct TableDeleter {
  void operator()(libmnt_table* table) const { mnt_unref_table(table); }
};
struct IterDeleter {
  void operator()(libmnt_iter* iter) const { mnt_free_iter(iter); }
};
struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

std::string OrEmpty(const char* text) { return text != nullptr ? text : ""; }

std::vector<std::string> Split(const char* text, char separator) {
  std::vector<std::string> parts;
  if (text == nullptr) return parts;
  while (true) {
    const char* end = std::strchr(text, separator);
    if (end == nullptr) end = text + std::strlen(text);
    if (end != text) parts.emplace_back(text, end);
    if (*end == '\0') return parts;
    text = end + 1;
  }
}

MountEntry ToEntry(libmnt_fs* fs) {
  MountEntry entry;
  entry.mount_id = static_cast<uint64_t>(mnt_fs_get_id(fs));
  entry.parent_id = static_cast<uint64_t>(mnt_fs_get_parent_id(fs));
  const dev_t device = mnt_fs_get_devno(fs);
  entry.device_major = major(device);
  entry.device_minor = minor(device);
  entry.root = OrEmpty(mnt_fs_get_root(fs));
  entry.mount_point = OrEmpty(mnt_fs_get_target(fs));
  entry.options = Split(mnt_fs_get_vfs_options(fs), ',');
  entry.propagation = Split(mnt_fs_get_optional_fields(fs), ' ');
  entry.fs_type = OrEmpty(mnt_fs_get_fstype(fs));
  entry.source = OrEmpty(mnt_fs_get_source(fs));
  entry.super_options = Split(mnt_fs_get_fs_options(fs), ',');
  return entry;
}

// libmount would skip a line that it cannot read: a mount that is overlooked may be deleted
// through.
int RefuseLine(libmnt_table* table, const char*, int line) {
  *static_cast<int*>(mnt_table_get_userdata(table)) = line;
  return -EINVAL;
}

bool SameContent(const MountEntry& a, const MountEntry& b) {
  return a.parent_id == b.parent_id && a.device_major == b.device_major &&
         a.device_minor == b.device_minor && a.root == b.root && a.mount_point == b.mount_point &&
         a.options == b.options && a.propagation == b.propagation && a.fs_type == b.fs_type &&
         a.source == b.source && a.super_options == b.super_options;
}

}  // namespace

Result<std::vector<MountEntry>> ParseMountTable(std::FILE* stream, const std::string& name) {
  std::unique_ptr<libmnt_table, TableDeleter> table(mnt_new_table());
  std::unique_ptr<libmnt_iter, IterDeleter> iter(mnt_new_iter(MNT_ITER_FORWARD));
  if (table == nullptr || iter == nullptr) {
    return Error::FromErrno(ENOMEM, "read " + name, Outcome::kNotApplied);
  }
  int bad_line = 0;
  mnt_table_set_userdata(table.get(), &bad_line);
  mnt_table_set_parser_errcb(table.get(), RefuseLine);
  const int rc = mnt_table_parse_stream(table.get(), stream, name.c_str());
  if (bad_line != 0) {
    return Error::NotApplied(Code::kDataLoss,
                             name + ": line " + std::to_string(bad_line) + " is malformed");
  }
  if (rc != 0) {
    return Error::FromErrno(rc < 0 ? -rc : EIO, "read " + name, Outcome::kNotApplied);
  }
  std::vector<MountEntry> entries;
  entries.reserve(static_cast<size_t>(std::max(0, mnt_table_get_nents(table.get()))));
  libmnt_fs* fs = nullptr;
  while (mnt_table_next_fs(table.get(), iter.get(), &fs) == 0) entries.push_back(ToEntry(fs));
  return entries;
}

Result<std::vector<MountEntry>> ReadMountTable() {
  std::unique_ptr<std::FILE, FileCloser> stream(std::fopen(kMountInfo, "re"));
  if (stream == nullptr) {
    return Error::FromErrno(errno, std::string("open ") + kMountInfo, Outcome::kNotApplied);
  }
  return ParseMountTable(stream.get(), kMountInfo);
}

Status CheckRootIsMounted() {
  struct statx root = {};
  if (::statx(AT_FDCWD, "/", AT_STATX_DONT_SYNC, STATX_MNT_ID, &root) != 0) {
    return Error::FromErrno(errno, "look at /", Outcome::kNotApplied);
  }
  if ((root.stx_mask & STATX_MNT_ID) == 0) return OkStatus();
  ASSIGN_OR_RETURN(const std::vector<MountEntry> entries, ReadMountTable());
  const bool is_there = std::any_of(entries.begin(), entries.end(), [&](const MountEntry& entry) {
    return entry.mount_id == root.stx_mnt_id;
  });
  if (is_there) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition,
                           "/ is a directory of a mount that " + std::string(kMountInfo) +
                               " does not have, as after a chroot: what is mounted where cannot be "
                               "told; make it a mount point (mount --bind DIR DIR) before that");
}

MountSnapshot::MountSnapshot(std::vector<MountEntry> entries) : entries_(std::move(entries)) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    places_.Put(i, PlaceOf(entries_[i]));
    by_id_[entries_[i].mount_id] = i;
  }
}

// Where the directories above are bound over themselves in a shared mount, each mount is there
// twice: once upon what a look-up passes, and once, by propagation and with a later id, below that.
const MountEntry* MountSnapshot::FindTop(const std::string& mount_point) const {
  const std::vector<uint64_t> there = places_.At(mount_point);
  if (there.size() > 1) {
    const MountEntry* const covering = FindCovering(mount_point);
    if (covering != nullptr && covering->mount_point == mount_point) return covering;
  }
  return TopOf(there);
}

const MountEntry* MountSnapshot::TopOf(const std::vector<uint64_t>& stack) const {
  // Mostly the last one. But a mount that was moved here lies on others that are newer than it.
  for (auto at = stack.rbegin(); at != stack.rend(); ++at) {
    const MountEntry& entry = entries_[*at];
    const bool covered = std::any_of(stack.begin(), stack.end(), [&](uint64_t other) {
      return other != *at && entries_[other].parent_id == entry.mount_id;
    });
    if (!covered) return &entry;
  }
  return nullptr;
}

const MountEntry* MountSnapshot::FindById(uint64_t mount_id) const {
  const auto found = by_id_.find(mount_id);
  return found == by_id_.end() ? nullptr : &entries_[found->second];
}

std::vector<uint64_t> MountSnapshot::StackUpon(const MountEntry* below,
                                               const std::string& mount_point) const {
  std::vector<uint64_t> stack;
  std::set<uint64_t> reached;
  const auto lies_upon = [&](const MountEntry& entry) {
    const bool is_first = below != nullptr ? entry.parent_id == below->mount_id
                                           : FindById(entry.parent_id) == nullptr;
    return is_first || reached.contains(entry.parent_id);
  };
  const std::vector<uint64_t> there = places_.At(mount_point);
  for (bool grows = true; grows;) {
    grows = false;
    for (const uint64_t position : there) {
      const MountEntry& entry = entries_[position];
      if (!lies_upon(entry) || !reached.insert(entry.mount_id).second) continue;
      stack.push_back(position);
      grows = true;
    }
  }
  std::sort(stack.begin(), stack.end());
  return stack;
}

const MountEntry* MountSnapshot::FindRoot() const {
  const std::vector<uint64_t> stack = places_.At("/");
  for (const uint64_t position : stack) {
    const MountEntry* const below = FindById(entries_[position].parent_id);
    const bool lies_upon = below != nullptr && below->mount_point == "/" &&
                           below->mount_id != entries_[position].mount_id;
    if (!lies_upon) return &entries_[position];
  }
  return nullptr;
}

// As the kernel walks: what is mounted at a part of the path hides the mounts that lie deeper on
// the one that it covers, however long their paths are.
const MountEntry* MountSnapshot::FindCovering(const std::string& path) const {
  const MountEntry* covering = FindRoot();
  for (size_t end = path.find('/', 1); path != "/"; end = path.find('/', end + 1)) {
    const MountEntry* const upon = TopOf(StackUpon(covering, path.substr(0, end)));
    if (upon != nullptr) covering = upon;
    if (end == std::string::npos) break;
  }
  return covering;
}

std::vector<MountEntry> MountSnapshot::Find(const ListMounts& question) const {
  std::vector<MountEntry> found;
  for (const uint64_t position : places_.Find(question)) found.push_back(entries_[position]);
  return found;
}

MountTableChange DiffMounts(const MountSnapshot& before, const MountSnapshot& after) {
  MountTableChange change;
  for (const MountEntry& entry : after.entries()) {
    const MountEntry* old = before.FindById(entry.mount_id);
    if (old == nullptr) {
      change.added.push_back(entry);
    } else if (old->device_major != entry.device_major || old->device_minor != entry.device_minor ||
               old->root != entry.root) {
      // The kernel gives a freed mount id to the next mount: this is another mount.
      change.removed.push_back(*old);
      change.added.push_back(entry);
    } else if (!SameContent(*old, entry)) {
      change.changed.push_back(entry);
    }
  }
  for (const MountEntry& entry : before.entries()) {
    if (after.FindById(entry.mount_id) == nullptr) change.removed.push_back(entry);
  }
  return change;
}

}  // namespace volumed
