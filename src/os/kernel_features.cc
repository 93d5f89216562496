#include "os/kernel_features.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/fanotify.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/descriptor.h"
#include "os/syscall_numbers.h"

namespace volumed {
namespace {

bool HasSyscall(long number) {
  // Arguments that no version of the call accepts. ENOSYS: it does not exist; EPERM: a seccomp
  // filter keeps it from us (it may not know its name yet), which comes to the same.
  if (::syscall(number, -1L, nullptr, -1L, -1L, -1L) == 0) return true;
  return errno != ENOSYS && errno != EPERM;
}

bool HasDetachedClone() {
  const Descriptor first(::open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
  if (!first.valid()) return false;
  const Descriptor second(
      ::open_tree(first.get(), "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
  return second.valid();
}

bool HasTmpfsNoswap() {
  const Descriptor context(::fsopen("tmpfs", FSOPEN_CLOEXEC));
  return context.valid() && ::fsconfig(context.get(), FSCONFIG_SET_FLAG, "noswap", nullptr, 0) == 0;
}

// Of a type that every kernel has; the context goes with its descriptor, and nothing is mounted.
bool HasFsopen() { return Descriptor(::fsopen("tmpfs", FSOPEN_CLOEXEC)).valid(); }

bool HasMountEvents() {
  constexpr unsigned kReportMount = 0x4000;  // FAN_REPORT_MNT, not in Debian 12's headers
  const Descriptor group(static_cast<int>(
      ::syscall(SYS_fanotify_init, FAN_CLASS_NOTIF | FAN_CLOEXEC | kReportMount, O_RDONLY)));
  return group.valid();
}

struct Name {
  const char* name;
  bool KernelFeatures::*feature;
};
constexpr Name kNames[] = {
    {"open-tree-detached-clone", &KernelFeatures::open_tree_detached_clone},
    {"mount-setattr", &KernelFeatures::mount_setattr},
    {"statmount", &KernelFeatures::statmount},
    {"mount-events", &KernelFeatures::mount_events},
    {"fchmodat2", &KernelFeatures::fchmodat2},
    {"tmpfs-noswap", &KernelFeatures::tmpfs_noswap},
    {"grows-mounted-ext", &KernelFeatures::grows_mounted_ext},
    {"fsopen", &KernelFeatures::fsopen},
};

}  // namespace

bool HasCapability(unsigned capability) {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return false;
  return (data[capability / 32].effective & (1u << capability % 32)) != 0;
}

Result<KernelFeatures> MaskFeatures(KernelFeatures features,
                                    const std::vector<std::string>& masked) {
  for (const std::string& mask : masked) {
    bool known = false;
    for (const Name& entry : kNames) {
      if (mask != entry.name) continue;
      features.*entry.feature = false;
      known = true;
    }
    if (!known) {
      return Error::NotApplied(Code::kInvalidArgument, "no kernel feature is called " + mask);
    }
  }
  return features;
}

Result<KernelFeatures> ProbeKernelFeatures(const std::vector<std::string>& masked) {
  KernelFeatures features;
  features.mount_setattr = HasSyscall(SYS_mount_setattr);
  features.open_tree_detached_clone = HasDetachedClone();
  features.statmount = HasSyscall(kSysStatmount);
  features.mount_events = HasMountEvents();
  features.fchmodat2 = HasSyscall(kSysFchmodat2);
  features.tmpfs_noswap = HasTmpfsNoswap();
  features.grows_mounted_ext = HasCapability(CAP_SYS_RESOURCE);
  features.fsopen = HasFsopen();
  return MaskFeatures(features, masked);
}

}  // namespace volumed
