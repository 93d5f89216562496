// Process scopes: a process, and what it leaves behind, in a transient systemd unit of its own. A
// mount helper may leave a daemon (rpc.statd, a FUSE filesystem's) that has to outlive the agent's
// service, and talks to a server, which the service itself may not.
// Source: org.freedesktop.systemd1(5) (StartTransientUnit), systemd.scope(5).
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace volumed {

// Why this process can have no scopes: there is no systemd, or its socket is not for us. Nothing:
// it can. Threads: any. Blocks: never.
std::optional<std::string> WhyNoScopes();

// "volumed-mount-9f86d081884c7d65-4711.scope": of `kind` ("mount"), of what it is for, and of the
// process, so that one that lives on from an earlier mount of the same place is not in the way.
std::string ScopeName(std::string_view kind, std::string_view what, pid_t pid);

// Moves the process; when it returns, the process is there. The scope goes with its last process.
// Threads: any. Blocks: up to 5 s. Errors: Unavailable, maybe applied; the process runs in any
// case.
Status MoveToScope(pid_t pid, const std::string& name, const std::string& description);

}  // namespace volumed
