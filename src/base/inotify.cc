#include "base/inotify.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace volumed {
namespace {

// Cuts what one read(2) returned into events.
void AppendEvents(const char* data, size_t size, std::vector<InotifyEvent>& events) {
  size_t at = 0;
  while (at + sizeof(inotify_event) <= size) {
    inotify_event raw;
    std::memcpy(&raw, data + at, sizeof(raw));
    InotifyEvent event;
    event.wd = raw.wd;
    event.mask = raw.mask;
    event.overflow = (raw.mask & IN_Q_OVERFLOW) != 0;
    // The name is padded with NULs to raw.len.
    const char* name = data + at + sizeof(raw);
    event.name.assign(name, ::strnlen(name, raw.len));
    events.push_back(std::move(event));
    at += sizeof(raw) + raw.len;
  }
}

}  // namespace

Result<Inotify> Inotify::Create() {
  ASSIGN_OR_RETURN(Descriptor fd, DescriptorFrom(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC),
                                                 "make an inotify instance"));
  return Inotify(std::move(fd));
}

Result<int> Inotify::AddWatch(const std::string& directory, uint32_t mask) {
  return Add(directory, mask | IN_ONLYDIR);
}

Result<int> Inotify::AddLinkWatch(const std::string& link, uint32_t mask) {
  return Add(link, mask | IN_DONT_FOLLOW);
}

Result<int> Inotify::Add(const std::string& path, uint32_t mask) {
  const int wd = ::inotify_add_watch(fd_.get(), path.c_str(), mask);
  if (wd < 0) {
    const int sys_errno = errno;
    // ENOSPC speaks of watches here, not of a disk.
    const std::string what = "watch " + path;
    return Error::FromErrno(sys_errno,
                            sys_errno == ENOSPC ? what + " (fs.inotify.max_user_watches)" : what,
                            Outcome::kNotApplied);
  }
  return wd;
}

Status Inotify::RemoveWatch(int wd) {
  if (::inotify_rm_watch(fd_.get(), wd) < 0) {
    return Error::FromErrno(errno, "remove inotify watch " + std::to_string(wd),
                            Outcome::kNotApplied);
  }
  return OkStatus();
}

Result<std::vector<InotifyEvent>> Inotify::ReadEvents() {
  std::vector<InotifyEvent> events;
  std::array<char, 16 * 1024> buffer;
  for (;;) {
    const ssize_t count = ::read(fd_.get(), buffer.data(), buffer.size());
    if (count > 0) {
      AppendEvents(buffer.data(), static_cast<size_t>(count), events);
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno != EAGAIN) {
      return Error::FromErrno(errno, "read inotify events", Outcome::kNotApplied);
    }
    return events;
  }
}

}  // namespace volumed
