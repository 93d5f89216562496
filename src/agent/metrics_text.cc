#include "agent/metrics_text.h"

#include <utility>

namespace volumed {

MetricsText::MetricsText(Scheduler& scheduler, std::function<std::string()> collect,
                         std::function<void(Duration)> lag)
    : scheduler_(scheduler), collect_(std::move(collect)), lag_(std::move(lag)) {}

void MetricsText::Ask(Reply reply) {
  {
    MutexLock lock(mu_);
    waiting_.push_back(std::move(reply));
    if (waiting_.size() > 1) return;  // a collection is on its way
  }
  scheduler_.Post([this, asked = scheduler_.clock().Now()] {
    lag_(scheduler_.clock().Now() - asked);
    Collect();
  });
}

MetricsText::Text MetricsText::last() const {
  MutexLock lock(mu_);
  return last_;
}

void MetricsText::Collect() {
  std::vector<Reply> replies;
  {
    MutexLock lock(mu_);
    // Whoever asks from here on gets the next text: this one may lack what was so when they asked.
    replies.swap(waiting_);
  }
  const Text text = std::make_shared<const std::string>(collect_());
  {
    MutexLock lock(mu_);
    last_ = text;
  }
  for (const Reply& reply : replies) reply(text);
}

}  // namespace volumed
