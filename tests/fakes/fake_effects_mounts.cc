// The mounting requests of FakeEffects.
#include <sys/mount.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <set>

#include "fakes/fake_effects.h"
#include "os/mount_options.h"
#include "os/mount_places.h"

namespace volumed {
namespace {

// Types that a node's kernel has without a helper.
const std::set<std::string>& MountableTypes() {
  static const std::set<std::string> types = {"tmpfs", "ext2",  "ext3",     "ext4",
                                              "xfs",   "btrfs", "hugetlbfs"};
  return types;
}

// "512k", "1048576", "4m"; not percentages. Source: Linux lib/cmdline.c (memparse).
std::optional<uint64_t> ParseSize(const std::string& text) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  char* end = nullptr;
  uint64_t value = std::strtoull(text.c_str(), &end, 0);
  const std::string unit(end);
  if (unit.empty()) return value;
  if (unit == "k" || unit == "K") return value << 10;
  if (unit == "m" || unit == "M") return value << 20;
  if (unit == "g" || unit == "G") return value << 30;
  return std::nullopt;
}

std::optional<uint32_t> ParseNumber(const std::string& text, int base) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  char* end = nullptr;
  const unsigned long value = std::strtoul(text.c_str(), &end, base);
  if (*end != '\0') return std::nullopt;
  return static_cast<uint32_t>(value);
}

// The page size of a hugetlbfs; this machine has pages of 2 MiB and of 1 GiB. 0: EINVAL.
uint64_t HugePageBytes(const std::vector<SuperParameter>& parameters) {
  uint64_t bytes = uint64_t{2} << 20;
  for (const SuperParameter& parameter : parameters) {
    if (parameter.key == "pagesize") bytes = ParseSize(parameter.value).value_or(0);
  }
  return bytes == (uint64_t{2} << 20) || bytes == (uint64_t{1} << 30) ? bytes : 0;
}

// The parameters of a tmpfs that tests use. Source: tmpfs(5).
struct TmpfsParameters {
  std::optional<uint64_t> pages;
  std::optional<uint64_t> inodes;
  std::optional<uint32_t> mode;
  std::optional<uint32_t> uid;
  std::optional<uint32_t> gid;
  bool noswap = false;
};

int ParseTmpfs(const std::vector<SuperParameter>& parameters, TmpfsParameters* parsed) {
  for (const SuperParameter& parameter : parameters) {
    if (parameter.key == "noswap" && parameter.is_flag) {
      parsed->noswap = true;
      continue;
    }
    if (parameter.is_flag) return EINVAL;
    bool good = false;
    if (parameter.key == "size") {
      const std::optional<uint64_t> size = ParseSize(parameter.value);
      if (size) parsed->pages = (*size + 4095) / 4096;
      good = size.has_value();
    } else if (parameter.key == "nr_inodes") {
      parsed->inodes = ParseSize(parameter.value);
      good = parsed->inodes.has_value();
    } else if (parameter.key == "mode") {
      parsed->mode = ParseNumber(parameter.value, 8);
      good = parsed->mode.has_value();
    } else if (parameter.key == "uid") {
      parsed->uid = ParseNumber(parameter.value, 10);
      good = parsed->uid.has_value();
    } else if (parameter.key == "gid") {
      parsed->gid = ParseNumber(parameter.value, 10);
      good = parsed->gid.has_value();
    }
    if (!good) return EINVAL;
  }
  return 0;
}

bool AsksNoswap(const MountOptions& options) {
  return std::any_of(options.parameters.begin(), options.parameters.end(),
                     [](const SuperParameter& p) { return p.key == "noswap"; });
}

}  // namespace

// Attaches a detached tree as move_mount(2) does, or as mount(2) does where `by_tree` is not set.
Status FakeEffects::AttachTree(uint64_t tree, FakeLocation target, bool by_tree,
                               const std::string& what) {
  const uint64_t root = vfs_.GetMount(tree).root;
  const bool directory = vfs_.InodeAt({tree, root}).type == FileType::kDirectory;
  const FileType target_type = vfs_.InodeAt(target).type;
  int error = 0;
  const bool kinds_differ = directory != (target_type == FileType::kDirectory);
  // mount(2) looks at the place first; move_mount(2) looks at the kinds first in Linux 6.18, and at
  // the place in 6.1. Source: Linux fs/namespace.c (do_loopback, do_move_mount).
  if (kinds_differ && (by_tree || !vfs_.IsDeleted(target))) {
    error = by_tree ? EINVAL : ENOTDIR;
    vfs_.DropDetached(tree);
  } else {
    error = vfs_.Attach(tree, target);
  }
  if (error != 0) return Error::FromErrno(error, what, Outcome::kNotApplied);
  return OkStatus();
}

