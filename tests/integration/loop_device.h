// LoopDevice: a real block device for a test, on an image file.
#pragma once

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "base/descriptor.h"

namespace volumed {

// A sparse file of this size. False when it cannot be made.
inline bool MakeImage(const std::string& path, int64_t size_bytes) {
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  return file.valid() && ::ftruncate(file.get(), size_bytes) == 0;
}

inline bool HasLoopDevices() {
  return Descriptor(::open("/dev/loop-control", O_RDWR | O_CLOEXEC)).valid();
}

// How many descriptors of all processes lead to the device, under whatever name.
inline size_t DescriptorsOf(const std::string& device) {
  struct stat own {};
  if (::stat(device.c_str(), &own) != 0) return 0;
  size_t count = 0;
  for (const auto& process : std::filesystem::directory_iterator("/proc")) {
    std::error_code error;
    for (const auto& open : std::filesystem::directory_iterator(process.path() / "fd", error)) {
      struct stat held {};
      const bool is_there = ::stat(open.path().c_str(), &held) == 0;
      count += is_there && S_ISBLK(held.st_mode) && held.st_rdev == own.st_rdev ? 1 : 0;
    }
  }
  return count;
}

// Detached, and its node removed if there are more than usual, by the destructor.
class LoopDevice {
 public:
  explicit LoopDevice(const std::string& image, bool read_only = false) {
    const Descriptor control(::open("/dev/loop-control", O_RDWR | O_CLOEXEC));
    const Descriptor file(::open(image.c_str(), (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC));
    // Another test may take the free one first.
    for (int attempt = 0; attempt < 1000 && control.valid() && file.valid(); ++attempt) {
      const int number = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
      if (number < 0) return;
      const std::string path = "/dev/loop" + std::to_string(number);
      const Descriptor device(::open(path.c_str(), (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC));
      if (!device.valid()) continue;
      loop_config config = {};
      config.fd = static_cast<unsigned>(file.get());
      config.info.lo_flags = read_only ? static_cast<unsigned>(LO_FLAGS_READ_ONLY) : 0u;
      if (::ioctl(device.get(), LOOP_CONFIGURE, &config) == 0) {
        path_ = path;
        number_ = number;
        return;
      }
      if (errno != EBUSY) return;
    }
  }
  ~LoopDevice() { Detach(); }
  LoopDevice(LoopDevice&& other) noexcept
      : path_(std::exchange(other.path_, "")), number_(other.number_) {}
  LoopDevice& operator=(LoopDevice&&) = delete;

  // One that was released.
  static LoopDevice Adopted(const std::string& path) {
    LoopDevice device;
    device.path_ = path;
    device.number_ = std::atoi(path.c_str() + sizeof("/dev/loop") - 1);
    return device;
  }

  bool valid() const { return !path_.empty(); }
  // It stays attached, and is the caller's.
  std::string Release() { return std::exchange(path_, ""); }
  const std::string& path() const { return path_; }

  void Detach() {
    if (path_.empty()) return;
    {
      const Descriptor device(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
      ::ioctl(device.get(), LOOP_CLR_FD);
    }
    constexpr int kUsualNodes = 8;
    if (number_ >= kUsualNodes) {
      const Descriptor control(::open("/dev/loop-control", O_RDWR | O_CLOEXEC));
      ::ioctl(control.get(), LOOP_CTL_REMOVE, number_);
    }
    path_.clear();
  }

 private:
  LoopDevice() = default;

  std::string path_;
  int number_ = -1;
};

}  // namespace volumed
