// WriteAtomicPayload on a FakeVfs: the rules of os/kernel.h, told a second time.
#include <cerrno>
#include <set>
#include <string_view>

#include "fakes/fake_effects.h"

namespace volumed {
namespace {

constexpr char kDataLink[] = "..data";
constexpr char kDataTmpLink[] = "..data_tmp";

std::vector<std::string> Components(const std::string& path) {
  std::vector<std::string> names;
  size_t begin = 0;
  while (true) {
    const size_t end = path.find('/', begin);
    names.push_back(path.substr(begin, end == std::string::npos ? end : end - begin));
    if (end == std::string::npos) return names;
    begin = end + 1;
  }
}

bool IsGoodPath(const std::string& path) {
  if (path.empty() || path.size() > 4096 || path.find('\0') != std::string::npos) return false;
  const std::vector<std::string> names = Components(path);
  for (const std::string& name : names) {
    if (name.empty() || name == "." || name == ".." || name.size() > 255) return false;
  }
  return names[0].compare(0, 2, "..") != 0;
}

Error At(int sys_errno, const std::string& what) {
  return Error::FromErrno(sys_errno, what, Outcome::kNotApplied);
}

// "..2026_01_31_10_00_00.123": what an interrupted run leaves.
bool IsPayloadDirectoryName(const std::string& name) {
  if (name.size() < 23 || name.compare(0, 2, "..") != 0) return false;
  constexpr std::string_view kShape = "dddd_dd_dd_dd_dd_dd.";
  for (size_t i = 0; i < kShape.size(); ++i) {
    const char c = name[2 + i];
    if (kShape[i] == 'd' ? (c < '0' || c > '9') : c != kShape[i]) return false;
  }
  return true;
}

}  // namespace

struct FakeEffects::Payload {
  const WriteAtomicPayload& request;
  std::string what;
  FakeLocation target;
  std::string old_name;  // of the directory that is published; empty: none
};

Status FakeEffects::CheckPayload(const WriteAtomicPayload& request) const {
  std::set<std::string> files;
  std::set<std::string> directories;
  for (const PayloadFile& file : request.files) {
    const auto refuse = [&file](const std::string& why) {
      return Error::NotApplied(Code::kInvalidArgument, "payload path " + file.path + why);
    };
    if (!IsGoodPath(file.path)) return refuse(" is malformed");
    if (!files.insert(file.path).second) return refuse(" is there twice");
    for (size_t slash = file.path.find('/'); slash != std::string::npos;
         slash = file.path.find('/', slash + 1)) {
      directories.insert(file.path.substr(0, slash));
    }
  }
  for (const std::string& file : files) {
    if (directories.count(file) != 0) {
      return Error::NotApplied(Code::kInvalidArgument,
                               "payload path " + file + " is a file and a directory");
    }
  }
  return OkStatus();
}

// Whether what is published equals what is asked for, in names, contents, modes and owners.
bool FakeEffects::PayloadIsCurrent(const Payload& payload) const {
  if (payload.old_name.empty()) return false;
  FakeLocation root;
  if (OpenChild(payload.target, payload.old_name, false, &root) != 0) return false;
  std::map<std::string, const PayloadFile*> wanted;
  std::set<std::string> directories;
  for (const PayloadFile& file : payload.request.files) {
    wanted[file.path] = &file;
    for (size_t slash = file.path.find('/'); slash != std::string::npos;
         slash = file.path.find('/', slash + 1)) {
      directories.insert(file.path.substr(0, slash));
    }
  }
  size_t files_seen = 0;
  size_t directories_seen = 0;
  std::vector<std::pair<std::string, FakeLocation>> open = {{"", root}};
  const std::optional<uint32_t> gid = payload.request.gid;
  while (!open.empty()) {
    const auto [path, at] = open.back();
    open.pop_back();
    const FakeInode& inode = vfs_.InodeAt(at);
    if (inode.type != FileType::kDirectory) {
      const auto file = wanted.find(path);
      if (file == wanted.end() || inode.type != FileType::kRegular) return false;
      const uint32_t mode = file->second->mode & 07777;
      if (inode.mode != (gid ? mode | 0440 : mode)) return false;
      if (inode.uid != file->second->uid.value_or(0)) return false;
      if (inode.gid != gid.value_or(0)) return false;
      const std::string& content = file->second->content.Reveal();
      const bool same_size = FakeVfs::SizeBytes(inode) == static_cast<int64_t>(content.size());
      if (!same_size || FakeVfs::ContentOf(inode) != content) return false;
      ++files_seen;
      continue;
    }
    if (!path.empty() && directories.count(path) == 0) return false;
    if (inode.mode != (gid ? 02755u : 0755u) || inode.gid != gid.value_or(0)) return false;
    if (!path.empty()) ++directories_seen;
    for (const auto& [name, dentry] : inode.children) {
      open.push_back(
          {path.empty() ? name : path + "/" + name, vfs_.FollowMounts({at.mount, dentry})});
    }
  }
  return files_seen == wanted.size() && directories_seen == directories.size();
}

Status FakeEffects::WritePayloadFile(FakeLocation directory, const PayloadFile& file,
                                     std::optional<uint32_t> gid, const std::string& what) {
  const std::vector<std::string> names = Components(file.path);
  const auto own = [this, gid](FakeLocation at, uint32_t uid, uint32_t mode) {
    const int error = vfs_.Chown(at, uid, gid.value_or(0));
    return error != 0 ? error : vfs_.Chmod(at, mode);
  };
  FakeLocation at = directory;
  for (size_t i = 0; i + 1 < names.size(); ++i) {
    const int made = vfs_.MakeDirectory(at, names[i], 0755);
    if (made != 0 && made != EEXIST) return At(made, what);
    if (const int error = OpenChild(at, names[i], true, &at)) return At(error, what);
    if (const int error = own(at, 0, gid ? 02755 : 0755)) return At(error, what);
  }
  if (const int error = vfs_.MakeNode(at, names.back(), FileType::kRegular, 0600)) {
    return At(error, what);
  }
  if (const int error = OpenChild(at, names.back(), true, &at)) return At(error, what);
  if (const int error = vfs_.WriteFile(at, file.content.Reveal())) return At(error, what);
  const uint32_t mode = file.mode & 07777;
  if (const int error = own(at, file.uid.value_or(0), gid ? mode | 0440 : mode)) {
    return At(error, what);
  }
  return OkStatus();
}

Status FakeEffects::FillPayloadDirectory(const Payload& payload, const std::string& name) {
  if (const int error = vfs_.MakeDirectory(payload.target, name, 0755)) {
    return At(error, payload.what);
  }
  FakeLocation directory;
  if (const int error = OpenChild(payload.target, name, true, &directory)) {
    return At(error, payload.what);
  }
  for (const PayloadFile& file : payload.request.files) {
    RETURN_IF_ERROR(WritePayloadFile(directory, file, payload.request.gid, payload.what));
  }
  const std::optional<uint32_t> gid = payload.request.gid;
  int error = vfs_.Chown(directory, 0, gid.value_or(0));
  if (error == 0) error = vfs_.Chmod(directory, gid ? 02755 : 0755);
  if (error != 0) return At(error, payload.what);
  return OkStatus();
}

// What is at a name of the first level and is no link was not made by us, and is left alone.
int FakeEffects::MendPayloadLink(FakeLocation target, const std::string& name) {
  const std::string wanted = std::string(kDataLink) + "/" + name;
  FakeLocation there;
  if (vfs_.LookupCovered(target, name, &there) == 0) {
    const FakeInode& inode = vfs_.InodeAt(there);
    if (inode.type != FileType::kSymlink || inode.content == wanted) return 0;
    if (const int error = vfs_.Unlink(target, name)) return error;
  }
  return vfs_.MakeSymlink(target, name, wanted);
}

// The links of the first level, and what an interrupted run or the last set left.
Status FakeEffects::TidyPayload(const Payload& payload, const std::string& published) {
  std::set<std::string> firsts;
  for (const PayloadFile& file : payload.request.files) {
    firsts.insert(Components(file.path)[0]);
  }
  for (const std::string& name : firsts) {
    if (const int error = MendPayloadLink(payload.target, name)) {
      return At(error, payload.what);
    }
  }
  const std::map<std::string, uint64_t> present = vfs_.InodeAt(payload.target).children;
  for (const auto& [name, dentry] : present) {
    const FakeInode& inode = vfs_.InodeAt({payload.target.mount, dentry});
    if (inode.type == FileType::kSymlink && firsts.count(name) == 0 &&
        inode.content == std::string(kDataLink) + "/" + name) {
      if (const int error = vfs_.Unlink(payload.target, name)) return At(error, payload.what);
    } else if (inode.type == FileType::kDirectory && name != published &&
               IsPayloadDirectoryName(name)) {
      const Result<Changed> removed = RemoveAt(payload.target, name, payload.what);
      if (!removed.ok()) return removed.error();
    }
  }
  return OkStatus();
}

// The link that makes the new directory the published one.
int FakeEffects::SwitchPayload(FakeLocation target, const std::string& name) {
  int error = vfs_.MakeSymlink(target, kDataTmpLink, name);
  if (error == 0) error = vfs_.Rename(target, kDataTmpLink, kDataLink);
  return error;
}

Result<Changed> FakeEffects::operator()(const WriteAtomicPayload& request) {
  RETURN_IF_ERROR(CheckPayload(request));
  Payload payload{request, "write payload to " + request.target.Display(), {}, ""};
  ASSIGN_OR_RETURN(payload.target, Open(request.target, {false, true}));
  FakeLocation link;
  if (vfs_.LookupCovered(payload.target, kDataLink, &link) == 0) {
    const FakeInode& inode = vfs_.InodeAt(link);
    if (inode.type != FileType::kSymlink) {
      return Error::NotApplied(Code::kFailedPrecondition, payload.what + ": ..data is no link");
    }
    if (IsPayloadDirectoryName(inode.content) && inode.content.find('/') == std::string::npos) {
      payload.old_name = inode.content;
    }
  }
  const int stale = vfs_.Unlink(payload.target, kDataTmpLink);
  if (stale != 0 && stale != ENOENT) return At(stale, payload.what);
  const bool changed = !PayloadIsCurrent(payload);
  std::string name = payload.old_name;
  if (changed) {
    // As long as the names of the real kernel's, since the size of a link shows it.
    std::string number = std::to_string(++state_.payloads);
    number.insert(0, 10 - number.size(), '0');
    name = "..2026_11_21_10_00_00." + number;
    Status published = FillPayloadDirectory(payload, name);
    if (published.ok()) {
      const int error = SwitchPayload(payload.target, name);
      if (error != 0) published = At(error, payload.what);
    }
    if (!published.ok()) {
      (void)RemoveAt(payload.target, name, payload.what).ok();
      return published.error();
    }
  }
  const Status tidied = TidyPayload(payload, name);
  if (!tidied.ok()) return tidied.error().AsMaybeApplied();
  return Changed{changed};
}

}  // namespace volumed
