// MetricsText: the text of a scrape. Its figures are collected on the control thread, and the text
// is written on another one. If the control thread has no time, the whole text of the last
// collection is still there, and says itself when it was collected.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/scheduler.h"

namespace volumed {

// Threads: any, except for Collect(). Blocks: never, except for Collect(), which writes the text.
// At most one text is in progress, however many calls wait.
class MetricsText {
 public:
  // Immutable; it lives as long as anybody keeps it. Never null.
  using Text = std::shared_ptr<const std::string>;
  // Called on an executor thread.
  using Reply = std::function<void(Text)>;

  // Hooks of the owner: `collect` brings the figures up to date, `write` makes the text of them,
  // and `lag` is told how long each collection waited for the control thread.
  struct Hooks {
    // Called on the control thread. Each call does one part of the work; the last returns true.
    std::function<bool()> collect;
    std::function<std::string()> write;  // called on any thread, one call at a time
    std::function<void(Duration)> lag;   // called on the control thread
  };

  // The scheduler outlives this object, and this object outlives the texts that are being written.
  MetricsText(Scheduler& scheduler, Hooks hooks);

  // Replies with a text that is collected after this call. Calls that wait at the same time share
  // one collection and one text.
  void Ask(Reply reply) EXCLUDES(mu_);
  // The last text; an empty text before the first Collect().
  Text last() const EXCLUDES(mu_);
  // Collects and writes at once. REQUIRES: no call of Ask() waits, as at the start. Threads: the
  // control thread.
  void Collect() EXCLUDES(mu_);

 private:
  void Post() EXCLUDES(mu_);
  void CollectSome() EXCLUDES(mu_);
  void WriteAndReply() EXCLUDES(mu_);

  Scheduler& scheduler_;
  const Hooks hooks_;
  mutable Mutex mu_;
  Text last_ GUARDED_BY(mu_) = std::make_shared<const std::string>();
  std::vector<Reply> waiting_ GUARDED_BY(mu_);  // for the next collection
  std::vector<Reply> served_ GUARDED_BY(mu_);   // calls that the text in progress answers
  bool under_way_ GUARDED_BY(mu_) = false;
};

}  // namespace volumed
