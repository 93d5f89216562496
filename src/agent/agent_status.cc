#include "agent/agent_status.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "agent/config_table.h"
#include "agent/records_view.h"
#include "agent/view_codec.h"
#include "base/printable_text.h"

namespace volumed {
namespace {

// An operation that runs does not need a worker all the time.
constexpr int kOperationsPerWorker = 4;

std::map<std::string, bool> FeatureMap(const KernelFeatures& features) {
  return {{"open-tree-detached-clone", features.open_tree_detached_clone},
          {"mount-setattr", features.mount_setattr},
          {"statmount", features.statmount},
          {"mount-events", features.mount_events},
          {"fchmodat2", features.fchmodat2},
          {"tmpfs-noswap", features.tmpfs_noswap},
          {"grows-mounted-ext", features.grows_mounted_ext},
          {"fsopen", features.fsopen}};
}

void EncodeMountTable(const MountTableStats& stats, v1::MountTable* out) {
  out->set_source(std::string(MountTableSourceName(stats.source)));
  out->set_why_poll(stats.why_poll);
  out->set_mounts(stats.mounts);
  out->set_updates(stats.updates);
  out->set_full_reads(stats.full_reads);
}

// Of drivers: what a reload changes, and no deadline of a step says.
bool IsShownOfCsi(std::string_view key) {
  return key == "csi-calls-per-driver" || key == "csi-socket-owners" ||
         key == "deadline-csi-call" || key == "driver-absent-limit";
}

}  // namespace

OperationSettings DeadlinesOf(const Config& config) {
  OperationSettings settings;
  settings.set_up = config.deadline_mount;
  settings.prepare_sub_paths = config.deadline_mount;
  settings.mount_device = config.deadline_mount;
  settings.tear_down = config.deadline_unmount;
  settings.unmount_device = config.deadline_unmount;
  settings.clean_sub_paths = config.deadline_unmount;
  settings.attach = config.deadline_attach;
  settings.detach = config.deadline_attach;
  settings.wait_for_attach = config.deadline_wait_for_attach;
  settings.node_expand = config.deadline_expand;
  settings.verify_attached = config.deadline_verify_attached;
  settings.provision = config.deadline_provision;
  settings.expand_storage = config.deadline_expand_storage;
  settings.reclaim = config.deadline_reclaim;
  settings.make_pod_directories = config.deadline_pod_directories;
  settings.remove_pod_directories = config.deadline_pod_directories;
  settings.back_off = {.initial = config.back_off_first, .max = config.back_off_longest};
  settings.lanes.per_lane = config.max_workers_per_domain;
  settings.lanes.places =
      std::min(settings.lanes.places, kOperationsPerWorker * config.max_workers);
  return settings;
}

v1::GetStatusResponse DescribeStatus(const StatusParts& parts,
                                     const std::optional<std::string>& not_ready_reason) {
  v1::GetStatusResponse status;
  status.set_version(VOLUMED_VERSION);
  status.set_root(parts.config.root);
  status.set_ready(!not_ready_reason.has_value());
  status.set_not_ready_reason(not_ready_reason.value_or(""));
  for (const auto& [name, present] : FeatureMap(parts.features)) {
    (*status.mutable_kernel_features())[name] = present;
  }
  *status.mutable_records() = DescribeRecords(parts.recovery);
  EncodeMountTable(parts.kernel.mount_table().stats(), status.mutable_mount_table());
  for (const StuckOperation& stuck : parts.kernel.stuck_operations()) {
    EncodeStuck(stuck, parts.clock, status.add_stuck());
  }
  for (const FailedPart& part : parts.parts.failed()) {
    v1::FailedPart* encoded = status.add_failed_parts();
    encoded->set_name(part.name);
    encoded->set_error(part.error.message());
    encoded->set_since_unix_ms(part.since_unix_ms);
  }
  for (const std::string& mount : parts.unrecorded_mounts)
    status.add_unrecorded_mounts(AnswerText(mount));
  const OperationSettings deadlines = DeadlinesOf(parts.config);
  for (const NamedDeadline& deadline : OperationDeadlines()) {
    (*status.mutable_deadlines())[std::string(deadline.key)] =
        FormatDuration(deadlines.*deadline.value);
  }
  for (const ConfigRow& row : ConfigTable()) {
    if (!IsShownOfCsi(row.key.name)) continue;
    (*status.mutable_csi_settings())[std::string(row.key.name)] = row.print(parts.config);
  }
  return status;
}

}  // namespace volumed
