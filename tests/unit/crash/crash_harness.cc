#include "unit/crash/crash_harness.h"

#include <sstream>
#include <stdexcept>
#include <utility>

#include "fakes/simulated_crash.h"
#include "unit/crash/crash_agent.h"
#include "unit/crash/crash_monitor.h"
#include "unit/crash/crash_pools.h"
#include "unit/crash/crash_provisioning.h"

namespace volumed {
namespace {

constexpr size_t kMaxExamples = 5;

// The first line in which the two differ.
std::string Difference(const std::string& expected, const std::string& found) {
  std::istringstream a(expected);
  std::istringstream b(found);
  std::string left;
  std::string right;
  while (true) {
    const bool more_left = static_cast<bool>(std::getline(a, left));
    const bool more_right = static_cast<bool>(std::getline(b, right));
    if (!more_left && !more_right) return "no difference";
    if (!more_left) left = "(end)";
    if (!more_right) right = "(end)";
    if (left != right) return "expected \"" + left + "\", found \"" + right + "\"";
  }
}

// A run: the world goes through the steps, with as many agents as it takes.
class Run {
 public:
  Run(CrashWorld& world, const SeededBug& bug, uint64_t seed, const std::vector<AgentEnd>& ends,
      const OlderRecordsRun& older = {}, const std::optional<OverlapSchedule>& overlap = {})
      : world_(world), bug_(bug), seed_(seed), ends_(ends), older_(older), overlap_(overlap) {}

  RunResult Go(const std::vector<ScenarioStep>& steps, const std::vector<std::string>* expected);

 private:
  void StartAgent();
  void EndAgent();
  void PutRecordsBack(const AgentEnd& end);
  // Runs `what` until an agent has survived it and has settled.
  void Survive(const std::function<void()>& what, Duration settle, int scheduler_steps = 0);
  bool EndIfCrashed();
  void Check(const ScenarioStep& step, const std::string* expected);
  std::string Snapshot();
  // What is not as it has to be at the end of the step.
  std::vector<std::string> Amiss(const ScenarioStep& step, const std::string* expected);

  CrashWorld& world_;
  const SeededBug& bug_;
  const uint64_t seed_;
  const std::vector<AgentEnd>& ends_;
  const OlderRecordsRun older_;
  const std::optional<OverlapSchedule> overlap_;
  bool rebooted_ = false;
  std::unique_ptr<CrashAgent> agent_;
  RunResult result_;
};

RunResult Run::Go(const std::vector<ScenarioStep>& steps,
                  const std::vector<std::string>* expected) {
  if (older_.watch) world_.store->KeepHistory();
  try {
    Survive([] {}, std::chrono::seconds(0));
    for (size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].happen) steps[i].happen(world_);
      Survive([this] { agent_->Hear(); }, steps[i].settle, steps[i].scheduler_steps);
      const std::string* snapshot = expected == nullptr ? nullptr : &expected->at(i);
      // What a suspended operation has begun is no fault of the step's end: it has time to finish
      // it. Only then, for what comes amid operations is what the overlapping walk is for.
      if (!Amiss(steps[i], snapshot).empty() && !agent_->IsIdle()) {
        Survive([this] { agent_->FinishOperations(); }, std::chrono::seconds(0));
      }
      Check(steps[i], snapshot);
    }
    EndAgent();
  } catch (const RunawayAgent&) {  // noted by who threw it
  } catch (const std::logic_error& error) {
    world_.Loss(std::string("the agent could not go on: ") + error.what());
  }
  agent_.reset();
  result_.violations = world_.violations;
  return std::move(result_);
}

void Run::StartAgent() {
  world_.kernel->Revive();
  world_.store->Revive();
  BeginCsiAgent(world_);
  const size_t number = result_.agents.size();
  if (number < ends_.size()) {
    const AgentEnd& end = ends_[number];
    if (end.line) {
      world_.broken_line = end.line;
    } else if (end.where == EndPlace::kDriver) {
      if (world_.csi) world_.csi->end = CsiEnd{end.number, end.after, end.driver_alone};
    } else if (end.where == EndPlace::kStore) {
      world_.store->CrashAtCall(end.number, end.after ? MemoryRecordStore::CrashPoint::kAfter
                                                      : MemoryRecordStore::CrashPoint::kBefore);
    } else {
      world_.kernel->CrashAtCall(
          end.number, end.after ? FakeKernel::CrashPoint::kAfter : FakeKernel::CrashPoint::kBefore);
    }
  }
  result_.agents.emplace_back();
  std::optional<OverlapSchedule> overlap = overlap_;
  if (overlap) overlap->seed += number * 1000;
  const uint64_t seed = overlap ? overlap->seed : seed_ + number * 1000;
  agent_ = std::make_unique<CrashAgent>(world_, bug_, seed, std::move(overlap));
  agent_->Start();
}

