// What volumectl's exit status says; documented in docs/OPERATIONS.md, and kept.
#pragma once

namespace volumed {

enum ExitCode : int {
  kExitOk = 0,
  kExitError = 1,        // the agent refused or failed
  kExitUsage = 2,        // the words of the call are off
  kExitNotFound = 3,     // no such object
  kExitTimeout = 4,      // wait: the condition was not met in time
  kExitUnreachable = 5,  // no agent at the socket
  kExitForbidden = 6,    // the peer's role does not suffice
  kExitInvalid = 7,      // a manifest was refused
};

}  // namespace volumed