Result<uint64_t> FakeEffects::FilesystemOfExport(const Mount& request, const std::string& what) {
  FakeLocation helper;
  FakeWalk walk;
  walk.follow_last = true;
  const bool is_nfs = request.fs_type == "nfs" || request.fs_type == "nfs4";
  if (!is_nfs || vfs_.WalkAbsolute("/sbin/mount." + request.fs_type, walk, &helper) != 0) {
    return uint64_t{0};
  }
  const auto found = state_.devices.exports.find(request.source);
  if (found != state_.devices.exports.end()) return found->second;
  return Error::NotApplied(Code::kUnknown, what + ": the mount helper ended with status 32: " +
                                               "access denied by server while mounting");
}

Result<Done> FakeEffects::operator()(const Mount& request) {
  const std::string what = "mount " + request.fs_type + " on " + request.target.Display();
  if (request.fs_type.empty()) {
    return Error::NotApplied(Code::kInvalidArgument, what + ": no filesystem type is given");
  }
  ASSIGN_OR_RETURN(const MountOptions options, ParseMountOptions(request.options));
  if (request.fs_type == "tmpfs" && !state_.features.tmpfs_noswap && AsksNoswap(options)) {
    return Error::NotApplied(Code::kUnimplemented, what + ": this kernel has no tmpfs-noswap");
  }
  ASSIGN_OR_RETURN(const FakeLocation target, Open(request.target));
  ASSIGN_OR_RETURN(const uint64_t exported, FilesystemOfExport(request, what));
  if (exported == 0 && MountableTypes().count(request.fs_type) == 0) {
    return Error::FromErrno(ENODEV, what, Outcome::kNotApplied);
  }
  TmpfsParameters parameters;
  if (request.fs_type == "tmpfs") {
    if (const int error = ParseTmpfs(options.parameters, &parameters)) {
      return Error::FromErrno(error, what, Outcome::kNotApplied);
    }
  }
  const bool huge = request.fs_type == "hugetlbfs";
  const uint64_t huge_page_bytes = huge ? HugePageBytes(options.parameters) : 0;
  if (huge && huge_page_bytes == 0) return Error::FromErrno(EINVAL, what, Outcome::kNotApplied);
  uint64_t id = exported;
  if (id == 0) {
    ASSIGN_OR_RETURN(id, FilesystemOfDevice(request, options, what));
  }
  if (id == 0) id = vfs_.NewFilesystem(request.fs_type, request.source);
  FakeFilesystem& filesystem = vfs_.MutableFilesystem(id);
  // One mount's "ro" is not the other mounts' of an export.
  if (exported == 0) filesystem.read_only = (options.attributes & MOUNT_ATTR_RDONLY) != 0;
  if (parameters.pages) filesystem.max_pages = *parameters.pages;
  if (parameters.inodes) filesystem.max_inodes = *parameters.inodes;
  filesystem.shows_size = parameters.pages.has_value();
  filesystem.noswap = parameters.noswap;
  filesystem.huge_page_bytes = huge_page_bytes;
  const uint64_t mount = vfs_.NewMount(id, options.attributes);
  vfs_.InitRoot(mount, parameters.mode, parameters.uid, parameters.gid);
  RETURN_IF_ERROR(AttachTree(mount, target, true, what));
  return Done{};
}

// ---- bind ---------------------------------------------------------------------------------------

void FakeEffects::MakeAnchor() {
  FakeAnchor& anchor = state_.anchor;
  anchor.made = true;
  if (anchor.mount != 0 && vfs_.GetMount(anchor.mount).parent == 0) {
    vfs_.DropDetached(anchor.mount);
  }
  anchor.mount = 0;
  FakeWalk walk;
  walk.follow_last = true;
  walk.directory = true;
  FakeLocation root;
  if (vfs_.WalkAbsolute(state_.agent_root, walk, &root) != 0) return;
  const FakeLocation top = {root.mount, vfs_.GetMount(root.mount).root};
  anchor.cloned = root.mount;
  anchor.mount_point = vfs_.PathOf(top);
  FakeLocation seen;
  if (vfs_.WalkAbsolute(anchor.mount_point, walk, &seen) != 0 || seen.mount != root.mount) return;
  uint64_t clone = 0;
  if (state_.features.open_tree_detached_clone) {
    vfs_.CloneMount(top, false, false, &anchor.mount);
    return;
  }
  const int made = vfs_.MakeDirectory(root, ".bind-anchor", 0700);
  FakeLocation place;
  if ((made != 0 && made != EEXIST) || OpenChild(root, ".bind-anchor", false, &place) != 0) return;
  if (place.mount == root.mount) {
    vfs_.CloneMount(top, false, false, &clone);
    if (vfs_.Attach(clone, place) != 0) return;
    place = vfs_.FollowMounts(place);
  }
  vfs_.MakePrivate(place.mount);
  if (vfs_.SameInode(place, top)) anchor.mount = place.mount;
}

