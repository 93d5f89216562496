#include "base/step_limit.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/event_loop.h"

namespace volumed {

namespace {

std::string Listed(const std::map<std::string, uint64_t>& observed) {
  std::vector<std::pair<std::string, uint64_t>> tasks(observed.begin(), observed.end());
  std::stable_sort(tasks.begin(), tasks.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [name, times] : tasks) {
    text += (text.empty() ? "" : ", ") + name + " (" + std::to_string(times) + " times)";
  }
  return text;
}

}  // namespace

void StepLimit::Count(TimePoint now, const std::type_info& made_as) {
  if (now != now_) {
    now_ = now;
    at_now_ = {};
  }
  Count(at_now_, limits_.at_one_time, "while time stood still", made_as);
  Count(in_call_, limits_.in_one_call, "in one call", made_as);
}

void StepLimit::Count(Span& span, uint64_t limit, const char* when, const std::type_info& made_as) {
  if (++span.count + kObserved <= limit) return;
  if (span.count > limit) {
    throw StepLimitReached("more than " + std::to_string(limit) + " tasks were run " + when +
                           "; the last ones: " + Listed(std::exchange(span.last, {})));
  }
  ++span.last[TaskName(made_as)];
}

}  // namespace volumed
