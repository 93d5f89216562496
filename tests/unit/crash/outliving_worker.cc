#include "unit/crash/outliving_worker.h"

#include <utility>

#include "fakes/simulated_crash.h"
#include "os/composites.h"
#include "unit/crash/crash_harness.h"
#include "unit/crash/crash_world.h"

namespace volumed {
namespace {

// Thrown where the worker dies, and caught where its answer would come.
struct WorkerDied {};

// A worker that goes on: what it has made already is not made again.
class ResumedKernel final : public Kernel {
 public:
  ResumedKernel(std::vector<Result<AnyAnswer>> answers, Kernel& below)
      : answers_(std::move(answers)), below_(below) {}
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    if (next_ < answers_.size()) return answers_[next_++];
    return below_.Do(request, options);
  }

 private:
  const std::vector<Result<AnyAnswer>> answers_;
  Kernel& below_;
  size_t next_ = 0;
};

std::set<std::string> KeysOf(const CallOptions& options) {
  std::set<std::string> keys(options.more_keys.begin(), options.more_keys.end());
  if (!options.key.empty()) keys.insert(options.key);
  return keys;
}

}  // namespace

// One composite request, with the answers of its primitives so far.
class OutlivingWorker::Line final : public Kernel {
 public:
  Line(OutlivingWorker& worker, const AnyRequest& request, const CallOptions& options)
      : worker_(worker), request_(request), options_(options) {}
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    Result<AnyAnswer> answer = worker_.DoPrimitive(*this, request, options);
    answers_.push_back(answer);
    return answer;
  }

  const AnyRequest& request() const { return request_; }
  const CallOptions& options() const { return options_; }
  const std::vector<Result<AnyAnswer>>& answers() const { return answers_; }

 private:
  OutlivingWorker& worker_;
  const AnyRequest& request_;
  const CallOptions& options_;
  std::vector<Result<AnyAnswer>> answers_;
};

Result<AnyAnswer> OutlivingWorker::Do(const AnyRequest& request, const CallOptions& options) {
  ++calls_;
  if (world_.rest && world_.rest->resumes_at <= calls_) FinishRest();
  if (HoldsKeyOf(options)) {
    return Error::NotApplied(Code::kAborted, "another worker is busy with this volume");
  }
  if (!IsComposite(request)) return below_.Do(request, options);
  Line line(*this, request, options);
  try {
    return DoComposite(line, request, options);
  } catch (const WorkerDied&) {
    const Outcome outcome =
        bug_.dead_workers_did_nothing ? Outcome::kNotApplied : Outcome::kMaybeApplied;
    return Error::FromParts(Code::kUnavailable, outcome, 0,
                            std::string(RequestName(request)) + ": the worker died");
  }
}

bool OutlivingWorker::HoldsKeyOf(const CallOptions& options) const {
  if (!world_.rest || bug_.workers_hold_no_keys) return false;
  for (const std::string& key : KeysOf(options)) {
    if (world_.rest->keys.contains(key)) return true;
  }
  return false;
}

Result<AnyAnswer> OutlivingWorker::DoPrimitive(Line& line, const AnyRequest& request,
                                               const CallOptions& options) {
  ++primitives_;
  if (world_.broken_line && world_.broken_line->number == primitives_) Break(line);
  return below_.Do(request, options);
}

void OutlivingWorker::Break(const Line& line) {
  const BrokenLine broken = *std::exchange(world_.broken_line, std::nullopt);
  has_died_ = true;
  if (!broken.agent_dies) throw WorkerDied{};
  world_.rest =
      WorkersRest{line.request(), KeysOf(line.options()), line.answers(), broken.resumes_at};
  throw SimulatedCrash{};
}

void OutlivingWorker::FinishRest() {
  if (!world_.rest) return;
  const WorkersRest rest = *std::exchange(world_.rest, std::nullopt);
  ResumedKernel resumed(rest.answers, below_);
  // Nobody takes the answer.
  (void)resumed.Perform(rest.request, CallOptions());
}

}  // namespace volumed
