// HandOverThread: a task on a thread of its own that runs only while its driver waits for it, and
// can stop in the midst of a call until the driver goes on with it. Of driver and task one runs at
// a time, so what they share needs no lock, and the same turns give the same run.
#pragma once

#include <exception>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/scheduler.h"

namespace volumed {

// Threads: the driver's for all but Suspend(), which is for the task.
//
// A task that waits for a lock which a suspended one holds would wait for ever, and the driver
// likewise: whoever has waited for two minutes prints `title` and ends the program.
class HandOverThread {
 public:
  HandOverThread(Task task, std::string title);
  ~HandOverThread();
  HandOverThread(const HandOverThread&) = delete;
  HandOverThread& operator=(const HandOverThread&) = delete;

  // Runs the task until its next Suspend(), or to its end: then true. Throws what the task threw.
  bool Resume();
  // Hands over to the driver, and is back at the driver's next Resume().
  void Suspend();
  // A suspended task is unwound: its Suspend() throws, and it must call no other one meanwhile. One
  // that has not begun never does. The destructor does the same.
  void End();

 private:
  enum class Turn { kDriver, kTask };
  // Thrown in a task that is unwound.
  struct Unwound {};

  void Main();
  void GiveTurn(Turn turn) EXCLUDES(mu_);
  void AwaitTurn(Turn turn) EXCLUDES(mu_);

  Task task_;
  const std::string title_;
  Mutex mu_;
  CondVar changed_;
  Turn turn_ GUARDED_BY(mu_) = Turn::kDriver;
  // These belong to whoever has the turn.
  bool is_ending_ = false;
  bool has_ended_ = false;
  std::exception_ptr thrown_;
  std::thread thread_;
};

}  // namespace volumed
