#include "csidriver/node_rpcs.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/byte_text.h"
#include "csi.pb.h"
#include "csidriver/csi_capability_wish.h"
#include "csidriver/csi_inline_wish.h"
#include "csidriver/csi_volume_wish.h"
#include "csidriver/inline_volumes.h"
#include "csidriver/node_specs.h"
#include "csidriver/node_stats.h"
#include "csidriver/node_targets.h"
#include "csidriver/node_volumes.h"
#include "csidriver/place_looks.h"
#include "csidriver/volume_health.h"
#include "operation/given_place.h"
#include "os/answers.h"
#include "os/place_names.h"
#include "pool/pool_operations.h"

namespace volumed {
namespace {

using ::csi::v1::NodeExpandVolumeRequest;
using ::csi::v1::NodeExpandVolumeResponse;
using ::csi::v1::NodeGetStorageHealthRequest;
using ::csi::v1::NodeGetStorageHealthResponse;
using ::csi::v1::NodeGetVolumeHealthRequest;
using ::csi::v1::NodeGetVolumeHealthResponse;
using ::csi::v1::NodeGetVolumeStatsRequest;
using ::csi::v1::NodeGetVolumeStatsResponse;
using ::csi::v1::NodePublishVolumeRequest;
using ::csi::v1::NodePublishVolumeResponse;
using ::csi::v1::NodeStageVolumeRequest;
using ::csi::v1::NodeStageVolumeResponse;
using ::csi::v1::NodeUnpublishVolumeRequest;
using ::csi::v1::NodeUnpublishVolumeResponse;
using ::csi::v1::NodeUnstageVolumeRequest;
using ::csi::v1::NodeUnstageVolumeResponse;

constexpr char kStagingField[] = "staging_target_path";
constexpr char kTargetField[] = "target_path";
constexpr char kVolumeField[] = "volume_path";

Error NothingAt(const std::string& id, const std::string& path) {
  return Error::NotApplied(Code::kNotFound, "volume " + id + " is not at " + ShownPath(path));
}

// "" if the CO does not say it, as a kubelet does not unless the CSIDriver object asks for it.
std::string ContextOf(const NodePublishVolumeRequest& request, const char* key) {
  const auto found = request.volume_context().find(key);
  return found == request.volume_context().end() ? "" : found->second;
}

// Nothing that is to be taken away is at a place of a volume that there is not.
bool IsNoVolume(const Result<PoolVolumeRecord>& found) {
  return !found.ok() && found.error().code() == Code::kNotFound;
}

class NodeRpcs : public std::enable_shared_from_this<NodeRpcs> {
 public:
  NodeRpcs(const NodeRpcParts& parts, const NodeRpcSettings& settings)
      : parts_(parts),
        settings_(settings),
        targets_(settings.target_roots, settings.real_root),
        looks_({parts.scheduler, parts.kernel, parts.fault_domains, settings.own_directory},
               settings.stats_deadline) {}

  void AddTo(CsiHandlers& handlers);

