#include "os/process_guard.h"

#include <sys/prctl.h>

#include <cerrno>
#include <csignal>

namespace volumed {

Status GuardProcess() {
  for (const int number : {SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPWR}) {
    std::signal(number, SIG_IGN);
  }
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
    return Error::FromErrno(errno, "keep memory out of core dumps", Outcome::kNotApplied);
  }
  return OkStatus();
}

}  // namespace volumed
