#include "os/mount_event_queue.h"

#include <fcntl.h>
#include <sys/fanotify.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

namespace volumed {
namespace {

// Not in Debian 12's headers. Source: linux/fanotify.h.
constexpr unsigned kReportMount = 0x4000;        // FAN_REPORT_MNT
constexpr unsigned kMarkMountNamespace = 0x110;  // FAN_MARK_MNTNS
constexpr uint64_t kMountAttached = 0x01000000;  // FAN_MNT_ATTACH
constexpr uint64_t kMountDetached = 0x02000000;  // FAN_MNT_DETACH; both: moved
constexpr uint8_t kInfoMount = 7;                // FAN_EVENT_INFO_TYPE_MNT
struct MountInfo {                               // fanotify_event_info_mnt
  fanotify_event_info_header header;
  uint64_t mount_id;
};

Error FromErrno(const std::string& what) {
  return Error::FromErrno(errno, what, Outcome::kNotApplied);
}

void AddMounts(const char* info, const char* end, std::vector<uint64_t>& mounts) {
  while (end - info >= static_cast<ptrdiff_t>(sizeof(fanotify_event_info_header))) {
    fanotify_event_info_header header;
    std::memcpy(&header, info, sizeof(header));
    if (header.len < sizeof(header) || header.len > end - info) return;
    if (header.info_type == kInfoMount && header.len >= sizeof(MountInfo)) {
      MountInfo mount;
      std::memcpy(&mount, info, sizeof(mount));
      mounts.push_back(mount.mount_id);
    }
    info += header.len;
  }
}

// The number of events in the buffer.
size_t Parse(const char* buffer, size_t size, MountEvents& events) {
  size_t count = 0;
  while (size >= sizeof(fanotify_event_metadata)) {
    fanotify_event_metadata event;
    std::memcpy(&event, buffer, sizeof(event));
    if (event.event_len < sizeof(event) || event.event_len > size) break;
    // Another layout is as good as a lost event.
    if ((event.mask & FAN_Q_OVERFLOW) != 0 || event.vers != FANOTIFY_METADATA_VERSION) {
      events.lost = true;
    } else {
      AddMounts(buffer + event.metadata_len, buffer + event.event_len, events.mounts);
    }
    buffer += event.event_len;
    size -= event.event_len;
    ++count;
  }
  return count;
}

}  // namespace

Result<MountEventQueue> MountEventQueue::Open(int ns_fd) {
  Descriptor group(::fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK | kReportMount,
                                   O_RDONLY | O_CLOEXEC));
  if (!group.valid()) return FromErrno("fanotify_init for mounts");
  if (::fanotify_mark(group.get(), FAN_MARK_ADD | kMarkMountNamespace,
                      kMountAttached | kMountDetached, ns_fd, nullptr) != 0) {
    return FromErrno("fanotify_mark of the mount namespace");
  }
  return MountEventQueue(std::move(group));
}

Result<size_t> MountEventQueue::Waiting() const {
  int bytes = 0;
  if (::ioctl(group_.get(), FIONREAD, &bytes) != 0) return FromErrno("size of the event queue");
  // The kernel counts the fixed part of each event only.
  return static_cast<size_t>(bytes) / sizeof(fanotify_event_metadata);
}

Result<MountEvents> MountEventQueue::Take(size_t at_least) {
  MountEvents events;
  alignas(fanotify_event_metadata) std::array<char, size_t{32} * 1024> buffer;
  size_t taken = 0;
  do {
    const ssize_t size = ::read(group_.get(), buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno != EAGAIN) return FromErrno("read mount events");
    if (size <= 0) break;
    taken += Parse(buffer.data(), static_cast<size_t>(size), events);
  } while (taken < at_least);
  // A mount that came and went is asked about once.
  std::sort(events.mounts.begin(), events.mounts.end());
  events.mounts.erase(std::unique(events.mounts.begin(), events.mounts.end()), events.mounts.end());
  return events;
}

}  // namespace volumed
