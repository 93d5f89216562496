// The look-up of FakeVfs: from a path to a name, seen through a mount, and back.
#include <cerrno>
#include <utility>

#include "fakes/fake_vfs.h"

namespace volumed {
namespace {

constexpr size_t kMaxName = 255;
constexpr size_t kMaxPath = 4096;
constexpr int kMaxLinks = 40;

// Pushes the components of `path` in front of what is pending; the next one is at the back. A
// trailing slash asks for a directory, which "." does too.
void PushComponents(const std::string& path, std::vector<std::string>* pending) {
  std::vector<std::string> names;
  size_t begin = 0;
  while (begin <= path.size()) {
    size_t end = path.find('/', begin);
    if (end == std::string::npos) end = path.size();
    if (end > begin) names.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  if (!path.empty() && path.back() == '/') names.push_back(".");
  pending->insert(pending->end(), names.rbegin(), names.rend());
}

}  // namespace

FakeLocation FakeVfs::namespace_root() const {
  return FollowMounts({root_mount_, mounts_.at(root_mount_).root});
}

FakeLocation FakeVfs::FollowMounts(FakeLocation at) const {
  for (auto on = points_.find({at.mount, at.dentry}); on != points_.end();
       on = points_.find({at.mount, at.dentry})) {
    at = {on->second, mounts_.at(on->second).root};
  }
  return at;
}

const FakeInode& FakeVfs::InodeAt(FakeLocation at) const { return Inode(at.dentry); }

const FakeFilesystem& FakeVfs::FilesystemAt(FakeLocation at) const {
  return filesystems_.at(InodeAt(at).filesystem);
}

bool FakeVfs::IsCovered(FakeLocation at) const { return points_.count({at.mount, at.dentry}) != 0; }

bool FakeVfs::IsMountRoot(FakeLocation at) const { return mounts_.at(at.mount).root == at.dentry; }

bool FakeVfs::SameInode(FakeLocation a, FakeLocation b) const {
  return dentries_.at(a.dentry).inode == dentries_.at(b.dentry).inode;
}

std::string FakeVfs::NameOf(FakeLocation at) const { return dentries_.at(at.dentry).name; }

std::string FakeVfs::PathOf(FakeLocation at) const {
  std::string path;
  while (true) {
    const FakeMount& mount = mounts_.at(at.mount);
    if (at.dentry != mount.root) {
      const FakeDentry& dentry = dentries_.at(at.dentry);
      path = "/" + dentry.name + path;
      at.dentry = dentry.parent;
    } else if (mount.parent != 0) {
      at = {mount.parent, mount.mountpoint};
    } else {
      return path.empty() ? "/" : path;
    }
  }
}

int FakeVfs::WalkAbsolute(const std::string& path, const FakeWalk& how, FakeLocation* found) const {
  return WalkFrom(namespace_root(), path, how, found);
}

int FakeVfs::WalkFrom(FakeLocation start, const std::string& path, const FakeWalk& how,
                      FakeLocation* found) const {
  if (path.size() >= kMaxPath) return ENAMETOOLONG;
  std::vector<std::string> pending;
  PushComponents(path, &pending);
  FakeLocation at = start;
  int links = 0;
  while (!pending.empty()) {
    const std::string name = std::move(pending.back());
    pending.pop_back();
    if (const int error = Step(start, how, name, pending.empty(), &pending, &links, &at)) {
      return error;
    }
  }
  if (how.directory && InodeAt(at).type != FileType::kDirectory) return ENOTDIR;
  *found = at;
  return 0;
}

int FakeVfs::Step(FakeLocation start, const FakeWalk& how, const std::string& name, bool last,
                  std::vector<std::string>* pending, int* links, FakeLocation* at) const {
  if (InodeAt(*at).type != FileType::kDirectory) return ENOTDIR;
  if (name == ".") return 0;
  if (name == "..") return StepUp(start, how, at);
  FakeLocation covered;
  if (const int error = LookupCovered(*at, name, &covered)) return error;
  const FakeLocation next = FollowMounts(covered);
  if (how.no_xdev && next.mount != covered.mount) return EXDEV;
  const FakeInode& inode = InodeAt(next);
  if (inode.type != FileType::kSymlink || (last && !how.follow_last)) {
    *at = next;
    return 0;
  }
  if (how.no_symlinks || ++*links > kMaxLinks) return ELOOP;
  if (inode.content[0] == '/') {
    if (how.beneath) return EXDEV;
    *at = namespace_root();
  }
  PushComponents(inode.content, pending);
  return 0;
}

int FakeVfs::StepUp(FakeLocation start, const FakeWalk& how, FakeLocation* at) const {
  FakeLocation here = *at;
  while (true) {
    if (here == start && how.beneath) return EXDEV;
    const FakeMount& mount = mounts_.at(here.mount);
    if (here.dentry != mount.root) break;
    if (mount.parent == 0) return 0;  // ".." of "/" is "/"
    if (how.no_xdev) return EXDEV;
    here = {mount.parent, mount.mountpoint};
  }
  *at = FollowMounts({here.mount, dentries_.at(here.dentry).parent});
  return 0;
}

int FakeVfs::LookupCovered(FakeLocation directory, const std::string& name,
                           FakeLocation* found) const {
  const FakeInode& inode = InodeAt(directory);
  if (inode.type != FileType::kDirectory) return ENOTDIR;
  if (name.size() > kMaxName) return ENAMETOOLONG;
  const auto child = inode.children.find(name);
  if (child == inode.children.end()) return ENOENT;
  *found = {directory.mount, child->second};
  return 0;
}

bool FakeVfs::IsBelow(uint64_t dentry, uint64_t ancestor) const {
  while (dentry != 0 && dentry != ancestor) dentry = dentries_.at(dentry).parent;
  return dentry == ancestor;
}

}  // namespace volumed
