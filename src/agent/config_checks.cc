#include "agent/config_checks.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "agent/csi_serve_settings.h"
#include "agent/root_lock.h"
#include "base/socket_file.h"
#include "base/strings.h"
#include "kube/field_rules.h"
#include "os/child_look.h"
#include "os/kernel_features.h"
#include "pool/static_export.h"

namespace volumed {
namespace {

namespace fs = std::filesystem;

// Directories that belong to the kernel: the agent cannot have its files there, or they would not
// last.
constexpr std::string_view kKernelsPlaces[] = {"/proc", "/sys", "/dev"};
constexpr size_t kLongestSocket = sizeof(sockaddr_un::sun_path) - 1;
// The longest path of the agent is a device's global mount point or a sub-path: up to two kilobytes
// below the root. SQLite takes 512 bytes for the name of a database and of its companion files.
constexpr size_t kLongestRoot = 400;
constexpr size_t kLongestPath = 2048;
constexpr size_t kLongestName = 255;  // NAME_MAX
constexpr int kMostLinks = 40;        // the kernel's limit

using Problems = std::vector<std::string>;

constexpr char kPoolKey[] = "pool";
constexpr char kLinksResolved[] = " (with its links resolved)";

bool LiesIn(const std::string& path, std::string_view directory) {
  if (directory == "/") return path.starts_with('/');
  const std::optional<std::string_view> rest = StripPrefix(path, directory);
  return rest && (rest->empty() || rest->front() == '/');
}

bool Overlap(const std::string& a, const std::string& b) { return LiesIn(a, b) || LiesIn(b, a); }

struct Place {
  std::string key;
  std::string path;
};

constexpr char kCsiServe[] = "csi-serve";

// The sockets that the agent makes at a path of the configuration.
bool IsSocket(const Place& place) { return place.key == "socket" || place.key == kCsiServe; }

// The directories in which the agent works, and its sockets.
std::vector<Place> PlacesOf(const Config& config) {
  std::vector<Place> places = {{"root", config.root}, {"socket", config.socket}};
  for (const std::string& path : config.manifest_dirs) places.push_back({"manifest-dir", path});
  for (const std::string& path : config.host_path_roots) places.push_back({"host-path-root", path});
  if (!config.volume_plugin_dir.empty()) {
    places.push_back({"volume-plugin-dir", config.volume_plugin_dir});
  }
  if (!config.plugins_registry.empty()) {
    places.push_back({"plugins-registry", config.plugins_registry});
  }
  for (const std::string& path : config.csi_endpoint_dirs) {
    places.push_back({"csi-endpoint-dirs", path});
  }
  for (const auto& [name, path] : config.pools) places.push_back({kPoolKey, path});
  if (!config.csi_serve.empty()) places.push_back({kCsiServe, config.csi_serve});
  if (!config.csi_registry.empty()) places.push_back({"csi-registry", config.csi_registry});
  if (config.csi_serve.empty()) return places;
  for (const std::string& path : config.csi_target_roots) {
    places.push_back({kCsiTargetRoots, path});
  }
  return places;
}

void CheckLength(const Place& place, Problems& problems) {
  const size_t longest = place.key == "root" ? kLongestRoot
                         : IsSocket(place)   ? kLongestSocket
                                             : kLongestPath;
  if (place.path.size() > longest) {
    problems.push_back(place.key + ": must have at most " + std::to_string(longest) +
                       " bytes, not " + std::to_string(place.path.size()));
  }
  for (const std::string& name : SplitNonEmpty(place.path, '/')) {
    // The socket's lock has the socket's name with five more letters.
    if (name.size() > kLongestName - (IsSocket(place) ? 5 : 0)) {
      problems.push_back(place.key + ": '" + name.substr(0, 20) + "...' is too long for a name");
    }
  }
}

// `as_seen` says how the path of a place that is a link was found.
void CheckOverlaps(const std::vector<Place>& places, const std::string& as_seen,
                   Problems& problems) {
  const Place& root = places.front();
  for (const Place& place : places) {
    for (const std::string_view kernels : kKernelsPlaces) {
      if (!LiesIn(place.path, kernels)) continue;
      problems.push_back(place.key + ": " + place.path + as_seen + " lies in " +
                         std::string(kernels) + ", which is the kernel's");
    }
    const bool is_apart =
        place.key == "manifest-dir" || place.key == "host-path-root" || place.key == kPoolKey;
    if (is_apart && Overlap(place.path, root.path)) {
      problems.push_back(place.key + ": " + place.path + as_seen + " and the root " + root.path +
                         " lie in one another");
    }
    if (IsSocket(place) && LiesIn(place.path, root.path + "/pods")) {
      problems.push_back(place.key + ": " + place.path + as_seen +
                         " lies in the directory of the pods, which is swept");
    }
  }
}

void CheckTwice(const std::string& key, std::vector<std::string> values, Problems& problems) {
  std::sort(values.begin(), values.end());
  const auto twice = std::adjacent_find(values.begin(), values.end());
  if (twice != values.end()) problems.push_back(key + ": " + *twice + " is given twice");
}

void CheckRemovalDeletesClaims(const Config& config, Problems& problems) {
  const std::vector<std::string>& all = config.manifest_dirs;
  for (const std::string& directory : config.removal_deletes_claims) {
    if (std::find(all.begin(), all.end(), directory) != all.end()) continue;
    problems.push_back("removal-deletes-claims: " + directory + " is no manifest-dir");
  }
}

// Finds one place that has two names, so that it would be two sources.
void CheckTwiceByLinks(const std::string& key, const std::vector<Place>& resolved,
                       Problems& problems) {
  std::set<std::string> seen;
  for (const Place& place : resolved) {
    if (place.key != key || seen.insert(place.path).second) continue;
    problems.push_back(key + ": " + place.path + kLinksResolved + " is given twice");
  }
}

// A pool inside another one, or inside the root, would be measured and emptied with it.
void CheckPools(const std::vector<Place>& places, const std::string& as_seen, Problems& problems) {
  for (auto place = places.begin(); place != places.end(); ++place) {
    if (place->key != kPoolKey) continue;
    const auto other = std::find_if(place + 1, places.end(), [&place](const Place& one) {
      return one.key == kPoolKey && Overlap(one.path, place->path);
    });
    if (other == places.end()) continue;
    problems.push_back("pool: " + place->path + as_seen + " and " + other->path +
                       " lie in one another");
  }
}

// Callers of the driver would make directories, and mount volumes, amid what is the agent's.
void CheckTargetRootsLieApart(const std::vector<Place>& places, const std::string& as_seen,
                              Problems& problems) {
  for (const Place& target : places) {
    if (target.key != kCsiTargetRoots) continue;
    for (const Place& place : places) {
      const bool is_own = place.key == "root" || place.key == kPoolKey;
      if (!is_own || !LiesIn(target.path, place.path)) continue;
      problems.push_back(std::string(kCsiTargetRoots) + ": " + target.path + as_seen +
                         " lies in the " + place.key + " " + place.path);
    }
  }
}

// One name is one volume, and so is one device, and one export.
void CheckStaticVolumes(const Config& config, Problems& problems) {
  std::vector<std::string> names;
  std::vector<std::string> devices;
  for (const auto* const all : {&config.static_volumes, &config.static_block_volumes}) {
    for (const auto& [name, path] : *all) {
      names.push_back(name);
      devices.push_back(path);
      if (LiesIn(path, "/dev") && path != "/dev") continue;
      problems.push_back("static-volumes: " + path + " is no path of a device, in /dev");
    }
  }
  std::vector<std::string> exports;
  for (const auto& [name, text] : config.static_exports) {
    names.push_back(name);
    const Result<StaticExport> listed = ParseStaticExport(text);
    if (listed.ok()) exports.push_back(listed->source);
  }
  CheckTwice("static-exports", exports, problems);
  CheckTwice("static-volumes", names, problems);
  CheckTwice("static-volumes", devices, problems);
  if (names.empty() || !config.pools.empty()) return;
  problems.push_back("static-volumes: there is no pool, which gives them their ids");
}

template <typename ByName>
void CheckArePools(const std::string& key, const ByName& by_name,
                   const std::vector<std::string>& pools, Problems& problems) {
  for (const auto& [name, value] : by_name) {
    if (std::find(pools.begin(), pools.end(), name) != pools.end()) continue;
    problems.push_back(key + ": there is no pool " + name);
  }
}

void CheckPoolNames(const Config& config, Problems& problems) {
  std::vector<std::string> names;
  for (const auto& [name, path] : config.pools) names.push_back(name);
  CheckTwice(kPoolKey, names, problems);
  CheckArePools("pool-capacity", config.pool_capacity, names, problems);
  CheckArePools("pool-lvm", config.pool_lvm, names, problems);
  CheckStaticVolumes(config, problems);
  if (config.pools.empty()) return;
  if (config.csi_controller_endpoints.contains(config.csi_driver_name)) {
    problems.push_back("csi-controller-endpoints: " + config.csi_driver_name +
                       " is the driver of this node's pools (csi-driver-name)");
  }
}

void CheckNames(const Config& config, Problems& problems) {
  for (const auto& [key, value] : config.node_labels) {
    if (const auto broken = rules::kQualifiedName.broken(key)) {
      problems.push_back("node-labels: " + *broken);
    }
    if (const auto broken = rules::kLabelValue.broken(value)) {
      problems.push_back("node-labels: " + key + ": " + *broken);
    }
  }
  // Source: kubernetes pkg/kubeapiserver/options/authentication.go (service-account-issuer).
  const size_t scheme = config.token_issuer.find("://");
  if (config.token_issuer.empty()) {
    problems.push_back("token-issuer: must not be empty");
  } else if (config.token_issuer.find(':') != std::string::npos &&
             (scheme == std::string::npos || scheme == 0 ||
              scheme + 3 == config.token_issuer.size())) {
    problems.push_back("token-issuer: with a ':' it must be a URL, not " +
                       Quoted(config.token_issuer));
  }
  if (const auto masked = MaskFeatures({}, config.masked_kernel_features); !masked.ok()) {
    problems.push_back("mask-kernel-feature: " + masked.error().message());
  }
}

// The path with every link resolved, also links to what does not exist yet. A loop of links stays
// as it is, since the kernel refuses it.
std::string Resolved(const std::string& path) {
  const fs::path given(path);
  std::deque<fs::path> left(given.begin(), given.end());
  fs::path resolved;
  int links = 0;
  while (!left.empty()) {
    const fs::path part = std::move(left.front());
    left.pop_front();
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      resolved = resolved.parent_path();
      continue;
    }
    std::error_code not_a_link;
    const fs::path target = fs::read_symlink(resolved / part, not_a_link);
    if (not_a_link || ++links > kMostLinks) {
      resolved /= part;  // an absolute target replaces everything before it
    } else {
      left.insert(left.begin(), target.begin(), target.end());
    }
  }
  return resolved.string();
}

// The path itself, or the nearest existing directory above it.
std::string NearestThere(std::string path) {
  struct stat info {};
  while (path.size() > 1 && ::stat(path.c_str(), &info) != 0) {
    const size_t slash = path.rfind('/');
    path = slash == 0 ? "/" : path.substr(0, slash);
  }
  return path;
}

void CheckDirectory(const Place& place, Problems& problems) {
  const std::string there = NearestThere(place.path);
  struct stat info {};
  if (::stat(there.c_str(), &info) != 0) return;
  if (!S_ISDIR(info.st_mode)) {
    problems.push_back(place.key + ": " + there + " is not a directory");
    return;
  }
  struct statfs kind {};
  if (::statfs(there.c_str(), &kind) != 0) return;
  switch (static_cast<uint32_t>(kind.f_type)) {
    case PROC_SUPER_MAGIC:
    case SYSFS_MAGIC:
    case CGROUP_SUPER_MAGIC:
    case CGROUP2_SUPER_MAGIC:
    case DEVPTS_SUPER_MAGIC:
    case DEBUGFS_MAGIC:
    case TRACEFS_MAGIC:
    case SECURITYFS_MAGIC:
    case BPF_FS_MAGIC:
      problems.push_back(place.key + ": " + there + " is on a filesystem of the kernel's own");
      break;
    default:
      break;
  }
}

void CheckSocketFile(const std::string& path, Problems& problems) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) == 0 && !S_ISSOCK(info.st_mode)) {
    problems.push_back("socket: " + path + " is there and is not a socket");
  }
}