std::optional<FakeLocation> FakeEffects::FindInAnchor(const BindMount& request,
                                                      FakeLocation source) {
  FakeAnchor& anchor = state_.anchor;
  if (state_.agent_root.empty() || request.recursive) return std::nullopt;
  if (!anchor.made) MakeAnchor();
  if (anchor.mount == 0) return std::nullopt;
  if (source.mount != anchor.cloned) {
    FakeWalk walk;
    walk.follow_last = true;
    walk.directory = true;
    FakeLocation root;
    if (vfs_.WalkAbsolute(state_.agent_root, walk, &root) != 0) return std::nullopt;
    if (root.mount == anchor.cloned || root.mount != source.mount) return std::nullopt;
    MakeAnchor();
    if (anchor.mount == 0 || source.mount != anchor.cloned) return std::nullopt;
  }
  const std::string path = request.source.Display();
  const std::string prefix = anchor.mount_point == "/" ? "/" : anchor.mount_point + "/";
  std::string name;
  if (path != anchor.mount_point) {
    if (path.compare(0, prefix.size(), prefix) != 0) return std::nullopt;
    name = path.substr(prefix.size());
  }
  FakeLocation found = {anchor.mount, vfs_.GetMount(anchor.mount).root};
  if (!name.empty() && OpenChild(found, name, true, &found) != 0) return std::nullopt;
  if (!vfs_.SameInode(found, source)) return std::nullopt;
  return found;
}

Status FakeEffects::ExpectPart(FakeLocation source, const FilesystemPart& part) {
  for (const MountEntry& mount : vfs_.Table()) {
    if (mount.mount_id == source.mount && PlaceOf(mount).part == part) return OkStatus();
  }
  return Error::NotApplied(Code::kFailedPrecondition,
                           "what is to be bound is not mounted there any more");
}

Result<Done> FakeEffects::operator()(const BindMount& request) {
  const std::string what = "bind " + request.source.Display() + " on " + request.target.Display();
  const bool by_tree = state_.features.mount_setattr;
  if (request.recursive_read_only && !by_tree) {
    return Error::NotApplied(Code::kUnimplemented,
                             what + ": recursive read-only needs mount-setattr (Linux 5.12)");
  }
  ASSIGN_OR_RETURN(FakeLocation source, Open(request.source));
  ASSIGN_OR_RETURN(const FakeLocation target, Open(request.target));
  if (request.expected_device) {
    RETURN_IF_ERROR(ExpectDevice(source, request.source.Display(), *request.expected_device)
                        .With("bind on " + request.target.Display()));
  }
  if (request.expected.inode != 0) {
    RETURN_IF_ERROR(ExpectObject(source, request.expected).With(what));
  }
  if (request.expected_part) {
    RETURN_IF_ERROR(ExpectPart(source, *request.expected_part).With(what));
  }
  if (by_tree) source = FindInAnchor(request, source).value_or(source);
  uint64_t tree = 0;
  if (const int error = vfs_.CloneMount(source, request.recursive, true, &tree)) {
    return Error::FromErrno(error, what, Outcome::kNotApplied);
  }
  const bool read_only = request.read_only || request.recursive_read_only;
  if (read_only && by_tree) {
    vfs_.ChangeAttributes(tree, MOUNT_ATTR_RDONLY, 0, request.recursive_read_only);
  }
  RETURN_IF_ERROR(AttachTree(tree, target, by_tree, what));
  if (read_only && !by_tree) {
    // The older calls bind first and remount then: what has propagated to peers stays writable.
    vfs_.ChangeAttributes(tree, MOUNT_ATTR_RDONLY, 0, false);
  }
  return Done{};
}

// ---- remount, unmount, share --------------------------------------------------------------------

