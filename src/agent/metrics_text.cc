#include "agent/metrics_text.h"

#include <utility>

namespace volumed {

MetricsText::MetricsText(Scheduler& scheduler, Hooks hooks)
    : scheduler_(scheduler), hooks_(std::move(hooks)) {}

void MetricsText::Ask(Reply reply) {
  {
    MutexLock lock(mu_);
    waiting_.push_back(std::move(reply));
    if (under_way_) return;  // the one who writes goes on with these
    under_way_ = true;
  }
  Post();
}

void MetricsText::Post() {
  scheduler_.Post([this, asked = scheduler_.clock().Now()] {
    hooks_.lag(scheduler_.clock().Now() - asked);
    {
      MutexLock lock(mu_);
      // Whoever asks from here on gets the next text: this one may lack what was so when they
      // asked.
      served_.swap(waiting_);
    }
    CollectSome();
  });
}

void MetricsText::CollectSome() {
  if (hooks_.collect()) {
    // Millions of bytes, of a node with thousands of pods: nobody is to wait for them here.
    scheduler_.RunBlocking([this] { WriteAndReply(); });
  } else {
    scheduler_.Post([this] { CollectSome(); });
  }
}

MetricsText::Text MetricsText::last() const {
  MutexLock lock(mu_);
  return last_;
}

void MetricsText::WriteAndReply() {
  const Text text = std::make_shared<const std::string>(hooks_.write());
  std::vector<Reply> replies;
  bool again = false;
  {
    MutexLock lock(mu_);
    last_ = text;
    replies.swap(served_);
    again = under_way_ = !waiting_.empty();
  }
  for (const Reply& reply : replies) reply(text);
  if (again) Post();
}

void MetricsText::Collect() {
  while (!hooks_.collect()) {
  }
  const Text text = std::make_shared<const std::string>(hooks_.write());
  MutexLock lock(mu_);
  last_ = text;
}

}  // namespace volumed
