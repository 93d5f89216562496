// Process scopes: a process, and what it leaves behind, in a transient systemd unit of its own. A
// mount helper may leave a daemon (rpc.statd, a FUSE filesystem's) that has to outlive the agent's
// service, and talks to a server, which the service itself may not.
// Source: org.freedesktop.systemd1(5) (StartTransientUnit, JobRemoved), systemd.scope(5).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace volumed {

// Who is asked, and for how long. Others than the node's own are for tests.
struct ScopePlaces {
  // systemd's own socket: it needs no message bus, and sends its signals there unasked. Source:
  // systemd 252 src/shared/bus-util.c (bus_connect_system_systemd), src/core/dbus.c
  // (bus_foreach_bus).
  std::string socket = "/run/systemd/private";
  std::string proc = "/proc";
  Duration patience = std::chrono::seconds(5);
};

// Why this process can have no scopes: there is no systemd, or its socket is not for us. Nothing:
// it can. Threads: any. Blocks: never.
std::optional<std::string> WhyNoScopes();

// "volumed-mount-9f86d081884c7d65-4711.scope": of `kind` ("mount"), of what it is for, and of the
// process, so that one that lives on from an earlier mount of the same place is not in the way.
std::string ScopeName(std::string_view kind, std::string_view what, pid_t pid);

// Moves the process; when it returns, the process is there. The scope goes with its last process.
// Threads: any. Blocks: until systemd says that its job has ended, at most as long as the patience.
// Errors: Unavailable, maybe applied, with the job's result if it is not "done"; the process runs
// in any case.
Status MoveToScope(pid_t pid, const std::string& name, const std::string& description,
                   const ScopePlaces& places = {});

}  // namespace volumed
