#include "agent/config_table.h"

#include <chrono>
#include <map>
#include <string_view>
#include <utility>

#include "agent/config_rows.h"
#include "base/quantity.h"
#include "base/strings.h"

namespace volumed {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

using Rows = std::vector<ConfigRow>;

// A shorter deadline would fail on a healthy node that is busy.
constexpr Duration kShortest = milliseconds(100);
// A pool of which nobody may have half is a mistake.
constexpr int kMostReservePercent = 50;
// gRPC servers send up to 4 MiB unless they were told otherwise; beyond the second one a driver
// could use up the agent's memory.
constexpr int64_t kLeastCsiMessage = int64_t{4} * 1024 * 1024;
constexpr int64_t kMostCsiMessage = int64_t{256} * 1024 * 1024;

// As much as any disk reads in a second, and more.
constexpr int64_t kMostBandwidth = int64_t{1} << 40;
// A minute without a write ends most programs' patience.
constexpr Duration kLongestFreeze = std::chrono::minutes(1);

void AddNodeRows(Rows& table) {
  table.push_back(PathRow("root", "directory of pods, plugins and the agent's own state",
                          &Config::root, false));
  table.push_back(
      BoolRow("adopt-root", "take over a root that volumed did not create", &Config::adopt_root));
  table.push_back(PathRow("pod-logs-dir", "logs of the kubelet's pods, which name them",
                          &Config::pod_logs_dir, false));
  table.push_back({{"node-name", "string", "name of this node; default: the host's name", false},
                   Setter(&Config::node_name, ParseNodeName),
                   [](const Config& config) { return config.node_name; }});
  table.push_back({{"node-labels", "list of key=value", "labels of this node", false},
                   Setter(&Config::node_labels, ParseLabels),
                   [](const Config& config) {
                     std::vector<std::string> labels;
                     for (const auto& [key, value] : config.node_labels) {
                       labels.push_back(key + "=" + value);
                     }
                     return Join(labels, ",");
                   }});
}

void AddSourceRows(Rows& table) {
  table.push_back(
      PathsRow("manifest-dir", "directories of manifests to run", &Config::manifest_dirs));
  table.push_back(Reloadable(
      DurationRow("removal-settle",
                  "how long an object must be absent from a manifest directory before it goes",
                  &Config::removal_settle, kShortest, hours(24))));
  table.push_back(PathsRow("removal-deletes-claims",
                           "of manifest-dir: where to remove a claim or volume is to delete it",
                           &Config::removal_deletes_claims));
}

// The ways in which the agent is asked.
void AddEntranceRows(Rows& table) {
  table.push_back(PathRow("socket", "unix socket of the control API", &Config::socket, false));
  table.push_back(
      TextRow("socket-group", "group that owns the socket and may operate", &Config::socket_group));
  table.push_back(
      TextRow("read-group", "group whose members may read; default: none", &Config::read_group));
  table.push_back(
      {{"metrics-address", "host:port", "where /metrics is served; empty: nowhere", false},
       Setter(&Config::metrics_address, ParseAddress),
       [](const Config& config) { return config.metrics_address; }});
}

// The agent as a process, and its workers.
void AddProcessRows(Rows& table) {
  table.push_back(PathRow("worker", "the volumed-worker program; default: beside volumed",
                          &Config::worker, true));
  table.push_back(
      {{"log-level", "debug|info|warning|error", "the least level that is logged", true},
       Setter(&Config::log_level,
              [](const ConfigValue& values) -> Result<LogLevel> {
                ASSIGN_OR_RETURN(const std::string text, One(values));
                return ParseLogLevel(text);
              }),
       [](const Config& config) { return std::string(LogLevelName(config.log_level)); }});
  table.push_back({{"mask-kernel-feature", "list of strings",
                    "kernel features to do without, for tests", false},
                   Setter(&Config::masked_kernel_features,
                          [](const ConfigValue& values) -> Result<ConfigValue> { return values; }),
                   [](const Config& config) { return Join(config.masked_kernel_features, ","); }});
  table.push_back(Reloadable(
      IntRow("max-workers", "most worker processes at once", &Config::max_workers, 2, 1024)));
  table.push_back(Reloadable(IntRow("max-workers-per-domain",
                                    "most workers that one filesystem or server may occupy",
                                    &Config::max_workers_per_domain, 1, 64)));
}

void AddDeadlineRows(Rows& table) {
  table.push_back(Reloadable(DurationRow("deadline-mount", "for each effect of a set-up",
                                         &Config::deadline_mount, kShortest, hours(1))));
  table.push_back(Reloadable(DurationRow("deadline-unmount", "for each effect of a teardown",
                                         &Config::deadline_unmount, kShortest, hours(1))));
  table.push_back(Reloadable(DurationRow("deadline-attach",
                                         "for attaching a volume, and for each step of a detach",
                                         &Config::deadline_attach, kShortest, hours(1))));
  table.push_back(Reloadable(DurationRow("deadline-wait-for-attach",
                                         "until the device of an attached volume is there",
                                         &Config::deadline_wait_for_attach, kShortest, hours(24))));
  table.push_back(Reloadable(DurationRow("deadline-stats", "for measuring one volume",
                                         &Config::deadline_stats, kShortest, hours(1))));
}

void AddOtherDeadlineRows(Rows& table) {
  table.push_back(Reloadable(DurationRow(
      "deadline-expand", "for each effect of making a volume larger, the growth itself aside",
      &Config::deadline_expand, kShortest, hours(1))));
  table.push_back(Reloadable(DurationRow("deadline-verify-attached",
                                         "for asking a plugin which volumes are attached",
                                         &Config::deadline_verify_attached, kShortest, hours(1))));
  table.push_back(Reloadable(DurationRow("deadline-provision", "for making a volume for a claim",
                                         &Config::deadline_provision, kShortest, hours(24))));
  table.push_back(Reloadable(DurationRow("deadline-expand-storage",
                                         "for making the storage of a volume larger, by its driver",
                                         &Config::deadline_expand_storage, kShortest, hours(24))));
  table.push_back(
      Reloadable(DurationRow("deadline-reclaim", "for deleting or recycling a released volume",
                             &Config::deadline_reclaim, kShortest, hours(7 * 24))));
  table.push_back(Reloadable(DurationRow("deadline-pod-directories",
                                         "for making, and for removing, the directories of a pod",
                                         &Config::deadline_pod_directories, kShortest, hours(1))));
  table.push_back(Reloadable(DurationRow(
      "deadline-look", "for a look at the node that an answer of the control API waits for",
      &Config::deadline_look, kShortest, hours(1))));
}

// Looks at what the node has.
void AddLookRows(Rows& table) {
  table.push_back(DurationRow(
      "deadline-answer", "for a look whether a file or directory of this configuration answers",
      &Config::deadline_answer, kShortest, hours(1)));
  table.push_back(DurationRow("deadline-far-manifest",
                              "for reading a manifest that is a link to another filesystem",
                              &Config::deadline_far_manifest, kShortest, hours(1)));
  table.push_back(DurationRow("deadline-find-volumes",
                              "for each look of a start at what the last agent left",
                              &Config::deadline_find_volumes, kShortest, hours(1)));
  table.push_back(DurationRow("deadline-identify-device",
                              "for opening a device that a volume waits for",
                              &Config::deadline_identify_device, kShortest, hours(1)));
  table.push_back(DurationRow(
      "deadline-identify-storage",
      "for a look at another volume's storage that decides whether something may be deleted",
      &Config::deadline_identify_storage, kShortest, hours(1)));
  table.push_back(
      DurationRow("deadline-identify-other-storage",
                  "for a look at another volume's storage that may also count as one elsewhere",
                  &Config::deadline_identify_other_storage, kShortest, hours(1)));
  table.push_back(DurationRow("device-look-first",
                              "how long a device that is waited for is not looked for again, if "
                              "nothing announces it; it doubles",
                              &Config::device_look_first, kShortest, hours(1)));
  table.push_back(DurationRow("device-look-longest", "the longest such time",
                              &Config::device_look_longest, kShortest, hours(1)));
}

void AddBackoffRows(Rows& table) {
  table.push_back(DurationRow("back-off-first",
                              "how long a failed operation waits for its next try; it doubles",
                              &Config::back_off_first, kShortest, hours(1)));
  table.push_back(DurationRow("back-off-longest", "the longest such wait",
                              &Config::back_off_longest, kShortest, hours(24)));
}

void AddPeriodRows(Rows& table) {
  table.push_back(Reloadable(DurationRow("volume-stats-period", "how often each volume is measured",
                                         &Config::volume_stats_period, kShortest, hours(24))));
  table.push_back(Reloadable(PeriodOrNeverRow(
      "server-look-period",
      "how often a server that volumes hang with is looked at; 0s: never, and none shows as Stuck",
      &Config::server_look_period, kShortest, hours(1))));
  table.push_back(DurationRow("server-look-deadline",
                              "after which such a look counts as one without an answer",
                              &Config::server_look_deadline, kShortest, hours(1)));
  table.push_back(Reloadable(PeriodOrNeverRow(
      "verify-attached-period", "how often plugins are asked which volumes are attached; 0s: never",
      &Config::verify_attached_period, kShortest, hours(24))));
}

void AddLimitRows(Rows& table) {
  table.push_back(
      {{"attach-limits", "list of plugin=number",
        "how many volumes of a plugin the node takes at once; default: any number", true},
       Setter(&Config::attach_limits, ParseAttachLimits),
       [](const Config& config) {
         std::vector<std::string> limits;
         for (const auto& [plugin, limit] : config.attach_limits) {
           limits.push_back(plugin + "=" + std::to_string(limit));
         }
         return Join(limits, ",");
       }});
  table.push_back({{"empty-dir-limit-action", "evict|report",
                    "what becomes of a pod whose emptyDir exceeds its sizeLimit", false},
                   Setter(&Config::empty_dir_limit_action,
                          [](const ConfigValue& values) -> Result<SizeLimitAction> {
                            ASSIGN_OR_RETURN(const std::string text, One(values));
                            return ParseSizeLimitAction(text);
                          }),
                   [](const Config& config) {
                     return std::string(SizeLimitActionName(config.empty_dir_limit_action));
                   }});
}

// The names and defaults of the recycler's settings are kube-controller-manager's.
void AddHostPathRows(Rows& table) {
  table.push_back(PathsRow("host-path-root",
                           "where hostPath volumes may be made and deleted; default: nowhere",
                           &Config::host_path_roots));
  table.push_back(BoolRow("enable-hostpath-provisioner",
                          "make a directory below the first host-path-root for claims that ask",
                          &Config::host_path_provisioning));
  table.push_back(PathRow("pv-recycler-pod-template-filepath-hostpath",
                          "manifest of the Pod that recycles hostPath volumes; default: built in",
                          &Config::host_path_recycler_template, true));
  table.push_back(IntRow("pv-recycler-minimum-timeout-hostpath",
                         "seconds that recycling a hostPath volume may take, at least",
                         &Config::host_path_recycler_minimum_seconds, 1, 86400));
  table.push_back(IntRow("pv-recycler-timeout-increment-hostpath",
                         "seconds that it may take for each Gi, if that is more",
                         &Config::host_path_recycler_increment_seconds, 0, 86400));
}

void AddNfsRows(Rows& table) {
  table.push_back(PathRow("pv-recycler-pod-template-filepath-nfs",
                          "manifest of the Pod that recycles NFS volumes; default: built in",
                          &Config::nfs_recycler_template, true));
  table.push_back(IntRow("pv-recycler-minimum-timeout-nfs",
                         "seconds that recycling an NFS volume may take, at least",
                         &Config::nfs_recycler_minimum_seconds, 1, 86400));
  table.push_back(IntRow("pv-recycler-increment-timeout-nfs",
                         "seconds that it may take for each Gi, if that is more",
                         &Config::nfs_recycler_increment_seconds, 0, 86400));
  table.push_back(
      Reloadable(DurationRow("nfs-unmount-timeout", "after which the unmount of NFS is forced",
                             &Config::nfs_unmount_timeout, kShortest, hours(1))));
  table.push_back(DurationRow("nfs-force-timeout", "for a forced unmount of NFS",
                              &Config::nfs_force_timeout, kShortest, hours(1)));
  table.push_back(DurationRow("nfs-remove-timeout",
                              "for removing the directory of an NFS volume after its unmount",
                              &Config::nfs_remove_timeout, kShortest, hours(1)));
}

void AddIscsiRows(Rows& table) {
  table.push_back(DurationRow("deadline-iscsiadm", "for one run of iscsiadm",
                              &Config::deadline_iscsiadm, kShortest, hours(1)));
  table.push_back(DurationRow("iscsi-device-timeout",
                              "how long the disk of a portal is waited for after its login",
                              &Config::iscsi_device_timeout, kShortest, hours(1)));
  table.push_back(DurationRow("iscsi-multipath-timeout",
                              "how long the multipath device over iSCSI disks is waited for",
                              &Config::iscsi_multipath_timeout, kShortest, hours(1)));
  table.push_back(DurationRow("iscsi-more-portals-timeout",
                              "how long missing portals are tried again once one is there",
                              &Config::iscsi_more_portals_timeout, kShortest, hours(1)));
}

void AddFlexVolumeRows(Rows& table) {
  table.push_back(PathRow("volume-plugin-dir",
                          "directory of flexVolume drivers, each <vendor~driver>/<driver>; empty: "
                          "none are looked for",
                          &Config::volume_plugin_dir, true));
  table.push_back(DurationRow("deadline-flex-volume-init", "for one init of a flexVolume driver",
                              &Config::deadline_flex_volume_init, kShortest, hours(1)));
  table.push_back(
      DurationRow("flex-volume-first-wait",
                  "how long a start waits for the init of the drivers that are installed",
                  &Config::flex_volume_first_wait, Duration::zero(), hours(1)));
}

// Where drivers and their sockets are.
void AddCsiSocketRows(Rows& table) {
  table.push_back(PathRow("plugins-registry",
                          "directory in which CSI drivers register; default: plugins_registry in "
                          "the root",
                          &Config::plugins_registry, true));
  table.push_back({{"csi-socket-owners", "list of uids", "whose sockets are used", true},
                   Setter(&Config::csi_socket_owners, ParseSocketOwners),
                   [](const Config& config) {
                     std::vector<std::string> owners;
                     for (const uint32_t uid : config.csi_socket_owners) {
                       owners.push_back(std::to_string(uid));
                     }
                     return Join(owners, ",");
                   }});
  table.push_back(PathsRow(
      "csi-endpoint-dirs",
      "directories in which the sockets may lie that CSI drivers register, besides the root",
      &Config::csi_endpoint_dirs));
  table.push_back({{"csi-controller-endpoints", "list of driver=socket",
                    "the sockets of controllers, of drivers whose own socket has none", false},
                   Setter(&Config::csi_controller_endpoints, ParseDriverSockets),
                   [](const Config& config) {
                     std::vector<std::string> sockets;
                     for (const auto& [driver, path] : config.csi_controller_endpoints) {
                       sockets.push_back(driver + "=" + path);
                     }
                     return Join(sockets, ",");
                   }});
}

// How drivers are called.
void AddCsiCallRows(Rows& table) {
  table.push_back(
      Reloadable(IntRow("csi-calls-per-driver", "most operations that a CSI driver has at a time",
                        &Config::csi_calls_per_driver, 1, kMostCsiCallsPerDriver)));
  table.push_back(Reloadable(DurationRow("deadline-csi-call", "for one call to a CSI driver",
                                         &Config::deadline_csi_call, kShortest, hours(24))));
  table.push_back(Reloadable(PeriodOrNeverRow(
      "csi-probe-period",
      "how often a CSI driver that nobody calls is asked whether it is well; 0s: never",
      &Config::csi_probe_period, kShortest, hours(24))));
  table.push_back(
      {{"csi-max-message", "bytes", "the largest answer of a CSI driver that is taken", false},
       Setter(
           &Config::csi_max_message,
           [](const ConfigValue& v) { return ParseBytes(v, kLeastCsiMessage, kMostCsiMessage); }),
       [](const Config& config) { return Quantity::FromBytes(config.csi_max_message).String(); }});
}

// What is done with the volumes of drivers.
void AddCsiVolumeRows(Rows& table) {
  table.push_back({{"csi-attach", "auto|objects|controller",
                    "who attaches CSI volumes: whoever fills VolumeAttachments, or this agent by "
                    "the driver's controller",
                    false},
                   Setter(&Config::csi_attach, ParseCsiAttach),
                   [](const Config& config) { return CsiAttachText(config.csi_attach); }});
  table.push_back({{"csi-level", "1.12|1.13",
                    "of the CSI specification, whose RPCs drivers are asked for", false},
                   Setter(&Config::csi_level, ParseCsiLevel),
                   [](const Config& config) { return CsiLevelText(config.csi_level); }});
  table.push_back({{"csi-plain-directories", "list of drivers",
                    "CSI drivers whose published volumes may be directories and no mounts", true},
                   Setter(&Config::csi_plain_directories, ParseDriverNames),
                   [](const Config& config) { return Join(config.csi_plain_directories, ","); }});
  table.push_back(Reloadable(
      PeriodOrNeverRow("driver-absent-limit",
                       "how long a CSI driver is absent before its volumes are unmounted without "
                       "it, where that is certainly harmless; 0s: never",
                       &Config::driver_absent_limit, kShortest, hours(24 * 7))));
  table.push_back(Reloadable(
      DurationRow("csi-republish-period",
                  "how often a volume is published anew whose CSIDriver has requiresRepublish",
                  &Config::csi_republish_period, kShortest, hours(24))));
}

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

std::string NamedText(const NamedTexts& named, const char* between) {
  std::vector<std::string> all;
  for (const auto& [name, text] : named) all.push_back(name + "=" + text);
  return Join(all, between);
}

ConfigRow NamedPathsRow(const char* key, const char* text, NamedTexts Config::*field) {
  return {{key, "list of name=path", text, false},
          Setter(field, ParsePools),
          [field](const Config& config) { return NamedText(config.*field, ","); }};
}

// Where the node keeps volumes of its own.
void AddPoolRows(Rows& table) {
  table.push_back(NamedPathsRow("pool",
                                "directories in which volumes are made; the first is that of "
                                "classes that name none",
                                &Config::pools));
  table.push_back(NamedPathsRow("static-volumes",
                                "devices that are there already, as volumes with a filesystem",
                                &Config::static_volumes));
  table.push_back(NamedPathsRow("static-block-volumes",
                                "devices that are there already, as raw volumes",
                                &Config::static_block_volumes));
  // Commas are between the options of one.
  table.push_back({{"static-exports", "list of name=server:/path options",
                    "exports of NFS servers, as volumes", false},
                   Setter(&Config::static_exports, ParseStaticExports),
                   [](const Config& config) { return NamedText(config.static_exports, "; "); }});
  table.push_back(
      {{"pool-capacity", "list of name=bytes",
        "how much a pool may promise to its volumes; default: what its filesystem has", false},
       Setter(&Config::pool_capacity, ParsePoolCapacity),
       [](const Config& config) {
         std::vector<std::string> capacities;
         for (const auto& [name, bytes] : config.pool_capacity) {
           capacities.push_back(name + "=" + Quantity::FromBytes(bytes).String());
         }
         return Join(capacities, ",");
       }});
  table.push_back(
      {{"pool-lvm", "list of name=group/thinpool",
        "the thin pool in which a pool's volumes of backend lvm are; default: it has none", false},
       Setter(&Config::pool_lvm, ParsePoolLvm),
       [](const Config& config) {
         std::vector<std::string> all;
         for (const auto& [name, lvm] : config.pool_lvm) all.push_back(name + "=" + lvm.ToString());
         return Join(all, ",");
       }});
  table.push_back(IntRow("pool-reserve", "percent of a pool that are promised to nobody",
                         &Config::pool_reserve_percent, 0, kMostReservePercent));
  table.push_back(Reloadable(
      DurationRow("freeze-limit", "how long writes to a volume may wait for a cut of it at most",
                  &Config::freeze_limit, kShortest, kLongestFreeze)));
  table.push_back(
      {{"copy-bandwidth", "bytes",
        "bytes that each copy of a cut may read in a second; 0: no limit", true},
       Setter(&Config::copy_bandwidth,
              [](const ConfigValue& v) { return ParseBytes(v, 0, kMostBandwidth); }),
       [](const Config& config) { return Quantity::FromBytes(config.copy_bandwidth).String(); }});
  table.push_back(
      {{"csi-driver-name", "string",
        "the provisioner of the pools' classes, the driver of their volumes, and the CSI "
        "driver that the agent is",
        false},
       Setter(&Config::csi_driver_name, ParseDriverName),
       [](const Config& config) { return config.csi_driver_name; }});
}

void AddRecyclerRows(Rows& table) {
  table.push_back(PathRow("runc", "the program that runs recycler pods", &Config::runc, false));
  table.push_back(PathRow("busybox", "a static busybox: what recycler pods consist of",
                          &Config::busybox, false));
}

void AddIdentityRows(Rows& table) {
  table.push_back(PathRow("machine-id-file",
                          "the machine's id, by which records of another machine are noticed",
                          &Config::machine_id_file, false));
  table.push_back(TextRow("token-issuer", "iss of service account tokens", &Config::token_issuer));
}

Rows MakeTable() {
  Rows table;
  AddNodeRows(table);
  AddSourceRows(table);
  AddEntranceRows(table);
  AddProcessRows(table);
  AddDeadlineRows(table);
  AddOtherDeadlineRows(table);
  AddLookRows(table);
  AddBackoffRows(table);
  AddPeriodRows(table);
  AddLimitRows(table);
  AddHostPathRows(table);
  AddFlexVolumeRows(table);
  AddCsiSocketRows(table);
  AddCsiCallRows(table);
  AddCsiVolumeRows(table);
  AddPoolRows(table);
  AddCsiDriverRows(table);
  AddNfsRows(table);
  AddIscsiRows(table);
  AddRecyclerRows(table);
  AddIdentityRows(table);
  return table;
}

}  // namespace

const std::vector<ConfigRow>& ConfigTable() {
  static const auto* const table = new Rows(MakeTable());
  return *table;
}

}  // namespace volumed
