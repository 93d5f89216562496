// Linked into each unit test program that is declared ONE_THREAD: such a program is neither run
// under ThreadSanitizer nor alone, so it must end here as soon as anything in it starts a thread
// after all.
#include <pthread.h>

#include <cstdio>
#include <cstdlib>

extern "C" int pthread_create(pthread_t* /*thread*/, const pthread_attr_t* /*attributes*/,
                              void* (* /*start*/)(void*), void* /*argument*/) noexcept {
  std::fputs("this test program starts a thread: take ONE_THREAD from its CMakeLists.txt\n",
             stderr);
  std::abort();
}
