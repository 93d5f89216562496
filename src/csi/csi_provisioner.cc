// CsiProvisioner: one volume that a driver makes for a claim; see csi_storage.h.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/printable_text.h"
#include "csi.pb.h"
#include "csi/csi_controller.h"
#include "csi/csi_create_request.h"
#include "csi/csi_storage.h"
#include "csi/rpc/csi_json.h"
#include "csi/rpc/csi_methods.h"
#include "csi/rpc/csi_outcome.h"

namespace volumed {
namespace {

using ControllerRpc = ::csi::v1::ControllerServiceCapability_RPC;
using ::csi::v1::CreateVolumeRequest;

constexpr const char* kCreateVolume = "CreateVolume";
// The specification says 128; there are drivers in use whose handles are paths of their clouds.
constexpr size_t kMostHandleBytes = 1024;
constexpr size_t kQuotedId = 80;

Error CannotMake(const std::string& why) { return Error::NotApplied(Code::kInvalidArgument, why); }

// What no driver can be asked for.
Status CheckClaim(const std::string& driver, const CsiDriverFacts& facts,
                  const VolumeOptions& options) {
  const PersistentVolumeClaimSpec& claim = options.claim.spec;
  if (claim.selector) return CannotMake("claim Selector is not supported");
  if (claim.volume_attributes_class_name && !claim.volume_attributes_class_name->empty()) {
    return CannotMake("VolumeAttributesClass " + *claim.volume_attributes_class_name +
                      " is not known here");
  }
  if (!options.content) return OkStatus();
  const VolumeContent& content = *options.content;
  if (content.driver != driver) {
    return CannotMake("its data source is of CSI driver " + content.driver +
                      ", and it is to be of " + driver);
  }
  const auto capability =
      content.is_snapshot ? ControllerRpc::CREATE_DELETE_SNAPSHOT : ControllerRpc::CLONE_VOLUME;
  if (!facts.HasController(capability)) {
    return CannotMake("CSI driver " + driver + " makes no volumes from " +
                      (content.is_snapshot ? "snapshots" : "other volumes"));
  }
  if (claim.storage.request < content.size) {
    return CannotMake("it asks for " + claim.storage.request.String() +
                      ", and its data source has " + content.size.String());
  }
  const bool same_mode = content.is_snapshot || content.volume_mode == claim.volume_mode;
  return same_mode
             ? OkStatus()
             : CannotMake("its volume mode is not that of the volume that is its data source");
}

std::optional<CsiContentSource> ContentOf(const VolumeOptions& options) {
  if (!options.content) return std::nullopt;
  CsiContentSource source;
  (options.content->is_snapshot ? source.snapshot_id : source.volume_id) = options.content->handle;
  return source;
}

PersistentVolume PlannedVolume(const std::string& driver, const VolumeOptions& options,
                               const CsiCreatePlan& plan) {
  PersistentVolume volume;
  volume.metadata.name = options.pv_name;
  if (plan.provisioner_secret) {
    volume.metadata.annotations[kDeletionSecretName] = plan.provisioner_secret->name;
    volume.metadata.annotations[kDeletionSecretNamespace] = plan.provisioner_secret->name_space;
  }
  volume.spec.reclaim_policy = options.reclaim_policy;
  volume.spec.access_modes = options.claim.spec.access_modes;
  volume.spec.volume_mode = options.claim.spec.volume_mode;
  volume.spec.capacity = options.claim.spec.storage.request;
  volume.spec.mount_options = options.mount_options;
  CsiPersistentVolumeSource source;
  source.driver = driver;
  source.volume_handle = kCsiUnknownHandle + options.pv_name;
  source.fs_type = plan.fs_type;
  source.controller_publish_secret_ref = plan.controller_publish_secret;
  source.node_stage_secret_ref = plan.node_stage_secret;
  source.node_publish_secret_ref = plan.node_publish_secret;
  source.controller_expand_secret_ref = plan.controller_expand_secret;
  source.node_expand_secret_ref = plan.node_expand_secret;
  volume.spec.source = std::move(source);
  return volume;
}

// As external-provisioner has it. Source: topology.go (GenerateVolumeNodeAffinity).
std::optional<VolumeNodeAffinity> AffinityOf(const ::csi::v1::Volume& made) {
  VolumeNodeAffinity affinity;
  for (const ::csi::v1::Topology& topology : made.accessible_topology()) {
    NodeSelectorTerm term;
    const StringMap segments(topology.segments().begin(), topology.segments().end());
    for (const auto& [key, value] : segments) {
      term.match_expressions.push_back({key, NodeOperator::kIn, {value}});
    }
    if (!term.match_expressions.empty()) affinity.required.terms.push_back(std::move(term));
  }
  if (affinity.required.terms.empty()) return std::nullopt;
  return affinity;
}

bool IsIn(const ::csi::v1::Topology& topology, const ::csi::v1::Topology& node) {
  return std::all_of(topology.segments().begin(), topology.segments().end(),
                     [&node](const auto& segment) {
                       const auto found = node.segments().find(segment.first);
                       return found != node.segments().end() && found->second == segment.second;
                     });
}

// An id that a driver may have made of what it was sent.
std::string ShownId(const std::string& id, const CsiSecrets& secrets) {
  return Quoted(secrets.Replaced(id, kQuotedId), kQuotedId);
}

// What cannot be true of a volume's id, without the id; "" for one that can be.
std::string WhatIsOddAboutId(const std::string& id) {
  if (id.empty()) return "it has no id";
  if (id.size() > kMostHandleBytes) {
    return "its id has " + std::to_string(id.size()) + " bytes";
  }
  if (!IsText(id)) return "its id is no text";
  if (id.starts_with(kCsiUnknownHandle)) return "its id is that of a plan";
  return "";
}

std::string WhatIsOddAboutSize(const ::csi::v1::Volume& made, const CreateVolumeRequest& asked) {
  const int64_t bytes = made.capacity_bytes();  // 0: the driver does not say
  const auto& range = asked.capacity_range();
  if (bytes < 0 || (bytes > 0 && bytes < range.required_bytes())) {
    return "it has " + std::to_string(bytes) + " bytes; " + std::to_string(range.required_bytes()) +
           " were asked for";
  }
  if (range.limit_bytes() > 0 && bytes > range.limit_bytes()) {
    return "it has " + std::to_string(bytes) + " bytes; " + std::to_string(range.limit_bytes()) +
           " at most were asked for";
  }
  return "";
}

std::string WhatIsOddAboutContext(const ::csi::v1::Volume& made) {
  size_t bytes = 0;
  for (const auto& [key, value] : made.volume_context()) bytes += key.size() + value.size();
  if (bytes <= kMostCsiContextBytes) return "";
  return "its volume_context has " + std::to_string(bytes) + " bytes; a driver may give " +
         std::to_string(kMostCsiContextBytes) + " at most";
}

std::string WhatIsOddAboutContent(const ::csi::v1::Volume& made, const CreateVolumeRequest& asked) {
  const auto& wanted = asked.volume_content_source();
  const auto& has = made.content_source();
  const bool same = wanted.volume().volume_id() == has.volume().volume_id() &&
                    wanted.snapshot().snapshot_id() == has.snapshot().snapshot_id();
  return same ? "" : "it was not made from what it was to be made from";
}

// Source: external-provisioner, SupportsTopology: what any other driver says of a place counts for
// nothing.
bool KnowsPlaces(const CsiDriverFacts& driver) {
  return driver.HasPlugin(::csi::v1::PluginCapability_Service::VOLUME_ACCESSIBILITY_CONSTRAINTS);
}

std::string WhatIsOddAboutPlace(const ::csi::v1::Volume& made, const CreateVolumeRequest& asked) {
  const auto& requisite = asked.accessibility_requirements().requisite();
  if (!AffinityOf(made)) return "";
  const bool here =
      std::any_of(made.accessible_topology().begin(), made.accessible_topology().end(),
                  [&](const auto& topology) {
                    return std::any_of(requisite.begin(), requisite.end(),
                                       [&](const auto& node) { return IsIn(topology, node); });
                  });
  return here ? "" : "it cannot be used on this node";
}

class CsiProvisioner final : public Provisioner {
 public:
  CsiProvisioner(const CsiContext& context, std::string driver, VolumeOptions options)
      : context_(context), driver_(std::move(driver)), options_(std::move(options)) {}