// ---- looks, each in a process of its own --------------------------------------------------------

constexpr Duration kLookPatience = std::chrono::seconds(3);
// Without the file there can be no start, and a node that boots may be slow for a while.
constexpr Duration kConfigPatience = std::chrono::seconds(15);
constexpr char kWorkerKey[] = "worker";

// The root comes first. Besides PlacesOf there are files that are read, and the worker.
std::vector<Place> PlacesToLookAt(const Config& config) {
  std::vector<Place> places = PlacesOf(config);
  places.push_back({"machine-id-file", config.machine_id_file});
  for (const auto& [key, path] :
       {std::pair("pv-recycler-pod-template-filepath-hostpath", config.host_path_recycler_template),
        std::pair("pv-recycler-pod-template-filepath-nfs", config.nfs_recycler_template)}) {
    if (!path.empty()) places.push_back({key, path});
  }
  places.push_back({kWorkerKey, config.worker.empty() ? "volumed-worker" : config.worker});
  return places;
}

// Whether the place must not overlap others.
bool IsOfTheAgentsWork(const Place& place) {
  return place.key == "root" || IsSocket(place) || place.key == "manifest-dir" ||
         place.key == "host-path-root" || place.key == "volume-plugin-dir" ||
         place.key == kPoolKey || place.key == kCsiTargetRoots;
}

