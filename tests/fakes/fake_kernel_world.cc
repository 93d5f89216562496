// FakeKernel's view for tests: the world outside of the requests.
#include <algorithm>
#include <cerrno>
#include <functional>
#include <stdexcept>

#include "fakes/fake_kernel.h"
#include "os/mount_options.h"

namespace volumed {
namespace {

[[noreturn]] void Mistake(const std::string& what, int sys_errno) {
  throw std::logic_error("FakeKernel: " + what + ": " + ErrnoName(sys_errno));
}

void Check(int sys_errno, const std::string& what) {
  if (sys_errno != 0) Mistake(what, sys_errno);
}

FakeWalk Following(bool follow) {
  FakeWalk walk;
  walk.follow_last = follow;
  return walk;
}

std::string OctalText(uint32_t mode) {
  std::string text;
  for (int shift = 9; shift >= 0; shift -= 3) {
    text += static_cast<char>('0' + ((mode >> shift) & 7u));
  }
  return text;
}

std::string JoinWords(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

// Of contents nothing but equality is to be seen: they may be secret.
std::string DigestText(const std::string& content) {
  return std::to_string(content.size()) + " bytes #" +
         std::to_string(std::hash<std::string>()(content) % 1000000007u);
}

}  // namespace

FakeLocation FakeKernel::Require(const std::string& path, bool follow) const {
  FakeLocation found;
  Check(vfs_.WalkAbsolute(path, Following(follow), &found), path);
  return found;
}

uint64_t FakeKernel::RootFilesystem(const std::string& path) const {
  FakeLocation found;
  if (vfs_.WalkAbsolute(path, Following(true), &found) != 0) return 0;
  return vfs_.IsMountRoot(found) ? vfs_.FilesystemAt(found).id : 0;
}

FakeLocation FakeKernel::ParentForTest(const std::string& path, std::string* name) {
  if (path.empty() || path[0] != '/' || path == "/") Mistake("path " + path, EINVAL);
  FakeLocation at = vfs_.namespace_root();
  size_t begin = 1;
  for (size_t slash = path.find('/', begin); slash != std::string::npos;
       slash = path.find('/', begin)) {
    const std::string prefix = path.substr(0, slash);
    FakeLocation next;
    int error = vfs_.WalkAbsolute(prefix, Following(true), &next);
    if (error == ENOENT) {
      Check(vfs_.MakeDirectory(at, path.substr(begin, slash - begin), 0755), prefix);
      error = vfs_.WalkAbsolute(prefix, Following(true), &next);
    }
    Check(error, prefix);
    at = next;
    begin = slash + 1;
  }
  *name = path.substr(begin);
  return at;
}

void FakeKernel::AddDirectory(const std::string& path, uint32_t mode, uint32_t uid, uint32_t gid) {
  MutexLock lock(mu_);
  std::string name;
  const FakeLocation parent = ParentForTest(path, &name);
  const int made = vfs_.MakeDirectory(parent, name, mode);
  if (made != EEXIST) Check(made, path);
  const FakeLocation there = Require(path, false);
  Check(vfs_.Chown(there, uid, gid), path);
  Check(vfs_.Chmod(there, mode), path);
}

void FakeKernel::AddFile(const std::string& path, std::string content, uint32_t mode, uint32_t uid,
                         uint32_t gid) {
  MutexLock lock(mu_);
  std::string name;
  const FakeLocation parent = ParentForTest(path, &name);
  const int made = vfs_.MakeNode(parent, name, FileType::kRegular, mode);
  if (made != EEXIST) Check(made, path);
  const FakeLocation there = Require(path, false);
  Check(vfs_.WriteFile(there, content), path);
  Check(vfs_.Chown(there, uid, gid), path);
  Check(vfs_.Chmod(there, mode), path);
}

void FakeKernel::AddSymlink(const std::string& path, const std::string& target) {
  MutexLock lock(mu_);
  std::string name;
  const FakeLocation parent = ParentForTest(path, &name);
  Check(vfs_.MakeSymlink(parent, name, target), path);
}

void FakeKernel::AddHardLink(const std::string& path, const std::string& existing) {
  MutexLock lock(mu_);
  std::string name;
  const FakeLocation parent = ParentForTest(path, &name);
  Check(vfs_.MakeHardLink(parent, name, Require(existing, false)), path);
}

void FakeKernel::AddSpecial(const std::string& path, FileType type, uint32_t mode) {
  MutexLock lock(mu_);
  std::string name;
  const FakeLocation parent = ParentForTest(path, &name);
  Check(vfs_.MakeNode(parent, name, type, mode), path);
}

void FakeKernel::AddMount(const std::string& fs_type, const std::string& source,
                          const std::string& path, const std::vector<std::string>& options) {
  MutexLock lock(mu_);
  std::string name;
  const FakeLocation parent = ParentForTest(path, &name);
  const int made = vfs_.MakeDirectory(parent, name, 0755);
  if (made != EEXIST) Check(made, path);
  const Result<MountOptions> parsed = ParseMountOptions(options);
  if (!parsed.ok()) throw std::logic_error(parsed.error().ToString());
  const uint64_t mount = vfs_.NewMount(vfs_.NewFilesystem(fs_type, source), parsed->attributes);
  Check(vfs_.Attach(mount, Require(path, true)), path);
}

Result<AnyAnswer> FakeKernel::DoAside(const AnyRequest& request) {
  MutexLock lock(mu_);
  return Apply(request, {}, nullptr);
}

void FakeKernel::AddDevice(const std::string& path, FakeDevice device) {
  AddSpecial(path, FileType::kBlockDevice, 0600);
  std::string number;
  {
    MutexLock lock(mu_);
    device.identity.device_major = 7;
    // A name that is used again keeps its number, as sdb does.
    const auto old = devices_.by_path.find(path);
    device.identity.device_minor = old != devices_.by_path.end()
                                       ? old->second.identity.device_minor
                                       : static_cast<uint32_t>(devices_.by_path.size());
    if (device.identity.disk_sequence == 0)
      device.identity.disk_sequence = ++devices_.last_sequence;
    if (device.identity.size_bytes == 0) device.identity.size_bytes = int64_t{1} << 30;
    device.inode = vfs_.InodeAt(Require(path, false)).id;
    number = "7:" + std::to_string(device.identity.device_minor);
    devices_.by_path[path] = std::move(device);
  }
  // Whether it is there at the moment or not, is for /sys/block to say.
  const std::string link = "/sys/dev/block/" + number;
  if (!Exists(link)) AddSymlink(link, "../../block/" + path.substr(path.rfind('/') + 1));
}

void FakeKernel::AddExport(const std::string& source) {
  MutexLock lock(mu_);
  const uint64_t id = vfs_.NewFilesystem("nfs4", source);
  vfs_.MutableFilesystem(id).on_device = true;
  devices_.exports[source] = id;
}

void FakeKernel::ReturnDeviceNode(const std::string& path) {
  AddSpecial(path, FileType::kBlockDevice, 0600);
  MutexLock lock(mu_);
  devices_.by_path.at(path).inode = vfs_.InodeAt(Require(path, false)).id;
}

void FakeKernel::AddProgram(const std::string& path, FakeProgram program) {
  AddFile(path, "", 0755);
  MutexLock lock(mu_);
  programs_[path] = std::move(program);
}

void FakeKernel::AddAttribute(const std::string& path, FakeAttribute effect) {
  AddFile(path, "");
  MutexLock lock(mu_);
  attributes_[path] = std::move(effect);
}

FakeDevice FakeKernel::Device(const std::string& path) const {
  MutexLock lock(mu_);
  const auto device = devices_.by_path.find(path);
  if (device == devices_.by_path.end()) Mistake("device " + path, ENODEV);
  return device->second;
}

void FakeKernel::ChangeDevice(const std::string& path,
                              const std::function<void(FakeDevice&)>& change) {
  MutexLock lock(mu_);
  const auto device = devices_.by_path.find(path);
  if (device == devices_.by_path.end()) Mistake("device " + path, ENODEV);
  change(device->second);
}

void FakeKernel::AddLoop(const std::string& file) {
  MutexLock lock(mu_);
  devices_.loop_files.insert(file);
}

std::set<std::string> FakeKernel::LoopFiles() const {
  MutexLock lock(mu_);
  return devices_.loop_files;
}

void FakeKernel::WriteBlocks(const std::string& path, int64_t offset, int64_t bytes) {
  MutexLock lock(mu_);
  vfs_.WriteBlocks(Require(path, true), offset, bytes);
}

FakeDevice FakeKernel::Image(const std::string& path) const {
  MutexLock lock(mu_);
  const uint64_t inode = vfs_.InodeAt(Require(path, true)).id;
  for (const auto& [node, device] : devices_.by_path) {
    if (device.loop && device.loop->inode == inode) return device;
  }
  const auto image = devices_.images.find(inode);
  return image == devices_.images.end() ? FakeDevice() : image->second;
}

bool FakeKernel::IsFrozen(const std::string& path) const {
  MutexLock lock(mu_);
  return vfs_.FilesystemAt(Require(path, true)).frozen;
}

std::vector<std::string> FakeKernel::blocked_writes() const {
  MutexLock lock(mu_);
  return blocked_writes_;
}

void FakeKernel::LimitLoops(size_t most) {
  MutexLock lock(mu_);
  devices_.most_loops = most;
}

void FakeKernel::CountProjects(const std::string& path, bool counts) {
  MutexLock lock(mu_);
  vfs_.MutableFilesystem(vfs_.FilesystemAt(Require(path, true)).id).counts_trees = counts;
}

void FakeKernel::GiveToProject(const std::string& path, uint64_t project) {
  MutexLock lock(mu_);
  vfs_.SetAccount(Require(path, true), project);
}

void FakeKernel::ForgetTreeLimits(const std::string& path) {
  MutexLock lock(mu_);
  FakeFilesystem& filesystem = vfs_.MutableFilesystem(vfs_.FilesystemAt(Require(path, true)).id);
  filesystem.counts_trees = false;
  filesystem.limits.clear();
}

size_t FakeKernel::TreeLimits(const std::string& path) {
  MutexLock lock(mu_);
  return vfs_.FilesystemAt(Require(path, true)).limits.size();
}

void FakeKernel::LimitFilesystem(const std::string& path, int64_t bytes) {
  MutexLock lock(mu_);
  constexpr int64_t kPageBytes = 4096;
  const uint64_t id = vfs_.InodeAt(Require(path, true)).filesystem;
  vfs_.MutableFilesystem(id).max_pages = static_cast<uint64_t>(bytes / kPageBytes);
}

void FakeKernel::Rename(const std::string& path, const std::string& to) {
  MutexLock lock(mu_);
  std::string name;
  const FakeLocation parent = ParentForTest(path, &name);
  Check(vfs_.Rename(parent, name, to), path);
}

void FakeKernel::Remove(const std::string& path) {
  MutexLock lock(mu_);
  const size_t slash = path.rfind('/');
  RemoveTree request{{slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)}};
  const Result<AnyAnswer> removed = Apply(request, {}, nullptr);
  if (!removed.ok()) throw std::logic_error(removed.error().ToString());
}

void FakeKernel::UnmountBelow(const std::string& path) {
  MutexLock lock(mu_);
  const std::string prefix = path == "/" ? "/" : path + "/";
  for (bool again = true; again;) {
    again = false;
    std::vector<MountEntry> table = vfs_.Table();
    // Later mounts lie on or in earlier ones, unless something was propagated beneath them.
    std::reverse(table.begin(), table.end());
    for (const MountEntry& entry : table) {
      const bool wanted =
          entry.mount_point == path || entry.mount_point.compare(0, prefix.size(), prefix) == 0;
      if (!wanted || entry.parent_id == 0) continue;
      if (vfs_.Unmount({entry.mount_id, vfs_.GetMount(entry.mount_id).root}) != 0) continue;
      again = true;
      break;
    }
  }
}

void FakeKernel::SetAttributes(const std::string& path, uint32_t mode, uint32_t uid, uint32_t gid) {
  MutexLock lock(mu_);
  const FakeLocation there = Require(path, false);
  Check(vfs_.Chown(there, uid, gid), path);
  Check(vfs_.Chmod(there, mode), path);
}

void FakeKernel::SetOwner(const std::string& path, const std::string& owner) {
  MutexLock lock(mu_);
  vfs_.SetOwner(Require(path, false), owner);
}

FakeFile FakeKernel::Find(const std::string& path, bool follow) const {
  MutexLock lock(mu_);
  FakeLocation there;
  const int error = vfs_.WalkAbsolute(path, Following(follow), &there);
  if (error == ENOENT || error == ENOTDIR) return {};
  Check(error, path);
  const FakeInode& inode = vfs_.InodeAt(there);
  return {inode.type, inode.mode, inode.uid, inode.gid, inode.content, vfs_.IsMountRoot(there),
          inode.owner};
}

std::vector<MountEntry> FakeKernel::Mounts() const {
  MutexLock lock(mu_);
  return vfs_.Table();
}

void FakeKernel::DumpBelow(FakeLocation at, const std::string& path, std::string* text) const {
  const FakeInode& inode = vfs_.InodeAt(at);
  *text += path + " " + std::string(FileTypeName(inode.type)) + " " + OctalText(inode.mode) + " " +
           std::to_string(inode.uid) + ":" + std::to_string(inode.gid);
  if (inode.type == FileType::kSymlink) *text += " -> " + inode.content;
  // Of a large image the size is enough: to compare it would be to write it out.
  constexpr int64_t kLargest = int64_t{16} << 20;
  if (inode.type == FileType::kRegular && FakeVfs::SizeBytes(inode) > kLargest) {
    *text += " " + std::to_string(FakeVfs::SizeBytes(inode)) + " bytes";
  } else if (inode.type == FileType::kRegular) {
    *text += " " + DigestText(FakeVfs::ContentOf(inode));
  }
  if (vfs_.IsMountRoot(at)) *text += " mounted";
  if (!inode.owner.empty()) *text += " storage of " + inode.owner;
  *text += "\n";
  for (const auto& [name, dentry] : inode.children) {
    DumpBelow(vfs_.FollowMounts({at.mount, dentry}), path == "/" ? "/" + name : path + "/" + name,
              text);
  }
}

std::string FakeKernel::DumpTree(const std::string& root) const {
  MutexLock lock(mu_);
  std::string text;
  FakeLocation at;
  if (vfs_.WalkAbsolute(root, Following(false), &at) == 0) DumpBelow(at, root, &text);
  return text;
}

std::string FakeKernel::DumpMounts() const {
  std::string text;
  std::map<std::string, size_t> groups;
  for (const MountEntry& entry : Mounts()) {
    if (entry.parent_id == 0) continue;
    text += entry.mount_point + " " + entry.fs_type + " " + entry.source + " " + entry.root + " " +
            JoinWords(entry.options) + " " + JoinWords(entry.super_options);
    for (const std::string& field : entry.propagation) {
      // Groups are numbered in the order of their first mount: their ids mean nothing.
      const size_t group = groups.emplace(field, groups.size() + 1).first->second;
      text += " shared:" + std::to_string(group);
    }
    text += "\n";
  }
  return text;
}

std::map<std::string, std::string> FakeKernel::StoredFiles() const {
  MutexLock lock(mu_);
  std::map<std::string, std::string> files;
  const auto add = [&](const std::string& prefix, uint64_t filesystem) REQUIRES(mu_) {
    for (auto& [path, content] : vfs_.FilesOf(filesystem)) files[prefix + path] = content;
  };
  add("", vfs_.FilesystemAt(vfs_.namespace_root()).id);
  for (const auto& [source, filesystem] : devices_.exports) add(source + ":", filesystem);
  const auto add_device = [&](const std::string& name, const FakeDevice& device) REQUIRES(mu_) {
    if (device.filesystem == 0) return;
    files[name] = device.identity.uuid;
    add(name + ":", device.filesystem);
  };
  const auto image = [](uint64_t inode) { return "image " + std::to_string(inode); };
  for (const auto& [path, device] : devices_.by_path) {
    add_device(device.loop ? image(device.loop->inode) : path, device);
  }
  for (const auto& [inode, device] : devices_.images) add_device(image(inode), device);
  return files;
}

}  // namespace volumed
