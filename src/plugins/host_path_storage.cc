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
  RETURN_IF_ERROR(CheckHostPath(path_));
  const std::string path = CleanHostPath(path_);
  for (const std::string& root : roots_) {
    if (!IsBelow(path, root)) continue;
    RETURN_IF_ERROR(CheckMayBeEmptied(path, host_.paths.root()));
    CallOptions own = call;
    own.domain = root;  // it may lie on a filesystem that hangs
    const SafePath place{root, path.substr(root.size() + 1), Resolve::kNoSymlinks};
    RETURN_IF_ERROR(host_.kernel.Call(RemoveTree{place}, own));
    return OkStatus();
  }
  const std::string allowed =
      roots_.empty() ? "none, as no directory is configured" : Join(roots_, ", ");
  return Error::NotApplied(
      Code::kPermissionDenied,
      "host_path deleter only supports paths below: " + allowed + "; but received provided " +
          path_);
}

class HostPathProvisioner final : public Provisioner {
 public:
  HostPathProvisioner(VolumeHost& host, std::string root, VolumeOptions options)
      : host_(host), root_(std::move(root)), options_(std::move(options)) {}

  Result<PersistentVolume> Provision(const NodeObject* selected_node,
                                     const std::vector<TopologyTerm>& topologies,
                                     const CallOptions& call) override;

 private:
  Status MakeDirectoryFor(const std::string& name, const CallOptions& call);

  VolumeHost& host_;
  const std::string root_;
  const VolumeOptions options_;
};

Result<PersistentVolume> HostPathProvisioner::Provision(const NodeObject*,
                                                        const std::vector<TopologyTerm>&,
                                                        const CallOptions& call) {
  const PersistentVolumeClaimSpec& claim = options_.claim.spec;
  if (claim.volume_mode == VolumeMode::kBlock) {
    return Error::NotApplied(Code::kInvalidArgument,
                             std::string(kHostPathPluginName) +
                                 " does not support block volume provisioning");
  }
  const std::string name = NewUuid();
  PersistentVolume volume;
  volume.metadata.name = options_.pv_name;
  volume.metadata.annotations[kCreatedBy] = kProvisionerName;
  volume.spec.reclaim_policy = options_.reclaim_policy;
  volume.spec.access_modes = claim.access_modes;
  if (claim.access_modes.empty()) volume.spec.access_modes = {AccessMode::kReadWriteOnce};
  volume.spec.capacity = claim.storage.request;
  volume.spec.source = HostPathVolumeSource{root_ + "/" + name, HostPathType::kUnset};
  CallOptions own = call;
  own.domain = root_;
  RETURN_IF_ERROR(MakeDirectoryFor(name, own));
  return volume;
}

Status HostPathProvisioner::MakeDirectoryFor(const std::string& name, const CallOptions& call) {
  RETURN_IF_ERROR(MakeHostDirectory(host_.kernel, root_, kRootMode, call));
  const SafePath place{root_, name, Resolve::kNoSymlinks};
  if (const auto made =
          host_.kernel.Call(MakeDirectory{.path = place, .mode = kVolumeMode}, call);
      !made.ok()) {
    return made.error().AsMaybeApplied();  // the root is there
  }
  return OkStatus();
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
  return std::unique_ptr<Deleter>(
      std::make_unique<HostPathDeleter>(host, std::move(roots), std::move(path)));
}

Result<std::unique_ptr<Provisioner>> NewHostPathProvisioner(VolumeHost& host, std::string root,
                                                            VolumeOptions options) {
  return std::unique_ptr<Provisioner>(
      std::make_unique<HostPathProvisioner>(host, std::move(root), std::move(options)));
}

}  // namespace volumed
