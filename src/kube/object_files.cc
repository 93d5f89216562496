#include "kube/object_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <functional>
#include <memory>
#include <system_error>
#include <thread>

#include "base/descriptor.h"
#include "base/strings.h"
#include "kube/decode.h"
#include "kube/digest.h"

namespace volumed {
namespace {

// Begins with a dot and has no ".json": never taken for an object after a crash.
constexpr std::string_view kTemporarySuffix = ".tmp";
constexpr std::string_view kObjectSuffix = ".json";
constexpr char kHashMark = '~';
// Files whose syncs wait together share a commit of the filesystem's journal.
constexpr size_t kMostSyncs = 32;

Error Failed(std::string_view what, const std::string& path, int sys_errno) {
  return Error::FromErrno(sys_errno, std::string(what) + " " + path, Outcome::kNotApplied);
}

Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failed("write", path, errno);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return OkStatus();
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return lower;
}

}  // namespace

Status MakePrivateDirectory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return Failed("make directory", path, errno);
  }
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return Failed("examine directory", path, errno);
  if (!S_ISDIR(status.st_mode)) return Failed("use as a directory", path, ENOTDIR);
  // It holds secrets: what was there before must not be wider.
  if ((status.st_mode & 07777) != 0700 && ::chmod(path.c_str(), 0700) != 0) {
    return Failed("restrict directory", path, errno);
  }
  return OkStatus();
}

Status WriteTemporary(const std::string& path, std::string_view bytes) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return Failed("remove", path, errno);
  const Descriptor fd(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid()) return Failed("create", path, errno);
  return WriteAll(fd.get(), bytes, path);
}

Status SyncFiles(const std::vector<std::string>& paths) {
  std::atomic<size_t> next{0};
  std::vector<Status> first(std::min(paths.size(), kMostSyncs));
  const auto sync = [&](Status& status) {
    for (size_t at = next++; at < paths.size() && status.ok(); at = next++) {
      const Descriptor fd(::open(paths[at].c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
      if (!fd.valid() || ::fsync(fd.get()) != 0) status = Failed("sync", paths[at], errno);
    }
  };
  std::vector<std::thread> others;
  try {
    for (size_t i = 1; i < first.size(); ++i) others.emplace_back(sync, std::ref(first[i]));
  } catch (const std::system_error&) {
    // Without more threads those that there are take longer.
  }
  if (!first.empty()) sync(first[0]);
  for (std::thread& other : others) other.join();
  for (const Status& status : first) RETURN_IF_ERROR(status);
  return OkStatus();
}

Status SyncDirectory(const std::string& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || ::fsync(fd.get()) != 0) return Failed("sync directory", path, errno);
  return OkStatus();
}

Result<std::string> ReadWhole(const std::string& path) {
  ASSIGN_OR_RETURN(
      const Descriptor fd,
      DescriptorFrom(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK),
                     "open " + path));
  std::string bytes;
  std::array<char, 64 * 1024> buffer;
  // One byte more than allowed, which the decoder then refuses.
  while (bytes.size() <= kMaxManifestBytes) {
    const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
    if (count == 0) break;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failed("read", path, errno);
    bytes.append(buffer.data(), static_cast<size_t>(count));
  }
  return bytes;
}

Result<std::vector<std::string>> ListObjectFiles(const std::string& directory) {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(directory.c_str()), ::closedir);
  if (stream == nullptr) return Failed("read directory", directory, errno);
  std::vector<std::string> files;
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name.front() == '.' && StripSuffix(name, kTemporarySuffix)) {
      ::unlinkat(::dirfd(stream.get()), entry->d_name, 0);
    } else if (name.front() != '.' && StripSuffix(name, kObjectSuffix)) {
      files.emplace_back(name);
    }
    errno = 0;
  }
  if (errno != 0) return Failed("read directory", directory, errno);
  return files;
}

std::string TemporaryFileOf(const std::string& file) {
  return "." + file + std::string(kTemporarySuffix);
}

std::string ObjectFileName(const ObjectKey& key) {
  std::string name = LowerCase(ObjectKindName(key.kind)) + "." + key.name_space + "." + key.name;
  constexpr size_t kMaxStem = 200;
  if (name.size() > kMaxStem) {
    name = name.substr(0, kMaxStem) + kHashMark + HalfSha256Hex(name);
  }
  return name + std::string(kObjectSuffix);
}

std::optional<ObjectKey> KeyOfObjectFile(const std::string& file) {
  const std::optional<std::string_view> stem = StripSuffix(file, kObjectSuffix);
  if (!stem || stem->find(kHashMark) != std::string_view::npos) return std::nullopt;
  // Neither a kind nor a namespace holds a dot.
  const size_t first = stem->find('.');
  const size_t second = first == std::string_view::npos ? first : stem->find('.', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  for (const ObjectKind kind : kAllObjectKinds) {
    if (LowerCase(ObjectKindName(kind)) != stem->substr(0, first)) continue;
    ObjectKey key{kind, std::string(stem->substr(first + 1, second - first - 1)),
                  std::string(stem->substr(second + 1))};
    if (ObjectFileName(key) == file) return key;
  }
  return std::nullopt;
}

}  // namespace volumed
