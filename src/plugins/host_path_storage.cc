#include "plugins/host_path_storage.h"

#include <utility>

#include "base/random.h"
#include "base/strings.h"
#include "metrics/metrics_nil.h"
#include "mounter/host_directory.h"
#include "plugins/host_path.h"

namespace volumed {
namespace {

constexpr uint32_t kVolumeMode = 0750;
constexpr uint32_t kRootMode = 0755;
constexpr char kCreatedBy[] = "kubernetes.io/createdby";
constexpr char kProvisionerName[] = "hostpath-dynamic-provisioner";

bool IsBelow(const std::string& path, const std::string& directory) {
  return path.size() > directory.size() + 1 && path.starts_with(directory) &&
         (directory == "/" || path[directory.size()] == '/');
}

Error InvalidPath(const std::string& path, const std::string& reason) {
  return Error::NotApplied(Code::kInvalidArgument, "invalid HostPath `" + path + "`: " + reason);
}

// The path seen from the configured root above it.
Result<SafePath> PlaceBelow(const std::vector<std::string>& roots, const std::string& path) {
  const std::string cleaned = CleanHostPath(path);
  for (const std::string& root : roots) {
    if (IsBelow(cleaned, root)) {
      return SafePath{root, cleaned.substr(root.size() + 1), Resolve::kNoSymlinks};
    }
  }
  const std::string allowed =
      roots.empty() ? "none, as no directory is configured" : Join(roots, ", ");
  return Error::NotApplied(Code::kPermissionDenied,
                           "host_path deleter only supports paths below: " + allowed +
                               "; but received provided " + path);
}

class HostPathDeleter final : public Deleter {
 public:
  HostPathDeleter(VolumeHost& host, std::vector<std::string> roots, std::string path)
      : host_(host), roots_(std::move(roots)), path_(std::move(path)) {}

  std::string GetPath() const override { return path_; }
  Result<Metrics> GetMetrics(const CallOptions& call) override { return metrics_.GetMetrics(call); }
  Status Delete(const CallOptions& call) override;

 private:
  VolumeHost& host_;
  const std::vector<std::string> roots_;
  const std::string path_;
  MetricsNil metrics_;
};

Status HostPathDeleter::Delete(const CallOptions& call) {
  ASSIGN_OR_RETURN(const SafePath place, PlaceBelow(roots_, path_));
  RemoveTree removal{place};
  if (call.approved != nullptr) {
    // What has come to be at the path since is not the volume's.
    if (call.approved->type == FileType::kMissing) return OkStatus();
    if (call.approved->type != FileType::kDirectory) {
      return Error::NotApplied(Code::kFailedPrecondition,
                               path_ + " is no directory: it is not deleted");
    }
    removal.expected = call.approved->object;
  }
  CallOptions own = call;
  own.domain = place.root;  // it may lie on a filesystem that hangs
  RETURN_IF_ERROR(host_.kernel.Call(removal, own));
  return OkStatus();
}

class HostPathProvisioner final : public Provisioner {
 public:
  HostPathProvisioner(VolumeHost& host, std::vector<std::string> roots, VolumeOptions options)
      : host_(host), roots_(std::move(roots)), options_(std::move(options)) {}

  Result<PersistentVolume> Plan() override;
  Result<PersistentVolume> Provision(const NodeObject* selected_node,
                                     const std::vector<TopologyTerm>& topologies,
                                     const CallOptions& call) override;
  Status Undo(const PersistentVolume& planned, const CallOptions& call) override;

 private:
  Status MakeDirectoryFor(const std::string& name, const CallOptions& call);

