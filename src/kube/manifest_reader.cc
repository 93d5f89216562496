#include "kube/manifest_reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "base/printable_text.h"
#include "base/strings.h"
#include "kube/prepare_for_create.h"
#include "kube/static_pod.h"

namespace volumed {
namespace {

constexpr int kMostLinks = 40;  // as the kernel's own limit; path_resolution(7)

FileStamp StampOf(const struct stat& status) {
  const auto nanos = [](const timespec& time) {
    return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
  };
  return {status.st_ino, status.st_size, nanos(status.st_mtim), nanos(status.st_ctim)};
}

// Up to one byte more than a manifest may have, so that a larger one is noticed.
std::optional<std::string> ReadAll(int fd, size_t expected) {
  std::string bytes;
  bytes.reserve(std::min(expected, kMaxManifestBytes) + 1);
  std::array<char, 64 * 1024> buffer;
  while (bytes.size() <= kMaxManifestBytes) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count == 0) return bytes;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    bytes.append(buffer.data(), static_cast<size_t>(count));
  }
  return bytes;
}

// A read lease is refused while somebody has the file open for writing, under whatever name, or
// mapped so. Clients of servers refuse it also if their server has not given them a delegation.
// Source: Linux fs/locks.c (generic_add_lease), fs/nfs/nfs4file.c (nfs4_setlease),
// fs/smb/client/cifsfs.c (cifs_setlease).
bool TellsWriters(int fd) {
  struct statfs filesystem {};
  if (::fstatfs(fd, &filesystem) != 0) return false;
  constexpr uint32_t kOfServers[] = {NFS_SUPER_MAGIC, CIFS_SUPER_MAGIC, SMB2_SUPER_MAGIC};
  return std::find(std::begin(kOfServers), std::end(kOfServers),
                   static_cast<uint32_t>(filesystem.f_type)) == std::end(kOfServers);
}

