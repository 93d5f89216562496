#include "agent/metrics_text.h"

#include <utility>

namespace volumed {

MetricsText::MetricsText(Scheduler& scheduler, Hooks hooks)
    : scheduler_(scheduler), hooks_(std::move(hooks)) {}

void MetricsText::Ask(Reply reply) {
  {
    MutexLock lock(mu_);
    waiting_.push_back(std::move(reply));
    if (under_way_) return;  // the present writer will go on with these calls
    under_way_ = true;
  }
  Post();
}

void MetricsText::Post() {
  scheduler_.Post([this, asked = scheduler_.clock().Now()] {
    hooks_.lag(scheduler_.clock().Now() - asked);
    {
      MutexLock lock(mu_);
      // Calls that come from here on get the next text, since this one may be older than their
      // question.
      served_.swap(waiting_);
    }
    CollectSome();
  });
}

void MetricsText::CollectSome() {
  if (hooks_.collect()) {
    // On a node with thousands of pods the text has millions of bytes, which must not be written on
    // the control thread.
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
