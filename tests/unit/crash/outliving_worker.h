// The worker between the agent and its world: it makes a composite request primitive by primitive,
// and each end of the line may break amid it. Either the worker dies, and its agent hears of it; or
// the agent dies, and the worker goes on later, when the next agent is at work.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "os/kernel.h"

namespace volumed {

class CrashWorld;
struct SeededBug;

// Where the line breaks: before the primitive with this number, of those in composites.
struct BrokenLine {
  uint64_t number = 0;
  bool agent_dies = false;  // else the worker does
  uint64_t resumes_at = 0;  // the worker's rest runs before this call of the next agent
};

// What a worker whose agent has died is still to do. Until then it holds its volumes' keys.
struct WorkersRest {
  AnyRequest request;
  std::set<std::string> keys;
  std::vector<Result<AnyAnswer>> answers;  // of the primitives that it has made
  uint64_t resumes_at = 0;
};

// Threads: those of the operations. See OverlappingScheduler.
class OutlivingWorker final : public Kernel {
 public:
  // All outlive this; `world` has the rest of the last agent's worker, if there is one.
  OutlivingWorker(Kernel& below, CrashWorld& world, const SeededBug& bug)
      : below_(below), world_(world), bug_(bug) {}

  bool TakesComposites() const override { return true; }
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override;
  // What has not gone on by now does.
  void FinishRest();

  // Primitives that were made in composites.
  uint64_t primitives() const { return primitives_; }
  bool has_died() const { return has_died_; }

 private:
  class Line;
  bool HoldsKeyOf(const CallOptions& options) const;
  Result<AnyAnswer> DoPrimitive(Line& line, const AnyRequest& request, const CallOptions& options);
  void Break(const Line& line);

  Kernel& below_;
  CrashWorld& world_;
  const SeededBug& bug_;
  uint64_t calls_ = 0;
  uint64_t primitives_ = 0;
  bool has_died_ = false;
};

}  // namespace volumed
