// The thawer: a process that watches whoever freezes one filesystem, and thaws it if he does not in
// time, or dies. Each filesystem has its own, so that a device that hangs holds up no other's. It
// is `volumed-worker --thaw`, and belongs to the worker's group no more: what kills that leaves it.
//
// They talk over a socket, by single letters: 'r', it watches; 'f', the freeze begins, and with it
// the limit; 'd', the freezer has thawed; then 'k', it has kept still, or 't', it has thawed. The
// end of the socket is the freezer's end.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/result.h"
#include "os/child_process.h"

namespace volumed {

// The thawer as its freezer sees it. Threads: one at a time. The destructor lets the thawer thaw
// what is frozen, and waits for its end for a second at most.
class Thawer {
 public:
  // Starts one for the filesystem that `root` is open in. `program` is the worker's. Blocks: for
  // the exec, and not for what the program does before it watches. Errors: Unavailable, not
  // applied.
  static Result<Thawer> Start(const std::string& program, int root, Duration longest);
  Thawer(Thawer&&) = default;
  Thawer& operator=(Thawer&&) = delete;
  ~Thawer();

  // Until it watches, which has to be before the freeze begins. Blocks: five seconds at most.
  // Errors: Unavailable, not applied.
  Status AwaitReady();
  // Before the freeze. Errors: Unavailable, not applied, if it is dead.
  Status BeginFreeze();
  // After the thaw, or after a freeze that failed. Whether it has lived and has not thawed: only
  // then was the filesystem frozen all the time. Blocks: while a thaw of its own hangs.
  bool End();

 private:
  Thawer(Descriptor socket, ChildProcess child)
      : socket_(std::move(socket)), child_(std::move(child)) {}

  Descriptor socket_;
  ChildProcess child_;
};

// The thawer itself, with the descriptors that Start() gives it. Returns the process's status.
int RunThawer(Duration longest);
// The argument of volumed-worker with which it is one, before the number of microseconds.
inline constexpr char kThawArgument[] = "--thaw=";

}  // namespace volumed