Status FakeEffects::Reconfigure(const Remount& request, FakeLocation target,
                                const std::string& what) {
  ASSIGN_OR_RETURN(const MountOptions options, ParseMountOptions(request.options));
  FakeFilesystem& filesystem = vfs_.MutableFilesystem(vfs_.InodeAt(target).filesystem);
  const auto refuse = [&what] { return Error::FromErrno(EINVAL, what, Outcome::kNotApplied); };
  if (filesystem.type != "tmpfs") return OkStatus();
  TmpfsParameters parameters;
  if (ParseTmpfs(options.parameters, &parameters) != 0) return refuse();
  // Source: Linux mm/shmem.c (shmem_reconfigure).
  const auto too_late = [](const std::optional<uint64_t>& limit, uint64_t now, uint64_t used) {
    return limit.value_or(0) != 0 && (now == 0 || used > *limit);
  };
  if (too_late(parameters.pages, filesystem.max_pages, filesystem.used_pages) ||
      too_late(parameters.inodes, filesystem.max_inodes, filesystem.used_inodes)) {
    return refuse();
  }
  if (parameters.noswap && !filesystem.noswap) return refuse();
  if (parameters.pages) {
    filesystem.max_pages = *parameters.pages;
    filesystem.shows_size = true;
  }
  if (parameters.inodes) filesystem.max_inodes = *parameters.inodes;
  return OkStatus();
}

Result<Done> FakeEffects::operator()(const Remount& request) {
  const std::string what = "remount " + request.target.Display();
  ASSIGN_OR_RETURN(const MountOptions options, ParseMountOptions(request.options));
  ASSIGN_OR_RETURN(const bool mounted, IsMountPoint(request.target));
  if (!mounted) {
    return Error::NotApplied(Code::kFailedPrecondition, what + ": not a mount point");
  }
  ASSIGN_OR_RETURN(const FakeLocation target, Open(request.target));
  if (!options.parameters.empty()) RETURN_IF_ERROR(Reconfigure(request, target, what));
  if (options.attributes == 0 && options.clear_attributes == 0 && !options.sets_atime) {
    return Done{};
  }
  uint64_t clear = options.clear_attributes;
  if (options.sets_atime) clear |= MOUNT_ATTR__ATIME;
  uint64_t set = options.attributes;
  const bool seen_read_only = !state_.features.mount_setattr && vfs_.FilesystemAt(target).read_only;
  if (seen_read_only && (clear & MOUNT_ATTR_RDONLY) == 0) set |= MOUNT_ATTR_RDONLY;
  vfs_.ChangeAttributes(target.mount, set, clear, false);
  return Done{};
}

Result<Changed> FakeEffects::operator()(const Unmount& request) {
  const Result<Parent> parent = OpenParent(request.target);
  if (!parent.ok()) {
    if (IsMissing(parent.error())) return Changed{false};
    return parent.error();
  }
  FakeLocation found;
  int error = OpenChild(parent->directory, parent->name, false, &found);
  if (error == ENOENT) return Changed{false};
  if (error == 0 && state_.devices.loop_files.contains(vfs_.PathOf(found))) error = EBUSY;
  if (error == 0 && vfs_.IsMountRoot(found) && HasOpenFile(found.mount)) error = EBUSY;
  if (error == 0) error = vfs_.Unmount(found);
  if (error == 0) return Changed{true};
  if (error == EINVAL) return Changed{false};
  return Error::FromErrno(error, "unmount " + request.target.Display(),
                          request.force ? Outcome::kMaybeApplied : Outcome::kNotApplied);
}

Result<Changed> FakeEffects::operator()(const MakeShared& request) {
  const std::string what = "make shared " + request.target.Display();
  ASSIGN_OR_RETURN(const bool mounted, IsMountPoint(request.target));
  ASSIGN_OR_RETURN(FakeLocation target, Open(request.target));
  if (vfs_.GetMount(target.mount).peer_group != 0) return Changed{false};
  if (!mounted) {
    uint64_t tree = 0;
    if (const int error = vfs_.CloneMount(target, true, true, &tree)) {
      return Error::FromErrno(error, what, Outcome::kNotApplied);
    }
    RETURN_IF_ERROR(AttachTree(tree, target, false, what));
    const Result<FakeLocation> again = Open(request.target);
    if (!again.ok()) return again.error().AsMaybeApplied();
    target = *again;
  }
  vfs_.Share(target.mount, true);
  return Changed{true};
}

}  // namespace volumed
