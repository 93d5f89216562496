// The nice value of a thread: on Linux each has its own, and gives it to those that it starts.
// Source: sched(7), setpriority(2).
#pragma once

namespace volumed {

// Returns the nice value of the calling thread: -20 (most of the processor) to 19. Threads: any.
// Blocks: never.
int ThreadNice();

// Sets it for the calling thread; a number beyond the range counts as the range's end. It is false
// if the thread may not have the value, and then nothing is changed: a lower value than the present
// one needs RLIMIT_NICE or CAP_SYS_NICE.
bool SetThreadNice(int nice);

}  // namespace volumed
