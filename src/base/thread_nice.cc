#include "base/thread_nice.h"

#include <sys/resource.h>
#include <unistd.h>

namespace volumed {

int ThreadNice() { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())); }

bool SetThreadNice(int nice) {
  return ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), nice) == 0;
}

}  // namespace volumed
