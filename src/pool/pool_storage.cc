#include "pool/pool_storage.h"

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "blockmapper/volume_path_handler.h"
#include "metrics/metrics_nil.h"
#include "mounter/volume_places.h"
#include "pool/pool_names.h"
#include "pool/pool_parameters.h"

namespace volumed {
namespace {

Error RefusedClaim(const std::string& why) {
  return Error::NotApplied(Code::kInvalidArgument, why).About(kAboutClaim);
}

// ---- the plan's text ----------------------------------------------------------------------------

constexpr char kParameters[] = "parameters";
constexpr char kRequired[] = "requiredBytes";
constexpr char kLimit[] = "limitBytes";
constexpr char kFromSnapshot[] = "fromSnapshot";
constexpr char kFromVolume[] = "fromVolume";

// What a plan says besides its PersistentVolume.
struct PoolPlan {
  StringMap parameters;
  PoolSize size;
  // Without what only the claim's side needs.
  std::optional<VolumeContent> content;
};

std::string Encoded(const PoolPlan& plan) {
  nlohmann::json json{{kParameters, plan.parameters},
                      {kRequired, plan.size.required_bytes},
                      {kLimit, plan.size.limit_bytes}};
  if (plan.content) {
    json[plan.content->is_snapshot ? kFromSnapshot : kFromVolume] = plan.content->handle;
  }
  return json.dump();
}

// Errors: DataLoss, not applied: it is of a later version, or damaged.
Result<PoolPlan> DecodePlan(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto is_count = [&json](const char* key) {
    return json.contains(key) && json[key].is_number_integer();
  };
  bool is_plan = json.is_object() && json.contains(kParameters) && json[kParameters].is_object() &&
                 is_count(kRequired) && is_count(kLimit);
  PoolPlan plan;
  if (is_plan) {
    for (const auto& [key, value] : json[kParameters].items()) {
      is_plan = is_plan && value.is_string();
      if (value.is_string()) plan.parameters[key] = value.get<std::string>();
    }
    plan.size = {json[kRequired].get<int64_t>(), json[kLimit].get<int64_t>()};
    for (const char* key : {kFromSnapshot, kFromVolume}) {
      if (!json.contains(key)) continue;
      is_plan = is_plan && json[key].is_string() && !plan.content;
      if (!is_plan) break;
      plan.content.emplace();
      plan.content->is_snapshot = key == kFromSnapshot;
      plan.content->handle = json[key].get<std::string>();
    }
  }
  if (is_plan) return plan;
  return Error::NotApplied(Code::kDataLoss,
                           "what is on record of the volume that was planned cannot be read");
}

// ---- provisioning -------------------------------------------------------------------------------

class PoolProvisioner final : public Provisioner {
 public:
  PoolProvisioner(VolumeHost& host, const PoolPluginParts& parts, VolumeOptions options)
      : host_(host), parts_(parts), options_(std::move(options)) {}

  Result<PersistentVolume> Plan() override;
  std::string PlanText() override { return options_.plan ? options_.plan->text : text_; }
  Result<PersistentVolume> Provision(const NodeObject*, const std::vector<TopologyTerm>&,
                                     const CallOptions& call) override;
  // What somebody has opened stays, and is an error: nobody knows whose content it is.
  Status Undo(const PersistentVolume& made, const CallOptions& call) override;

 private:
  Status CheckClaim() const;
  Status CheckNodeHasLabel() const;
  PersistentVolume VolumeOf(const PoolParameters& parameters, int64_t bytes,
                            const std::string& id) const;