// The lease is given back at once. Who opens the file just then waits for that, and this thread
// would get a SIGIO: it is taken off the thread's own queue. False if the filesystem knows no
// leases. Source: fcntl(2), F_SETLEASE.
bool HasWriter(int fd) {
  if (!TellsWriters(fd)) return false;
  sigset_t sigio;
  sigset_t before;
  ::sigemptyset(&sigio);
  ::sigaddset(&sigio, SIGIO);
  if (::pthread_sigmask(SIG_BLOCK, &sigio, &before) != 0) return false;
  const bool given = ::fcntl(fd, F_SETLEASE, F_RDLCK) == 0;
  const bool refused = !given && errno == EAGAIN;
  if (given) ::fcntl(fd, F_SETLEASE, F_UNLCK);
  const timespec at_once{};
  while (::sigtimedwait(&sigio, nullptr, &at_once) > 0) {
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return refused;
}

// What is said of a pod is looked for by the name that it has on this node.
void RenameWarnings(int document, const std::string& from, const std::string& to,
                    std::vector<DecodeProblem>& warnings) {
  for (DecodeProblem& warning : warnings) {
    if (warning.document == document && warning.object == from) warning.object = to;
  }
}

// A manifest that was saved from a cluster says of another time that its object is being deleted,
// or has ended. When it was made there is no harm.
void LeaveOutWhatAServerSets(Object& object) {
  const std::optional<int64_t> created = MetaOf(object).creation_unix_millis;
  PrepareForCreate(object);
  MetaOf(object).creation_unix_millis = created;
}

// Pods without a uid become static pods of this node; a pod that cannot is a problem.
void CompleteObjects(const NodeName& node_name, const std::string& path, ManifestDecode& decode) {
  std::vector<DecodedObject> complete;
  for (DecodedObject& decoded : decode.objects) {
    LeaveOutWhatAServerSets(decoded.object);
    if (Pod* pod = std::get_if<Pod>(&decoded.object)) {
      const std::string written = ToString(KeyOf(decoded.object));
      const Status status = ApplyStaticPodDefaults(node_name, *pod);
      if (!status.ok()) {
        decode.problems.push_back({path, decoded.document, ToString(KeyOf(decoded.object)),
                                   "metadata.name", status.error().message()});
        continue;
      }
      RenameWarnings(decoded.document, written, ToString(KeyOf(decoded.object)), decode.warnings);
    }
    complete.push_back(std::move(decoded));
  }
  decode.objects = std::move(complete);
}

void Decode(const NodeName& node_name, const std::string& path, const std::string& bytes,
            ManifestReading& reading) {
  ManifestDecode decoded = DecodeManifest(path, bytes);
  CompleteObjects(node_name, path, decoded);
  reading.Take(std::move(decoded));
}

// O_NONBLOCK: opening a FIFO of that name must not wait for a writer.
constexpr int kToRead = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

// EXDEV, before anything behind a mount point was asked, for a way out of the directory's mount.
// Source: openat2(2).
Descriptor OpenManifest(int directory, const std::string& file) {
  open_how how = {};
  how.flags = static_cast<uint64_t>(kToRead);
  how.resolve = RESOLVE_NO_XDEV;
  return Descriptor(
      static_cast<int>(::syscall(SYS_openat2, directory, file.c_str(), &how, sizeof(how))));
}

std::string LinkText(int directory, const std::string& file) {
  std::array<char, PATH_MAX> text;
  const ssize_t size = ::readlinkat(directory, file.c_str(), text.data(), text.size());
  return size < 0 ? "" : std::string(text.data(), static_cast<size_t>(size));
}

// Reads one file. Its methods are the steps.
class FileReader {
 public:
  FileReader(const std::string& directory, int directory_fd, std::string file,
             const ScanOptions& options)
      : path_(PrintableText(directory + "/" + file)),
        directory_fd_(directory_fd),
        options_(options) {
    reading_.file = std::move(file);
  }

  // nullopt for a file that is too large for now, or leads elsewhere.
  std::optional<ManifestReading> Read() {
    const Descriptor fd = OpenManifest(directory_fd_, reading_.file);
    is_far_ = !fd.valid() && errno == EXDEV;
    if (is_far_) return std::nullopt;
    if (!fd.valid()) return NotOpened(errno);
    struct stat before {};
    if (::fstat(fd.get(), &before) != 0) return Unreadable("cannot be examined", errno);
    reading_.stamp = StampOf(before);
    if (!S_ISREG(before.st_mode)) return Unreadable("is not a regular file");
    const auto size = static_cast<size_t>(before.st_size);
    if (size > kMaxManifestBytes) {
      return Unreadable("is larger than " + std::to_string(kMaxManifestBytes) + " bytes");
    }
    if (size > options_.max_bytes) return std::nullopt;
    return ReadContent(fd.get(), before);
  }
  bool is_far() const { return is_far_; }

 private:
  ManifestReading ReadContent(int fd, const struct stat& before) {
    if (HasWriter(fd)) return Changing();
    const std::optional<std::string> bytes = ReadAll(fd, static_cast<size_t>(before.st_size));
    if (!bytes) return Unreadable("cannot be read", errno);
    struct stat after {};
    if (::fstat(fd, &after) != 0) return Unreadable("cannot be examined", errno);
    if (!(StampOf(before) == StampOf(after))) return Changing();
    Decode(options_.node_name, path_, *bytes, reading_);
    return std::move(reading_);
  }

  ManifestReading NotOpened(int sys_errno) {
    struct stat link {};
    const bool is_there =
        ::fstatat(directory_fd_, reading_.file.c_str(), &link, AT_SYMLINK_NOFOLLOW) == 0;
    if (!is_there && sys_errno == ENOENT) {
      reading_.what = ManifestReading::What::kGone;
      return std::move(reading_);
    }
    if (is_there) reading_.stamp = StampOf(link);
    const bool is_link = is_there && S_ISLNK(link.st_mode);
    return Unreadable(is_link ? "cannot follow its link" : "cannot be opened", sys_errno);
  }

  // Who writes by another name of the file, or by a mapping, ends without an event.
  ManifestReading Changing() {
    reading_.what = ManifestReading::What::kChanging;
    reading_.try_again = true;
    return std::move(reading_);
  }
  ManifestReading Unreadable(std::string why) {
    reading_.what = ManifestReading::What::kUnreadable;
    reading_.error = std::move(why);
    return std::move(reading_);
  }
  ManifestReading Unreadable(std::string_view what, int sys_errno) {
    // Of these an event tells when they are over.
    static constexpr int kTold[] = {ENOENT, ENOTDIR, ELOOP, EACCES, EPERM, ENAMETOOLONG, ENXIO};
    reading_.try_again =
        std::find(std::begin(kTold), std::end(kTold), sys_errno) == std::end(kTold);
    return Unreadable(std::string(what) + ": " + std::string(ErrnoName(sys_errno)));
  }

  const std::string path_;  // for people
  const int directory_fd_;
  const ScanOptions& options_;
  ManifestReading reading_;
  bool is_far_ = false;
};

Result<OpenDirectory> OpenBelow(int directory, const char* name) {
  ASSIGN_OR_RETURN(Descriptor fd,
                   DescriptorFrom(::openat(directory, name, O_PATH | O_DIRECTORY | O_CLOEXEC),
                                  "open a directory"));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) {
    return Error::FromErrno(errno, "examine a directory", Outcome::kNotApplied);
  }
  return OpenDirectory{std::move(fd), {status.st_dev, status.st_ino}};
}

