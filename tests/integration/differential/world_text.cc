#include "integration/differential/world_text.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <tuple>

#include "os/io_limits.h"

namespace volumed {
namespace {

constexpr size_t kMaxText = 200000;

std::string JoinWords(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

// Of the superblock's options only what FakeKernel keeps.
std::string SuperText(const MountEntry& entry) {
  std::string text;
  for (const std::string& option : entry.super_options) {
    const bool kept = option == "ro" || option == "rw" || option == "noswap" ||
                      option.compare(0, 5, "size=") == 0;
    if (kept) text += (text.empty() ? "" : ",") + option;
  }
  return text;
}

std::string Text(Done) { return "done"; }
std::string Text(Changed answer) { return answer.changed ? "changed" : "unchanged"; }
std::string Text(const FileInfo& info) {
  std::ostringstream text;
  text << FileTypeName(info.type) << " " << std::oct << info.mode << std::dec << " " << info.uid
       << ":" << info.gid << " " << info.size_bytes << " bytes in " << info.allocated_bytes
       << ", mount point " << info.is_mount_point << ", has ids " << (info.device != 0)
       << (info.inode != 0) << (info.device_number != 0 ? ", of a device" : "");
  return text.str();
}
std::string Text(const FsInfo& info) {
  std::ostringstream text;
  text << std::hex << info.fs_magic << std::dec << " " << info.capacity_bytes << " "
       << info.available_bytes << " " << info.used_bytes << " " << info.inodes << " "
       << info.inodes_free << " " << info.inodes_used;
  return text.str();
}
std::string Text(const UsageInfo& info) {
  return std::to_string(info.used_bytes) + " bytes " + std::to_string(info.inodes_used) + " inodes";
}
std::string Text(const OwnershipInfo& info) {
  return std::to_string(info.visited) + " visited " + std::to_string(info.changed) + " changed" +
         (info.skipped ? " skipped" : "");
}
std::string Text(const DirectoryListing& listing) {
  std::string text;
  for (const DirectoryEntry& entry : listing.entries) {
    text += entry.name + " (" + std::string(FileTypeName(entry.type)) + "), ";
  }
  return text;
}
std::string Text(const FileContent& content) { return "content " + content.bytes; }
std::string Text(const KernelFeatures& f) {
  std::ostringstream text;
  text << f.open_tree_detached_clone << f.mount_setattr << f.statmount << f.mount_events
       << f.fchmodat2 << f.tmpfs_noswap << f.grows_mounted_ext << f.fsopen;
  return text.str();
}
std::string Text(const DeviceProbe& probe) {
  return probe.fs_type + " " + probe.usage + " " + probe.partition_table + " " +
         probe.identity.uuid + (probe.blank ? " blank" : "") + (probe.read_only ? " ro" : "") +
         (probe.was_mounted ? " was mounted" : "") + (probe.unfinished ? " unfinished" : "") +
         (probe.read_whole ? " whole" : "") + (probe.duplicate.empty() ? "" : " duplicate");
}
std::string Text(const FilesystemCheck& check) {
  return std::string(CheckResultName(check.result)) + " " + std::to_string(check.exit_code);
}
std::string Text(const DeviceUsers& use) {
  std::string text = use.present ? (use.in_use ? "in use" : "free") : "not there";
  for (const std::string& holder : use.holders) text += " " + holder;
  return text;
}
std::string Text(const ProgramEnd& end) {
  return "ended with " + std::to_string(end.exit_status) + " " + end.output;
}

std::string Text(const IdentifiedDevice& device) {
  const DeviceIdentity& identity = device.facts.identity;
  return std::to_string(identity.size_bytes) + " bytes" +
         (identity.disk_sequence != 0 ? " and a sequence" : "") + (device.read_only ? " ro" : "") +
         (device.pin ? " pinned" : "") + identity.uuid + device.facts.wwid + device.facts.serial;
}
std::string Text(const AttachedLoop& loop) {
  return Text(loop.device) + (loop.direct_io ? " direct" : " cached") +
         (loop.changed ? " changed" : " unchanged");
}
// Without the places, which differ between the worlds.
std::string Text(const LoopList& list) {
  std::string text = std::to_string(list.loops.size()) + " loops";
  for (const LoopEntry& loop : list.loops) {
    text += " [" + loop.file.substr(loop.file.rfind('/') + 1) + (loop.deleted ? " deleted " : " ") +
            std::to_string(loop.size_bytes) + " in blocks of " + std::to_string(loop.block_size) +
            (loop.read_only ? " ro" : "") + (loop.direct_io ? " direct]" : " cached]");
  }
  return text;
}
// A disk's filesystem counts what it needs to find the blocks of a file too.
std::string Text(const FileExtent& extent) {
  const char* allocated = extent.allocated_bytes == 0                  ? " without blocks"
                          : extent.allocated_bytes < extent.size_bytes ? " with holes"
                                                                       : " allocated";
  return std::to_string(extent.size_bytes) + " bytes" + allocated +
         (extent.changed ? " changed" : " unchanged") + (extent.object.inode != 0 ? " inode" : "") +
         (extent.object.handle.empty() ? "" : " handle");
}
// Where the bytes lie, and in how many pieces, is each world's own.
std::string Text(const ExtentList& list) {
  return std::string(list.runs.empty() ? "no extents" : "extents") + (list.done ? " done" : "");
}
std::string Text(const FrozenCut& cut) {
  std::string text = "cut:";
  for (const FileExtent& file : cut.files) text += " " + Text(file);
  return text;
}
std::string Text(const FilesystemName& name) {
  return name.fs_type + " " + name.uuid + (name.changed ? " changed" : " unchanged");
}
// How much the filesystem keeps for it is each world's own, and so are the numbers of accounts.
std::string Text(const TreeQuota& quota) {
  constexpr const char* kKinds[] = {"no account", "project", "qgroup"};
  return std::string(kKinds[static_cast<size_t>(quota.kind)]) + " at most " +
         std::to_string(quota.limit_bytes) + " bytes, " + std::to_string(quota.limit_inodes) +
         " inodes";
}
// Likewise how much it has.
std::string Text(const TreeCopied& copied) {
  return copied.shares_blocks ? "copied with shared blocks" : "copied";
}
std::string Text(const CgroupIoLimits& limits) {
  const std::string alone = limits.is_each_alone ? " each alone " : " ";
  return limits.cgroup + alone + IoMaxLine("", limits.limits) +
         (limits.changed ? " changed" : " unchanged");
}
std::string Text(const FileLock& lock) { return lock.pin ? "locked" : "without a lock"; }
// Of the keys what lies in the world: above it, and in numbers, the two worlds differ.
std::string KeysText(const std::vector<std::string>& keys) {
  std::string text;
  std::set<std::string> shown;
  for (const std::string& key : keys) {
    const size_t world = (key + "/").find("/w/");
    if (world != std::string::npos) shown.insert(key.substr(world));
  }
  for (const std::string& key : shown) text += " " + key;
  return text;
}
std::string Text(const StorageIdentity& identity) {
  const StorageObject& object = identity.object;
  return std::string(FileTypeName(identity.type)) + KeysText(identity.own) + " in" +
         KeysText(identity.within) + (object.inode != 0 ? " inode" : "") +
         (object.handle.empty() ? "" : " handle") + " owner " + identity.owner + " users " +
         JoinWords(identity.users);
}
std::string Text(const FilesystemGrowth& growth) {
  return growth.fs_type + " " + std::to_string(growth.device_bytes) + " " +
         std::to_string(growth.before_bytes) + " to " + std::to_string(growth.after_bytes) +
         (growth.fills_device ? " fills" : "") + (growth.has_errors ? " errors" : "") + " " +
         growth.tool;
}

std::string Text(const EnsuredVolume& made) {
  return std::string(made.changed ? "changed" : "unchanged") +
         (made.owned_made_ns ? ", owned when made" : "") +
         (made.owned_filled_ns ? ", owned when filled" : "");
}
std::string Text(const BatchAnswer& answer) {
  std::string text = "batch:";
  for (const BatchItemAnswer& item : answer.items) text += " [" + ResultText(item.result, "") + "]";
  return text;
}

}  // namespace

std::string ResultText(const Result<AnyAnswer>& result, const std::string& below) {
  if (!result.ok()) {
    const Error& error = result.error();
    return std::string(CodeName(error.code())) + " (" + std::string(OutcomeName(error.outcome())) +
           ", " + ErrnoName(error.sys_errno()) + ")";
  }
  return Normalised(std::visit(
      [&below](const auto& answer) {
        if constexpr (requires { answer.mounts; }) {
          return MountsText(answer.mounts, below);
        } else {
          return Text(answer);
        }
      },
      *result));
}

std::string MountsText(const std::vector<MountEntry>& mounts, const std::string& below) {
  const auto is_inside = [&below](const MountEntry& entry) {
    return entry.mount_point == below ||
           entry.mount_point.compare(0, below.size() + 1, below + "/") == 0;
  };
  std::map<uint64_t, const MountEntry*> by_id;
  for (const MountEntry& entry : mounts) {
    if (is_inside(entry)) by_id[entry.mount_id] = &entry;
  }
  const auto depth = [&by_id](const MountEntry* entry) {
    int count = 0;
    for (auto up = by_id.find(entry->parent_id); up != by_id.end() && count < 1000;
         up = by_id.find(up->second->parent_id)) {
      ++count;
    }
    return count;
  };
  struct Line {
    std::string point;
    int depth;
    std::string text;
    const MountEntry* entry;
  };
  std::vector<Line> lines;
  for (const MountEntry& entry : mounts) {
    if (!is_inside(entry)) continue;
    lines.push_back({Normalised(entry.mount_point), depth(&entry),
                     Normalised(entry.fs_type + " " + entry.source + " " + entry.root + " " +
                                JoinWords(entry.options) + " " + SuperText(entry)),
                     &entry});
  }
  std::sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) {
    return std::tie(a.point, a.depth, a.text) < std::tie(b.point, b.depth, b.text);
  });
  std::map<std::string, size_t> groups;
  std::string text;
  for (const Line& line : lines) {
    text += line.point + " @" + std::to_string(line.depth) + " " + line.text;
    for (const std::string& field : line.entry->propagation) {
      const size_t group = groups.emplace(field, groups.size() + 1).first->second;
      text += " " + field.substr(0, field.find(':')) + ":" + std::to_string(group);
    }
    text += "\n";
  }
  return text;
}

