#include "kube/manifest_reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "base/strings.h"
#include "kube/static_pod.h"

namespace volumed {
namespace {

std::string ParentOf(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool SameContent(const struct stat& a, const struct stat& b) {
  return a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

ManifestReading Unreadable(const std::string& file, std::string_view what, int sys_errno) {
  ManifestReading reading;
  reading.file = file;
  reading.what = ManifestReading::What::kUnreadable;
  reading.error = std::string(what) + ": " + ErrnoName(sys_errno);
  return reading;
}

// Up to one byte more than a manifest may have, so that a larger one is noticed.
std::optional<std::string> ReadAll(int fd) {
  std::string bytes;
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

// Pods without a uid become static pods of this node; a pod that cannot is a problem.
void CompletePods(const NodeName& node_name, const std::string& path, ManifestDecode& decode) {
  std::vector<DecodedObject> complete;
  for (DecodedObject& decoded : decode.objects) {
    if (Pod* pod = std::get_if<Pod>(&decoded.object)) {
      const Status status = ApplyStaticPodDefaults(node_name, path, *pod);
      if (!status.ok()) {
        decode.problems.push_back({path, decoded.document, ToString(KeyOf(decoded.object)),
                                   "metadata.name", status.error().message()});
        continue;
      }
    }
    complete.push_back(std::move(decoded));
  }
  decode.objects = std::move(complete);
}

ManifestReading ReadOne(const std::string& directory, int directory_fd, const std::string& file,
                        const NodeName& node_name) {
  // O_NONBLOCK: opening a FIFO of that name must not wait for a writer.
  const Descriptor fd(
      ::openat(directory_fd, file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  ManifestReading reading;
  reading.file = file;
  if (!fd.valid()) {
    const int sys_errno = errno;
    struct stat link {};
    const bool is_there = ::fstatat(directory_fd, file.c_str(), &link, AT_SYMLINK_NOFOLLOW) == 0;
    if (is_there || sys_errno != ENOENT) {
      return Unreadable(
          file, is_there && S_ISLNK(link.st_mode) ? "cannot follow its link" : "cannot be opened",
          sys_errno);
    }
    reading.what = ManifestReading::What::kGone;
    return reading;
  }
  struct stat before {};
  struct stat after {};
  if (::fstat(fd.get(), &before) != 0) return Unreadable(file, "cannot be examined", errno);
  if (!S_ISREG(before.st_mode)) {
    reading.what = ManifestReading::What::kUnreadable;
    reading.error = "is not a regular file";
    return reading;
  }
  const std::optional<std::string> bytes = ReadAll(fd.get());
  if (!bytes) return Unreadable(file, "cannot be read", errno);
  if (::fstat(fd.get(), &after) != 0) return Unreadable(file, "cannot be examined", errno);
  if (!SameContent(before, after)) {
    reading.what = ManifestReading::What::kChanging;
    return reading;
  }
  const std::string path = directory + "/" + file;
  reading.decode = DecodeManifest(path, *bytes);
  CompletePods(node_name, path, reading.decode);
  return reading;
}

// Where the link leads, if the file is a link that leads anywhere.
std::optional<LinkTarget> TargetOf(int directory_fd, const std::string& file) {
  struct stat link {};
  if (::fstatat(directory_fd, file.c_str(), &link, AT_SYMLINK_NOFOLLOW) != 0 ||
      !S_ISLNK(link.st_mode)) {
    return std::nullopt;
  }
  const std::string path = "/proc/self/fd/" + std::to_string(directory_fd) + "/" + file;
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), std::free);
  if (real == nullptr) return std::nullopt;
  const std::string target = real.get();
  Result<OpenDirectory> parent = OpenDirectoryAt(ParentOf(target));
  if (!parent.ok()) return std::nullopt;
  return LinkTarget{file, *std::move(parent), target.substr(target.find_last_of('/') + 1)};
}

}  // namespace

bool IsManifestName(std::string_view file) {
  if (file.empty() || file.front() == '.') return false;
  return StripSuffix(file, ".yaml") || StripSuffix(file, ".yml") || StripSuffix(file, ".json");
}

Result<OpenDirectory> OpenDirectoryAt(const std::string& path) {
  ASSIGN_OR_RETURN(Descriptor fd,
                   DescriptorFrom(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                                  "open directory " + path));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) {
    return Error::FromErrno(errno, "examine directory " + path, Outcome::kNotApplied);
  }
  return OpenDirectory{std::move(fd), {status.st_dev, status.st_ino}};
}

Result<NearestParent> OpenNearestParent(const std::string& path) {
  std::string below = path;
  while (true) {
    const std::string parent = ParentOf(below);
    Result<OpenDirectory> opened = OpenDirectoryAt(parent);
    if (opened.ok()) {
      return NearestParent{*std::move(opened), below.substr(below.find_last_of('/') + 1)};
    }
    if (parent == "/" || parent == ".") return opened.error();
    below = parent;
  }
}

ManifestScan ReadManifests(const std::string& directory, const Descriptor& fd,
                           const std::vector<std::string>& files, const NodeName& node_name) {
  ManifestScan scan;
  for (const std::string& file : files) {
    scan.readings.push_back(ReadOne(directory, fd.get(), file, node_name));
    if (std::optional<LinkTarget> target = TargetOf(fd.get(), file)) {
      scan.targets.push_back(*std::move(target));
    }
  }
  return scan;
}

bool IsCompleteAtCreation(const Descriptor& fd, const std::string& file) {
  struct stat status {};
  return ::fstatat(fd.get(), file.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         (!S_ISREG(status.st_mode) || status.st_nlink > 1);
}

Result<std::vector<std::string>> ListManifests(const Descriptor& fd) {
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
    if (IsManifestName(entry->d_name)) files.emplace_back(entry->d_name);
    errno = 0;
  }
  if (errno != 0) return Error::FromErrno(errno, "read the directory", Outcome::kNotApplied);
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace volumed