  VolumeHost& host_;
  const std::vector<std::string> roots_;
  const VolumeOptions options_;
};

// Source: of the texts about selector and data source, kubernetes pkg/controller/volume/
// persistentvolume/pv_controller.go@v1.36.2 and the in-tree provisioners before v1.27.
Result<PersistentVolume> HostPathProvisioner::Plan() {
  const PersistentVolumeClaimSpec& claim = options_.claim.spec;
  const auto refused = [](const std::string& why) {
    return Error::NotApplied(Code::kInvalidArgument, why);
  };
  if (claim.volume_mode == VolumeMode::kBlock) {
    return refused(std::string(kHostPathPluginName) +
                   " does not support block volume provisioning");
  }
  if (claim.selector) {
    return refused("claim.Spec.Selector is not supported for dynamic provisioning on " +
                   std::string(kHostPathPluginName));
  }
  if (!claim.data_source_json.empty() || !claim.data_source_ref_json.empty()) {
    return refused(
        "plugin \"" + std::string(kHostPathPluginName) +
        "\" is not a CSI plugin. Only CSI plugin can provision a claim with a datasource");
  }
  if (options_.pv_name.empty() || options_.pv_name[0] == '.' ||
      options_.pv_name.find('/') != std::string::npos) {
    return refused("\"" + options_.pv_name + "\" is no name of a volume");
  }
  PersistentVolume volume;
  volume.metadata.name = options_.pv_name;
  volume.metadata.annotations[kCreatedBy] = kProvisionerName;
  volume.spec.reclaim_policy = options_.reclaim_policy;
  volume.spec.access_modes = claim.access_modes;
  if (claim.access_modes.empty()) volume.spec.access_modes = {AccessMode::kReadWriteOnce};
  volume.spec.capacity = claim.storage.request;
  volume.spec.source =
      HostPathVolumeSource{roots_.front() + "/" + options_.pv_name, HostPathType::kUnset};
  return volume;
}

Result<PersistentVolume> HostPathProvisioner::Provision(const NodeObject*,
                                                        const std::vector<TopologyTerm>&,
                                                        const CallOptions& call) {
  ASSIGN_OR_RETURN(PersistentVolume volume, Plan());
  CallOptions own = call;
  own.domain = roots_.front();
  RETURN_IF_ERROR(MakeDirectoryFor(options_.pv_name, own));
  return volume;
}

Status HostPathProvisioner::MakeDirectoryFor(const std::string& name, const CallOptions& call) {
  const std::string& root = roots_.front();
  RETURN_IF_ERROR(MakeHostDirectory(host_.kernel, root, kRootMode, call));
  const SafePath place{root, name, Resolve::kNoSymlinks};
  const Result<DirectoryListing> there = host_.kernel.Call(ListDirectory{place}, call);
  if (there.ok() && !there->entries.empty()) {
    return Error::NotApplied(Code::kAlreadyExists,
                             place.Display() +
                                 " is there already, and holds something: it is not "
                                 "taken for a new volume");
  }
  if (!there.ok() && there.error().code() != Code::kNotFound) return there.error();
  if (const auto made = host_.kernel.Call(
          MakeDirectory{.path = place, .mode = kVolumeMode, .exact_mode = true}, call);
      !made.ok()) {
    return made.error().AsMaybeApplied();  // the root is there
  }
  return OkStatus();
}

Status HostPathProvisioner::Undo(const PersistentVolume& planned, const CallOptions& call) {
  const auto* source = std::get_if<HostPathVolumeSource>(&planned.spec.source);
  const std::string path = source == nullptr ? "" : source->path;
  RETURN_IF_ERROR(CheckHostPath(path));
  ASSIGN_OR_RETURN(const SafePath place, PlaceBelow(roots_, path));
  CallOptions own = call;
  own.domain = place.root;
  const Result<Changed> removed = host_.kernel.Call(RemoveDirectory{place}, own);
  if (removed.ok() || removed.error().code() == Code::kFailedPrecondition) return OkStatus();
  return removed.error();
}

}  // namespace

std::string CleanHostPath(const std::string& path) {
  std::string cleaned;
  for (const std::string& element : Split(path, '/')) {
    if (!element.empty() && element != ".") cleaned += "/" + element;
  }
  return cleaned.empty() ? "/" : cleaned;
}

Status CheckHostPath(const std::string& path) {
  if (path.empty() || path[0] != '/') return InvalidPath(path, "must be an absolute path");
  for (const std::string& element : Split(path, '/')) {
    if (element == "..") return InvalidPath(path, "must not contain '..'");
  }
  return OkStatus();
}

Status CheckMayBeEmptied(const std::string& path, const std::string& agent_root) {
  RETURN_IF_ERROR(CheckHostPath(path));
  const std::string cleaned = CleanHostPath(path);
  if (cleaned == "/") return InvalidPath(path, "the node's root is never emptied");
  if (cleaned == agent_root || IsBelow(agent_root, cleaned) || IsBelow(cleaned, agent_root)) {
    return InvalidPath(path, "the agent's own root " + agent_root + " is never emptied");
  }
  return OkStatus();
}

Result<std::unique_ptr<Deleter>> NewHostPathDeleter(VolumeHost& host,
                                                    std::vector<std::string> roots,
                                                    std::string path) {
  RETURN_IF_ERROR(CheckHostPath(path));
  RETURN_IF_ERROR(PlaceBelow(roots, path));
  RETURN_IF_ERROR(CheckMayBeEmptied(path, host.paths.root()));
  return std::unique_ptr<Deleter>(
      std::make_unique<HostPathDeleter>(host, std::move(roots), std::move(path)));
}

Result<std::unique_ptr<Provisioner>> NewHostPathProvisioner(VolumeHost& host,
                                                            std::vector<std::string> roots,
                                                            VolumeOptions options) {
  // Source: of the text, the in-tree provisioners of kubernetes before v1.27.
  if (!options.parameters.empty()) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "invalid option \"" + options.parameters.begin()->first +
                                 "\" for volume plugin " + kHostPathPluginName);
  }
  return std::unique_ptr<Provisioner>(
      std::make_unique<HostPathProvisioner>(host, std::move(roots), std::move(options)));
}

}  // namespace volumed
