#include "agent/agent_parts.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/strings.h"

namespace volumed {
namespace {

constexpr Duration kFirstDelay = std::chrono::seconds(1);
constexpr Duration kLongestDelay = std::chrono::minutes(1);

}  // namespace

AgentParts::AgentParts(Scheduler& scheduler, Logger& log, std::function<void()> changed)
    : scheduler_(scheduler), log_(log), changed_(std::move(changed)) {}

void AgentParts::Set(const std::string& part, const Status& state, PartNeed need) {
  std::optional<FailedPart>& known = parts_[part];
  if (state.ok()) {
    if (!known) return;
    known.reset();
    log_.Info("part of the agent works again", {{"part", part}});
    changed_();
    return;
  }
  if (known && known->error == state.error()) return;
  const int64_t now = scheduler_.clock().WallUnixMillis();
  const int64_t since = known ? known->since_unix_ms : now;
  known = FailedPart{part, need, state.error(), since};
  log_.Log(need == PartNeed::kOptional ? LogLevel::kWarning : LogLevel::kError,
           "part of the agent does not work; the agent goes on without it",
           {{"part", part}, {"error", state.error()}});
  changed_();
}

void AgentParts::Retry(const std::string& part, const Error& error, std::function<Status()> attempt,
                       std::function<Status()> use, PartNeed need) {
  Set(part, error, need);
  TryLater(
      std::make_shared<Trial>(Trial{part, need, std::move(attempt), std::move(use), kFirstDelay}));
}

void AgentParts::TryLater(std::shared_ptr<Trial> trial) {
  const Duration delay = trial->delay;
  trial->delay = std::min(delay * 2, kLongestDelay);
  scheduler_.PostAfter(delay, [this, trial = std::move(trial)] {
    scheduler_.RunBlocking([this, trial] {
      const Status made = trial->attempt();
      scheduler_.Post([this, trial, made] {
        const Status state = made.ok() ? trial->use() : made;
        Set(trial->part, state, trial->need);
        if (!state.ok()) TryLater(trial);
      });
    });
  });
}

std::vector<FailedPart> AgentParts::failed() const {
  std::vector<FailedPart> failed;
  for (const auto& [name, part] : parts_) {
    if (part) failed.push_back(*part);
  }
  return failed;
}

std::map<std::string, bool> AgentParts::states() const {
  std::map<std::string, bool> states;
  for (const auto& [name, part] : parts_) states[name] = !part.has_value();
  return states;
}

std::optional<std::string> AgentParts::Problem() const {
  std::vector<std::string> problems;
  for (const FailedPart& part : failed()) {
    if (part.need == PartNeed::kOptional) continue;
    problems.push_back(part.name + ": " + part.error.message());
  }
  if (problems.empty()) return std::nullopt;
  return Join(problems, "; ");
}

std::string AgentParts::Notes() const {
  std::string notes;
  for (const FailedPart& part : failed()) {
    if (part.need == PartNeed::kForReadiness) continue;
    notes += "without " + part.name + ": " + part.error.message() + "\n";
  }
  return notes;
}

}  // namespace volumed