 private:
  Result<NodeStage> StageOf(const NodeStageVolumeRequest& request) const;
  Result<NodePublish> PublishOf(const NodePublishVolumeRequest& request) const;
  // Of inline volumes.
  Result<InlinePublish> InlinePublishOf(const NodePublishVolumeRequest& request) const;
  Result<InlineUnpublish> InlineUnpublishOf(const NodeUnpublishVolumeRequest& request) const;
  InlineServing ServingInline() const {
    return {settings_.driver, settings_.node, settings_.most_volumes};
  }
  // The pool's volume that a CO's id stands for, for whoever only asks: an inline one has a handle.
  Result<PoolVolumeRecord> FindAsked(const std::string& volume_id) const;
  // Nullopt: there is nothing to be taken away.
  Result<std::optional<NodeUnstage>> UnstageOf(const NodeUnstageVolumeRequest& request) const;
  Result<std::optional<NodeUnpublish>> UnpublishOf(const NodeUnpublishVolumeRequest& request) const;
  // Of the volume that is at `place`.
  Result<NodeExpand> ExpandOf(const NodeExpandVolumeRequest& request, SafePath& place) const;
  // What is to be taken away: at the place of a row, or at one below the roots. Nullopt: the id is
  // of no volume.
  struct Leaving {
    SafePath place;
    std::optional<VolumeSpec> spec = std::nullopt;
  };
  Result<std::optional<Leaving>> FindLeaving(const std::string& id, const char* field,
                                             const std::string& path) const;
  // Which of the volume's places the path is, as the rows have it.
  std::optional<NodePlace> FindPlace(const std::string& id, const std::string& path) const;
  // The same, or one that no row has, at which the volume's device may be.
  std::optional<NodePlace> FindMeasured(const PoolVolumeRecord& volume,
                                        const std::string& path) const;
  VolumeSpec SpecOf(const PoolVolumeRecord& volume, const CsiCapabilityWish& capability,
                    bool read_only, const std::string& pod = "") const;
  // The volume, if it can be used so.
  Result<PoolVolumeRecord> FindUsable(const std::string& id, const CsiCapabilityWish& wish) const;

  // `answer` puts the operation's value into the response.
  template <typename Op, typename Rpc, typename Answer>
  void StartAndAnswer(const NodeWay& way, Op operation, const Rpc& rpc, Answer answer);
  template <typename Op, typename Rpc>
  void Start(const NodeWay& way, Op operation, const Rpc& rpc) {
    StartAndAnswer(way, std::move(operation), rpc, [](const Unit&) {});
  }
  // What StartAndAnswer does once the filesystems have answered. `path` is taken until its end.
  template <typename Op, typename Rpc, typename Answer>
  void BeginAt(const std::string& path, Op operation, const Rpc& rpc, Answer answer);
  template <typename Op, typename Wish, typename Rpc>
  void StartOrNothing(Result<std::optional<Wish>> wish, SafePath Wish::*place, const Rpc& rpc);
  void PublishInline(const CsiRpc<NodePublishVolumeRequest, NodePublishVolumeResponse>& rpc);
  void UnpublishInline(const CsiRpc<NodeUnpublishVolumeRequest, NodeUnpublishVolumeResponse>& rpc);
  void Measure(const CsiRpc<NodeGetVolumeStatsRequest, NodeGetVolumeStatsResponse>& rpc) const;
  // Where the volume is, or may be: where it is staged, and at the path if it is published there.
  std::vector<NodePlace> PlacesOf(const std::string& id, const std::string& target) const;
  void TellHealth(const CsiRpc<NodeGetVolumeHealthRequest, NodeGetVolumeHealthResponse>& rpc) const;
  void TellStorage(
      const CsiRpc<NodeGetStorageHealthRequest, NodeGetStorageHealthResponse>& rpc) const;
  CallOptions UntilStatsDeadline() const;

