#include "cli/top.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "cli/explain.h"

namespace volumed {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string Name(const v1::ObjectRef& pod) {
  if (pod.name().empty()) return pod.uid().empty() ? "-" : pod.uid();
  return pod.namespace_() + "/" + pod.name();
}

// What counts no entries shows none.
std::string Rate(const v1::RunningOperation& operation) {
  if (operation.done() == 0) return "-";
  char text[32];
  std::snprintf(text, sizeof(text), "%.0f/s", operation.per_second());
  return text;
}

// "" if it waits for nobody.
std::string WaitsFor(const v1::RunningOperation& operation, int64_t now) {
  if (!operation.waits_for().empty()) {
    return operation.waits_for() + "; who acts: " + operation.who_must_act();
  }
  if (operation.awaited().empty()) return "";
  return operation.awaited() + " since " + FormatAge(operation.awaited_since_unix_ms(), now);
}

void PrintRunning(const v1::WatchOperationsResponse& answer, std::ostream& out) {
  if (answer.operations().empty()) {
    out << "nothing runs\n";
    return;
  }
  Rows rows = {{"POD", "VOLUME", "OPERATION", "STEP", "SINCE", "IN STEP", "DONE", "RATE"}};
  const auto& all = answer.operations();
  const int64_t now = answer.now_unix_ms();
  const bool any_waits = std::any_of(
      all.begin(), all.end(), [now](const auto& one) { return !WaitsFor(one, now).empty(); });
  if (any_waits) rows[0].emplace_back("WAITS FOR");
  for (const v1::RunningOperation& operation : answer.operations()) {
    rows.push_back(
        {Name(operation.pod()), operation.volume().empty() ? "-" : operation.volume(),
         operation.operation(), operation.step().empty() ? "-" : operation.step(),
         FormatAge(operation.since_unix_ms(), now), FormatAge(operation.step_since_unix_ms(), now),
         operation.done() == 0 ? "-" : std::to_string(operation.done()), Rate(operation)});
    if (!any_waits) continue;
    const std::string waits = WaitsFor(operation, now);
    rows.back().push_back(waits.empty() ? "-" : waits);
  }
  PrintTable(rows, out);
  if (answer.operations_not_shown() > 0) {
    out << "and " << answer.operations_not_shown() << " more\n";
  }
}

void PrintStuck(const v1::WatchOperationsResponse& answer, std::ostream& out) {
  if (answer.stuck().empty()) return;
  Rows rows = {{"STUCK", "REQUEST", "SINCE", "PATH"}};
  for (const v1::StuckOperation& stuck : answer.stuck()) {
    rows.push_back({stuck.key().empty() ? "-" : stuck.key(), stuck.request(),
                    FormatAge(stuck.since_unix_ms(), answer.now_unix_ms()), stuck.path()});
  }
  out << "\n";
  PrintTable(rows, out);
  if (answer.stuck_not_shown() > 0) out << "and " << answer.stuck_not_shown() << " more\n";
}

void PrintWaiting(const v1::WatchOperationsResponse& answer, std::ostream& out) {
  for (const v1::WaitingOperation& waiting : answer.waiting()) {
    out << "\nwaits: " << waiting.what() << "\n";
    ExplainProblem(waiting.problem(), answer.now_unix_ms(), out);
  }
  if (answer.waiting_not_shown() > 0) out << "and " << answer.waiting_not_shown() << " more\n";
}

}  // namespace

void PrintTop(const v1::WatchOperationsResponse& answer, OutputFormat format, std::ostream& out) {
  if (IsForPrograms(format)) return PrintMessage(answer, format, out);
  PrintRunning(answer, out);
  PrintStuck(answer, out);
  PrintWaiting(answer, out);
}

}  // namespace volumed
