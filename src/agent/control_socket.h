// The place of the control socket: who may have it, how its file is made, and that it is still
// there.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/process_lock.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/event_loop.h"
#include "base/inotify.h"
#include "base/result.h"

namespace volumed {

struct ControlSocketOptions {
  std::string path;
  std::optional<gid_t> group;  // owns the socket, mode 0660; without it 0600
  // May connect too, by an access control list; 0666 where the filesystem has none. Either way the
  // server looks at each peer's credentials.
  std::optional<gid_t> read_group;
};

// The socket that systemd passed (LISTEN_FDS), close-on-exec and non-blocking; not valid if it
// passed none. InvalidArgument, not applied, if it is no listening unix socket, or one of several.
// Source: sd_listen_fds(3).
Result<Descriptor> TakePassedSocket();

// A new listening socket at `path`, close-on-exec and non-blocking. A left-over of a process that
// is gone is replaced. Errors: AlreadyExists (something else is there), Unavailable (a process
// listens there), InvalidArgument (the path is too long); errno's code. REQUIRES: the place's lock.
Result<Descriptor> BindControlSocket(const ControlSocketOptions& options);

// <path>.lock: whoever holds it may make, and replace, the socket. Errors: as ProcessLock::Take.
Result<ProcessLock> LockControlSocket(const std::string& path);

// Sees to it that the socket's file, its lock and their directory are there: what is removed or
// moved away is made anew, at once as it is noticed (inotify), later if that does not work.
//
// Threads: the loop's, or before it runs. Blocks: as long as the socket's directory takes.
class ControlSocketKeeper {
 public:
  struct Handlers {
    std::function<Status(Descriptor)> made;    // takes a new socket, which listens at the place
    std::function<void(const Status&)> state;  // of each look: what is wrong, or nothing
  };

  // `lock`: of the place; without one it is taken here.
  ControlSocketKeeper(ControlSocketOptions options, std::optional<ProcessLock> lock,
                      EventLoop& loop, Handlers handlers);
  ~ControlSocketKeeper();
  ControlSocketKeeper(const ControlSocketKeeper&) = delete;
  ControlSocketKeeper& operator=(const ControlSocketKeeper&) = delete;

  // Keeps from now on. `made`: BindControlSocket has just made the socket; else it is made here.
  void Start(bool made);
  // Gives the socket to these groups, now and whenever it is made anew.
  Status SetGroups(std::optional<gid_t> group, std::optional<gid_t> read_group);

 private:
  static constexpr Duration kFirstDelay = std::chrono::seconds(1);
  static constexpr Duration kLongestDelay = std::chrono::minutes(1);

  void NoteSocket();
  bool SocketIsOurs() const;
  void TakeEvents();
  void Keep();
  void Failed(const Error& error);
  Status MakeWhatIsMissing();
  Status WatchDirectory();

  ControlSocketOptions options_;
  const std::string lock_path_;
  const std::string directory_;
  std::optional<ProcessLock> lock_;
  EventLoop& loop_;
  const Handlers handlers_;
  std::unique_ptr<Inotify> changes_;
  dev_t device_ = 0;  // of the socket's file
  ino_t inode_ = 0;   // 0: there is none
  TimerId retry_ = 0;
  Duration delay_ = kFirstDelay;
};

}  // namespace volumed
