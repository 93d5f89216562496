// AgentParts: the parts of the agent that do not work while the rest of it does, for example the
// metrics port that is taken, or the token key that is damaged. Each is tried again until it works.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/result.h"
#include "base/scheduler.h"

namespace volumed {

// Whether the agent needs the part in order to be ready.
enum class PartNeed { kForReadiness, kOptional };

struct FailedPart {
  // What people read: "metrics", "control socket". It identifies the part.
  std::string name;
  PartNeed need;
  Error error;
  // When the part failed first; another error later does not change it.
  int64_t since_unix_ms = 0;
};

// Threads: the control thread, or any thread before the control thread runs. Blocks: never.
class AgentParts {
 public:
  // `changed` is called on the caller's thread when a part fails, fails for another reason, or
  // works again. The scheduler and the log outlive this, and this outlives what the scheduler runs.
  AgentParts(Scheduler& scheduler, Logger& log, std::function<void()> changed);

  // Records how the part is now, and logs it if that is new. A part that works from the first is
  // not logged. `need` counts only if the part fails.
  void Set(const std::string& part, const Status& state, PartNeed need = PartNeed::kForReadiness);

  // Records that the part does not work because of `error`, and tries again until it does.
  // `attempt` may block and runs on an executor thread: first after a second, then with growing
  // delays of at most a minute. When it has succeeded, `use` is called on the control thread; if
  // that succeeds too, the part works; if not, `attempt` comes first again. REQUIRES: no other
  // trial of this part goes on.
  void Retry(const std::string& part, const Error& error, std::function<Status()> attempt,
             std::function<Status()> use, PartNeed need = PartNeed::kForReadiness);

  // The parts that do not work, in the order of their names.
  std::vector<FailedPart> failed() const;
  // Whether each part works, by its name. A part that nobody has reported yet is not in it.
  std::map<std::string, bool> states() const;
  // "metrics: cannot listen on ...; tokens: ..."; nullopt if every part works that readiness needs.
  std::optional<std::string> Problem() const;
  // A line for each part that does not work and that readiness does not need: "without
  // socket-group: no such group ...".
  std::string Notes() const;

 private:
  struct Trial {
    std::string part;
    PartNeed need;
    std::function<Status()> attempt;
    std::function<Status()> use;
    Duration delay;
  };
  void TryLater(std::shared_ptr<Trial> trial);

  Scheduler& scheduler_;
  Logger& log_;
  const std::function<void()> changed_;
  std::map<std::string, std::optional<FailedPart>> parts_;
};

}  // namespace volumed