void Run::EndAgent() {
  PointCounts& counts = result_.agents.back();
  counts.kernel_calls = world_.kernel->call_count();
  counts.record_writes = world_.store->calls();
  if (world_.csi) {
    counts.driver_calls = world_.csi->calls;
    result_.ends += world_.csi->deaths;
    world_.csi->agent_is_dead = true;
  }
  if (agent_ != nullptr) {
    counts.primitives = agent_->worker().primitives();
    const bool worker_alone = agent_->worker().has_died() && !world_.rest;
    if (worker_alone) ++result_.ends;
  }
  result_.call_log = world_.kernel->CallLogText();
  if (agent_ != nullptr) result_.switches += agent_->switches();
  world_.kernel->Die();
  world_.store->Die();
  agent_.reset();
}

void Run::Survive(const std::function<void()>& what, Duration settle, int scheduler_steps) {
  bool told = false;
  while (true) {
    try {
      if (agent_ == nullptr) StartAgent();
      if (!told) what();
      told = true;
      if (scheduler_steps > 0) {
        agent_->RunSteps(scheduler_steps);
      } else {
        // Whoever was refused for the worker's sake backs off, perhaps longer than the step takes,
        // also if the worker goes on by itself.
        const bool had_rest = world_.rest.has_value();
        const uint64_t deaths = world_.csi ? world_.csi->deaths : 0;
        agent_->RunFor(settle);
        // Whoever was at work when the driver died backs off.
        if (world_.csi && world_.csi->deaths != deaths) agent_->RunFor(std::chrono::seconds(30));
        if (had_rest) {
          agent_->worker().FinishRest();
          agent_->RunFor(settle + std::chrono::minutes(5));
        }
      }
      return;
    } catch (const SimulatedCrash&) {
      const AgentEnd& end = ends_.at(result_.agents.size() - 1);
      ++result_.ends;
      EndAgent();
      NoteRecords(world_);
      if (end.reboot) {
        world_.Reboot(end.power_loss);
        world_.rest.reset();
        rebooted_ = true;
      }
      PutRecordsBack(end);
      world_.CheckState("when the agent had ended");
      // The new one hears of everything when it starts; and has the time that a start takes.
      told = true;
      settle += std::chrono::seconds(15);
      scheduler_steps = 0;
    }
  }
}

void Run::PutRecordsBack(const AgentEnd& end) {
  if (result_.record_states == 0) result_.record_states = world_.store->history();
  if (!end.older_state) return;
  world_.store->PutBack(*end.older_state, end.number_too);
  world_.BeginOlderRecords();
}

void Run::Check(const ScenarioStep& step, const std::string* expected) {
  world_.PodsWriteAgain();
  if (older_.watch) result_.stored.push_back(world_.StoredFiles());
  if (world_.has_older_records()) {
    world_.CheckNothingLost(older_.right->stored.at(result_.stored.size() - 1),
                            "at the end of step \"" + step.name + "\"");
    return;
  }
  CheckProvisioned(world_, "at the end of step \"" + step.name + "\"");
  world_.CheckState("at the end of step \"" + step.name + "\"");
  for (const std::string& amiss : Amiss(step, expected)) world_.Violation(amiss);
  result_.snapshots.push_back(Snapshot());
}

std::string Run::Snapshot() { return world_.Snapshot() + world_.WithoutUids(agent_->ViewText()); }

std::vector<std::string> Run::Amiss(const ScenarioStep& step, const std::string* expected) {
  std::vector<std::string> amiss;
  if (world_.has_older_records()) return amiss;
  std::vector<std::string> gone = step.gone;
  for (const std::string& pod : step.gone_unless_held) {
    if (world_.pods.at(pod).held_by == 0) gone.push_back(pod);
  }
  const std::string name = "step \"" + step.name + "\"";
  for (const std::string& pod : gone) {
    const std::string left = world_.LeftOf(pod);
    if (!left.empty()) amiss.push_back(name + " has left " + left);
  }
  if (const std::string left = step.no_devices ? world_.LeftOfDevices() : ""; !left.empty()) {
    amiss.push_back(name + " has left " + left);
  }
  if (expected == nullptr || !step.compare || (rebooted_ && !step.compare_after_reboot))
    return amiss;
  if (const std::string snapshot = Snapshot(); snapshot != *expected) {
    amiss.push_back(name + " ends differently: " + Difference(*expected, snapshot));
  }
  return amiss;
}

}  // namespace