  Result<PersistentVolume> Plan() override;
  std::string PlanText() override { return options_.plan ? options_.plan->text : text_; }
  Result<PersistentVolume> Provision(const NodeObject*, const std::vector<TopologyTerm>&,
                                     const CallOptions& call) override;
  Result<std::optional<PersistentVolume>> FindMade(const PersistentVolume& planned,
                                                   const CallOptions& call) override;
  Status Undo(const PersistentVolume& made, const CallOptions& call) override {
    return DeleteCsiStorage(context_, made, call);
  }

 private:
  Result<CreateVolumeRequest> RequestOf(const std::string& text) const;
  Result<PersistentVolume> Proven(const ::csi::v1::Volume& made, const CreateVolumeRequest& asked,
                                  const PersistentVolume& planned, const CallOptions& call) const;
  // The pod that has the volume as another persistent volume, without a record; "" if none does.
  Result<std::string> WhoHasAsAnother(const ::csi::v1::Volume& made, const SpecName& planned,
                                      const CallOptions& call) const;
  // What is odd about the answer; "" if it can be true.
  std::string WhatIsOdd(const ::csi::v1::Volume& made, const CreateVolumeRequest& asked,
                        bool knows_places) const;

  const CsiContext& context_;
  const std::string driver_;
  const VolumeOptions options_;
  std::string text_;
};

Result<PersistentVolume> CsiProvisioner::Plan() {
  if (options_.plan) return options_.plan->volume;
  ASSIGN_OR_RETURN(const CsiDriverFacts facts, FactsOf(context_, driver_));
  RETURN_IF_ERROR(CheckClaim(driver_, facts, options_));
  const CsiCreateWish wish{.pv_name = options_.pv_name,
                           .claim = options_.claim,
                           .parameters = options_.parameters,
                           .mount_options = options_.mount_options,
                           .extra_create_metadata = true,
                           .default_fs_type = "",
                           .topology = facts.topology,
                           .content = ContentOf(options_)};
  ASSIGN_OR_RETURN(const CsiCreatePlan plan, PlanCreateVolume(facts, wish));
  ASSIGN_OR_RETURN(text_, CsiJsonOf(plan.request));
  return PlannedVolume(driver_, options_, plan);
}

Result<CreateVolumeRequest> CsiProvisioner::RequestOf(const std::string& text) const {
  const CsiMethod* method = FindCsiMethod(kCreateVolume);
  ASSIGN_OR_RETURN(const std::unique_ptr<google::protobuf::Message> message,
                   CsiRequestFromJson(*method, text));
  return std::move(static_cast<CreateVolumeRequest&>(*message));
}

Result<PersistentVolume> CsiProvisioner::Provision(const NodeObject*,
                                                   const std::vector<TopologyTerm>&,
                                                   const CallOptions& call) {
  ASSIGN_OR_RETURN(const PersistentVolume planned, Plan());
  ASSIGN_OR_RETURN(const CreateVolumeRequest request, RequestOf(PlanText()));
  ASSIGN_OR_RETURN(const CsiSecretValues secrets,
                   ReadSecret(context_, DeletionSecretOf(planned), "provisioner secret"));
  ASSIGN_OR_RETURN(const auto answer, CallDriver<::csi::v1::CreateVolumeResponse>(
                                          context_, driver_, WithSecrets(request, secrets), call));
  return Proven(answer.volume(), request, planned, call);
}

std::string CsiProvisioner::WhatIsOdd(const ::csi::v1::Volume& made,
                                      const CreateVolumeRequest& asked, bool knows_places) const {
  std::string odd = WhatIsOddAboutId(made.volume_id());
  if (odd.empty()) odd = WhoHasOnNode(context_, driver_, made.volume_id());
  if (odd.empty()) odd = WhatIsOddAboutSize(made, asked);
  if (odd.empty()) odd = WhatIsOddAboutContext(made);
  if (odd.empty()) odd = WhatIsOddAboutContent(made, asked);
  if (odd.empty() && knows_places) odd = WhatIsOddAboutPlace(made, asked);
  return odd;
}

Result<std::string> CsiProvisioner::WhoHasAsAnother(const ::csi::v1::Volume& made,
                                                    const SpecName& planned,
                                                    const CallOptions& call) const {
  ASSIGN_OR_RETURN(const std::vector<UnrecordedMounts::Mounted> mounted,
                   MountsWithoutRecord(context_, driver_, made.volume_id(), planned, call));
  // What is there of this very one is there because its records were lost: it is made anew, as the
  // same.
  const auto other =
      std::find_if(mounted.begin(), mounted.end(), [&](const UnrecordedMounts::Mounted& mount) {
        return !mount.pod.empty() && mount.spec != planned;
      });
  return other == mounted.end() ? "" : UnrecordedMounts::Describe(other->spec, *other);
}

Result<PersistentVolume> CsiProvisioner::Proven(const ::csi::v1::Volume& made,
                                                const CreateVolumeRequest& asked,
                                                const PersistentVolume& planned,
                                                const CallOptions& call) const {
  PersistentVolume volume = planned;
  auto& source = std::get<CsiPersistentVolumeSource>(volume.spec.source);
  source.volume_handle = made.volume_id();
  source.volume_attributes = StringMap(made.volume_context().begin(), made.volume_context().end());
  const Result<CsiDriverFacts> driver = FactsOf(context_, driver_);
  // The driver has made it, whoever has forgotten the driver since.
  if (!driver.ok()) return driver.error().AsMaybeApplied();
  const bool knows_places = KnowsPlaces(*driver);
  std::string odd = WhatIsOdd(made, asked, knows_places);
  if (odd.empty()) {
    Result<std::string> who = WhoHasAsAnother(made, SpecName(planned.metadata.name), call);
    if (!who.ok()) return who.error().AsMaybeApplied();
    odd = *std::move(who);
  }
  if (odd.empty() && context_.parts.commands != nullptr) {
    // An earlier try has made it, and somebody has deleted it by hand since, or begun to: it would
    // be the claim's, and yet no pod could have it.
    const Status free = context_.parts.commands->CheckVolume(driver_, made.volume_id());
    if (!free.ok()) return free.error().AsMaybeApplied();
  }
  if (odd.empty() && options_.may_be_new) {
    const Status may_be = options_.may_be_new(volume);
    // Somebody deletes it at this moment, perhaps what an earlier try has made: that is no lie.
    const bool is_going = !may_be.ok() && may_be.error().code() == Code::kAborted;
    if (is_going) return may_be.error().AsMaybeApplied();
    if (!may_be.ok()) odd = may_be.error().message();
  }
  if (!odd.empty()) {
    const CsiSecrets secrets = SecretsOf(context_, driver_);
    return DriverLied(
        context_, {driver_, kCreateVolume, asked.name()},
        "it has made volume " + asked.name() + " as " + ShownId(made.volume_id(), secrets), odd);
  }
  if (made.capacity_bytes() > 0) volume.spec.capacity = Quantity::FromBytes(made.capacity_bytes());
  if (knows_places) volume.spec.node_affinity = AffinityOf(made);
  return volume;
}

// Whether the driver has said that there is no such volume, and that it makes none. It has not seen
// a call that was never sent, and looks for no volume before it knows who asks. Something that
// exists already under the name may be what an earlier call has made.
bool SaysThereIsNone(const Error& error) {
  if (error.maybe_applied() || error.IsAbout(kCsiNeverSent)) return false;
  switch (error.code()) {
    case Code::kInvalidArgument:
    case Code::kNotFound:
    case Code::kFailedPrecondition:
    case Code::kOutOfRange:
    case Code::kUnimplemented:
      return true;
    case Code::kCancelled:
    case Code::kUnknown:
    case Code::kDeadlineExceeded:
    case Code::kAlreadyExists:
    case Code::kPermissionDenied:
    case Code::kResourceExhausted:
    case Code::kAborted:
    case Code::kInternal:
    case Code::kUnavailable:
    case Code::kDataLoss:
    case Code::kUnauthenticated:
      return false;
  }
  return false;
}

Result<std::optional<PersistentVolume>> CsiProvisioner::FindMade(const PersistentVolume& planned,
                                                                 const CallOptions& call) {
  ASSIGN_OR_RETURN(const CreateVolumeRequest request, RequestOf(PlanText()));
  ASSIGN_OR_RETURN(const CsiSecretValues secrets,
                   ReadSecret(context_, DeletionSecretOf(planned), "provisioner secret"));
  const auto answer = CallDriver<::csi::v1::CreateVolumeResponse>(
      context_, driver_, WithSecrets(request, secrets), call);
  if (!answer.ok() && SaysThereIsNone(answer.error())) return std::optional<PersistentVolume>();
  if (!answer.ok()) return answer.error();
  ASSIGN_OR_RETURN(PersistentVolume made, Proven(answer->volume(), request, planned, call));
  return std::optional(std::move(made));
}

}  // namespace

Result<std::unique_ptr<Provisioner>> NewCsiProvisioner(const CsiContext& context,
                                                       const std::string& driver,
                                                       const VolumeOptions& options) {
  return std::unique_ptr<Provisioner>(std::make_unique<CsiProvisioner>(context, driver, options));
}

}  // namespace volumed
