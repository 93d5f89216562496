// Agent: itself as a CSI driver, and its registration with a kubelet.
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/agent.h"
#include "agent/csi_serve_settings.h"
#include "agent/own_directories.h"
#include "base/peer_credentials.h"
#include "base/strings.h"
#include "csidriver/controller_rpcs.h"
#include "csidriver/group_rpcs.h"
#include "csidriver/identity_rpcs.h"
#include "csidriver/inline_volumes.h"
#include "csidriver/metadata_rpcs.h"
#include "csidriver/node_rpcs.h"
#include "csidriver/snapshot_rpcs.h"
#include "os/fault_domain.h"
#include "pool/pool_directory.h"
#include "pool/pool_plugin.h"

namespace volumed {
namespace {

// Source: kubernetes-csi/external-provisioner@v6 (its default --timeout for a call is 10 s).
constexpr Duration kCapacityDeadline = std::chrono::seconds(10);

// Names of parts in readyz, `volumectl status` and the log.
constexpr char kServePart[] = "csi-serve";
constexpr char kRegisterPart[] = "csi-registry";
constexpr char kInlinePart[] = "csi-inline";

constexpr Duration kLeftInlinePeriod = std::chrono::minutes(10);
constexpr Duration kLeftInlineDeadline = std::chrono::seconds(30);  // of one volume

// Where a CO's directories are without links, as the mount table has what lies in them. What is
// there now is followed once: whoever exchanges a link leads the agent nowhere else. What comes
// later is followed as far as the filesystem of "/" has it. Blocks: for `patience` and each root at
// most.
NodeTargets::RealRoot FollowedRoots(Kernel& kernel, const Clock& clock,
                                    const std::vector<std::string>& roots, Duration patience) {
  std::map<std::string, std::string> found;
  for (const std::string& root : roots) {
    CallOptions call;
    call.deadline = Deadline::After(clock, patience);
    call.domain = root;
    const Result<std::string> real = FindPoolDirectory(kernel, root, call);
    if (real.ok()) found[root] = *real;
  }
  return [found](const std::string& root) {
    const auto there = found.find(root);
    return there == found.end() ? FollowLinksOnRoot(root) : there->second;
  };
}

}  // namespace

Status Agent::MakeCsiDriver() {
  if (config_.csi_serve.empty()) return OkStatus();
  csi_handlers_ = std::make_unique<CsiHandlers>(config_.csi_profile, config_.csi_serve_level);
  CsiIdentity identity{config_.csi_driver_name, VOLUMED_VERSION, config_.node_name};
  if (!config_.pools.empty()) {
    identity.topology = {{PoolTopologyLabel(config_.csi_driver_name), config_.node_name}};
    identity.most_volumes = config_.csi_max_volumes;
    AddCsiController();
    AddCsiSnapshots();
    AddCsiNode();
  }
  AddIdentityRpcs(*csi_handlers_, identity, [this] { return csi_server_->records_loaded(); });
  RETURN_IF_ERROR(csi_handlers_->Check());
  // Pods go on without the driver, unless it is all that there is.
  const PartNeed need = config_.csi_only ? PartNeed::kForReadiness : PartNeed::kOptional;
  csi_served_figures_ = std::make_unique<CsiServedFigures>(families_, config_.csi_driver_name);
  csi_server_ = std::make_unique<CsiServer>(
      CsiServer::Parts{*scheduler_, scheduler_->loop(), *log_, csi_served_figures_.get(),
                       [this] { scheduler_->Post([this] { heap_trimmer_->Changed(); }); }},
      *csi_handlers_, CsiServerSettingsOf(config_), [this, need](const Status& state) {
        parts_->Set(kServePart, state, need);
        csi_serves_ = state;
        if (csi_registration_) csi_registration_->DriverServes(state);
      });
  ServeCsi(kServePart, config_.csi_serve, need, [this] { csi_server_->Serve(); });
  if (!config_.csi_serve_group.empty() && !FindGroup(config_.csi_serve_group)) {
    FollowGroup("csi-serve-group", config_.csi_serve_group, "only root may call the CSI driver");
  }
  if (config_.csi_registry.empty()) return OkStatus();
  csi_registration_ = std::make_unique<RegistrationServer>(
      RegistrationServer::Parts{*scheduler_, scheduler_->loop(), *log_},
      RegistrationSettingsOf(config_),
      [this](const Status& state) { parts_->Set(kRegisterPart, state, PartNeed::kOptional); });
  csi_registration_->DriverServes(csi_serves_);
  ServeCsi(kRegisterPart, config_.csi_registry, PartNeed::kOptional,
           [this] { csi_registration_->Serve(); });
  return OkStatus();
}

// Without a pool there is no volume, and the driver announces nothing about any.
void Agent::AddCsiController() {
  served_pools_ =
      std::make_unique<PoolServed>(PoolServed{pools_->volumes(), config_.csi_driver_name});
  for (const OwnDirectory& own : OwnDirectoriesOf(config_)) {
    served_pools_->own_directories.push_back(own.path);
  }
  ControllerRpcSettings settings;
  settings.node = config_.node_name;
  settings.other_nodes = config_.csi_nodes;
  settings.most_volumes = config_.csi_max_volumes;
  settings.capacity_deadline = kCapacityDeadline;
  settings.look_deadline = config_.deadline_stats;
  AddControllerRpcs(
      *csi_handlers_,
      ControllerRpcParts{
          *scheduler_, *operations_, *served_pools_, *device_records_,
          PlaceLooks::Parts{*scheduler_, *kernel_, kernel_.get(), config_.root},
          [this] { return manager_->WhyUnseen(); },
          [this](const std::string& volume, Duration at_most, std::function<void()> done) {
            snapshots_->engine().WhenCopiedForClone(volume, at_most, std::move(done));
          }},
      settings);
}

void Agent::AddCsiSnapshots() {
  SnapshotRpcParts parts{
      snapshots_->engine(),
      pools_->volumes(),
      CsiPlacesOf(config_.csi_driver_name, config_.node_name, config_.csi_nodes),
      {},
      [this](const std::string& id) { return snapshot_objects_->objects().CheckNotHad(id); }};
  // Level 1.12 has no such field, and a driver for all nodes has nothing to tell by it. Besides,
  // csi-sanity 5.6.0 compares the field with a message that it has sent, sizes of its encoding
  // included, which no answer equals.
  const bool is_of_one_node = config_.csi_profile == CsiProfile::kNode;
  if (is_of_one_node && config_.csi_serve_level == CsiServeLevel::k1_13) {
    parts.told_places = parts.places;
  }
  AddSnapshotRpcs(*csi_handlers_, parts);
  AddGroupRpcs(*csi_handlers_, parts);
  AddMetadataRpcs(*csi_handlers_,
                  MetadataRpcParts{*scheduler_, snapshots_->engine(), pools_->volumes()});
}

void Agent::AddCsiNode() {
  NodeRpcSettings settings;
  settings.driver = config_.csi_driver_name;
  settings.node = config_.node_name;
  settings.target_roots = config_.csi_target_roots;
  settings.own_directory = config_.root;
  settings.real_root =
      FollowedRoots(*kernel_, scheduler_->clock(), config_.csi_target_roots, answer_deadline_);
  settings.most_volumes = config_.csi_max_volumes;
  settings.stats_deadline = config_.deadline_stats;
  settings.grows_storage = config_.csi_profile == CsiProfile::kNode;
  AddNodeRpcs(*csi_handlers_,
              NodeRpcParts{*scheduler_, *kernel_, pools_->volumes(), *operations_, *device_records_,
                           [this] { return manager_->WhyUnseen(); }, kernel_.get()},
              settings);
}

// The socket's own state is told after the part was tried with success: it may still be missing.
void Agent::ServeCsi(const std::string& part, const std::string& path, PartNeed need,
                     const std::function<void()>& serve) {
  const Status answers = Answers(path);
  if (answers.ok()) return serve();
  parts_->Retry(
      part, answers.error(), [this, path] { return Answers(path); },
      [this, serve]() -> Status {
        scheduler_->Post(serve);
        return OkStatus();
      },
      need);
}

void Agent::CsiRecordsLoaded() {
  if (!csi_server_) return;
  csi_server_->RecordsLoaded();
  if (pools_ && !config_.pools.empty()) LookForLeftInline();
}

// A kubelet that has lost its pods calls nothing for their volumes, and nothing else tells of them.
void Agent::LookForLeftInline() {
  scheduler_->RunBlocking([this] {
    CallOptions call;
    call.deadline = Deadline::After(scheduler_->clock(), kLeftInlineDeadline);
    const std::vector<std::string> left = FindLeftInlineVolumes(pools_->volumes(), *kernel_, call);
    scheduler_->Post([this, left] {
      const Status state =
          left.empty() ? OkStatus()
                       : Status(Error::NotApplied(Code::kFailedPrecondition, Join(left, "; ")));
      parts_->Set(kInlinePart, state, PartNeed::kOptional);
      scheduler_->PostAfter(kLeftInlinePeriod, [this] { LookForLeftInline(); });
    });
  });
}

// The kubelet is to know at once that the driver is gone, and not by the next call that fails.
void Agent::EndCsiDriver() {
  if (!csi_registration_) return;
  if (const Status removed = csi_registration_->Remove(); !removed.ok()) {
    log_->Warning("the socket of the CSI driver's registration stays",
                  {{"error", removed.error()}});
  }
}

}  // namespace volumed
