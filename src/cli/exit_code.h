// The exit statuses of volumectl. docs/OPERATIONS.md documents them, so they do not change. A verb
// that does several things returns the status of the last one that failed.
#pragma once

namespace volumed {

enum ExitCode : int {
  kExitOk = 0,
  kExitError = 1,        // the agent refused or failed
  kExitUsage = 2,        // words that cannot be meant, or a file that cannot be read
  kExitNotFound = 3,     // no such object, or several of that name
  kExitTimeout = 4,      // a condition was not met in time, or the agent did not answer in time
  kExitUnreachable = 5,  // no agent at the socket; one that answers "not yet" is kExitError
  kExitForbidden = 6,    // the peer's role is too low
  kExitInvalid = 7,      // a manifest was refused, by what it says or by what there is already
};

}  // namespace volumed
