// The requests of FakeEffects that give a whole directory another place, or copy it.
#include <cerrno>
#include <cstdint>
#include <set>

#include "fakes/fake_effects.h"

namespace volumed {

Result<Changed> FakeEffects::operator()(const MoveDirectory& request) {
  const std::string what = "move " + request.from.Display() + " to " + request.to.Display();
  const auto failed = [&what](int error) {
    return Error::FromErrno(error, what, Outcome::kNotApplied);
  };
  if (request.expected.inode == 0) {
    return Refuse(what, "it is not said which directory that is", Code::kInvalidArgument);
  }
  ASSIGN_OR_RETURN(const Parent to, OpenParent(request.to));
  FakeLocation there;
  int error = OpenChild(to.directory, to.name, false, &there);
  if (error == 0) {
    if (ExpectObject(there, request.expected).ok()) return Changed{false};
    return Refuse(what, "something else is there", Code::kAlreadyExists);
  }
  if (error != ENOENT) return failed(error);
  ASSIGN_OR_RETURN(const Parent from, OpenParent(request.from));
  error = OpenChild(from.directory, from.name, true, &there);
  if (error == EXDEV) return Refuse(what, "it is a mount point", Code::kFailedPrecondition);
  if (error == 0 && vfs_.InodeAt(there).type != FileType::kDirectory) error = ENOTDIR;
  if (error != 0) return failed(error);
  RETURN_IF_ERROR(ExpectObject(there, request.expected).With(what));
  if (vfs_.InodeAt(there).is_subvolume) {
    return Refuse(what, "it is the root of a subvolume", Code::kFailedPrecondition);
  }
  const std::string mounted = vfs_.FindMountOf(there);
  if (!mounted.empty()) {
    return Refuse(what, "something of it, or in it, is mounted at " + mounted,
                  Code::kFailedPrecondition);
  }
  error = vfs_.MoveDirectory(from.directory, from.name, to.directory, to.name);
  if (error == EXDEV) {
    return Error::FromParts(Code::kFailedPrecondition, Outcome::kNotApplied, EXDEV,
                            what + ": it could only be copied");
  }
  if (error != 0) return failed(error);
  return Changed{true};
}

Result<TreeCopied> FakeEffects::operator()(const CopyTree& request) {
  const std::string what = "copy " + request.from.Display() + " to " + request.to.Display();
  if (request.bytes_per_second < 0) return Refuse(what, "no such rate", Code::kInvalidArgument);
  if (request.most_bytes < 0) return Refuse(what, "no such bound", Code::kInvalidArgument);
  ASSIGN_OR_RETURN(const FakeLocation from, Open(request.from, {false, true}));
  if (request.expected.inode != 0) {
    RETURN_IF_ERROR(ExpectObject(from, request.expected).With(what));
  }
  ASSIGN_OR_RETURN(const FakeLocation to, Open(request.to, {false, true}));
  if (!vfs_.InodeAt(to).children.empty()) {
    return Refuse(what, "it is not empty", Code::kFailedPrecondition);
  }
  if (vfs_.SameInode(from, to)) {
    return Refuse(what, "it is to be a copy of itself", Code::kInvalidArgument);
  }
  Progress(0);
  const int error = vfs_.CopyTree(from, to, state_.half);
  if (error == EXDEV) {
    const bool made_none = vfs_.InodeAt(to).children.empty();
    return Error::FromParts(Code::kFailedPrecondition,
                            made_none ? Outcome::kNotApplied : Outcome::kMaybeApplied, EXDEV,
                            what + ": a subvolume is in it");
  }
  if (error != 0) return Error::FromErrno(error, what, Outcome::kMaybeApplied);
  UsageInfo has;
  std::set<uint64_t> seen;
  CountUsage(to, &seen, &has);
  if (request.most_bytes > 0 && has.used_bytes > request.most_bytes) {
    return Error::FromParts(Code::kResourceExhausted, Outcome::kMaybeApplied, EDQUOT,
                            what + ": it would have more");
  }
  return TreeCopied{has.used_bytes, vfs_.SharesBlocks(to)};
}

}  // namespace volumed
