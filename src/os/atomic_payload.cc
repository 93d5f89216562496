#include "os/atomic_payload.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <ctime>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "os/file_effects.h"
#include "os/payload_compare.h"
#include "os/remove_tree.h"
#include "os/safe_open.h"
#include "os/work_meter.h"

namespace volumed {
namespace {

constexpr char kDataLink[] = "..data";
constexpr char kNewDataLink[] = "..data_tmp";
constexpr size_t kMaxPath = 4096;
constexpr size_t kMaxComponent = 255;
constexpr int kNameAttempts = 16;

Error BadPayload(const std::string& path, const std::string& why) {
  return Error::NotApplied(Code::kInvalidArgument, "payload path \"" + path + "\": " + why);
}

Status ValidatePayloadPath(const std::string& path) {
  if (path.empty()) return BadPayload(path, "is empty");
  if (path[0] == '/') return BadPayload(path, "is absolute");
  if (path.size() > kMaxPath) return BadPayload(path, "is longer than 4096 bytes");
  if (path.find('\0') != std::string::npos) return BadPayload(path, "has a NUL byte");
  const std::vector<std::string> components = Split(path, '/');
  for (const std::string& component : components) {
    if (component.empty() || component == ".") return BadPayload(path, "is not clean");
    if (component == "..") return BadPayload(path, "has a component \"..\"");
    if (component.size() > kMaxComponent) {
      return BadPayload(path, "has a component longer than 255 bytes");
    }
  }
  if (components[0].compare(0, 2, "..") == 0) {
    return BadPayload(path, "begins with \"..\"");
  }
  return OkStatus();
}

std::string FirstComponent(const std::string& path) { return path.substr(0, path.find('/')); }

// "..2026_01_31_10_00_00." and digits: what an interrupted run may have left.
bool LooksLikeVersion(std::string_view name) {
  constexpr std::string_view kShape = "..dddd_dd_dd_dd_dd_dd.";
  if (name.size() <= kShape.size()) return false;
  for (size_t i = 0; i < kShape.size(); ++i) {
    const bool digit = name[i] >= '0' && name[i] <= '9';
    if (kShape[i] == 'd' ? !digit : name[i] != kShape[i]) return false;
  }
  return true;
}

std::string NewVersionName() {
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  ::gmtime_r(&now, &utc);
  char name[64];
  const size_t length = std::strftime(name, sizeof(name), "..%Y_%m_%d_%H_%M_%S.", &utc);
  uint32_t number = 0;
  if (::getrandom(&number, sizeof(number), 0) != sizeof(number)) number = 0;
  std::snprintf(name + length, sizeof(name) - length, "%010u", number);
  return name;
}

// The target of a link; empty when there is none, or no link.
std::string ReadLink(int directory, const std::string& name) {
  char target[PATH_MAX];
  const ssize_t size = ::readlinkat(directory, name.c_str(), target, sizeof(target));
  return size > 0 ? std::string(target, static_cast<size_t>(size)) : std::string();
}

class PayloadWriter {
 public:
  PayloadWriter(const WriteAtomicPayload& request, int target, const CallOptions& options)
      : request_(request), target_(target), rights_{request.gid}, meter_(options) {}

  Result<Changed> Run();

 private:
  Error Failed(const std::string& step, Outcome outcome) const {
    return Error::FromErrno(errno, "write payload " + request_.target.Display() + ", " + step,
                            outcome);
  }
  Result<std::string> CurrentVersion() const;
  Status MakeVersion(std::string& name);
  Status FillVersion(int version) const;
  Status WriteFile(int version, const PayloadFile& file) const;
  Result<Descriptor> MakeParents(int version, const std::string& path) const;
  Status Publish(const std::string& version);
  Status MendLinks() const;
  Status MendLink(const std::string& first) const;
  Status RemoveLeftOvers(const std::string& current);

