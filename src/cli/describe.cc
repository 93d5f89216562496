#include "cli/describe.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/byte_text.h"

#include "base/printable_text.h"
#include "base/strings.h"
#include "cli/explain.h"
#include "cli/output.h"

namespace volumed {
namespace {

using Rows = std::vector<std::vector<std::string>>;

// Left out when there is nothing to say.
void Add(Rows& rows, const std::string& name, const std::string& value) {
  if (!value.empty()) rows.push_back({name + ":", value});
}

std::string Since(int64_t since, int64_t now) {
  return since == 0 ? "" : FormatAge(since, now) + " ago";
}

std::string Manifest(const v1::DescribeResponse& described) {
  if (described.file().empty()) return "";
  return described.file() + ", document " + std::to_string(described.document() + 1);
}

// A line each, as kubectl has them: a node has many.
void AddLabels(const v1::DescribeResponse& described, Rows& rows) {
  std::vector<std::string> labels;
  for (const auto& [name, value] : described.labels()) labels.push_back(name + "=" + value);
  std::sort(labels.begin(), labels.end());
  for (size_t i = 0; i < labels.size(); ++i) rows.push_back({i == 0 ? "Labels:" : "", labels[i]});
}

void PrintIdentity(const v1::DescribeResponse& described, int64_t now, std::ostream& out) {
  const v1::ObjectRef& object = described.object();
  const bool is_volume = described.has_volume();
  Rows rows;
  Add(rows, "Kind", object.kind());
  Add(rows, "Name", is_volume ? described.volume().name() : object.name());
  if (is_volume) Add(rows, "Pod", object.namespace_() + "/" + object.name());
  if (!is_volume) Add(rows, "Namespace", object.namespace_());
  Add(rows, is_volume ? "Pod UID" : "UID", object.uid());
  AddLabels(described, rows);
  Add(rows, "Created", Since(described.created_unix_ms(), now));
  Add(rows, "Source", described.source());
  Add(rows, "Manifest", Manifest(described));
  if (described.has_pod()) {
    const v1::Pod& pod = described.pod();
    Add(rows, is_volume ? "Pod's phase" : "Phase",
        pod.phase() + " since " + FormatAge(pod.since_unix_ms(), now));
    Add(rows, "Held by", Join(pod.held_by(), ", "));
  }
  PrintTable(rows, out);
}

void PrintSummary(const v1::DescribeResponse& described, std::ostream& out) {
  if (described.summary().empty()) return;
  out << "Summary:\n";
  Rows rows;
  for (const v1::SummaryField& field : described.summary()) {
    // Nobody's text begins a line of its own.
    rows.push_back({"  " + field.name() + ":", PrintableText(field.value())});
  }
  PrintTable(rows, out);
}

std::string MountText(const v1::MountFact& mount) {
  std::string text = mount.mount_point() + ": " + mount.fs_type() + " from " + mount.source() +
                     ", device " + mount.device();
  if (mount.root() != "/") text += ", its " + mount.root();
  text += ", " + Join(mount.options(), ",");
  if (mount.super_options_size() > 0) text += " (" + Join(mount.super_options(), ",") + ")";
  return text + ", " +
         (mount.propagation_size() > 0 ? Join(mount.propagation(), " ") : std::string("private"));
}

void PrintMounts(const v1::DescribeResponse& described, const std::string& volume,
                 std::ostream& out) {
  for (const v1::VolumeMounts& mounts : described.mounts()) {
    if (mounts.volume() != volume) continue;
    if (mounts.has_lies_on()) out << "    lies on:    " << MountText(mounts.lies_on()) << "\n";
    for (const v1::MountFact& mount : mounts.mounts()) {
      out << "    mount:      " << MountText(mount) << "\n";
    }
  }
}

void PrintUsage(const v1::Usage& usage, int64_t now, std::ostream& out) {
  if (!usage.has_used_bytes()) return;
  out << "    used:       " << FormatBytes(usage.used_bytes());
  if (usage.has_capacity_bytes()) out << " of " << FormatBytes(usage.capacity_bytes());
  if (usage.has_inodes_used()) out << ", " << usage.inodes_used() << " inodes";
  out << ", measured " << FormatAge(usage.measured_unix_ms(), now) << " ago\n";
}

void PrintVolume(const v1::DescribeResponse& described, const v1::Volume& volume, int64_t now,
                 std::ostream& out) {
  ExplainVolume(volume, now, out);
  out << "    in state:   since " << FormatAge(volume.since_unix_ms(), now)
      << (volume.wanted() ? " ago, wanted" : " ago, not wanted any more") << "\n";
  if (!volume.host_path().empty()) {
    out << "    path:       " << volume.host_path() << (volume.read_only() ? ", read-only" : "")
        << "\n";
  }
  if (!volume.device_node_path().empty()) {
    out << "    node:       " << volume.device_node_path() << "\n";
  }
  for (const v1::SubPathMount& mount : volume.sub_paths()) {
    out << "    sub-path:   container " << mount.container() << ", mount " << mount.index() << ": "
        << mount.host_path() << "\n";
  }
  PrintMounts(described, volume.name(), out);
  if (volume.has_usage()) PrintUsage(volume.usage(), now, out);
}

void PrintUsers(const v1::DescribeResponse& described, int64_t now, std::ostream& out) {
  if (described.used_by().empty()) return;
  out << "Used by:\n";
  for (const v1::VolumeUse& use : described.used_by()) {
    out << "  pod " << use.pod().namespace_() << "/" << use.pod().name() << ", volume "
        << use.volume() << (use.state().empty() ? "" : ": " + use.state()) << "\n";
    if (use.has_problem()) ExplainProblem(use.problem(), now, out);
  }
}

template <typename Problems>
void PrintProblems(const Problems& problems, int64_t now, std::ostream& out) {
  for (const v1::Problem& problem : problems) {
    if (problem.is_warning()) {
      out << "Warning:\n    " << problem.message() << "\n";
      continue;
    }
    out << "Problem:\n";
    ExplainProblem(problem, now, out);
  }
}

template <typename Events>
void PrintEventList(const Events& events, int64_t now, std::ostream& out) {
  if (events.empty()) return;
  out << "Events:\n";
  for (const v1::Event& event : events) ExplainEvent(event, now, out);
}

}  // namespace

void PrintDescription(const v1::DescribeResponse& described, int64_t now, std::ostream& out) {
  PrintIdentity(described, now, out);
  PrintSummary(described, out);
  const bool is_volume = described.has_volume();
  const v1::Pod& pod = described.pod();
  if (is_volume || pod.volumes_size() > 0) out << "Volumes:\n";
  if (is_volume) PrintVolume(described, described.volume(), now, out);
  for (const v1::Volume& volume : pod.volumes()) PrintVolume(described, volume, now, out);
  if (!described.mounts_error().empty()) {
    out << "Mounts could not be read: " << described.mounts_error() << "\n";
  }
  PrintUsers(described, now, out);
  // Those of a pod hold the ones of its manifest.
  PrintProblems(described.has_pod() ? pod.problems() : described.problems(), now, out);
  PrintEventList(described.events(), now, out);
  PrintEventList(pod.events(), now, out);
  for (const std::string& cut : described.not_shown()) out << "Not shown: " << cut << "\n";
}

}  // namespace volumed
