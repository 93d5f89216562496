// The nice value of a thread: on Linux each has its own, and gives it to those that it starts.
// Source: sched(7), setpriority(2).
#pragma once

namespace volumed {

// Of the calling thread. Threads: any. Blocks: never.
int ThreadNice();

// False where it may not be (RLIMIT_NICE, CAP_SYS_NICE): lower values mean more of the processor.
bool SetThreadNice(int nice);

}  // namespace volumed