  const WriteAtomicPayload& request_;
  const int target_;
  const PayloadRights rights_;
  WorkMeter meter_;
};

// The name of the published directory; empty before the first time, or when it is gone.
Result<std::string> PayloadWriter::CurrentVersion() const {
  const std::string current = ReadLink(target_, kDataLink);
  if (!current.empty()) {
    // Only a link that one of us made is followed.
    if (LooksLikeVersion(current) && current.find('/') == std::string::npos) return current;
    return std::string();
  }
  struct stat stat = {};
  if (::fstatat(target_, kDataLink, &stat, AT_SYMLINK_NOFOLLOW) == 0) {
    return Error::NotApplied(
        Code::kFailedPrecondition,
        "write payload " + request_.target.Display() + ": ..data is not a link");
  }
  if (errno != ENOENT) return Failed("read ..data", Outcome::kNotApplied);
  return std::string();
}

Result<Descriptor> PayloadWriter::MakeParents(int version, const std::string& path) const {
  Descriptor current(::openat(version, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  size_t begin = 0;
  for (size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', begin)) {
    const std::string name = path.substr(begin, slash - begin);
    begin = slash + 1;
    const bool made = ::mkdirat(current.get(), name.c_str(), 0755) == 0;
    if (!made && errno != EEXIST) return Failed("make directory " + name, Outcome::kNotApplied);
    Descriptor next(OpenChild(current.get(), name.c_str(), O_RDONLY | O_DIRECTORY));
    if (!next.valid()) return Failed("open directory " + name, Outcome::kNotApplied);
    if (made && !SetDirectoryRights(next.get(), rights_)) {
      return Failed("set the mode of " + name, Outcome::kNotApplied);
    }
    current = std::move(next);
  }
  return current;
}

Status PayloadWriter::WriteFile(int version, const PayloadFile& file) const {
  ASSIGN_OR_RETURN(const Descriptor parent, MakeParents(version, file.path));
  const std::string name = file.path.substr(file.path.rfind('/') + 1);
  const Descriptor opened(::openat(parent.get(), name.c_str(),
                                   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!opened.valid()) return Failed("create " + file.path, Outcome::kNotApplied);
  const std::string& content = file.content.Reveal();
  size_t written = 0;
  while (written < content.size()) {
    const ssize_t size = ::write(opened.get(), content.data() + written, content.size() - written);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return Failed("write " + file.path, Outcome::kNotApplied);
    written += static_cast<size_t>(size);
  }
  if (!SetFileRights(opened.get(), file, rights_)) {
    return Failed("set owner and mode of " + file.path, Outcome::kNotApplied);
  }
  return OkStatus();
}

Status PayloadWriter::FillVersion(int version) const {
  if (!SetDirectoryRights(version, rights_)) {
    return Failed("set the mode of the new directory", Outcome::kNotApplied);
  }
  for (const PayloadFile& file : request_.files) RETURN_IF_ERROR(WriteFile(version, file));
  return OkStatus();
}

// A complete new directory that nothing refers to; or nothing at all.
Status PayloadWriter::MakeVersion(std::string& name) {
  for (int attempt = 1;; ++attempt) {
    name = NewVersionName();
    if (::mkdirat(target_, name.c_str(), 0755) == 0) break;
    if (errno != EEXIST || attempt == kNameAttempts) {
      return Failed("make a new directory", Outcome::kNotApplied);
    }
  }
  const Descriptor version(OpenChild(target_, name.c_str(), O_RDONLY | O_DIRECTORY));
  Status filled = version.valid() ? FillVersion(version.get())
                                  : Status(Failed("open the new directory", Outcome::kNotApplied));
  // What stays behind is unreferenced, and goes with the next run.
  if (!filled.ok()) (void)RemoveTreeAt(target_, name, name, meter_).ok();
  return filled;
}

Status PayloadWriter::Publish(const std::string& version) {
  Status published;
  if (::symlinkat(version.c_str(), target_, kNewDataLink) != 0) {
    published = Failed("link the new directory", Outcome::kNotApplied);
  } else if (::renameat(target_, kNewDataLink, target_, kDataLink) != 0) {
    published = Failed("switch ..data", Outcome::kNotApplied);
    ::unlinkat(target_, kNewDataLink, 0);
  }
  if (!published.ok()) (void)RemoveTreeAt(target_, version, version, meter_).ok();
  return published;
}

// A name of the first level is a link into ..data. What is there and is no link is left alone: it
// was not made by us, and may be a mount point. The link stays root's, where kubelet gives it to
// the file's owner: in a sticky directory that all may write to (a tmpfs), fs.protected_symlinks
// lets a link that is not of the directory's owner be followed by the link's owner alone, not even
// root.
Status PayloadWriter::MendLink(const std::string& first) const {
  const std::string wanted = std::string(kDataLink) + "/" + first;
  const std::string now = ReadLink(target_, first);
  if (now == wanted) return OkStatus();
  if (!now.empty() && ::unlinkat(target_, first.c_str(), 0) != 0 && errno != ENOENT) {
    return Failed("replace the link " + first, Outcome::kMaybeApplied);
  }
  if (::symlinkat(wanted.c_str(), target_, first.c_str()) != 0) {
    if (errno == EEXIST) return OkStatus();
    return Failed("make the link " + first, Outcome::kMaybeApplied);
  }
  return OkStatus();
}

Status PayloadWriter::MendLinks() const {
  std::set<std::string> firsts;
  for (const PayloadFile& file : request_.files) firsts.emplace(FirstComponent(file.path));
  for (const std::string& first : firsts) RETURN_IF_ERROR(MendLink(first));
  return OkStatus();
}

// Links into ..data that lead nowhere now, and directories of earlier or interrupted runs.
Status PayloadWriter::RemoveLeftOvers(const std::string& current) {
  std::set<std::string> firsts;
  for (const PayloadFile& file : request_.files) firsts.insert(FirstComponent(file.path));
  const Result<DirectoryListing> listed =
      ListOpenDirectory(target_, "list " + request_.target.Display());
  if (!listed.ok()) return listed.error().AsMaybeApplied();
  for (const DirectoryEntry& entry : listed->entries) {
    if (entry.type == FileType::kSymlink && firsts.count(entry.name) == 0 &&
        ReadLink(target_, entry.name) == std::string(kDataLink) + "/" + entry.name) {
      if (::unlinkat(target_, entry.name.c_str(), 0) != 0 && errno != ENOENT) {
        return Failed("remove the stale link " + entry.name, Outcome::kMaybeApplied);
      }
    }
    if (entry.type == FileType::kDirectory && entry.name != current &&
        LooksLikeVersion(entry.name)) {
      const std::string display = request_.target.Display() + "/" + entry.name;
      const Result<Changed> removed = RemoveTreeAt(target_, entry.name, display, meter_);
      if (!removed.ok()) return removed.error().AsMaybeApplied();
    }
  }
  return OkStatus();
}

Result<Changed> PayloadWriter::Run() {
  ASSIGN_OR_RETURN(const std::string old_version, CurrentVersion());
  if (!meter_.Step(0)) return WorkMeter::CancelledError(Outcome::kNotApplied);
  if (::unlinkat(target_, kNewDataLink, 0) != 0 && errno != ENOENT) {
    return Failed("remove a stale ..data_tmp", Outcome::kNotApplied);
  }
  std::string version = old_version;
  bool changed = true;
  if (!old_version.empty()) {
    const Descriptor old(OpenChild(target_, old_version.c_str(), O_RDONLY | O_DIRECTORY));
    changed = !old.valid() || !IsSamePayload(old.get(), request_.files, rights_);
  }
  if (changed) {
    RETURN_IF_ERROR(MakeVersion(version));
    RETURN_IF_ERROR(Publish(version));
  }
  RETURN_IF_ERROR(MendLinks());
  RETURN_IF_ERROR(RemoveLeftOvers(version));
  return Changed{changed};
}

}  // namespace

Status ValidatePayloadPaths(const std::vector<PayloadFile>& files) {
  std::set<std::string> paths;
  std::set<std::string> directories;
  for (const PayloadFile& file : files) {
    RETURN_IF_ERROR(ValidatePayloadPath(file.path));
    if (!paths.insert(file.path).second) return BadPayload(file.path, "is there twice");
    for (size_t slash = file.path.find('/'); slash != std::string::npos;
         slash = file.path.find('/', slash + 1)) {
      directories.insert(file.path.substr(0, slash));
    }
  }
  for (const PayloadFile& file : files) {
    if (directories.count(file.path) != 0) {
      return BadPayload(file.path, "is a file and a directory");
    }
  }
  return OkStatus();
}

Result<Changed> DoWriteAtomicPayload(const WriteAtomicPayload& request,
                                     const CallOptions& options) {
  RETURN_IF_ERROR(ValidatePayloadPaths(request.files));
  ASSIGN_OR_RETURN(const Descriptor target, OpenSafePath(request.target, O_RDONLY | O_DIRECTORY));
  return PayloadWriter(request, target.get(), options).Run();
}

}  // namespace volumed