struct Look {
  std::string resolved;
  Problems problems;
};

Look LookAt(const Place& place, const Config& config) {
  Look look;
  if (place.key == kWorkerKey) {
    const Result<std::string> worker = FindWorker(config.worker);
    if (!worker.ok()) look.problems.push_back("worker: " + worker.error().message());
    return look;
  }
  // Only a server, and no cache, can say how full its filesystem is; so this shows whether it
  // answers.
  struct statfs unused {};
  (void)::statfs(place.path.c_str(), &unused);
  const bool is_directory =
      place.key == "root" || place.key == "manifest-dir" || place.key == kCsiTargetRoots;
  if (is_directory) CheckDirectory(place, look.problems);
  if (place.key == "root" && look.problems.empty()) {
    const Status may = RootLock::CheckMayTake(place.path, config.adopt_root);
    if (!may.ok()) look.problems.push_back("root: " + may.error().message());
  }
  if (place.key == "socket") CheckSocketFile(place.path, look.problems);
  (void)NearestThere(place.path);
  look.resolved = Resolved(place.path);
  return look;
}

// The parts are separated by NUL, which no path contains.
std::string Encoded(const Look& look) {
  std::string text = look.resolved;
  for (const std::string& problem : look.problems) text += '\0' + problem;
  return text;
}