namespace {

FileType TypeOf(mode_t mode) {
  if (S_ISREG(mode)) return FileType::kRegular;
  if (S_ISDIR(mode)) return FileType::kDirectory;
  if (S_ISLNK(mode)) return FileType::kSymlink;
  if (S_ISSOCK(mode)) return FileType::kSocket;
  if (S_ISFIFO(mode)) return FileType::kFifo;
  return S_ISCHR(mode) ? FileType::kCharDevice : FileType::kBlockDevice;
}

void RealTreeBelow(const std::string& path, std::string* text) {
  if (text->size() > kMaxText) return;
  struct statx stat = {};
  if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &stat) != 0) {
    *text += path + " cannot be looked at\n";
    return;
  }
  char mode[16];
  std::snprintf(mode, sizeof(mode), "%04o", stat.stx_mode & 07777u);
  const FileType type = TypeOf(stat.stx_mode);
  *text += path + " " + std::string(FileTypeName(type)) + " " + mode + " " +
           std::to_string(stat.stx_uid) + ":" + std::to_string(stat.stx_gid);
  if (type == FileType::kSymlink) {
    char target[PATH_MAX];
    const ssize_t size = ::readlink(path.c_str(), target, sizeof(target));
    *text += " -> " + std::string(target, size > 0 ? static_cast<size_t>(size) : 0);
  }
  if (type == FileType::kRegular) {
    std::ifstream file(path, std::ios::binary);
    const std::string content((std::istreambuf_iterator<char>(file)),
                              std::istreambuf_iterator<char>());
    *text += " " + std::to_string(content.size()) + " bytes #" +
             std::to_string(std::hash<std::string>()(content) % 1000000007u);
  }
  if ((stat.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0) *text += " mounted";
  char owner[256];
  const ssize_t owner_size =
      type == FileType::kDirectory
          ? ::getxattr(path.c_str(), "trusted.volumed.owner", owner, sizeof(owner))
          : -1;
  if (owner_size > 0) {
    *text += " storage of " + std::string(owner, static_cast<size_t>(owner_size));
  }
  *text += "\n";
  if (type != FileType::kDirectory) return;
  std::vector<std::string> names;
  if (DIR* directory = ::opendir(path.c_str())) {
    while (const dirent* entry = ::readdir(directory)) names.emplace_back(entry->d_name);
    ::closedir(directory);
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (name != "." && name != "..") RealTreeBelow(path + "/" + name, text);
  }
}

}  // namespace

std::string RealTreeText(const std::string& root) {
  std::string text;
  RealTreeBelow(root, &text);
  return text;
}

std::string SortedLines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  std::string sorted;
  for (const std::string& line : lines) sorted += line + "\n";
  return sorted;
}

std::string Normalised(const std::string& text) {
  constexpr char kShape[] = "..dddd_dd_dd_dd_dd_dd.";
  constexpr size_t kLength = sizeof(kShape) - 1;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::string result;
  for (size_t i = 0; i < text.size();) {
    size_t matched = 0;
    while (matched < kLength && i + matched < text.size() &&
           (kShape[matched] == 'd' ? is_digit(text[i + matched])
                                   : text[i + matched] == kShape[matched])) {
      ++matched;
    }
    if (matched < kLength) {
      result += text[i++];
      continue;
    }
    result += "..<version>";
    for (i += kLength; i < text.size() && is_digit(text[i]); ++i) {
    }
  }
  // Trees of mounts can grow without bound; both sides are cut at the same place.
  if (result.size() > kMaxText / 2) result.resize(kMaxText / 2);
  return result;
}

}  // namespace volumed
