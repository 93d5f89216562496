#include "agent/view_codec.h"

#include <algorithm>

#include "base/printable_text.h"
#include "base/strings.h"

namespace volumed {

void EncodeProblemView(const ProblemView& view, v1::Problem* out) {
  out->set_operation(view.operation);
  out->set_step(view.step);
  out->set_code(view.code);
  out->set_outcome(view.outcome);
  out->set_message(AnswerText(view.message));
  out->set_who_must_act(view.who_must_act);
  out->set_since_unix_ms(view.since_unix_ms);
  out->set_next_try_unix_ms(view.next_try_unix_ms);
  out->set_attempts(view.attempts);
  out->set_is_warning(view.is_warning);
}

namespace {

void EncodeUsage(const VolumeUsageView& view, v1::Usage* out) {
  if (view.used_bytes) out->set_used_bytes(*view.used_bytes);
  if (view.capacity_bytes) out->set_capacity_bytes(*view.capacity_bytes);
  if (view.available_bytes) out->set_available_bytes(*view.available_bytes);
  if (view.inodes_used) out->set_inodes_used(*view.inodes_used);
  if (view.inodes) out->set_inodes(*view.inodes);
  if (view.inodes_free) out->set_inodes_free(*view.inodes_free);
  out->set_measured_unix_ms(view.measured_unix_ms);
}

}  // namespace

void EncodeVolume(const VolumeView& view, v1::Volume* out) {
  out->set_name(view.spec.str());
  for (const std::string& name : view.pod_volumes) out->add_pod_volumes(name);
  out->set_claim(view.claim);
  out->set_persistent_volume(view.persistent_volume);
  out->set_device_state(view.device_state);
  out->set_needs_no_attach(view.needs_no_attach);
  out->set_device_mount_path(view.device_mount_path);
  out->set_is_block(view.is_block);
  out->set_device_path(view.device_path);
  out->set_device_node_path(view.device_node_path);
  out->set_plugin(view.plugin_name);
  out->set_state(view.state);
  out->set_uncertain(view.uncertain);
  out->set_stuck(view.stuck);
  out->set_wanted(view.wanted);
  out->set_host_path(view.host_path);
  out->set_read_only(view.read_only);
  out->set_since_unix_ms(view.since_unix_ms);
  out->set_running_step(view.running_step);
  out->set_progress(view.progress);
  out->set_awaited(view.awaited);
  out->set_awaited_since_unix_ms(view.awaited_since_unix_ms);
  for (const SubPathMount& mount : view.sub_paths) {
    v1::SubPathMount* encoded = out->add_sub_paths();
    encoded->set_container(mount.container);
    encoded->set_index(mount.index);
    encoded->set_host_path(mount.host_path);
  }
  if (view.problem) EncodeProblemView(*view.problem, out->mutable_problem());
  if (view.usage) EncodeUsage(*view.usage, out->mutable_usage());
}

void EncodeEvent(const KeptEvent& event, v1::Event* out) {
  out->set_first_unix_ms(event.first_unix_ms);
  out->set_last_unix_ms(event.last_unix_ms);
  out->set_count(event.count);
  out->set_type(std::string(EventTypeName(event.type)));
  out->set_reason(event.reason);
  out->set_message(AnswerText(event.message));
}

void EncodeStuck(const StuckOperation& stuck, const Clock& clock, v1::StuckOperation* out) {
  // The request of a group has a key for each of its volumes.
  out->set_key(stuck.key.empty() ? Join(stuck.more_keys, " ") : stuck.key);
  out->set_request(stuck.request);
  out->set_path(AnswerText(stuck.path));
  const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(clock.Now() - stuck.since);
  out->set_since_unix_ms(clock.WallUnixMillis() - age.count());
}

v1::ObjectRef MakeObjectRef(const ObjectKey& key) {
  v1::ObjectRef ref;
  ref.set_kind(std::string(ObjectKindName(key.kind)));
  ref.set_namespace_(key.name_space);
  ref.set_name(key.name);
  return ref;
}

v1::ObjectRef MakePodRef(const PodView& view) {
  v1::ObjectRef ref;
  ref.set_kind("Pod");
  ref.set_namespace_(view.ns);
  ref.set_name(view.name);
  ref.set_uid(view.uid.str());
  return ref;
}

v1::ObjectRef MakePodRef(const PodUid& pod, const VolumeManager& manager) {
  if (const std::optional<PodView> view = manager.pods().Find(pod)) return MakePodRef(*view);
  v1::ObjectRef ref;
  ref.set_kind("Pod");
  ref.set_uid(pod.str());
  return ref;
}

namespace {

void EncodePodItself(const PodView& view, v1::Pod* out) {
  out->set_uid(view.uid.str());
  out->set_namespace_(view.ns);
  out->set_name(view.name);
  out->set_source(view.source);
  out->set_phase(view.phase);
  out->set_since_unix_ms(view.since_unix_ms);
  out->set_created_unix_ms(view.created_unix_ms);
  for (const std::string& holder : view.held_by) out->add_held_by(holder);
}

// Adds the one problem for which a list has room. A warning is taken only if there is nothing
// worse, since it keeps nothing from being done.
void EncodeFirstProblem(const PodView& view, v1::Pod* out) {
  const ProblemView* warning = nullptr;
  for (const ProblemView& problem : view.problems) {
    if (!problem.is_warning) return EncodeProblemView(problem, out->add_problems());
    if (warning == nullptr) warning = &problem;
  }
  for (const VolumeView& volume : view.volumes) {
    if (!volume.problem) continue;
    EncodeProblemView(*volume.problem, out->add_problems());
    v1::Problem* const problem = out->mutable_problems(0);
    problem->set_message(volume.spec.str() + ": " + problem->message());
    problem->set_is_warning(false);
    return;
  }
  if (warning != nullptr) EncodeProblemView(*warning, out->add_problems());
}

}  // namespace

void EncodePodSummary(const PodView& view, v1::Pod* out) {
  EncodePodItself(view, out);
  out->set_volume_count(static_cast<int32_t>(view.volumes.size()));
  const std::string_view set_up = VolumeStateName(VolumeState::kSetUp);
  const std::string_view mapped = VolumeStateName(VolumeState::kMapped);
  out->set_set_up_count(static_cast<int32_t>(std::count_if(
      view.volumes.begin(), view.volumes.end(),
      [&](const VolumeView& volume) { return volume.state == set_up || volume.state == mapped; })));
  EncodeFirstProblem(view, out);
}

void EncodePod(const PodView& view, const std::vector<KeptEvent>& events, v1::Pod* out) {
  EncodePodItself(view, out);
  for (const VolumeView& volume : view.volumes) EncodeVolume(volume, out->add_volumes());
  for (const ProblemView& problem : view.problems) EncodeProblemView(problem, out->add_problems());
  for (const KeptEvent& event : events) EncodeEvent(event, out->add_events());
}

void EncodeProblem(const DecodeProblem& problem, v1::ManifestProblem* out) {
  out->set_file(AnswerText(problem.file));
  out->set_document(problem.document);
  out->set_field(AnswerText(problem.field_path));
  out->set_reason(
      AnswerText(problem.object.empty() ? problem.reason : problem.object + ": " + problem.reason));
}

// An answer has to stay below gRPC's limit; the metric and `warning_count` count all warnings.
constexpr int kMaxShownWarnings = 200;
constexpr int kMaxShownFiles = 10;

void EncodeUnreadFiles(const std::set<std::string>& files, v1::Source* out) {
  for (const std::string& file : files) {
    if (out->unread_files_size() == kMaxShownFiles) break;
    out->add_unread_files(AnswerText(file));
  }
  out->set_unread_file_count(static_cast<int64_t>(files.size()));
}

void EncodeSource(const SourceStatus& status, v1::Source* out) {
  out->set_name(status.name);
  out->set_complete(status.complete);
  out->set_unconfigured(status.unconfigured);
  out->set_healthy(status.last_list_complete && status.last_error.empty());
  out->set_objects(static_cast<int64_t>(status.objects));
  out->set_last_list_unix_ms(status.last_list_unix_millis);
  out->set_last_error(AnswerText(status.last_error));
  for (const DecodeProblem& problem : status.problems) EncodeProblem(problem, out->add_problems());
  for (const DecodeProblem& warning : status.warnings) {
    if (out->warnings_size() == kMaxShownWarnings) break;
    EncodeProblem(warning, out->add_warnings());
  }
  out->set_warning_count(static_cast<int64_t>(status.warnings.size()));
}

}  // namespace volumed
