// The requests of FakeEffects that make subvolumes, and bound and count what a directory has.
#include <algorithm>
#include <cerrno>

#include "fakes/fake_effects.h"

namespace volumed {
namespace {

constexpr uint64_t kFirstSubvolume = 5;  // of a btrfs

bool IsBtrfs(const FakeFilesystem& filesystem) { return filesystem.type == "btrfs"; }

Error RefuseTree(const std::string& what, const std::string& why, Code code) {
  return Error::NotApplied(code, what + ": " + why);
}

}  // namespace

Status FakeEffects::CheckMade(const MakeSubvolume& request, FakeLocation there, uint64_t source,
                              const std::string& what) const {
  const FakeInode& inode = vfs_.InodeAt(there);
  const bool is_ours = request.of ? inode.snapshot_of == source : inode.children.empty();
  if (inode.is_subvolume && is_ours && inode.subvolume_read_only == request.read_only) {
    return OkStatus();
  }
  return RefuseTree(what, "something else is there", Code::kAlreadyExists);
}

Result<FileExtent> FakeEffects::operator()(const MakeSubvolume& request) {
  const std::string what = "make subvolume " + request.path.Display();
  if (request.read_only && !request.of) {
    return RefuseTree(what, "only a snapshot can be read-only", Code::kInvalidArgument);
  }
  ASSIGN_OR_RETURN(const Parent parent, OpenParent(request.path));
  if (!IsBtrfs(vfs_.FilesystemAt(parent.directory))) {
    return RefuseTree(what, "its filesystem is no btrfs", Code::kUnimplemented);
  }
  FakeLocation source;
  uint64_t account = 0;
  if (request.of) {
    ASSIGN_OR_RETURN(source, Open(*request.of, {false, true}));
    if (!vfs_.InodeAt(source).is_subvolume) {
      return RefuseTree(what, "it is no subvolume", Code::kFailedPrecondition);
    }
    if (request.expected.inode != 0) {
      RETURN_IF_ERROR(ExpectObject(source, request.expected).With(what));
    }
    account = vfs_.InodeAt(source).account;
  }
  int error = 0;
  if (request.of && vfs_.FilesystemAt(source).id != vfs_.FilesystemAt(parent.directory).id) {
    error = EXDEV;
  } else if (request.of) {
    error = vfs_.Snapshot(source, parent.directory, parent.name, request.read_only);
  } else {
    error = vfs_.MakeSubvolume(parent.directory, parent.name);
  }
  if (error != 0 && error != EEXIST) return Error::FromErrno(error, what, Outcome::kNotApplied);
  FakeLocation there;
  if (const int missing = OpenChild(parent.directory, parent.name, false, &there)) {
    return Error::FromErrno(missing, what, Outcome::kNotApplied);
  }
  if (error == EEXIST) RETURN_IF_ERROR(CheckMade(request, there, account, what));
  FileExtent answer;
  answer.object = ObjectAt(there);
  answer.changed = error == 0;
  return answer;
}

Result<Changed> FakeEffects::operator()(const RemoveSubvolume& request) {
  const std::string what = "remove subvolume " + request.path.Display();
  const Result<Parent> parent = OpenParent(request.path);
  if (!parent.ok() && IsMissing(parent.error())) return Changed{false};
  if (!parent.ok()) return parent.error();
  FakeLocation there;
  int error = OpenChild(parent->directory, parent->name, false, &there);
  if (error == ENOENT) return Changed{false};
  if (error == 0 && vfs_.InodeAt(there).type != FileType::kDirectory) error = ENOTDIR;
  if (error != 0) return Error::FromErrno(error, what, Outcome::kNotApplied);
  if (!vfs_.InodeAt(there).is_subvolume) {
    return RefuseTree(what, "it is no root of a subvolume", Code::kFailedPrecondition);
  }
  if (request.expected.inode != 0) {
    RETURN_IF_ERROR(ExpectObject(there, request.expected).With(what));
  }
  std::string mounted;
  error = vfs_.RemoveSubvolume(parent->directory, parent->name, &mounted);
  if (error == EBUSY) {
    return RefuseTree(what, "something of it, or in it, is mounted at " + mounted,
                      Code::kFailedPrecondition);
  }
  if (error != 0) return Error::FromErrno(error, what, Outcome::kNotApplied);
  return Changed{true};
}

// ---- quotas -------------------------------------------------------------------------------------

Result<TreeQuota> FakeEffects::QuotaAt(FakeLocation at, const std::string& what) const {
  const FakeFilesystem& filesystem = vfs_.FilesystemAt(at);
  const bool is_btrfs = IsBtrfs(filesystem);
  if (!is_btrfs && !filesystem.counts_trees) {
    return RefuseTree(what, "project quota is off", Code::kUnimplemented);
  }
  // The root of a btrfs is one, too.
  if (is_btrfs && !vfs_.InodeAt(at).is_subvolume && vfs_.PlaceOf(at) != "/") {
    return RefuseTree(what, "it is no root of a subvolume", Code::kUnimplemented);
  }
  TreeQuota quota;
  const uint64_t account = vfs_.InodeAt(at).account;
  if (!filesystem.counts_trees || (!is_btrfs && account == 0)) return quota;
  const FakeTreeLimit used = vfs_.UsageOf(filesystem.id, account);
  quota.kind = is_btrfs ? TreeQuotaKind::kQgroup : TreeQuotaKind::kProject;
  quota.id = is_btrfs && account == 0 ? kFirstSubvolume : account;
  quota.used_bytes = used.bytes;
  if (!is_btrfs) quota.used_inodes = used.inodes;
  const auto limit = filesystem.limits.find(account);
  if (limit == filesystem.limits.end()) return quota;
  quota.limit_bytes = limit->second.bytes;
  quota.limit_inodes = limit->second.inodes;
  return quota;
}

// As ProjectQuota::Set has it.
Result<uint64_t> FakeEffects::ProjectFor(const SetTreeQuota& request, FakeLocation there,
                                         const std::string& what) const {
  const uint64_t has = vfs_.InodeAt(there).account;
  const uint64_t project = request.project_id == 0 ? has : request.project_id;
  if (project == 0) return RefuseTree(what, "it is of no project", Code::kInvalidArgument);
  if (has != 0 && has != project) {
    return RefuseTree(what, "it is of another project", Code::kFailedPrecondition);
  }
  if (has == 0 && vfs_.UsageOf(vfs_.FilesystemAt(there).id, project).inodes != 0) {
    return RefuseTree(what, "the project has files already", Code::kAlreadyExists);
  }
  return project;
}

Result<TreeQuota> FakeEffects::operator()(const SetTreeQuota& request) {
  const std::string what = "set the quota of " + request.path.Display();
  if (request.bytes < 0 || request.inodes < 0) {
    return RefuseTree(what, "a limit is below zero", Code::kInvalidArgument);
  }
  ASSIGN_OR_RETURN(const FakeLocation there, Open(request.path, {false, true}));
  if (request.expected.inode != 0) {
    RETURN_IF_ERROR(ExpectObject(there, request.expected).With(what));
  }
  FakeFilesystem& filesystem = vfs_.MutableFilesystem(vfs_.FilesystemAt(there).id);
  uint64_t account = vfs_.InodeAt(there).account;
  if (IsBtrfs(filesystem)) {
    if (request.inodes != 0) {
      return RefuseTree(what, "btrfs does not count inodes", Code::kInvalidArgument);
    }
    if (request.limit_alone) {
      return RefuseTree(what, "btrfs has no projects", Code::kInvalidArgument);
    }
    RETURN_IF_ERROR(QuotaAt(there, what));
    filesystem.counts_trees = true;
  } else if (request.limit_alone) {
    if (request.project_id == 0) {
      return RefuseTree(what, "it is not said of which project", Code::kInvalidArgument);
    }
    RETURN_IF_ERROR(QuotaAt(there, what));
    account = request.project_id;
  } else {
    RETURN_IF_ERROR(QuotaAt(there, what));
    ASSIGN_OR_RETURN(account, ProjectFor(request, there, what));
    vfs_.SetAccount(there, account);
  }
  filesystem.limits[account] = {request.bytes, request.inodes};
  if (request.bytes == 0 && request.inodes == 0) filesystem.limits.erase(account);
  return QuotaAt(there, what);
}

Result<TreeQuota> FakeEffects::operator()(const ReadTreeQuota& request) {
  const std::string what = "read the quota of " + request.path.Display();
  ASSIGN_OR_RETURN(const FakeLocation there, Open(request.path, {false, true}));
  return QuotaAt(there, what);
}

}  // namespace volumed
