// hangfs: a small filesystem in memory that stops answering on demand.
//
//   hangfs CONTROL MOUNTPOINT [IMAGE]     (stays in the foreground; ends when unmounted, and with
//                                          the thread that started it)
//
// It shows one directory with one file, "file", which can be read; and with IMAGE, a file outside
// of the mount, also "image", which has that one's content, to put a block device on. CONTROL is a
// file outside of the mount; it is read at every operation:
//   empty or missing  operations are answered
//   "hang"            operations wait until the control file changes; a killed caller is let go
//   "dead"            the same, but a killed caller stays: it sleeps uninterruptibly
//   "eio"             what is read from and written to "image" fails with EIO, as on a bad disk
// Whoever waits is woken by a change of the file, so that many dead filesystems cost no time.
#define FUSE_USE_VERSION 31
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace {

constexpr std::string_view kContent = "content\n";
constexpr char kFile[] = "/file";
constexpr char kImage[] = "/image";
// That a waiting caller was killed is announced to nobody.
constexpr std::chrono::milliseconds kLookForKill(5);

// What libfuse's callbacks get as their private data.
struct Setting {
  const char* control;
  int image;  // a descriptor, or -1
};

const Setting& TheSetting() {
  return *static_cast<const Setting*>(fuse_get_context()->private_data);
}

std::string ReadControl() {
  char text[16] = "";
  const int fd = ::open(TheSetting().control, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  const ssize_t size = ::read(fd, text, sizeof(text) - 1);
  ::close(fd);
  std::string word(text, static_cast<size_t>(std::max<ssize_t>(size, 0)));
  while (!word.empty() && word.back() == '\n') word.pop_back();
  return word;
}

// How often the control file's directory has changed.
class Changes {
 public:
  // Before the file is read: what changes afterwards ends the wait for it.
  uint64_t count() {
    const std::lock_guard lock(mu_);
    return count_;
  }
  void Note() {
    const std::lock_guard lock(mu_);
    ++count_;
    changed_.notify_all();
  }
  void Wait(uint64_t seen, bool may_be_killed) {
    std::unique_lock lock(mu_);
    const auto is_new = [&] { return count_ != seen; };
    if (may_be_killed) {
      changed_.wait_for(lock, kLookForKill, is_new);
    } else {
      changed_.wait(lock, is_new);
    }
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  uint64_t count_ = 0;
};

// Outlives main(): threads wait on it until the process ends.
Changes& TheChanges() {
  static Changes& changes = *new Changes();
  return changes;
}

// -1 where the directory cannot be watched.
int WatchDirectoryOf(const std::string& control) {
  const size_t slash = control.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : control.substr(0, slash + 1);
  const int watch = ::inotify_init1(IN_CLOEXEC);
  constexpr uint32_t kEvents = IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE;
  if (watch < 0 || ::inotify_add_watch(watch, directory.c_str(), kEvents) < 0) return -1;
  return watch;
}

void FollowChanges(int watch) {
  char events[4096];
  while (::read(watch, events, sizeof(events)) > 0) TheChanges().Note();
}

// 0 once the operation may be answered.
int WaitUntilHealthy() {
  while (true) {
    const uint64_t seen = TheChanges().count();
    const std::string control = ReadControl();
    if (control.empty() || control == "eio") return 0;
    if (control == "hang" && fuse_interrupted() != 0) return -EINTR;
    TheChanges().Wait(seen, control == "hang");
  }
}

bool IsImage(const char* path) { return TheSetting().image >= 0 && std::strcmp(path, kImage) == 0; }

// 0 once the content of the image may be touched.
int WaitForDisk() {
  if (const int failure = WaitUntilHealthy()) return failure;
  return ReadControl() == "eio" ? -EIO : 0;
}

int GetAttributes(const char* path, struct stat* stat, fuse_file_info*) {
  if (const int failure = WaitUntilHealthy()) return failure;
  std::memset(stat, 0, sizeof(*stat));
  if (std::strcmp(path, "/") == 0) {
    stat->st_mode = S_IFDIR | 0755;
    stat->st_nlink = 2;
    return 0;
  }
  if (IsImage(path)) return ::fstat(TheSetting().image, stat) == 0 ? 0 : -errno;
  if (std::strcmp(path, kFile) != 0) return -ENOENT;
  stat->st_mode = S_IFREG | 0644;
  stat->st_nlink = 1;
  stat->st_size = static_cast<off_t>(kContent.size());
  return 0;
}

int ReadDirectory(const char* path, void* out, fuse_fill_dir_t fill, off_t, fuse_file_info*,
                  fuse_readdir_flags) {
  if (const int failure = WaitUntilHealthy()) return failure;
  if (std::strcmp(path, "/") != 0) return -ENOTDIR;
  for (const char* name : {".", "..", "file"}) {
    fill(out, name, nullptr, 0, static_cast<fuse_fill_dir_flags>(0));
  }
  if (IsImage(kImage)) fill(out, "image", nullptr, 0, static_cast<fuse_fill_dir_flags>(0));
  return 0;
}

int Open(const char* path, fuse_file_info*) {
  if (const int failure = WaitUntilHealthy()) return failure;
  return std::strcmp(path, kFile) == 0 || IsImage(path) ? 0 : -ENOENT;
}

int Read(const char* path, char* out, size_t size, off_t offset, fuse_file_info*) {
  if (IsImage(path)) {
    if (const int failure = WaitForDisk()) return failure;
    const ssize_t got = ::pread(TheSetting().image, out, size, offset);
    return got < 0 ? -errno : static_cast<int>(got);
  }
  if (const int failure = WaitUntilHealthy()) return failure;
  const auto start = std::min(static_cast<size_t>(offset), kContent.size());
  const size_t length = std::min(size, kContent.size() - start);
  std::memcpy(out, kContent.data() + start, length);
  return static_cast<int>(length);
}

int Write(const char* path, const char* data, size_t size, off_t offset, fuse_file_info*) {
  if (!IsImage(path)) return -EACCES;
  if (const int failure = WaitForDisk()) return failure;
  const ssize_t put = ::pwrite(TheSetting().image, data, size, offset);
  return put < 0 ? -errno : static_cast<int>(put);
}

int Sync(const char* path, int, fuse_file_info*) { return IsImage(path) ? WaitForDisk() : 0; }

int StatFilesystem(const char*, struct statvfs* stat) {
  if (const int failure = WaitUntilHealthy()) return failure;
  std::memset(stat, 0, sizeof(*stat));
  stat->f_bsize = stat->f_frsize = 4096;
  stat->f_blocks = 1000;
  stat->f_bfree = stat->f_bavail = 400;
  stat->f_files = 10;
  stat->f_ffree = 8;
  return 0;
}

// No caching: every question of the kernel shall reach us, and may hang.
void* Start(fuse_conn_info*, fuse_config* config) {
  config->attr_timeout = 0;
  config->entry_timeout = 0;
  config->negative_timeout = 0;
  return fuse_get_context()->private_data;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 64;
  // A test that is killed must leave nobody behind who sleeps uninterruptibly.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  Setting setting{argv[1], -1};
  if (argc == 4) {
    setting.image = ::open(argv[3], O_RDWR | O_CLOEXEC);
    if (setting.image < 0) return 66;
  }
  const int watch = WatchDirectoryOf(argv[1]);
  if (watch < 0) return 71;
  std::thread(FollowChanges, watch).detach();
  fuse_operations operations = {};
  operations.init = Start;
  operations.getattr = GetAttributes;
  operations.readdir = ReadDirectory;
  operations.open = Open;
  operations.read = Read;
  operations.write = Write;
  operations.fsync = Sync;
  operations.statfs = StatFilesystem;
  char foreground[] = "-f";
  char option[] = "-o";
  char options[] = "allow_other,fsname=hangfs,subtype=hangfs";
  char* arguments[] = {argv[0], foreground, option, options, argv[2], nullptr};
  return fuse_main(5, arguments, &operations, &setting);
}
