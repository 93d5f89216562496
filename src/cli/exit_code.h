// The exit statuses of volumectl. docs/OPERATIONS.md documents them, so they do not change.
#pragma once

namespace volumed {

enum ExitCode : int {
  kExitOk = 0,
  kExitError = 1,        // the agent refused or failed
  kExitUsage = 2,        // the command line is wrong
  kExitNotFound = 3,     // no such object
  kExitTimeout = 4,      // wait: the condition was not met in time
  kExitUnreachable = 5,  // no agent at the socket
  kExitForbidden = 6,    // the peer's role is too low
  kExitInvalid = 7,      // a manifest was refused
};

}  // namespace volumed
