#include "os/udev.h"

#include <libudev.h>

#include <cerrno>

namespace volumed {
namespace {

Error FromErrno(int sys_errno, const std::string& what) {
  return Error::FromErrno(sys_errno != 0 ? sys_errno : ENOMEM, what, Outcome::kNotApplied);
}

std::string Text(const char* text) { return text == nullptr ? "" : text; }

// What libudev's look-ups answer; errno must still be theirs.
Result<std::optional<UdevDevice>> Found(udev_device* device, const std::string& what) {
  if (device != nullptr) return std::optional(UdevDevice(UdevHandle<udev_device>(device)));
  // The device may go while it is being looked at.
  if (errno == ENOENT || errno == ENODEV || errno == ENXIO) {
    return std::optional<UdevDevice>();
  }
  return FromErrno(errno, what);
}

}  // namespace

void UdevDeleter::operator()(udev* object) const { ::udev_unref(object); }
void UdevDeleter::operator()(udev_device* object) const { ::udev_device_unref(object); }
void UdevDeleter::operator()(udev_enumerate* object) const { ::udev_enumerate_unref(object); }
void UdevDeleter::operator()(udev_monitor* object) const { ::udev_monitor_unref(object); }

Result<UdevContext> UdevContext::Create() {
  UdevHandle<udev> handle(::udev_new());
  if (handle == nullptr) return FromErrno(ENOMEM, "udev_new");
  return UdevContext(std::move(handle));
}

Result<std::optional<UdevDevice>> UdevDevice::FromBlockNumber(const UdevContext& context,
                                                              dev_t number) {
  errno = 0;
  return Found(::udev_device_new_from_devnum(context.get(), 'b', number), "look up a block device");
}

Result<std::optional<UdevDevice>> UdevDevice::FromName(const UdevContext& context,
                                                       const std::string& subsystem,
                                                       const std::string& name) {
  errno = 0;
  return Found(
      ::udev_device_new_from_subsystem_sysname(context.get(), subsystem.c_str(), name.c_str()),
      "look up device " + name);
}

Result<std::optional<UdevDevice>> UdevDevice::FromSysfsPath(const UdevContext& context,
                                                            const std::string& path) {
  errno = 0;
  return Found(::udev_device_new_from_syspath(context.get(), path.c_str()), "look up " + path);
}

std::string UdevDevice::action() const { return Text(::udev_device_get_action(handle_.get())); }
std::string UdevDevice::name() const { return Text(::udev_device_get_sysname(handle_.get())); }
std::string UdevDevice::node() const { return Text(::udev_device_get_devnode(handle_.get())); }
std::string UdevDevice::sysfs_path() const {
  return Text(::udev_device_get_syspath(handle_.get()));
}
std::string UdevDevice::type() const { return Text(::udev_device_get_devtype(handle_.get())); }
std::string UdevDevice::Property(const std::string& key) const {
  return Text(::udev_device_get_property_value(handle_.get(), key.c_str()));
}
std::vector<std::string> UdevDevice::links() const {
  std::vector<std::string> links;
  udev_list_entry* entry = ::udev_device_get_devlinks_list_entry(handle_.get());
  for (; entry != nullptr; entry = ::udev_list_entry_get_next(entry)) {
    links.push_back(Text(::udev_list_entry_get_name(entry)));
  }
  return links;
}
dev_t UdevDevice::number() const { return ::udev_device_get_devnum(handle_.get()); }
std::optional<UdevDevice> UdevDevice::Parent(const std::string& subsystem,
                                             const std::string& type) const {
  // The child owns what this answers.
  udev_device* parent = ::udev_device_get_parent_with_subsystem_devtype(
      handle_.get(), subsystem.c_str(), type.c_str());
  if (parent == nullptr) return std::nullopt;
  return UdevDevice(UdevHandle<udev_device>(::udev_device_ref(parent)));
}
bool UdevDevice::initialized() const { return ::udev_device_get_is_initialized(handle_.get()) > 0; }

Result<UdevMonitor> UdevMonitor::Create(const UdevContext& context, UdevGroup group,
                                        const std::string& subsystem, int receive_buffer_bytes) {
  const char* name = group == UdevGroup::kUdev ? "udev" : "kernel";
  const std::string what = "monitor " + std::string(name) + " events of " + subsystem;
  errno = 0;
  UdevHandle<udev_monitor> handle(::udev_monitor_new_from_netlink(context.get(), name));
  if (handle == nullptr) return FromErrno(errno, what);
  int rc =
      ::udev_monitor_filter_add_match_subsystem_devtype(handle.get(), subsystem.c_str(), nullptr);
  if (rc < 0) return FromErrno(-rc, what);
  rc = ::udev_monitor_set_receive_buffer_size(handle.get(), receive_buffer_bytes);
  // Without CAP_NET_ADMIN it is now as large as net.core.rmem_max lets it be.
  if (rc < 0 && rc != -EPERM) return FromErrno(-rc, what);
  rc = ::udev_monitor_enable_receiving(handle.get());
  if (rc < 0) return FromErrno(-rc, what);
  return UdevMonitor(std::move(handle));
}

int UdevMonitor::fd() const { return ::udev_monitor_get_fd(handle_.get()); }

Result<std::optional<UdevDevice>> UdevMonitor::Receive() {
  errno = 0;
  udev_device* device = ::udev_monitor_receive_device(handle_.get());
  if (device != nullptr) return std::optional(UdevDevice(UdevHandle<udev_device>(device)));
  if (errno == 0 || errno == EAGAIN || errno == EINTR) return std::optional<UdevDevice>();
  return FromErrno(errno, "receive an event of a device");
}

Result<UdevEnumerate> UdevEnumerate::Create(const UdevContext& context) {
  errno = 0;
  UdevHandle<udev_enumerate> handle(::udev_enumerate_new(context.get()));
  if (handle == nullptr) return FromErrno(errno, "udev_enumerate_new");
  return UdevEnumerate(std::move(handle));
}

Status UdevEnumerate::MatchSubsystem(const std::string& subsystem) {
  const int rc = ::udev_enumerate_add_match_subsystem(handle_.get(), subsystem.c_str());
  if (rc < 0) return FromErrno(-rc, "match subsystem " + subsystem);
  return OkStatus();
}

Result<std::vector<std::string>> UdevEnumerate::Scan() {
  const int rc = ::udev_enumerate_scan_devices(handle_.get());
  if (rc < 0) return FromErrno(-rc, "list devices");
  std::vector<std::string> paths;
  udev_list_entry* entry = ::udev_enumerate_get_list_entry(handle_.get());
  for (; entry != nullptr; entry = ::udev_list_entry_get_next(entry)) {
    paths.push_back(Text(::udev_list_entry_get_name(entry)));
  }
  return paths;
}

}  // namespace volumed
