// The requests of FakeEffects that walk a tree.
#include <cerrno>

#include "fakes/fake_effects.h"

namespace volumed {
namespace {

constexpr uint32_t kSetGidBit = 02000;

}  // namespace

// ---- RemoveTree ---------------------------------------------------------------------------------

bool FakeEffects::UnlinkName(FakeLocation directory, const std::string& name, bool is_directory,
                             Removal* removal) {
  const int error =
      is_directory ? vfs_.RemoveDirectory(directory, name) : vfs_.Unlink(directory, name);
  if (error == 0) removal->changed = true;
  if (error == 0 || error == ENOENT) return false;
  FakeLocation found;
  if (error == EBUSY && OpenChild(directory, name, true, &found) == EXDEV) {
    removal->met_mount = true;
  } else if (!removal->failure) {
    removal->failure = Error::FromErrno(error, "remove " + name, Outcome::kNotApplied);
  }
  return true;
}

bool FakeEffects::RemoveName(FakeLocation directory, const std::string& name, bool top,
                             Removal* removal) {
  FakeLocation there;
  if (!top && vfs_.LookupCovered(directory, name, &there) == 0 &&
      vfs_.InodeAt(there).type != FileType::kDirectory) {
    return UnlinkName(directory, name, false, removal);
  }
  const int error = OpenChild(directory, name, true, &there);
  if (error == ENOENT) return false;
  if (error == EXDEV) {
    removal->met_mount = true;
    return true;
  }
  if (error != 0) {
    removal->failure = Error::FromErrno(error, "remove " + name, Outcome::kNotApplied);
    return true;
  }
  if (vfs_.InodeAt(there).type != FileType::kDirectory) {
    return UnlinkName(directory, name, false, removal);
  }
  if (!top) vfs_.MakeSubvolumeWritable(there);
  bool stays = false;
  const std::map<std::string, uint64_t> children = vfs_.InodeAt(there).children;
  for (const auto& [child, dentry] : children) {
    if (RemoveName(there, child, false, removal)) stays = true;
  }
  return stays || UnlinkName(directory, name, true, removal);
}

Result<Changed> FakeEffects::RemoveAt(FakeLocation directory, const std::string& name,
                                      const std::string& what) {
  Removal removal;
  RemoveName(directory, name, true, &removal);
  return AnswerOf(removal, what);
}

Result<Changed> FakeEffects::AnswerOf(const Removal& removal, const std::string& what) {
  const Outcome outcome = removal.changed ? Outcome::kMaybeApplied : Outcome::kNotApplied;
  if (removal.met_mount) {
    return Error::FromParts(Code::kFailedPrecondition, outcome, EBUSY,
                            what + ": a mount point is in the way");
  }
  if (removal.failure) {
    return removal.changed ? removal.failure->AsMaybeApplied() : *removal.failure;
  }
  return Changed{removal.changed};
}

Result<Changed> FakeEffects::RemoveContent(const RemoveTree& request) {
  const std::string what = "empty " + request.path.Display();
  ASSIGN_OR_RETURN(const FakeLocation there, Open(request.path, {false, true}));
  if (request.expected.inode != 0) {
    RETURN_IF_ERROR(ExpectObject(there, request.expected).With(what));
  }
  Removal removal;
  const std::map<std::string, uint64_t> children = vfs_.InodeAt(there).children;
  for (const auto& [child, dentry] : children) RemoveName(there, child, false, &removal);
  return AnswerOf(removal, what);
}

Result<Changed> FakeEffects::RemoveExpected(const RemoveTree& request) {
  const std::string what = "remove " + request.path.Display();
  const auto refused = [&what](const std::string& why) {
    return Error::NotApplied(Code::kFailedPrecondition, what + ": " + why);
  };
  const Result<Parent> parent = OpenParent(request.path);
  if (!parent.ok() && IsMissing(parent.error())) return refused("it is not there any more");
  if (!parent.ok()) return parent.error();
  FakeLocation there;
  const int error = OpenChild(parent->directory, parent->name, true, &there);
  if (error == ENOENT) return refused("it is not there any more");
  if (error == EXDEV) return refused("it is a mount point");
  if (error != 0 && error != ELOOP) return Error::FromErrno(error, what, Outcome::kNotApplied);
  if (error == ELOOP || vfs_.InodeAt(there).type != FileType::kDirectory) {
    return refused("it is no directory any more");
  }
  RETURN_IF_ERROR(ExpectObject(there, request.expected).With(what));
  return RemoveAt(parent->directory, parent->name, what);
}

Result<Changed> FakeEffects::operator()(const RemoveTree& request) {
  if (request.content_alone) return RemoveContent(request);
  if (request.expected.inode != 0) return RemoveExpected(request);
  const Result<Parent> parent = OpenParent(request.path);
  if (!parent.ok()) {
    if (IsMissing(parent.error())) return Changed{false};
    return parent.error();
  }
  return RemoveAt(parent->directory, parent->name, "remove " + request.path.Display());
}

// ---- Usage --------------------------------------------------------------------------------------

void FakeEffects::CountUsage(FakeLocation at, std::set<uint64_t>* seen, UsageInfo* info) const {
  const FakeInode& inode = vfs_.InodeAt(at);
  if (!seen->insert(inode.id).second) return;
  ++info->inodes_used;
  info->used_bytes += FakeVfs::AllocatedBytes(inode);
  for (const auto& [name, dentry] : inode.children) {
    const FakeLocation child = {at.mount, dentry};
    if (!vfs_.IsCovered(child)) CountUsage(child, seen, info);
  }
}

Result<UsageInfo> FakeEffects::operator()(const Usage& request) {
  ASSIGN_OR_RETURN(const FakeLocation root, Open(request.path));
  UsageInfo info;
  std::set<uint64_t> seen;
  CountUsage(root, &seen, &info);
  Progress(info.inodes_used);
  return info;
}

// ---- ChangeOwnership ----------------------------------------------------------------------------

Status FakeEffects::OwnEntry(FakeLocation at, const Group& wanted, OwnershipInfo* info) {
  ++info->visited;
  const FakeInode& inode = vfs_.InodeAt(at);
  const bool directory = inode.type == FileType::kDirectory;
  uint32_t mask = wanted.read_only ? 0440 : 0660;
  if (directory) mask |= kSetGidBit | 0110;
  if (inode.type == FileType::kSymlink) mask = 0;
  const uint32_t mode = inode.mode | mask;
  bool changed = false;
  if (inode.gid != wanted.gid) {
    if (const int error = vfs_.Chown(at, std::nullopt, wanted.gid)) {
      return Error::FromErrno(error, "change the group of " + vfs_.NameOf(at),
                              Outcome::kNotApplied);
    }
    changed = true;
  }
  if (vfs_.InodeAt(at).mode != mode) {
    if (const int error = vfs_.Chmod(at, mode)) {
      return Error::FromErrno(error, "change the mode of " + vfs_.NameOf(at), Outcome::kNotApplied);
    }
    changed = true;
  }
  if (changed) ++info->changed;
  return OkStatus();
}

Status FakeEffects::OwnTree(FakeLocation at, const Group& wanted, OwnershipInfo* info) {
  const std::map<std::string, uint64_t> children = vfs_.InodeAt(at).children;
  for (const auto& [name, dentry] : children) {
    const FakeLocation child = {at.mount, dentry};
    if (!vfs_.IsCovered(child)) RETURN_IF_ERROR(OwnTree(child, wanted, info));
  }
  return OwnEntry(at, wanted, info);
}

Status FakeEffects::OwnAll(FakeLocation at, const Group& wanted, const std::string& what,
                           OwnershipInfo* info) {
  const Status done = OwnTree(at, wanted, info);
  if (done.ok()) return done;
  const Error error = done.error().With(what);
  return info->changed != 0 ? error.AsMaybeApplied() : error;
}

Result<OwnershipInfo> FakeEffects::operator()(const ChangeOwnership& request) {
  ASSIGN_OR_RETURN(const FakeLocation root, Open(request.path));
  OwnershipInfo info;
  const FakeInode& inode = vfs_.InodeAt(root);
  if (request.on_root_mismatch && inode.type == FileType::kDirectory) {
    const uint32_t need = kSetGidBit | (request.read_only ? 0550u : 0770u);
    if (inode.gid == request.gid && (inode.mode & need) == need) {
      info.skipped = true;
      return info;
    }
  }
  const Group wanted = {request.gid, request.read_only};
  RETURN_IF_ERROR(OwnAll(root, wanted, "change ownership of " + request.path.Display(), &info));
  Progress(info.visited);
  return info;
}

}  // namespace volumed
