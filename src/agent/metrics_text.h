// MetricsText: the text of a scrape. It is collected on the control thread; when that has no time,
// the text of the last collection is still there, whole, and says itself when it was collected.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/scheduler.h"

namespace volumed {

// Threads: any, but for Collect(). Blocks: never.
class MetricsText {
 public:
  using Text = std::shared_ptr<const std::string>;
  using Reply = std::function<void(Text)>;

  // `collect` makes the text, and `lag` is told how long each collection waited for the control
  // thread; both are called there. The scheduler outlives this.
  MetricsText(Scheduler& scheduler, std::function<std::string()> collect,
              std::function<void(Duration)> lag);

  // Replies with a text that is collected after this call. Calls that wait at the same time share
  // one collection and one text.
  void Ask(Reply reply) EXCLUDES(mu_);
  // The last text; empty before the first Collect().
  Text last() const EXCLUDES(mu_);
  // Collects now, and replies to whoever waits. Threads: control thread.
  void Collect() EXCLUDES(mu_);

 private:
  Scheduler& scheduler_;
  const std::function<std::string()> collect_;
  const std::function<void(Duration)> lag_;
  mutable Mutex mu_;
  Text last_ GUARDED_BY(mu_) = std::make_shared<const std::string>();
  std::vector<Reply> waiting_ GUARDED_BY(mu_);
};

}  // namespace volumed
