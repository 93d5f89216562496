// Opening what a SafePath names, by descriptor. Everything below the trusted root is resolved by
// openat2 under RESOLVE_BENEATH, so no component that a pod can swap leads out of the root.
//
// The root itself is opened as it stands: its parents are trusted and may be links; its last
// component may be a link only under Resolve::kBeneath. An empty `relative` names the root.
//
// Errors, the same for every effect: InvalidArgument without errno for a malformed SafePath; ELOOP
// for a link where none may be; EXDEV for a way out of the root; else the errno of openat2.
// All are "not applied".
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "base/descriptor.h"
#include "base/result.h"
#include "os/kernel_requests.h"

namespace volumed {

// Absolute and clean root; relative without empty, "." and ".." components; no NUL in either.
Status ValidateSafePath(const SafePath& path);

// Opens what `path` names with the open(2) flags `flags` (O_CLOEXEC is added), resolved with
// `more_resolve` (RESOLVE_NO_XDEV) besides the path's own way. Threads: any. Blocks: as the
// filesystem does; O_PATH asks a filesystem for nothing that is cached.
Result<Descriptor> OpenSafePath(const SafePath& path, int flags, uint64_t more_resolve = 0);

// The directory that holds the last component of `path`, as O_PATH, and that component's name.
struct ParentAndName {
  Descriptor parent;
  std::string name;
};
// InvalidArgument for "/", which has no parent.
Result<ParentAndName> OpenParent(const SafePath& path);

// While one lives, its thread opens each trusted root once, and goes to all that lies below from
// there: a composite goes to some sixty places below one root. One in another one does nothing.
// What somebody else mounts on a root meanwhile is not seen.
class KeptRoots {
 public:
  KeptRoots();
  ~KeptRoots();
  KeptRoots(const KeptRoots&) = delete;
  KeptRoots& operator=(const KeptRoots&) = delete;

  // Before this thread unmounts, for a root that is held stays mounted; and after it has mounted,
  // perhaps on a root.
  static void LetGo();

 private:
  friend class RootOf;
  std::map<std::pair<std::string, Resolve>, Descriptor> roots_;
};

// openat2 of one clean name in `directory`: no links, no way out, never "..".
// Returns the descriptor, or -1 with errno set.
int OpenChild(int directory, const char* name, int flags, uint64_t more_resolve = 0);

// Whether `name` in `directory` is a mount point, without asking the mounted filesystem anything.
// Errors: errno of the lookup (ENOENT when nothing is there), not applied.
Result<bool> IsMountPointAt(int directory, const std::string& name);

// The path through which a system call without an *at form reaches a descriptor.
std::string ProcFdPath(int fd);

}  // namespace volumed
