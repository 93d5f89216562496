// The place of a unix socket at which a process serves: one process at a time may have it, and its
// file is made and kept there.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/event_loop.h"
#include "base/inotify.h"
#include "base/process_lock.h"
#include "base/result.h"

namespace volumed {

struct SocketFileOptions {
  // It is absolute. Its length is limited by sockaddr_un (107 bytes).
  std::string path;
  std::optional<gid_t> group;  // owns the socket, mode 0660; without it 0600
  // The members of this group may connect too, by an access control list; on a filesystem without
  // such lists the mode is 0666. Either way the server checks each peer's credentials.
  std::optional<gid_t> read_group;
  // The socket is made beside its place, under its name with a '.' in front, and renamed once it
  // listens; so does its lock file have such a name. It is for a directory that somebody watches
  // who connects to each new socket at once, and who passes over names that begin with '.'.
  bool renamed_into_place = false;
  // Not only the socket's directory is made if it is missing, but those that it lies in, too.
  bool makes_parents = false;
};

// Removes the socket of a process that is gone. Nothing happens if there is nothing. Errors:
// AlreadyExists (what is there is no socket, or a link), Unavailable (a process listens there),
// InvalidArgument (the path is too long), errno's code, all not applied. Blocks: as long as the
// directory takes to answer.
Status RemoveDeadSocket(const std::string& path);

// Makes a new listening socket at `path`, close-on-exec and non-blocking, and replaces the socket
// file of a process that is gone. Until its owner and mode are right, only this user and root can
// connect. Errors: AlreadyExists (the file there is no socket), Unavailable (a process listens
// there), InvalidArgument (the path is too long), all not applied; errno's code: maybe applied once
// the file is made, which then stays. REQUIRES: the caller holds LockSocketFile(). Blocks: as long
// as the directory takes to answer.
Result<Descriptor> BindSocketFile(const SocketFileOptions& options);

// The name under which a socket that is renamed into place is made, and beside which its lock file
// lies. Pure.
std::string HiddenSocketPath(const std::string& path);

// Locks <path>.lock; its holder may make and replace the socket. Errors, Blocks: as
// ProcessLock::Take, which waits for the lock of a process that is dead. Of a socket that is
// renamed into place `path` is its HiddenSocketPath().
Result<ProcessLock> LockSocketFile(const std::string& path);

// Keeps the socket's file, its lock file and their directory in place. What was removed or moved
// away is made again as soon as inotify reports it, and with growing delays if that fails.
//
// Threads: the loop's thread, or any thread before the loop runs. Blocks: as long as the socket's
// directory takes to answer.
class SocketFileKeeper {
 public:
  // They must not destroy the keeper.
  struct Handlers {
    // An error is shown by `state`, and the socket is made again later.
    std::function<Status(Descriptor)> made;    // takes over a new socket that listens at the place
    std::function<void(const Status&)> state;  // called after each look: OK, or what is wrong
  };

  // `lock` is the lock of the place; without it the keeper takes the lock itself, but waits for no
  // other process then. `loop` outlives the keeper.
  SocketFileKeeper(SocketFileOptions options, std::optional<ProcessLock> lock, EventLoop& loop,
                   Handlers handlers);
  // Gives the lock up. The files stay.
  ~SocketFileKeeper();
  SocketFileKeeper(const SocketFileKeeper&) = delete;
  SocketFileKeeper& operator=(const SocketFileKeeper&) = delete;

  // Keeps the place from now on, after a first look at once. `made` says that BindSocketFile has
  // just made the socket; otherwise the keeper makes it. What fails is told to Handlers::state and
  // tried again.
  void Start(bool made);
  // Removes the socket's file, if it is the one that was made here, and keeps nothing any more; the
  // lock is held until the keeper is destroyed. Errors: errno's code, not applied.
  Status Remove();
  // Gives the socket to these groups, now and whenever it is made again. Errors: errno's code,
  // maybe applied, of the socket that is there now.
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

  SocketFileOptions options_;
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