std::unique_ptr<CrashWorld> PrepareWorld(const Scenario& scenario, uint64_t seed) {
  auto world = std::make_unique<CrashWorld>();
  if (scenario.applies) world->object_files.emplace();
  if (scenario.csi) world->csi.emplace();
  if (scenario.pool) AddPool(*world);
  const RunResult before = Run(*world, SeededBug(), seed, {}).Go(scenario.before, nullptr);
  for (const std::string& violation : before.violations) {
    throw std::logic_error("scenario " + scenario.name + " cannot be prepared: " + violation);
  }
  world->kernel->Revive();
  world->store->Revive();
  return world;
}

AgentEnd EndOfPoint(const PointCounts& counts, uint64_t point) {
  AgentEnd end;
  end.after = point % 2 == 1;
  const uint64_t call = point / 2;
  const uint64_t local = counts.kernel_calls + counts.record_writes;
  if (call < counts.kernel_calls) {
    end.number = call + 1;
  } else if (call < local) {
    end.where = EndPlace::kStore;
    end.number = call - counts.kernel_calls + 1;
  } else {
    end.where = EndPlace::kDriver;
    end.number = call - local + 1;
  }
  return end;
}

void Count(WalkReport& report, const std::string& title, const RunResult& run) {
  ++report.runs;
  report.ends += run.ends;
  if (run.violations.empty()) return;
  ++report.violations;
  // One example of each kind.
  const std::string kind = run.violations[0];
  for (const std::string& example : report.examples) {
    if (example.find(kind) != std::string::npos) return;
  }
  if (report.examples.size() >= kMaxExamples) return;
  std::string text = title;
  for (const std::string& violation : run.violations) text += "\n    " + violation;
  report.examples.push_back(text);
}

std::string AgentEnd::ToString() const {
  if (line) {
    const std::string at = "before primitive " + std::to_string(line->number);
    return line->agent_dies ? "the agent ends " + at + ", whose worker goes on before call " +
                                  std::to_string(line->resumes_at) + " of the next"
                            : "the worker ends " + at;
  }
  static constexpr const char* kPlaces[] = {"kernel call ", "record write ", "driver call "};
  return std::string(driver_alone ? "the driver ends " : "") + (after ? "after " : "before ") +
         kPlaces[static_cast<size_t>(where)] + std::to_string(number) +
         (reboot ? power_loss ? ", with a power loss" : ", with a reboot" : "") +
         (older_state ? ", records of write " + std::to_string(*older_state) +
                            (number_too ? " and their number" : "")
                      : "");
}

const char* WalkKindName(WalkKind kind) {
  switch (kind) {
    case WalkKind::kCrash:
      return "crash";
    case WalkKind::kReboot:
      return "reboot";
    case WalkKind::kPowerLoss:
      return "power loss";
    case WalkKind::kTwice:
      return "crash, and again in recovery";
    case WalkKind::kWorkerDies:
      return "the worker dies amid a composite";
    case WalkKind::kWorkerOutlives:
      return "the agent dies amid a composite, and its worker goes on later";
    case WalkKind::kDriverDies:
      return "the driver dies at a call";
  }
  return "";
}

void WalkReport::Add(const WalkReport& other) {
  points += other.points;
  walked += other.walked;
  ends += other.ends;
  runs += other.runs;
  violations += other.violations;
  for (const std::string& example : other.examples) {
    if (examples.size() < kMaxExamples) examples.push_back(example);
  }
}

// The rest of the work comes early or late in the next agent's start, or long after it.
BrokenLine LineOfPoint(WalkKind kind, uint64_t point, std::mt19937_64& random) {
  constexpr uint64_t kLatest[] = {3, 20, 200};
  return {.number = point + 1,
          .agent_dies = kind == WalkKind::kWorkerOutlives,
          .resumes_at = 1 + random() % kLatest[random() % 3]};
}

