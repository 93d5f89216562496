// Mutex, MutexLock and CondVar with clang's thread-safety annotations; libstdc++'s carry none.
// A clang build with -Wthread-safety -Werror turns a missed lock into a compile error.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define VOLUMED_TSA(x) __attribute__((x))
#else
#define VOLUMED_TSA(x)
#endif

// Abseil, which gRPC's headers bring along, has macros of the same names and meaning.
#undef GUARDED_BY
#undef PT_GUARDED_BY
#undef NO_THREAD_SAFETY_ANALYSIS
// GUARDED_BY(mu): only who has `mu` locked reads or writes the member. REQUIRES(mu): the caller has
// it locked. EXCLUDES(mu): the caller must not, for the function locks it itself.
#define CAPABILITY(x) VOLUMED_TSA(capability(x))
#define SCOPED_CAPABILITY VOLUMED_TSA(scoped_lockable)
#define GUARDED_BY(x) VOLUMED_TSA(guarded_by(x))
#define PT_GUARDED_BY(x) VOLUMED_TSA(pt_guarded_by(x))
#define REQUIRES(...) VOLUMED_TSA(requires_capability(__VA_ARGS__))
#define ACQUIRE(...) VOLUMED_TSA(acquire_capability(__VA_ARGS__))
#define RELEASE(...) VOLUMED_TSA(release_capability(__VA_ARGS__))
#define EXCLUDES(...) VOLUMED_TSA(locks_excluded(__VA_ARGS__))
#define NO_THREAD_SAFETY_ANALYSIS VOLUMED_TSA(no_thread_safety_analysis)

namespace volumed {

// It is not recursive: a thread that locks it twice never returns.
class CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ACQUIRE() { mu_.lock(); }
  void Unlock() RELEASE() { mu_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mu_;
};

// It has the mutex locked as long as it lives.
class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mu) ACQUIRE(mu) : mu_(mu) { mu_.Lock(); }
  ~MutexLock() RELEASE() { mu_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mu_;
};

// A wait may end without a notification, so the caller asks again, in a loop, for what it waits
// for. Its time is the machine's, not a Clock's, so nothing that runs in simulated time waits here.
class CondVar {
 public:
  // Lets the mutex go while it waits, and has it again when it returns. Blocks: until a
  // notification, for ever if none comes.
  void Wait(Mutex& mu) REQUIRES(mu) NO_THREAD_SAFETY_ANALYSIS {
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    cv_.wait(lock);
    lock.release();
  }
  // False if the time ran out first. Zero or less does not wait. The mutex is let go meanwhile, as
  // in Wait(). True also without a notification.
  bool WaitFor(Mutex& mu, std::chrono::nanoseconds timeout) REQUIRES(mu) NO_THREAD_SAFETY_ANALYSIS {
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    const bool signalled = cv_.wait_for(lock, timeout) == std::cv_status::no_timeout;
    lock.release();
    return signalled;
  }
  // Wakes one that waits now, or nobody; NotifyAll() wakes all. The mutex need not be held, unless
  // what is notified may be destroyed by the one that wakes.
  void NotifyOne() { cv_.notify_one(); }
  void NotifyAll() { cv_.notify_all(); }

 private:
  std::condition_variable cv_;
};

}  // namespace volumed
