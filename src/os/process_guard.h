// Process guard: what the agent and each of its workers do first of all for themselves.
#pragma once

#include "base/result.h"

namespace volumed {

// From here on the process leaves no core file, and core_pattern's program gets none either: its
// memory holds the Secrets of pods. Only a process with CAP_SYS_PTRACE can read that memory; the
// files of /proc/<pid> belong to root. Programs that the process executes are dumpable again.
//
// The signals that end a process by default and that nobody sends to this one on purpose (SIGUSR1,
// SIGUSR2, SIGALRM and the like) are ignored. ChildProcess gives its children the defaults again.
//
// Threads: before any other thread is made. Blocks: never. Errors: errno of prctl, not applied.
// Source: PR_SET_DUMPABLE in prctl(2); Linux fs/coredump.c (do_coredump: nothing at all is dumped
// while the flag is 0); signal(7).
Status GuardProcess();

}  // namespace volumed