RunResult RunScenario(const Scenario& scenario, const CrashWorld& start, const SeededBug& bug,
                      uint64_t seed, const std::vector<AgentEnd>& ends,
                      const std::vector<std::string>* expected, const OlderRecordsRun& older,
                      const std::optional<OverlapSchedule>& overlap) {
  const std::unique_ptr<CrashWorld> world = start.Clone();
  return Run(*world, bug, seed, ends, older, overlap).Go(scenario.steps, expected);
}

WalkReport Walk(const Scenario& scenario, const SeededBug& bug, const WalkOptions& options) {
  WalkReport report;
  const std::unique_ptr<CrashWorld> start = PrepareWorld(scenario, options.seed);
  const std::string title = scenario.name + ", seed " + std::to_string(options.seed);
  const RunResult right = RunScenario(scenario, *start, {}, options.seed, {}, nullptr);
  if (!right.violations.empty()) {
    Count(report, title + ", correct and without a crash", right);
    return report;
  }
  const RunResult free = RunScenario(scenario, *start, bug, options.seed, {}, &right.snapshots);
  Count(report, title + ", without a crash", free);
  if (options.stop_at_first && report.violations > 0) return report;
  const PointCounts counts = free.agents.at(0);
  const bool of_lines =
      options.kind == WalkKind::kWorkerDies || options.kind == WalkKind::kWorkerOutlives;
  const bool of_driver = options.kind == WalkKind::kDriverDies;
  report.points = of_lines    ? counts.primitives
                  : of_driver ? 2 * counts.driver_calls
                              : counts.points();
  std::mt19937_64 random(options.seed);
  for (uint64_t point = random() % options.stride; point < report.points; point += options.stride) {
    const uint64_t first = of_driver ? counts.points() - report.points : 0;
    std::vector<AgentEnd> ends = {of_lines ? AgentEnd() : EndOfPoint(counts, first + point)};
    ends[0].driver_alone = of_driver;
    if (of_lines) ends[0].line = LineOfPoint(options.kind, point, random);
    ends[0].reboot = options.kind == WalkKind::kReboot || options.kind == WalkKind::kPowerLoss;
    ends[0].power_loss = options.kind == WalkKind::kPowerLoss;
    if (options.kind == WalkKind::kTwice) {
      const RunResult once =
          RunScenario(scenario, *start, bug, options.seed, ends, &right.snapshots);
      if (once.agents.size() < 2 || once.agents[1].points() == 0) continue;
      ends.push_back(EndOfPoint(once.agents[1], random() % once.agents[1].points()));
    }
    const RunResult run = RunScenario(scenario, *start, bug, options.seed, ends, &right.snapshots);
    std::string where = title;
    for (const AgentEnd& end : ends) where += ", " + end.ToString();
    ++report.walked;
    Count(report, where, run);
    if (options.stop_at_first && report.violations > 0) break;
  }
  return report;
}

OverlapReport WalkOverlaps(const Scenario& scenario, const SeededBug& bug,
                           const OverlapWalk& walk) {
  OverlapReport report;
  const std::unique_ptr<CrashWorld> start = PrepareWorld(scenario, 1);
  const RunResult right = RunScenario(scenario, *start, {}, 1, {}, nullptr);
  if (!right.violations.empty()) {
    Count(report.walk, scenario.name + ", one operation after the other", right);
    return report;
  }
  for (uint64_t seed = walk.first_seed; seed < walk.first_seed + walk.seeds; ++seed) {
    const std::string title = scenario.name + ", schedule " + std::to_string(seed);
    const auto run = [&](const std::vector<AgentEnd>& ends, const std::string& text) {
      // What an agent that ended amid several operations leaves uncertain may differ.
      const auto* expected = ends.empty() ? &right.snapshots : nullptr;
      RunResult result =
          RunScenario(scenario, *start, bug, 1, ends, expected, {}, OverlapSchedule{seed, text});
      report.switches += result.switches;
      if (!result.violations.empty() && report.calls.empty()) report.calls = result.call_log;
      Count(report.walk, text, result);
      return result;
    };
    const RunResult free = run({}, title);
    const uint64_t points = free.agents.at(0).points();
    if (walk.crashes && points > 0) {
      std::mt19937_64 random(seed);
      AgentEnd end = EndOfPoint(free.agents[0], random() % points);
      end.reboot = random() % 3 == 0;
      end.power_loss = end.reboot && random() % 2 == 0;
      run({end}, title + ", " + end.ToString());
    }
    if (walk.stop_at_first && report.walk.violations > 0) break;
  }
  return report;
}

}  // namespace volumed
