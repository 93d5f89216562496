// Config: every setting of the agent. One table (config_table.cc) holds each key once: its name in
// the file, which is also its flag (`--manifest-dir`), its help, its check, and whether SIGHUP may
// change it. A file is used as a whole or refused as a whole.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attacher/device_waiter.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/result.h"
#include "csi/csi_drivers.h"
#include "csi/csi_settings.h"
#include "csi/socket_dialer.h"
#include "csidriver/csi_profile.h"
#include "csidriver/csi_server.h"
#include "kube/far_manifests.h"
#include "kube/object_source.h"
#include "operation/operation_settings.h"
#include "operation/storage_guard.h"
#include "os/answers.h"
#include "plugins/flex_volume_prober.h"
#include "plugins/iscsi_initiator.h"
#include "plugins/nfs.h"
#include "pool/lvm_names.h"
#include "pool/pool_backend.h"
#include "pool/pool_capacity.h"
#include "volumemanager/devices/verify_attached_period.h"
#include "volumemanager/reconstructor.h"
#include "volumemanager/watch/server_health.h"
#include "volumemanager/watch/size_limits.h"

namespace volumed {

// The defaults stand here. One from LoadConfig() has passed every check of its values; whether this
// machine has what they name is another question (CheckPlaces in agent/config_checks.h). Paths are
// absolute and in their shortest form. config_table.cc says of each member which key it is, what it
// means and which values it may have.
struct Config {
  std::string root = "/var/lib/volumed";
  bool adopt_root = false;
  std::string pod_logs_dir = "/var/log/pods";  // of the kubelet of an adopted root
  std::string node_name;                       // empty: the host's name, lower case
  std::map<std::string, std::string> node_labels;
  std::vector<std::string> manifest_dirs = {"/etc/volumed/manifests"};
  // Those of manifest_dirs in which removing a claim, PersistentVolume or StorageClass deletes it.
  std::vector<std::string> removal_deletes_claims;
  std::string socket = "/run/volumed/volumed.sock";
  std::string socket_group = "volumed";            // its members have role operate
  std::string read_group;                          // its members have role read; empty: nobody
  std::string metrics_address = "127.0.0.1:9788";  // empty: no HTTP
  std::string worker;                              // empty: volumed-worker beside volumed
  LogLevel log_level = LogLevel::kInfo;
  // The agent does without the kernel features of these names ("mount-setattr").
  std::vector<std::string> masked_kernel_features;
  int max_workers = 64;
  int max_workers_per_domain = 4;
  // How long one step, or one look, may take before it is given up. A step that may not end half
  // done is waited for all the same.
  Duration deadline_mount = std::chrono::seconds(30);
  Duration deadline_unmount = std::chrono::seconds(30);
  Duration deadline_attach = std::chrono::seconds(123);
  Duration deadline_wait_for_attach = std::chrono::minutes(10);
  Duration deadline_stats = std::chrono::seconds(10);
  Duration deadline_expand = OperationSettings().node_expand;
  Duration deadline_verify_attached = OperationSettings().verify_attached;
  Duration deadline_provision = OperationSettings().provision;
  Duration deadline_expand_storage = OperationSettings().expand_storage;
  Duration deadline_reclaim = OperationSettings().reclaim;
  Duration deadline_pod_directories = OperationSettings().make_pod_directories;
  Duration deadline_look = std::chrono::seconds(5);
  Duration deadline_answer = kAnswerPatience;
  Duration deadline_far_manifest = kFarManifestDeadline;
  Duration deadline_find_volumes = FindOptions().call_timeout;
  Duration deadline_identify_device = DeviceWaiterOptions().identify_timeout;
  Duration deadline_identify_storage = StorageGuardSettings().look;
  Duration deadline_identify_other_storage = StorageGuardSettings().short_look;
  Duration deadline_iscsiadm = IscsiAdminOptions().timeout;
  Duration deadline_flex_volume_init = FlexVolumeProberSettings().init_deadline;
  // A failed operation waits for its next try: first as long as the first of these, then each time
  // twice as long, up to the second.
  Duration back_off_first = Backoff::Options().initial;
  Duration back_off_longest = Backoff::Options().max;
  // Of these only server_look_period and verify_attached_period may be zero, which means never.
  Duration volume_stats_period = std::chrono::seconds(60);
  Duration server_look_period = std::chrono::seconds(10);
  Duration server_look_deadline = ServerHealthSettings().deadline;
  Duration device_look_first = DeviceWaiterOptions().first_recheck;
  Duration device_look_longest = DeviceWaiterOptions().longest_recheck;
  Duration removal_settle = kRemovalSettle;
  Duration verify_attached_period = kVerifyAttachedPeriod;
  // A plugin that is not in the map may attach any number of volumes.
  std::map<std::string, int64_t> attach_limits;  // by name of the plugin
  SizeLimitAction empty_dir_limit_action = SizeLimitAction::kEvict;
  // hostPath volumes may be deleted only below these directories; new ones are made below the
  // first. Empty: no volume is deleted or made.
  std::vector<std::string> host_path_roots;
  bool host_path_provisioning = false;
  // A manifest of a Pod that recycles hostPath volumes; empty: the built-in one.
  std::string host_path_recycler_template;
  // Recycling may take the minimum, or the increment for each Gi of the volume if that is more.
  int host_path_recycler_minimum_seconds = 60;
  int host_path_recycler_increment_seconds = 30;
  // A manifest of a Pod that recycles NFS volumes; empty: the built-in one.
  std::string nfs_recycler_template;
  // The same for NFS volumes.
  int nfs_recycler_minimum_seconds = 300;
  int nfs_recycler_increment_seconds = 30;
  // After the first the unmount of NFS is forced; the second is for that, the third for removing
  // the directory afterwards.
  Duration nfs_unmount_timeout = std::chrono::minutes(1);
  Duration nfs_force_timeout = NfsSettings().force_timeout;
  Duration nfs_remove_timeout = NfsSettings().remove_timeout;
  Duration iscsi_device_timeout = IscsiOptions().device_timeout;
  Duration iscsi_multipath_timeout = IscsiOptions().multipath_timeout;
  Duration iscsi_more_portals_timeout = IscsiOptions().more_portals_timeout;
  // Programs of recycler pods: what runs them, and what they consist of. They need not exist.
  std::string runc = "/usr/sbin/runc";
  std::string busybox = "/bin/busybox";
  // Where flexVolume drivers are looked for: <directory>/<vendor~driver>/<driver>. Empty: nowhere.
  std::string volume_plugin_dir = "/usr/libexec/kubernetes/kubelet-plugins/volume/exec";
  // How long a start waits for drivers that are installed; zero: it does not.
  Duration flex_volume_first_wait = FlexVolumeProberSettings().first_wait;
  // Where CSI drivers register. Empty: in plugins_registry below the root.
  std::string plugins_registry;
  SocketOwners csi_socket_owners = {0};  // uids
  // Where a driver's socket may lie besides the root.
  std::vector<std::string> csi_endpoint_dirs;
  // By driver, the socket of its controller, if that is another one than its own.
  std::map<std::string, std::string> csi_controller_endpoints;
  int csi_calls_per_driver = CsiDriverSettings().most_calls;
  Duration deadline_csi_call = CsiPluginSettings().deadline;
  Duration csi_probe_period = CsiDriverSettings().probe_period;  // zero: never
  int64_t csi_max_message = 16 * 1024 * 1024;                    // bytes
  CsiAttach csi_attach = CsiPluginSettings().attach;
  CsiLevel csi_level = CsiPluginSettings().level;
  std::set<std::string> csi_plain_directories;                      // names of drivers
  Duration driver_absent_limit = CsiPluginSettings().absent_limit;  // zero: never
  Duration csi_republish_period = CsiPluginSettings().republish_period;
  // In the order in which they are given: name and directory of each.
  std::vector<std::pair<std::string, std::string>> pools;
  // Devices that are volumes of the first pool, likewise; with a filesystem, and raw.
  std::vector<std::pair<std::string, std::string>> static_volumes;
  std::vector<std::pair<std::string, std::string>> static_block_volumes;
  // Exports that are volumes of the first pool, likewise, as ParseStaticExport takes them.
  std::vector<std::pair<std::string, std::string>> static_exports;
  std::map<std::string, int64_t> pool_capacity;  // bytes, by the name of a pool
  std::map<std::string, LvmNames> pool_lvm;      // likewise: where it has logical volumes
  int pool_reserve_percent = PoolLimits().reserve_percent;
  Duration freeze_limit = CutLimits().longest;
  int64_t copy_bandwidth = 0;  // bytes in a second, of each copy of a cut; 0: no limit
  std::string csi_driver_name = "pool.volumed.io";
  // ---- the agent as a CSI driver ----
  std::string csi_serve;  // its socket; empty: it is none
  CsiProfile csi_profile = CsiProfile::kNode;
  CsiServeLevel csi_serve_level = CsiServeLevel::k1_12;
  std::string csi_serve_group;  // its members may call, too; empty: root alone
  // A kubelet's directory in which the driver registers. Empty: it does not.
  std::string csi_registry;
  std::string csi_registered_endpoint;  // csi_serve as the kubelet sees it; empty: likewise
  int csi_serve_calls = static_cast<int>(CsiLimits().calls);
  int csi_serve_rate = CsiLimits().rate;
  int64_t csi_serve_message = CsiServerSettings().most_message_bytes;
  // In these a CO may have volumes staged and published.
  std::vector<std::string> csi_target_roots = {"/var/lib/kubelet"};
  int csi_max_volumes = 0;          // that are published to a node; 0: no limit
  std::set<std::string> csi_nodes;  // to which volumes may be published besides this one
  // Nothing but the driver: no manifests, no pods, no drivers of others.
  bool csi_only = false;
  // ---- until here ----
  std::string machine_id_file = "/etc/machine-id";
  std::string token_issuer = "https://volumed.local";
};

// As many calls of operations a driver may have at most (csi-calls-per-driver).
inline constexpr int kMostCsiCallsPerDriver = 256;

// One row of the table, for help and documentation. The texts live as long as the program.
struct ConfigKey {
  std::string_view name;
  std::string_view type;  // "path", "duration", "list of strings" ...
  std::string_view help;
  bool reloadable;  // by SIGHUP; else it needs a restart
};
// "reloads on SIGHUP" or "needs a restart".
std::string_view ReloadWord(const ConfigKey& key);
// All keys, in the table's order.
std::vector<ConfigKey> ConfigKeys();

// The effective value of each key as text, in the table's order. Items of a list are separated by
// commas.
std::vector<std::pair<std::string, std::string>> PrintConfig(const Config& config);

// Settings by key, each with its texts: one, or as many as its list has items. Those of the command
// line win over the file's.
using FlagValues = std::map<std::string, std::vector<std::string>>;

// Reads `path` (empty: no file) and lays the flags over it. With csi-only, and without csi-serve,
// the socket is the one that CSI_ENDPOINT in the environment names. A missing file is an error only
// if `must_exist`. Errors: InvalidArgument, not applied, naming the file, the key and the reason.
// One message has all problems of one kind: those of the file's form, else those of single values,
// else those of values that do not go together. Threads: any. Blocks: reads one file, a megabyte at
// most.
Result<Config> LoadConfig(const std::string& path, bool must_exist, const FlagValues& flags);

// A key whose value in the file differs from the running one.
struct ChangedKey {
  std::string name;
  std::string running;  // as PrintConfig prints it
  std::string loaded;
  // Whether the loaded value is in ReloadedConfig::config; otherwise the running one stays.
  bool reloadable = false;
  friend bool operator==(const ChangedKey&, const ChangedKey&) = default;
};

struct ReloadedConfig {
  Config config;                    // the running one, with the reloadable keys of the loaded one
  std::vector<ChangedKey> changes;  // includes keys that need a restart; in the table's order
};
// Compares the two key by key, as PrintConfig prints them. It is a pure function: whoever uses the
// settings has to be told of the new ones.
ReloadedConfig MergeReloadable(const Config& running, const Config& loaded);

// Reads a duration of Go's form: "2m3s", "500ms", "1h". Each number needs its unit (ns, us, ms, s,
// m, h); unlike in Go it has neither a sign nor a fraction. Errors: InvalidArgument, not applied.
Result<Duration> ParseDuration(std::string_view text);
// The text from which ParseDuration() makes this duration: "2m3s", "0s". REQUIRES: the duration is
// not negative.
std::string FormatDuration(Duration duration);

}  // namespace volumed