Look DecodeLook(const std::string& text) {
  std::vector<std::string> parts = Split(text, '\0');
  Look look;
  look.resolved = std::move(parts.front());
  look.problems.assign(parts.begin() + 1, parts.end());
  return look;
}

}  // namespace

std::vector<std::string> ProblemsOfValues(const Config& config) {
  Problems problems;
  const std::vector<Place> places = PlacesOf(config);
  for (const Place& place : places) CheckLength(place, problems);
  CheckOverlaps(places, "", problems);
  CheckPools(places, "", problems);
  CheckTargetRootsLieApart(places, "", problems);
  CheckPoolNames(config, problems);
  CheckTwice("manifest-dir", config.manifest_dirs, problems);
  CheckTwice("host-path-root", config.host_path_roots, problems);
  CheckRemovalDeletesClaims(config, problems);
  CheckNames(config, problems);
  for (std::string& problem : ProblemsOfCsiDriver(config)) problems.push_back(std::move(problem));
  if (config.back_off_first > config.back_off_longest) {
    problems.push_back("back-off-first: must not be longer than back-off-longest");
  }
  if (config.device_look_first > config.device_look_longest) {
    problems.push_back("device-look-first: must not be longer than device-look-longest");
  }
  if (config.host_path_provisioning && config.host_path_roots.empty()) {
    problems.push_back("enable-hostpath-provisioner: needs a host-path-root");
  }
  return problems;
}

