#include "integration/attacher/udev_lab.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>
#include <utility>

#include "integration/loop_device.h"
#include "os/udev_device_catalog.h"

namespace volumed {
namespace {

namespace fs = std::filesystem;

constexpr char kUdevd[] = "/lib/systemd/systemd-udevd";
constexpr int kFirstLoop = 500;
constexpr int kLastLoop = 999;

// The volume's name comes from the image, so it goes with the disk and not with the node.
constexpr char kRules[] =
    "SUBSYSTEM==\"block\", KERNEL==\"loop[5-9][0-9][0-9]\", "
    "ATTR{loop/backing_file}==\"*/vol-*\", "
    "PROGRAM=\"/usr/bin/basename $attr{loop/backing_file}\", "
    "ENV{ID_SERIAL}=\"$result\", SYMLINK+=\"disk/by-id/virtio-$result\"\n";

bool Until(std::chrono::milliseconds limit, const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

Descriptor LoopControl() { return Descriptor(::open("/dev/loop-control", O_RDWR | O_CLOEXEC)); }

}  // namespace

std::string MissingForUdevLab() {
  if (::access(kUdevd, X_OK) != 0) return "udev";
  if (!HasLoopDevices()) return "loop devices";
  static const bool kHasNamespace = ::unshare(CLONE_NEWNET) == 0;
  return kHasNamespace ? "" : "CAP_SYS_ADMIN";
}

UdevLab::UdevLab()
    : lock_(::open("/tmp/volumed-udev-lab.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
  ::flock(lock_.get(), LOCK_EX);
  std::error_code ignored;
  for (fs::recursive_directory_iterator at("/dev", ignored), end; at != end;
       at.increment(ignored)) {
    struct stat info = {};
    if (::lstat(at->path().c_str(), &info) != 0) continue;
    if (S_ISDIR(info.st_mode) && at->path().parent_path() == "/dev" &&
        at->path().filename() != "net") {
      at.disable_recursion_pending();
    }
    if (!S_ISBLK(info.st_mode) && !S_ISCHR(info.st_mode)) continue;
    modes_.push_back({at->path(), info.st_mode & 07777, info.st_uid, info.st_gid});
  }
  for (const char* directory : {"/run/udev", "/dev/disk", "/dev/block"}) {
    if (::mkdir(directory, 0755) == 0) made_.push_back(directory);
    if (::mount("lab", directory, "tmpfs", 0, "mode=0755") == 0) mounted_.push_back(directory);
  }
  fs::create_directories("/run/udev/rules.d", ignored);
  std::ofstream("/run/udev/rules.d/61-lab.rules") << kRules;
}

UdevLab::~UdevLab() {
  StopUdevd();
  for (const std::string& directory : mounted_) ::umount2(directory.c_str(), MNT_DETACH);
  for (const std::string& directory : made_) ::rmdir(directory.c_str());
  for (const NodeMode& node : modes_) {
    struct stat info = {};
    if (::lstat(node.path.c_str(), &info) != 0) continue;
    if (info.st_uid != node.uid || info.st_gid != node.gid) {
      if (::lchown(node.path.c_str(), node.uid, node.gid) != 0) continue;
    }
    if ((info.st_mode & 07777) != node.mode) ::chmod(node.path.c_str(), node.mode);
  }
}

bool UdevLab::StartUdevd() {
  std::string program = kUdevd;
  char* const arguments[] = {program.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  const int rc = ::posix_spawn(&udevd_, kUdevd, &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (rc != 0) udevd_ = -1;
  return rc == 0 && Until(std::chrono::seconds(10), UdevdListens);
}

void UdevLab::StopUdevd() {
  if (udevd_ < 0) return;
  ::kill(udevd_, SIGTERM);
  const bool ended =
      Until(std::chrono::seconds(10), [this] { return ::waitpid(udevd_, nullptr, WNOHANG) != 0; });
  if (!ended) {
    ::kill(udevd_, SIGKILL);
    ::waitpid(udevd_, nullptr, 0);
  }
  udevd_ = -1;
}

std::string VolumeLink(const std::string& volume) { return "/dev/disk/by-id/virtio-" + volume; }

LabLoop::LabLoop() {
  const Descriptor control = LoopControl();
  for (int number = kFirstLoop; number <= kLastLoop && number_ < 0; ++number) {
    if (::ioctl(control.get(), LOOP_CTL_ADD, number) == number) number_ = number;
  }
}

LabLoop::~LabLoop() {
  if (number_ < 0) return;
  Detach();
  Remove();
}

LabLoop::LabLoop(LabLoop&& other) noexcept : number_(std::exchange(other.number_, -1)) {}

bool LabLoop::Attach(const std::string& image) {
  const Descriptor file(::open(image.c_str(), O_RDWR | O_CLOEXEC));
  const Descriptor device(::open(node().c_str(), O_RDWR | O_CLOEXEC));
  loop_config config = {};
  config.fd = static_cast<unsigned>(file.get());
  // udevd may hold a device that was detached a moment ago, which then goes with its last user.
  return file.valid() && device.valid() &&
         Until(std::chrono::seconds(5),
               [&] {
                 return ::ioctl(device.get(), LOOP_CONFIGURE, &config) == 0 || errno != EBUSY;
               }) &&
         fs::exists("/sys/block/" + name() + "/loop/backing_file");
}

bool LabLoop::Detach() {
  const Descriptor device(::open(node().c_str(), O_RDONLY | O_CLOEXEC));
  return ::ioctl(device.get(), LOOP_CLR_FD) == 0;
}

bool LabLoop::Resize() {
  const Descriptor device(::open(node().c_str(), O_RDONLY | O_CLOEXEC));
  return ::ioctl(device.get(), LOOP_SET_CAPACITY) == 0;
}

bool LabLoop::Remove() {
  const Descriptor control = LoopControl();
  const bool removed = Until(std::chrono::seconds(5), [&] {
    return ::ioctl(control.get(), LOOP_CTL_REMOVE, number_) >= 0 || errno != EBUSY;
  });
  if (removed) number_ = -1;
  return removed;
}

}  // namespace volumed
