#include "cli/explain.h"

#include <algorithm>
#include <map>
#include <string>

#include "cli/output.h"

namespace volumed {
namespace {

std::string NextTry(const v1::Problem& problem, int64_t now) {
  if (problem.next_try_unix_ms() == 0) return "when something changes";
  const int64_t in_ms = problem.next_try_unix_ms() - now;
  return in_ms <= 0 ? "now" : "in " + std::to_string((in_ms + 999) / 1000) + "s";
}

}  // namespace

void ExplainProblem(const v1::Problem& problem, int64_t now, std::ostream& out) {
  if (!problem.step().empty()) {
    out << "    blocked at: " << problem.step();
    if (!problem.operation().empty()) out << " (" << problem.operation() << ")";
    out << "\n";
  }
  // Of a problem of a manifest nobody knows since when.
  if (problem.since_unix_ms() > 0) {
    out << "    since:      " << FormatAge(problem.since_unix_ms(), now) << " ago";
    if (problem.attempts() > 0) {
      out << ", " << problem.attempts() << (problem.attempts() == 1 ? " attempt" : " attempts");
    }
    out << "\n";
  }
  out << "    error:      " << problem.message();
  if (!problem.code().empty()) {
    // What was refused before anything began has no outcome.
    const std::string outcome = problem.outcome().empty() ? "" : ", " + problem.outcome();
    out << " [" << problem.code() << outcome << "]";
  }
  out << "\n    who acts:   " << problem.who_must_act()
      << "\n    next try:   " << NextTry(problem, now) << "\n";
}

// Of a block volume the place is a directory with a node for each pod. It need not be what the pod
// wants: the device may be there for another volume, and has to leave first.
bool IsPlaceOfNodes(const std::string& device_mount_path) {
  return device_mount_path.find("/volumeDevices/") != std::string::npos;
}

// Where a persistent volume comes from.
void ExplainStorage(const v1::Volume& volume, std::ostream& out) {
  if (!volume.claim().empty()) {
    out << "    claim:      " << volume.claim() << ", "
        << (volume.persistent_volume().empty() ? "without a persistent volume"
                                               : "persistent volume " + volume.persistent_volume())
        << "\n";
  }
  if (volume.device_state().empty()) return;
  const bool is_at_rest = volume.needs_no_attach() && volume.device_state() == "Attached";
  out << "    device:     "
      << (is_at_rest ? "not mounted; it needs no attach" : volume.device_state());
  if (!volume.device_path().empty()) out << ", " << volume.device_path();
  if (!volume.device_mount_path().empty()) {
    out << (IsPlaceOfNodes(volume.device_mount_path()) ? ", nodes in " : " at ")
        << volume.device_mount_path();
  }
  out << "\n";
  if (volume.is_block()) {
    const std::string unknown =
        volume.state() == "Mapped" ? "not opened since the agent's start" : "not mapped";
    out << "    block:      " << (volume.device_path().empty() ? unknown : volume.device_path())
        << "\n";
  }
}

void ExplainVolume(const v1::Volume& volume, int64_t now, std::ostream& out) {
  out << "  volume " << volume.name();
  // A claim that has no volume yet has no plugin either.
  if (!volume.plugin().empty()) out << " (" << volume.plugin() << ")";
  out << ": " << volume.state();
  if (volume.uncertain()) out << ", uncertain";
  if (volume.stuck()) out << ", stuck";
  if (!volume.running_step().empty()) {
    out << ", running " << volume.running_step();
    if (volume.progress() > 0) out << " (" << volume.progress() << " entries)";
    if (!volume.awaited().empty()) {
      out << ", which awaits " << volume.awaited() << " since "
          << FormatAge(volume.awaited_since_unix_ms(), now);
    }
  }
  out << "\n";
  ExplainStorage(volume, out);
  if (volume.has_problem()) ExplainProblem(volume.problem(), now, out);
}

void ExplainEvent(const v1::Event& event, int64_t now, std::ostream& out) {
  out << "  event " << event.type() << " " << event.reason() << " x" << event.count() << ", last "
      << FormatAge(event.last_unix_ms(), now) << " ago: " << event.message() << "\n";
}

// That its manifest has other volumes, and what becomes of it.
void ExplainReplacement(const v1::Pod& pod, const v1::Source& source, int64_t now,
                        std::ostream& out) {
  for (const v1::AbsentObject& one : source.replaced()) {
    if (one.object().uid() == pod.uid()) out << "  it " << ReplacementText(one, now) << "\n";
  }
}

// That the pod is in no file any more, and what becomes of it.
void ExplainAbsence(const v1::Pod& pod, const v1::Source& source, int64_t now, std::ostream& out) {
  for (const v1::AbsentObject& one : source.absent()) {
    const bool is_another = !one.object().uid().empty() && one.object().uid() != pod.uid();
    const bool is_it = one.object().kind() == "Pod" && one.object().name() == pod.name() &&
                       one.object().namespace_() == pod.namespace_() && !is_another;
    if (!is_it) continue;
    out << "  absent:       " << one.reason();
    if (one.presence() == "moved") {
      out << "\n";
    } else if (one.presence() == "going") {
      out << "; it goes in " << std::max<int64_t>(0, (one.goes_at_unix_ms() - now + 999) / 1000)
          << "s" << DataThatGoes(one) << "\n";
    } else {
      out << "; that proves nothing, so it stays (`volumectl source accept " << source.name()
          << "` takes away all that is held there, which `--dry-run` lists)\n";
    }
  }
}

// Nothing is taken away before every source has delivered; what else is wrong with one concerns its
// own pods alone.
void ExplainSource(const v1::Pod& pod, const v1::Source& source, std::ostream& out) {
  if (!source.complete()) {
    out << "  source " << source.name() << ": has not delivered a complete list yet";
  } else if (source.name() == pod.source() && !source.incomplete_because().empty()) {
    out << "  source " << source.name() << ": INCOMPLETE: " << source.incomplete_because();
  } else if (source.name() == pod.source() && !source.healthy()) {
    out << "  source " << source.name() << ": complete";
  } else {
    return;
  }
  if (!source.last_error().empty()) out << "; " << source.last_error();
  out << "\n";
}

void Explain(const v1::Pod& pod, const v1::GetSourcesResponse& sources,
             const v1::GetStatusResponse& status, int64_t now, std::ostream& out) {
  out << "pod " << pod.namespace_() << "/" << pod.name() << " (uid " << pod.uid() << ", from "
      << pod.source() << "): " << pod.phase() << " since " << FormatAge(pod.since_unix_ms(), now)
      << "\n";
  for (const std::string& holder : pod.held_by()) out << "  held by " << holder << "\n";
  for (const v1::Problem& problem : pod.problems()) {
    if (problem.step() == "HeldBySource") continue;  // told with its source
    if (problem.is_warning()) {
      out << "  warning: " << problem.message() << "\n";
      continue;
    }
    out << "  the pod itself:\n";
    ExplainProblem(problem, now, out);
  }
  for (const v1::Volume& volume : pod.volumes()) ExplainVolume(volume, now, out);
  for (const v1::Source& source : sources.sources()) {
    ExplainAbsence(pod, source, now, out);
    ExplainReplacement(pod, source, now, out);
    ExplainSource(pod, source, out);
  }
  if (pod.phase() != "Ready" && status.deadlines_size() > 0) {
    out << "  deadlines:";
    const std::map<std::string, std::string> sorted(status.deadlines().begin(),
                                                    status.deadlines().end());
    for (const auto& [step, deadline] : sorted) out << " " << step << " " << deadline;
    out << "\n";
  }
  for (const v1::Event& event : pod.events()) ExplainEvent(event, now, out);
}

}  // namespace volumed
