// Signals: turns signals into calls on the control thread.
#pragma once

#include <functional>
#include <memory>

#include "base/descriptor.h"
#include "base/event_loop.h"
#include "base/result.h"

namespace volumed {

// Called on the control thread, once for each signal; signals of one number that come together may
// be one. `stop` is called once, however many ask for it: whoever ends a group of processes sends
// it to each, and its head as well.
struct SignalHandlers {
  std::function<void()> stop;    // SIGTERM, SIGINT
  std::function<void()> reload;  // SIGHUP
};

// Blocks the three signals for the whole process (threads made later inherit that) and reads them
// from a descriptor instead. SIGPIPE is ignored: a peer that goes away is an error of one write.
// Threads: it is made before any other thread; the handlers run on the control thread.
class Signals {
 public:
  // `loop` outlives this object. Errors: errno's code, not applied, except that the signals may be
  // blocked by then.
  static Result<std::unique_ptr<Signals>> Create(EventLoop& loop, SignalHandlers handlers);
  // The handlers are not called any more; the signals stay blocked.
  ~Signals();

 private:
  Signals(Descriptor descriptor, EventLoop& loop, SignalHandlers handlers);
  void ReadAll();

  const Descriptor descriptor_;
  EventLoop& loop_;
  const SignalHandlers handlers_;
  bool stops_ = false;  // that was told
};

}  // namespace volumed
