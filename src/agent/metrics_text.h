// MetricsText: the text of a scrape. Its figures are collected on the control thread, and written
// beside it; when the control thread has no time, the text of the last collection is still there,
// whole, and says itself when it was collected.
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

  // What brings the figures up to date, and what writes them; `lag` is told how long each
  // collection waited for the control thread.
  struct Hooks {
    // On the control thread, one part of the work at each call; true: that was the last.
    std::function<bool()> collect;
    std::function<std::string()> write;  // on any thread, one call at a time
    std::function<void(Duration)> lag;   // on the control thread
  };

  // The scheduler outlives this, and this the texts that are being written.
  MetricsText(Scheduler& scheduler, Hooks hooks);

  // Replies with a text that is collected after this call. Calls that wait at the same time share
  // one collection and one text.
  void Ask(Reply reply) EXCLUDES(mu_);
  // The last text; empty before the first Collect().
  Text last() const EXCLUDES(mu_);
  // Collects and writes now. For the start: nobody waits yet. Threads: control thread.
  void Collect() EXCLUDES(mu_);

 private:
  void Post() EXCLUDES(mu_);
  void CollectSome() EXCLUDES(mu_);
  void WriteAndReply() EXCLUDES(mu_);

  Scheduler& scheduler_;
  const Hooks hooks_;
  mutable Mutex mu_;
  Text last_ GUARDED_BY(mu_) = std::make_shared<const std::string>();
  std::vector<Reply> waiting_ GUARDED_BY(mu_);  // for a collection after their call
  std::vector<Reply> served_ GUARDED_BY(mu_);   // by the text that is being written
  bool under_way_ GUARDED_BY(mu_) = false;
};

}  // namespace volumed
