// libudev, one thin class per object: context, device, monitor, enumeration. No policy; see
// os/udev_device_catalog.h for what the program makes of it.
//
// Threads: one at a time for a context and everything made from it. Blocks: never, but for sysfs
// and /run/udev. Source: libudev(3), version 252.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

struct udev;
struct udev_device;
struct udev_enumerate;
struct udev_monitor;

namespace volumed {

// Gives libudev's objects back to it: each handle has one reference of its own.
struct UdevDeleter {
  void operator()(udev* object) const;
  void operator()(udev_device* object) const;
  void operator()(udev_enumerate* object) const;
  void operator()(udev_monitor* object) const;
};
template <typename T>
using UdevHandle = std::unique_ptr<T, UdevDeleter>;

// libudev's context, from which all others are made.
class UdevContext {
 public:
  // Errors: ResourceExhausted, not applied.
  static Result<UdevContext> Create();
  udev* get() const { return handle_.get(); }

 private:
  explicit UdevContext(UdevHandle<udev> handle) : handle_(std::move(handle)) {}
  UdevHandle<udev> handle_;
};

// A device as it was when it was asked for, or as an event described it.
class UdevDevice {
 public:
  explicit UdevDevice(UdevHandle<udev_device> handle) : handle_(std::move(handle)) {}

  // Look a device up in sysfs and in udevd's database. nullopt: there is no such device now.
  // Errors: errno, not applied.
  static Result<std::optional<UdevDevice>> FromBlockNumber(const UdevContext& context,
                                                           dev_t number);
  static Result<std::optional<UdevDevice>> FromName(const UdevContext& context,
                                                    const std::string& subsystem,
                                                    const std::string& name);
  static Result<std::optional<UdevDevice>> FromSysfsPath(const UdevContext& context,
                                                         const std::string& path);

  // Each is empty if there is none. What udevd or a device says may have any bytes.
  std::string action() const;  // "add", "change", "remove", ..; of an event
  std::string name() const;    // "loop7"
  std::string node() const;    // "/dev/loop7"
  std::string sysfs_path() const;
  std::string type() const;                            // "disk", "partition"
  std::string Property(const std::string& key) const;  // of the kernel or of a rule
  std::vector<std::string> links() const;              // that udevd made or will make
  // 0 for a device without a number.
  dev_t number() const;
  // The nearest device above of this kind, as of now.
  std::optional<UdevDevice> Parent(const std::string& subsystem, const std::string& type) const;
  // Whether udevd has run its rules on a device of this number; it may have been an earlier one.
  bool initialized() const;

 private:
  UdevHandle<udev_device> handle_;
};

enum class UdevGroup {
  kUdev,    // events that udevd has processed; they stay inside its network namespace
  kKernel,  // events as the kernel sends them, before udevd has seen them
};

// Events of devices, from a netlink socket. What the kernel or udevd sent before it was made is not
// in it.
class UdevMonitor {
 public:
  // Hears of `subsystem` from now on. `receive_buffer_bytes` is what the kernel queues before it
  // loses events; more than net.core.rmem_max needs CAP_NET_ADMIN, and is cut to that without.
  // Errors: errno, not applied.
  static Result<UdevMonitor> Create(const UdevContext& context, UdevGroup group,
                                    const std::string& subsystem, int receive_buffer_bytes);

  // Readable when Receive() has something.
  int fd() const;
  // Takes the next event; nullopt if none is there. Errors, not applied: errno; ENOBUFS if events
  // were lost. More events may follow either.
  Result<std::optional<UdevDevice>> Receive();

 private:
  explicit UdevMonitor(UdevHandle<udev_monitor> handle) : handle_(std::move(handle)) {}
  UdevHandle<udev_monitor> handle_;
};

// A list of the devices that there are now.
class UdevEnumerate {
 public:
  // Errors: errno, not applied.
  static Result<UdevEnumerate> Create(const UdevContext& context);
  // Only devices of this subsystem are listed. Errors: errno, not applied.
  Status MatchSubsystem(const std::string& subsystem);
  // The sysfs paths of what matches now.
  // Errors: errno, not applied.
  Result<std::vector<std::string>> Scan();

 private:
  explicit UdevEnumerate(UdevHandle<udev_enumerate> handle) : handle_(std::move(handle)) {}
  UdevHandle<udev_enumerate> handle_;
};

}  // namespace volumed