// Puts the parts of a path before those that are left to walk.
void Prepend(const std::string& path, std::vector<std::string>& rest) {
  std::vector<std::string> parts = SplitNonEmpty(path, '/');
  rest.insert(rest.end(), parts.rbegin(), parts.rend());  // `rest` is walked from its end
}

void AddTargets(const Descriptor& directory, const std::string& file,
                std::vector<LinkTarget>& targets) {
  struct stat status {};
  if (::fstatat(directory.get(), file.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
      !S_ISLNK(status.st_mode)) {
    return;
  }
  PathWalk walk = WalkPath(directory, file);
  // The first link is the manifest itself, whose directory is watched as a whole.
  for (size_t i = 1; i < walk.links.size(); ++i) {
    targets.push_back({file, std::move(walk.links[i])});
  }
  if (walk.last) targets.push_back({file, *std::move(walk.last)});
}

}  // namespace

PathWalk WalkPath(const Descriptor& start, const std::string& path) {
  PathWalk walk;
  const auto root_or = [&start](const std::string& p) {
    return p.starts_with('/') ? OpenBelow(AT_FDCWD, "/") : OpenBelow(start.get(), ".");
  };
  Result<OpenDirectory> at = root_or(path);
  std::vector<std::string> rest;
  Prepend(path, rest);
  while (at.ok() && !rest.empty()) {
    const std::string name = std::move(rest.back());
    rest.pop_back();
    struct stat status {};
    const bool is_there = ::fstatat(at->fd.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (is_there && S_ISLNK(status.st_mode) && walk.links.size() < kMostLinks) {
      std::array<char, PATH_MAX> text;
      const ssize_t size = ::readlinkat(at->fd.get(), name.c_str(), text.data(), text.size());
      if (size < 0) return walk;
      const std::string target(text.data(), static_cast<size_t>(size));
      Prepend(target, rest);
      Result<OpenDirectory> next = OpenBelow(target.starts_with('/') ? AT_FDCWD : at->fd.get(),
                                             target.starts_with('/') ? "/" : ".");
      walk.links.push_back({*std::move(at), name});
      at = std::move(next);
      continue;
    }
    const bool goes_on = is_there && !rest.empty() && S_ISDIR(status.st_mode);
    if (!goes_on) {
      walk.is_there = is_there && rest.empty() && !S_ISLNK(status.st_mode);
      walk.last = PathPoint{*std::move(at), name};
      return walk;
    }
    at = OpenBelow(at->fd.get(), name.c_str());
  }
  return walk;
}

bool IsManifestName(std::string_view file) {
  if (file.empty() || file.front() == '.') return false;
  return StripSuffix(file, ".yaml") || StripSuffix(file, ".yml") || StripSuffix(file, ".json");
}

bool IsUnreadName(std::string_view file) {
  return !file.empty() && file.front() != '.' && !IsManifestName(file);
}

ManifestScan ReadManifests(const std::string& directory, const Descriptor& fd,
                           const std::vector<std::string>& files, const ScanOptions& options) {
  ManifestScan scan;
  for (const std::string& file : files) {
    FileReader reader(directory, fd.get(), file, options);
    std::optional<ManifestReading> reading = reader.Read();
    if (reader.is_far()) {
      scan.far.push_back({file, LinkText(fd.get(), file)});
      continue;  // to walk there could wait as well
    }
    if (reading) {
      scan.readings.push_back(*std::move(reading));
    } else {
      scan.large.push_back(file);
    }
    AddTargets(fd, file, scan.targets);
  }
  return scan;
}

ManifestScan ReadFarManifest(const std::string& directory, const Descriptor& fd,
                             const std::string& file, const NodeName& node_name,
                             const FarReader& read) {
  const std::string path = directory + "/" + file;
  const FarContent content = read(path);
  ManifestReading reading;
  reading.file = file;
  // Whoever may be watched may be asked, too.
  const bool is_written = content.status.ok() && content.may_watch &&
                          HasWriter(Descriptor(::open(path.c_str(), kToRead)).get());
  if (is_written) {
    reading.what = ManifestReading::What::kChanging;
    reading.try_again = true;
  } else if (content.status.ok()) {
    const size_t hash = std::hash<std::string>()(content.bytes);
    reading.stamp = {0, static_cast<int64_t>(content.bytes.size()), static_cast<int64_t>(hash), 0};
    Decode(node_name, path, content.bytes, reading);
  } else {
    const Error& error = content.status.error();
    const bool silent =
        error.code() == Code::kDeadlineExceeded || error.code() == Code::kUnavailable;
    reading.what = ManifestReading::What::kUnreadable;
    reading.error = (silent ? "does not answer: " : "cannot follow its link: ") + error.message();
    reading.try_again = true;
  }
  ManifestScan scan;
  scan.readings.push_back(std::move(reading));
  if (content.may_watch) AddTargets(fd, file, scan.targets);
  return scan;
}

bool IsCompleteAtCreation(const Descriptor& fd, const std::string& file) {
  struct stat status {};
  return ::fstatat(fd.get(), file.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         (!S_ISREG(status.st_mode) || status.st_nlink > 1);
}

Result<std::vector<std::string>> ListManifests(const Descriptor& fd,
                                               std::vector<std::string>& unread) {
  // A descriptor of its own: the position of a directory stream is shared by duplicates.
  Descriptor copy(::openat(fd.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!copy.valid()) return Error::FromErrno(errno, "open the directory", Outcome::kNotApplied);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(copy.get()), ::closedir);
  if (stream == nullptr) {
    return Error::FromErrno(errno, "read the directory", Outcome::kNotApplied);
  }
  static_cast<void>(copy.Release());  // the stream's now
  std::vector<std::string> files;
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    if (IsManifestName(entry->d_name)) {
      files.emplace_back(entry->d_name);
    } else if (entry->d_type != DT_DIR && IsUnreadName(entry->d_name) &&
               unread.size() < kMaxUnreadNames) {
      unread.emplace_back(entry->d_name);
    }
    errno = 0;
  }
  if (errno != 0) return Error::FromErrno(errno, "read the directory", Outcome::kNotApplied);
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace volumed