Status CheckConfigFile(const std::string& path) {
  const auto look = [&path]() -> std::string {
    struct stat unused {};
    return ::stat(path.c_str(), &unused) == 0 ? path : "";
  };
  ASSIGN_OR_RETURN(const auto answers, LookInChildren({look}, kConfigPatience));
  if (answers.front()) return OkStatus();
  return Error::NotApplied(Code::kUnavailable, path + " does not answer");
}

Status CheckPlaces(const Config& config, SilentPlaces silent) {
  const std::vector<Place> places = PlacesToLookAt(config);
  std::vector<std::function<std::string()>> looks;
  looks.reserve(places.size());
  for (const Place& place : places) {
    looks.emplace_back([&place, &config] { return Encoded(LookAt(place, config)); });
  }
  ASSIGN_OR_RETURN(const auto answers, LookInChildren(looks, kLookPatience));
  Problems problems;
  std::vector<Place> resolved;
  for (size_t i = 0; i < places.size(); ++i) {
    const Place& place = places[i];
    if (!answers[i]) {
      const bool is_lacked = place.key != "root" && place.key != kWorkerKey;
      if (is_lacked && silent == SilentPlaces::kMayBeLacked) continue;
      problems.push_back(place.key + ": " + place.path + " does not answer");
      continue;
    }
    Look look = DecodeLook(*answers[i]);
    problems.insert(problems.end(), look.problems.begin(), look.problems.end());
    if (IsOfTheAgentsWork(place)) resolved.push_back({place.key, std::move(look.resolved)});
  }
  // Without an answer about the root there is nothing to compare with.
  if (answers.front()) CheckOverlaps(resolved, kLinksResolved, problems);
  CheckPools(resolved, kLinksResolved, problems);
  CheckTargetRootsLieApart(resolved, kLinksResolved, problems);
  CheckTwiceByLinks("manifest-dir", resolved, problems);
  if (problems.empty()) return OkStatus();
  return Error::NotApplied(Code::kInvalidArgument, Join(problems, "\n"));
}

Result<std::string> FindWorker(const std::string& configured) {
  std::error_code error;
  const auto runs = [&](const std::string& path) {
    return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
  };
  if (!configured.empty()) {
    if (runs(configured)) return configured;
    return Error::NotApplied(Code::kNotFound, configured + " is not a program");
  }
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  for (const char* place :
       {"volumed-worker", "../libexec/volumed/volumed-worker", "../os/volumed-worker"}) {
    std::string candidate = (self.parent_path() / place).lexically_normal().string();
    if (runs(candidate)) return candidate;
  }
  return Error::NotApplied(Code::kNotFound,
                           "volumed-worker is not beside " + self.string() + "; set worker");
}

}  // namespace volumed