  VolumeHost& host_;
  const PoolPluginParts& parts_;
  const VolumeOptions options_;
  std::optional<PersistentVolume> planned_;
  std::string text_;
};

Status PoolProvisioner::CheckClaim() const {
  const PersistentVolumeClaimSpec& claim = options_.claim.spec;
  if (claim.selector) return RefusedClaim("claim Selector is not supported");
  if (claim.volume_attributes_class_name && !claim.volume_attributes_class_name->empty()) {
    return RefusedClaim("VolumeAttributesClass " + *claim.volume_attributes_class_name +
                        " is not known here");
  }
  const bool has_source = !claim.data_source_json.empty() || !claim.data_source_ref_json.empty();
  if (has_source && !options_.content) {
    return RefusedClaim("driver " + parts_.driver + " cannot tell what the data source is");
  }
  if (options_.content && options_.content->driver != parts_.driver) {
    return RefusedClaim("the data source is of driver " + options_.content->driver +
                        ", and the volume is to be of " + parts_.driver);
  }
  for (const AccessMode mode : claim.access_modes) {
    if (mode == AccessMode::kReadWriteOnce || mode == AccessMode::kReadWriteOncePod) continue;
    return RefusedClaim(
        "a pool's volume is on one node alone: its access modes can be "
        "ReadWriteOnce and ReadWriteOncePod");
  }
  return OkStatus();
}

// Without it no pod of this node could have the volume, whose affinity names it.
Status PoolProvisioner::CheckNodeHasLabel() const {
  const std::string label = PoolTopologyLabel(parts_.driver);
  const std::string name = host_.node.GetNodeName().str();
  const std::map<std::string, std::string> labels = host_.node.GetNodeLabels();
  const auto found = labels.find(label);
  if (found != labels.end() && found->second == name) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition,
                           "this node does not have the label " + label + "=" + name +
                               ", by which its volumes are found: `volumectl status` says why");
}

PersistentVolume PoolProvisioner::VolumeOf(const PoolParameters& parameters, int64_t bytes,
                                           const std::string& id) const {
  const PersistentVolumeClaimSpec& claim = options_.claim.spec;
  PersistentVolume volume =
      PoolPersistentVolume(parts_.driver, id, parameters.fs_type, claim.volume_mode, bytes,
                           host_.node.GetNodeName().str());
  volume.metadata.name = options_.pv_name;
  volume.spec.reclaim_policy = options_.reclaim_policy;
  volume.spec.access_modes = claim.access_modes;
  if (claim.access_modes.empty()) volume.spec.access_modes = {AccessMode::kReadWriteOnce};
  volume.spec.mount_options = options_.mount_options;
  return volume;
}

Result<PersistentVolume> PoolProvisioner::Plan() {
  if (options_.plan) return options_.plan->volume;
  if (planned_) return *planned_;
  RETURN_IF_ERROR(CheckClaim());
  RETURN_IF_ERROR(CheckNodeHasLabel());
  const StorageRequest& storage = options_.claim.spec.storage;
  PoolPlan plan;
  plan.size.required_bytes = storage.request.Value();
  if (storage.limit) plan.size.limit_bytes = storage.limit->Value();
  plan.content = options_.content;
  PoolVolumeWish wish;
  wish.size = plan.size;
  wish.is_block = options_.claim.spec.volume_mode == VolumeMode::kBlock;
  wish.parameters = options_.parameters;
  wish.content = plan.content;
  ASSIGN_OR_RETURN(PoolVolumes::Shape shape, parts_.volumes.ShapeOf(wish));
  // The first pool may be another one when this is made.
  const auto& pools = parts_.volumes.pools();
  if (shape.parameters.pool.empty() && !pools.empty()) {
    shape.parameters.pool = pools.front()->name();
  }
  plan.parameters = shape.parameters.ToMap();
  ASSIGN_OR_RETURN(const std::string id, parts_.volumes.PlanId(plan.parameters));
  text_ = Encoded(plan);
  planned_ = VolumeOf(shape.parameters, shape.bytes, id);
  return *planned_;
}

Result<PersistentVolume> PoolProvisioner::Provision(const NodeObject*,
                                                    const std::vector<TopologyTerm>&,
                                                    const CallOptions& call) {
  ASSIGN_OR_RETURN(PersistentVolume volume, Plan());
  ASSIGN_OR_RETURN(const PoolPlan plan, DecodePlan(PlanText()));
  const VolumeSpec spec = VolumeSpec::FromPersistentVolume(volume, false);
  PoolVolumeWish wish;
  ASSIGN_OR_RETURN(wish.id, PoolVolumeIdOf(spec, parts_.driver));
  wish.name = volume.metadata.name;
  wish.size = plan.size;
  wish.is_block = IsBlockVolume(spec);
  wish.parameters = plan.parameters;
  wish.content = plan.content;
  if (wish.content) wish.content->driver = parts_.driver;
  ASSIGN_OR_RETURN(const PoolVolumeRecord made, parts_.volumes.Create(wish, call));
  volume.spec.capacity = Quantity::FromBytes(made.capacity_bytes);
  if (!options_.may_be_new) return volume;
  const Status may_be = options_.may_be_new(volume);
  if (!may_be.ok()) return may_be.error().AsMaybeApplied();
  return volume;
}

Status PoolProvisioner::Undo(const PersistentVolume& made, const CallOptions& call) {
  const VolumeSpec spec = VolumeSpec::FromPersistentVolume(made, false);
  ASSIGN_OR_RETURN(const std::string id, PoolVolumeIdOf(spec, parts_.driver));
  return parts_.volumes.Delete(id, /*only_unused=*/true, call);
}

// ---- deleting -----------------------------------------------------------------------------------

class PoolDeleter final : public Deleter {
 public:
  PoolDeleter(VolumeHost& host, const PoolPluginParts& parts, std::string id)
      : host_(host), parts_(parts), id_(std::move(id)) {}

  std::string GetPath() const override { return ""; }
  Result<Metrics> GetMetrics(const CallOptions& call) override { return metrics_.GetMetrics(call); }
  Status Delete(const CallOptions& call) override;

 private:
  VolumeHost& host_;
  const PoolPluginParts& parts_;
  const std::string id_;
  MetricsNil metrics_;
};

// The caller has made sure that nobody has it, by what is on record; this looks at the node itself.
Status PoolDeleter::Delete(const CallOptions& call) {
  const SafePath mounted_at = PoolDevicePlace(host_.paths, id_);
  ASSIGN_OR_RETURN(const bool is_mounted, IsMountPoint(host_.kernel, mounted_at, call));
  if (is_mounted) {
    return NewDeletedVolumeInUseError("volume " + id_ + " is mounted at " + mounted_at.Display());
  }
  ASSIGN_OR_RETURN(
      const std::vector<std::string> pods,
      VolumePathHandler(host_.kernel).GetDeviceBindMountRefs(PoolMapPlace(host_.paths, id_), call));
  if (!pods.empty()) {
    return NewDeletedVolumeInUseError("pod " + pods.front() + " has the device of volume " + id_);
  }
  return parts_.volumes.Delete(id_, /*only_unused=*/false, call);
}

}  // namespace

Result<std::optional<VolumeContent>> PoolContentOf(const VolumeOptions& options) {
  if (!options.plan) return options.content;
  ASSIGN_OR_RETURN(PoolPlan plan, DecodePlan(options.plan->text));
  return std::move(plan).content;
}

std::unique_ptr<Provisioner> MakePoolProvisioner(VolumeHost& host, const PoolPluginParts& parts,
                                                 VolumeOptions options) {
  return std::make_unique<PoolProvisioner>(host, parts, std::move(options));
}

std::unique_ptr<Deleter> MakePoolDeleter(VolumeHost& host, const PoolPluginParts& parts,
                                         std::string id) {
  return std::make_unique<PoolDeleter>(host, parts, std::move(id));
}

}  // namespace volumed