  const NodeRpcParts parts_;
  const NodeRpcSettings settings_;
  const NodeTargets targets_;
  PlaceLooks looks_;
  // At which an operation works: of two volumes at one path only one may be on its way.
  std::set<std::string> paths_;
};

VolumeSpec NodeRpcs::SpecOf(const PoolVolumeRecord& volume, const CsiCapabilityWish& capability,
                            bool read_only, const std::string& pod) const {
  return NodeSpecOf(PoolPvOf(volume, settings_.driver, settings_.node), volume.id, capability,
                    read_only, pod);
}

Result<PoolVolumeRecord> NodeRpcs::FindUsable(const std::string& id,
                                              const CsiCapabilityWish& wish) const {
  RETURN_IF_ERROR(CheckNotInline(parts_.volumes, id));
  ASSIGN_OR_RETURN(PoolVolumeRecord volume, parts_.volumes.Find(id));
  const std::string why_not = WhyNotUsableSo(volume, wish);
  if (why_not.empty()) return volume;
  return Error::NotApplied(Code::kFailedPrecondition, "volume " + id + ": " + why_not);
}

Result<NodeStage> NodeRpcs::StageOf(const NodeStageVolumeRequest& request) const {
  ASSIGN_OR_RETURN(CsiCapabilityWish wish, ParseCsiCapability(request.volume_capability()));
  ASSIGN_OR_RETURN(SafePath place, targets_.PlaceOf(kStagingField, request.staging_target_path()));
  ASSIGN_OR_RETURN(const PoolVolumeRecord volume, FindUsable(request.volume_id(), wish));
  const bool only_reads = IsReadOnlyMode(wish.access_mode);
  return NodeStage{.id = volume.id,
                   .place = std::move(place),
                   .capability = wish,
                   .spec = SpecOf(volume, wish, only_reads),
                   .size_bytes = volume.capacity_bytes,
                   .lease = {settings_.node, only_reads, wish.access_mode, /*by_stage=*/true},
                   .most_volumes = settings_.most_volumes};
}

Result<NodePublish> NodeRpcs::PublishOf(const NodePublishVolumeRequest& request) const {
  ASSIGN_OR_RETURN(CsiCapabilityWish wish, ParseCsiCapability(request.volume_capability()));
  ASSIGN_OR_RETURN(SafePath target, targets_.PlaceOf(kTargetField, request.target_path()));
  ASSIGN_OR_RETURN(const PoolVolumeRecord volume, FindUsable(request.volume_id(), wish));
  if (request.staging_target_path().empty()) {
    return Error::NotApplied(
        Code::kFailedPrecondition,
        std::string(kStagingField) + " is needed: this driver stages each volume first");
  }
  ASSIGN_OR_RETURN(SafePath staging,
                   targets_.PlaceOf(kStagingField, request.staging_target_path()));
  const std::string path = target.Display();
  const std::string pod = ContextOf(request, kCsiPodUidKey);
  return NodePublish{.id = volume.id,
                     .staging = std::move(staging),
                     .target = std::move(target),
                     .wanted = PublicationWanted(path, wish, request.readonly()),
                     .spec = SpecOf(volume, wish, request.readonly(), pod),
                     .pod = pod};
}

// A volume that there is not yet is planned, so that its device can be had exclusively.
Result<InlinePublish> NodeRpcs::InlinePublishOf(const NodePublishVolumeRequest& request) const {
  ASSIGN_OR_RETURN(CsiCapabilityWish wish, ParseCsiCapability(request.volume_capability()));
  ASSIGN_OR_RETURN(SafePath target, targets_.PlaceOf(kTargetField, request.target_path()));
  ASSIGN_OR_RETURN(PoolVolumeWish volume, ParseCsiInlineWish(request, wish, target));
  const std::optional<PoolVolumeRecord> there = parts_.volumes.FindByName(volume.name);
  if (there) {
    volume.id = there->id;
  } else {
    ASSIGN_OR_RETURN(volume.id, parts_.volumes.PlanId(volume.parameters));
  }
  return InlinePublish{.id = volume.id,
                       .volume = std::move(volume),
                       .capability = std::move(wish),
                       .target = std::move(target),
                       .read_only = request.readonly(),
                       .serving = ServingInline()};
}

// Where it is published its row says, whatever the roots of targets are by now.
Result<InlineUnpublish> NodeRpcs::InlineUnpublishOf(
    const NodeUnpublishVolumeRequest& request) const {
  const std::optional<PoolVolumeRecord> there =
      parts_.volumes.FindByName(PoolNameOfInline(request.volume_id()));
  InlineUnpublish unpublish{.id = there ? there->id : "",
                            .handle = request.volume_id(),
                            .target = {},
                            .held_up = parts_.why_unseen ? parts_.why_unseen() : "",
                            .serving = ServingInline()};
  const std::optional<std::string> path = CleanNodePath(request.target_path());
  const std::string on_record = there ? there->inline_use.target : "";
  if (there && path && (*path == on_record || targets_.RealPath(*path) == on_record)) {
    const std::string& root = there->inline_use.target_root;
    unpublish.target = {root, on_record.substr(root.size() + 1), Resolve::kNoSymlinks};
    return unpublish;
  }
  ASSIGN_OR_RETURN(unpublish.target, targets_.PlaceOf(kTargetField, request.target_path()));
  return unpublish;
}

Result<PoolVolumeRecord> NodeRpcs::FindAsked(const std::string& volume_id) const {
  if (!IsInlineHandle(volume_id)) return parts_.volumes.Find(volume_id);
  if (auto there = parts_.volumes.FindByName(PoolNameOfInline(volume_id))) return *std::move(there);
  return Error::NotApplied(Code::kNotFound, "there is no inline volume " + volume_id);
}

std::optional<NodePlace> NodeRpcs::FindPlace(const std::string& id, const std::string& path) const {
  const std::optional<std::string> clean = CleanNodePath(path);
  if (!clean) return std::nullopt;
  const auto at = [&](const std::string& there) {
    return FindNodePlace(there, parts_.devices.Find(PoolDeviceName(id)),
                         parts_.operations.FindRecord(TargetKey(there, id)));
  };
  // An agent that followed no links to its roots has put the path on record as it was given.
  std::optional<NodePlace> place = at(*clean);
  return place ? place : at(targets_.RealPath(*clean));
}

std::optional<NodePlace> NodeRpcs::FindMeasured(const PoolVolumeRecord& volume,
                                                const std::string& path) const {
  std::optional<NodePlace> place = FindPlace(volume.id, path);
  if (place || !volume.is_block) return place;
  Result<SafePath> at = targets_.PlaceOf(kVolumeField, path);
  const std::optional<DeviceRecord> staged = parts_.devices.Find(PoolDeviceName(volume.id));
  if (!at.ok() || !staged) return std::nullopt;
  return BoundDevicePlace(*staged, *std::move(at));
}

Result<std::optional<NodeRpcs::Leaving>> NodeRpcs::FindLeaving(const std::string& id,
                                                               const char* field,
                                                               const std::string& path) const {
  RETURN_IF_ERROR(CheckNotInline(parts_.volumes, id));
  // What an earlier configuration has let in goes, too.
  if (const std::optional<NodePlace> there = FindPlace(id, path)) {
    return std::optional<Leaving>({there->place, std::nullopt});
  }
  ASSIGN_OR_RETURN(SafePath place, targets_.PlaceOf(field, path));
  const Result<PoolVolumeRecord> volume = parts_.volumes.Find(id);
  if (IsNoVolume(volume)) return std::optional<Leaving>();
  if (!volume.ok()) return volume.error();
  CsiCapabilityWish any;
  any.is_block = volume->is_block;
  return std::optional<Leaving>({std::move(place), SpecOf(*volume, any, /*read_only=*/false)});
}

Result<std::optional<NodeUnstage>> NodeRpcs::UnstageOf(
    const NodeUnstageVolumeRequest& request) const {
  ASSIGN_OR_RETURN(std::optional<Leaving> leaving,
                   FindLeaving(request.volume_id(), kStagingField, request.staging_target_path()));
  if (!leaving) return std::optional<NodeUnstage>();
  return std::optional<NodeUnstage>(
      {request.volume_id(), std::move(leaving->place), std::move(leaving->spec)});
}

Result<std::optional<NodeUnpublish>> NodeRpcs::UnpublishOf(
    const NodeUnpublishVolumeRequest& request) const {
  ASSIGN_OR_RETURN(std::optional<Leaving> leaving,
                   FindLeaving(request.volume_id(), kTargetField, request.target_path()));
  if (!leaving) return std::optional<NodeUnpublish>();
  return std::optional<NodeUnpublish>(
      {request.volume_id(), std::move(leaving->place), std::move(leaving->spec)});
}

// By the target path alone, too: the row of the device says where that is staged.
Result<NodeExpand> NodeRpcs::ExpandOf(const NodeExpandVolumeRequest& request,
                                      SafePath& place) const {
  RETURN_IF_ERROR(CheckNotInline(parts_.volumes, request.volume_id()));
  ASSIGN_OR_RETURN(const PoolVolumeRecord volume, parts_.volumes.Find(request.volume_id()));
  const std::optional<NodePlace> there = FindPlace(volume.id, request.volume_path());
  if (!there || (!there->is_staging && !there->is_finished)) {
    return NothingAt(volume.id, request.volume_path());
  }
  if (request.has_volume_capability()) {
    RETURN_IF_ERROR(CheckCapabilityOf(volume, request.volume_capability()));
  }
  ASSIGN_OR_RETURN(const int64_t bytes, ParseCsiGrowth(request.capacity_range(), volume));
  if (bytes > volume.capacity_bytes && !settings_.grows_storage) {
    return Error::NotApplied(
        Code::kOutOfRange, "volume " + volume.id + " has " + BytesForPeople(volume.capacity_bytes) +
                               ": ControllerExpandVolume has to make it larger first");
  }
  place = there->place;
  return NodeExpand{.id = volume.id, .driver = settings_.driver, .bytes = bytes};
}

template <typename Op, typename Rpc, typename Answer>
void NodeRpcs::StartAndAnswer(const NodeWay& way, Op operation, const Rpc& rpc, Answer answer) {
  const std::string path = way.place.Display();
  if (!paths_.insert(path).second) {
    return rpc.Finish(Error::NotApplied(
        Code::kAborted, "another call works at " + ShownPath(path) + ": try again"));
  }
  looks_.Ask(way.looks, [self = shared_from_this(), path, operation = std::move(operation), rpc,
                         answer](const Status& answers) {
    if (answers.ok()) return self->BeginAt(path, operation, rpc, answer);
    self->paths_.erase(path);
    rpc.Finish(answers);
  });
}

// The caller's own back-off decides when to try again, so the executor's is forgotten.
template <typename Op, typename Rpc, typename Answer>
void NodeRpcs::BeginAt(const std::string& path, Op operation, const Rpc& rpc, Answer answer) {
  const std::string volume = operation.request.id;
  parts_.operations.ResetBackoff(operation.key());
  const StartResult started = parts_.operations.Start(
      std::move(operation), [self = shared_from_this(), path, rpc,
                             answer](const OperationOutcome<typename Op::Value>& outcome) {
        self->paths_.erase(path);
        if (outcome.failure) return rpc.Finish(outcome.failure->error);
        answer(*outcome.value);
        rpc.Finish(OkStatus());
      });
  if (started == StartResult::kStarted) return;
  paths_.erase(path);
  rpc.Finish(Error::NotApplied(Code::kAborted,
                               "something else works on volume " + volume + ": try again"));
}

template <typename Op, typename Wish, typename Rpc>
void NodeRpcs::StartOrNothing(Result<std::optional<Wish>> wish, SafePath Wish::*place,
                              const Rpc& rpc) {
  if (!wish.ok()) return rpc.Finish(wish.error());
  if (!*wish) return rpc.Finish(OkStatus());
  const SafePath at = (**wish).*place;
  Start(WayOnto(at), Op(parts_.volumes, **std::move(wish)), rpc);
}

void NodeRpcs::PublishInline(
    const CsiRpc<NodePublishVolumeRequest, NodePublishVolumeResponse>& rpc) {
  Result<InlinePublish> publish = InlinePublishOf(rpc.request());
  if (!publish.ok()) return rpc.Finish(publish.error());
  publish->caller = rpc.caller();
  const SafePath target = publish->target;
  Start(WayTo(target), PublishInlineVolume(parts_.volumes, *std::move(publish)), rpc);
}

void NodeRpcs::UnpublishInline(
    const CsiRpc<NodeUnpublishVolumeRequest, NodeUnpublishVolumeResponse>& rpc) {
  Result<InlineUnpublish> unpublish = InlineUnpublishOf(rpc.request());
  if (!unpublish.ok()) return rpc.Finish(unpublish.error());
  const SafePath target = unpublish->target;
  Start(WayOnto(target), UnpublishInlineVolume(parts_.volumes, *std::move(unpublish)), rpc);
}

// The volume before the path: an unknown one is NotFound whatever the path is.
void NodeRpcs::Measure(
    const CsiRpc<NodeGetVolumeStatsRequest, NodeGetVolumeStatsResponse>& rpc) const {
  const Result<PoolVolumeRecord> volume = FindAsked(rpc.request().volume_id());
  if (!volume.ok()) return rpc.Finish(volume.error());
  const std::string& path = rpc.request().volume_path();
  const std::optional<NodePlace> place = FindMeasured(*volume, path);
  if (!place || !place->is_finished) {
    return rpc.Finish(NothingAt(rpc.request().volume_id(), path));
  }
  const Deadline deadline = Deadline::After(parts_.scheduler.clock(), settings_.stats_deadline);
  parts_.scheduler.RunBlocking([parts = parts_, rpc, place = *place, deadline, volume = *volume] {
    rpc.Finish(MeasureNodePlace(parts.kernel, parts.scheduler.clock(), place, volume, deadline,
                                rpc.response()));
  });
}

std::vector<NodePlace> NodeRpcs::PlacesOf(const std::string& id, const std::string& target) const {
  std::vector<NodePlace> places;
  const std::optional<DeviceRecord> device = parts_.devices.Find(PoolDeviceName(id));
  if (const auto staged = device ? NodePlaceOf(*device) : std::nullopt) places.push_back(*staged);
  const std::optional<NodePlace> published = FindPlace(id, target);
  if (published && !published->is_staging) places.push_back(*published);
  return places;
}

CallOptions NodeRpcs::UntilStatsDeadline() const {
  CallOptions call;
  call.deadline = Deadline::After(parts_.scheduler.clock(), settings_.stats_deadline);
  return call;
}

// Also of a volume that is nowhere: it may have been tried to stage it.
void NodeRpcs::TellHealth(
    const CsiRpc<NodeGetVolumeHealthRequest, NodeGetVolumeHealthResponse>& rpc) const {
  Result<PoolVolumeRecord> volume = FindAsked(rpc.request().volume_id());
  if (!volume.ok()) return rpc.Finish(volume.error());
  const auto lease = std::find_if(volume->leases.begin(), volume->leases.end(),
                                  [this](const PoolLease& l) { return l.node == settings_.node; });
  const bool writes = lease != volume->leases.end() && !lease->read_only;
  parts_.scheduler.RunBlocking([parts = parts_, rpc, writes, call = UntilStatsDeadline(),
                                places = PlacesOf(volume->id, rpc.request().volume_publish_path()),
                                volume = *std::move(volume)] {
    ::csi::v1::VolumeHealth& health = *rpc.response().mutable_volume_health();
    health.set_volume_id(rpc.request().volume_id());
    CallOptions soon = call;
    soon.deadline = AnswerBy(parts.scheduler.clock(), call.deadline);
    // The mount table first: a pool that hangs takes all the time that there is.
    const Status told = TellPlacesHealth(parts.kernel, places, writes, soon, health);
    if (volume.backend == PoolBackendKind::kExport) {
      TellServerHealth(parts.kernel, places, call, health);
    } else {
      TellVolumeHealth(volume, parts.volumes.Look(volume.pool, call), health);
    }
    rpc.Finish(told);
  });
}

void NodeRpcs::TellStorage(
    const CsiRpc<NodeGetStorageHealthRequest, NodeGetStorageHealthResponse>& rpc) const {
  parts_.scheduler.RunBlocking([parts = parts_, rpc, longest = settings_.stats_deadline] {
    for (const std::unique_ptr<Pool>& pool : parts.volumes.pools()) {
      CallOptions call;
      call.deadline = Deadline::After(parts.scheduler.clock(), longest);
      TellStorageHealth(pool->name(), parts.volumes.Look(pool->name(), call), rpc.response());
    }
    rpc.Finish(OkStatus());
  });
}

void NodeRpcs::AddTo(CsiHandlers& handlers) {
  const std::shared_ptr<NodeRpcs> self = shared_from_this();
  handlers.Add<NodeStageVolumeRequest, NodeStageVolumeResponse>([self](const auto& rpc) {
    Result<NodeStage> stage = self->StageOf(rpc.request());
    if (!stage.ok()) return rpc.Finish(stage.error());
    stage->caller = rpc.caller();
    const SafePath place = stage->place;
    self->Start(WayTo(place), StageNodeVolume(self->parts_.volumes, *std::move(stage)), rpc);
  });
  handlers.Add<NodeUnstageVolumeRequest, NodeUnstageVolumeResponse>([self](const auto& rpc) {
    self->StartOrNothing<UnstageNodeVolume>(self->UnstageOf(rpc.request()), &NodeUnstage::place,
                                            rpc);
  });
  handlers.Add<NodePublishVolumeRequest, NodePublishVolumeResponse>([self](const auto& rpc) {
    if (IsInlinePublish(rpc.request())) return self->PublishInline(rpc);
    Result<NodePublish> publish = self->PublishOf(rpc.request());
    if (!publish.ok()) return rpc.Finish(publish.error());
    publish->caller = rpc.caller();
    NodeWay way = WayTo(publish->target);
    way.looks.push_back(ParentOf(publish->staging));
    self->Start(way, PublishNodeVolume(self->parts_.volumes, *std::move(publish)), rpc);
  });
  handlers.Add<NodeUnpublishVolumeRequest, NodeUnpublishVolumeResponse>([self](const auto& rpc) {
    if (IsInlineHandle(rpc.request().volume_id())) return self->UnpublishInline(rpc);
    self->StartOrNothing<UnpublishNodeVolume>(self->UnpublishOf(rpc.request()),
                                              &NodeUnpublish::target, rpc);
  });
  handlers.Add<NodeGetVolumeStatsRequest, NodeGetVolumeStatsResponse>(
      [self](const auto& rpc) { self->Measure(rpc); });
  handlers.Add<NodeGetVolumeHealthRequest, NodeGetVolumeHealthResponse>(
      [self](const auto& rpc) { self->TellHealth(rpc); });
  handlers.Add<NodeGetStorageHealthRequest, NodeGetStorageHealthResponse>(
      [self](const auto& rpc) { self->TellStorage(rpc); });
  handlers.Add<NodeExpandVolumeRequest, NodeExpandVolumeResponse>([self](const auto& rpc) {
    SafePath place;
    Result<NodeExpand> expand = self->ExpandOf(rpc.request(), place);
    if (!expand.ok()) return rpc.Finish(expand.error());
    // It grows where it is staged, whichever path is named.
    NodeWay way = WayOnto(place);
    for (const NodePlace& at : self->PlacesOf(expand->id, place.Display())) {
      way.looks.push_back(ParentOf(at.place));
    }
    self->StartAndAnswer(way, ExpandNodeVolume(self->parts_.volumes, *std::move(expand)), rpc,
                         [rpc](int64_t bytes) { rpc.response().set_capacity_bytes(bytes); });
  });
  handlers.AddFeature(CsiFeature::kMultiWriter);
  handlers.AddFeature(CsiFeature::kMountGroup);
}

}  // namespace

void AddNodeRpcs(CsiHandlers& handlers, const NodeRpcParts& parts,
                 const NodeRpcSettings& settings) {
  std::make_shared<NodeRpcs>(parts, settings)->AddTo(handlers);
}

}  // namespace volumed
