#include "integration/csi/random/random_client.h"

#include <algorithm>
#include <thread>

#include "integration/agent/agent_fixture.h"

namespace volumed::random_clients {
namespace {

using ::csi::v1::Controller;
using ::csi::v1::Node;

int64_t BytesOf(VolumeKind kind) { return (kind == VolumeKind::kXfs ? 304 : 32) * kMiB; }

}  // namespace

::csi::v1::VolumeCapability CapabilityOf(VolumeKind kind) {
  ::csi::v1::VolumeCapability capability;
  if (kind == VolumeKind::kBlock) {
    capability.mutable_block();
  } else {
    capability.mutable_mount()->set_fs_type(kind == VolumeKind::kXfs ? "xfs" : "ext4");
  }
  capability.mutable_access_mode()->set_mode(
      ::csi::v1::VolumeCapability::AccessMode::SINGLE_NODE_WRITER);
  return capability;
}

Client::Client(World& world, const Places& places, uint64_t seed, int number)
    : world_(world),
      places_(places),
      number_(number),
      random_(seed * 1000003 + static_cast<uint64_t>(number)) {}

size_t Client::Dice(size_t sides) {
  return std::uniform_int_distribution<size_t>(0, sides - 1)(random_);
}

std::string Client::Name(const std::string& what) {
  return what + " " + std::to_string(number_) + "-" + std::to_string(++named_);
}

std::shared_ptr<grpc::Channel> Client::Channel() {
  const uint64_t daemon = world_.daemon();
  if (channel_ && channel_of_ == daemon) return channel_;
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // A call that is repeated by the library would come when its caller has gone on.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  channel_ = grpc::CreateCustomChannel("unix://" + places_.endpoint,
                                       grpc::InsecureChannelCredentials(), arguments);
  channel_of_ = daemon;
  return channel_;
}

std::chrono::milliseconds Client::DrawDeadline() {
  constexpr size_t kGivesUpOneIn = 30;
  constexpr size_t kSoon = 40;
  if (world_.IsOver() || !OneIn(kGivesUpOneIn)) return kAnswered;
  return std::chrono::milliseconds(1 + Dice(kSoon));
}

void Client::Rest(const grpc::Status& status) {
  if (status.error_code() == Code::UNAVAILABLE) channel_ = nullptr;
  if (status.error_code() != Code::UNAVAILABLE && status.error_code() != Code::ABORTED) return;
  constexpr size_t kLongest = 60;
  std::this_thread::sleep_for(std::chrono::milliseconds(Dice(kLongest)));
}

// ---- what an answer may be ----------------------------------------------------------------------

void Client::Violate(const std::string& what) {
  world_.Violate("client " + std::to_string(number_) + ": " + what);
}

void Client::Hold(const std::string& rpc, const std::string& about, const grpc::Status& status,
                  Codes finals) {
  // The driver never says Unknown; the library does of a daemon that died.
  const Codes transient = {Code::OK,        Code::ABORTED,           Code::UNAVAILABLE,
                           Code::CANCELLED, Code::DEADLINE_EXCEEDED, Code::RESOURCE_EXHAUSTED,
                           Code::UNKNOWN};
  const auto has = [&status](Codes codes) {
    return std::find(codes.begin(), codes.end(), status.error_code()) != codes.end();
  };
  world_.Count(rpc + (status.ok() ? " OK" : " " + std::to_string(status.error_code())));
  if (has(transient) || has(finals)) return;
  Violate(rpc + " of " + about + " answered " + std::to_string(status.error_code()) + ": " +
          status.error_message());
}

void Client::HoldOfVolume(const std::string& rpc, const VolumeTruth& volume,
                          const grpc::Status& status, Codes finals, const CallNote& note,
                          size_t exists) {
  Hold(rpc, "volume " + volume.id, status, finals);
  if (status.ok() && note.Before(exists) == CsiState::kGone) {
    Violate(rpc + " was done of volume " + volume.id + ", which was deleted before");
  }
  if (status.error_code() == Code::NOT_FOUND && note.Stayed(exists, CsiState::kThere)) {
    Violate(rpc + " does not find volume " + volume.id +
            ", which is there: " + status.error_message());
  }
}

// ---- volumes ------------------------------------------------------------------------------------

grpc::Status Client::Create(size_t slot) {
  const SharedVolumePlan plan = world_.PlanVolume(slot, FreshVolumePlan(slot));
  const SharedVolume before = world_.VolumeAt(slot).volume;
  ::csi::v1::CreateVolumeRequest request;
  request.set_name(plan->name);
  request.mutable_capacity_range()->set_required_bytes(plan->bytes);
  *request.add_volume_capabilities() = CapabilityOf(plan->kind);
  auto& source = *request.mutable_volume_content_source();
  if (plan->of_snapshot) source.mutable_snapshot()->set_snapshot_id(plan->of_snapshot->id);
  if (plan->of_volume) source.mutable_volume()->set_volume_id(plan->of_volume->id);
  if (!plan->has_source()) request.clear_volume_content_source();
  CallNote note(world_);
  if (before) (void)note.Watch(before->exists);
  note.Begin();
  ::csi::v1::CreateVolumeResponse response;
  const grpc::Status status = Send<Controller>(&Controller::Stub::CreateVolume, request, &response);
  note.End(status);
  world_.NoteMaking(&World::Doubts::volumes, request, status);
  const std::string rpc = plan->of_snapshot ? "CreateVolume of a snapshot"
                          : plan->of_volume ? "CreateVolume of a volume"
                                            : "CreateVolume";
  if (plan->has_source()) {
    Hold(rpc, plan->name, status, {Code::NOT_FOUND, Code::FAILED_PRECONDITION, Code::OUT_OF_RANGE});
  } else {
    Hold(rpc, plan->name, status, {});
  }
  if (!status.ok()) {
    if (EndOf(status) == CsiEnd::kRefused && status.error_code() != Code::ABORTED) {
      world_.GiveUp(slot, plan);
    }
    return status;
  }
  const auto& volume = response.volume();
  if (before && before->plan == plan && before->id != volume.volume_id() &&
      note.Stayed(0, CsiState::kThere)) {
    Violate("CreateVolume of " + plan->name + " answered " + volume.volume_id() + ", and " +
            before->id + " is there");
  }
  if (volume.capacity_bytes() < plan->bytes) Violate("volume " + volume.volume_id() + " is small");
  const SharedVolume made =
      world_.Made(slot, plan, volume.volume_id(), volume.capacity_bytes(), note.begun());
  // One that came after the slot has gone on is nobody's.
  if (made && world_.VolumeAt(slot).volume != made) (void)Delete(made);
  return status;
}

grpc::Status Client::Delete(const SharedVolume& volume) {
  ::csi::v1::DeleteVolumeRequest request;
  request.set_volume_id(volume->id);
  CallNote note(world_);
  note.WatchPlaces(*volume, /*also_staging=*/true);
  (void)note.Watch(volume->leased, "its node, by ControllerPublishVolume,");
  note.Ends(volume->exists);
  note.Begin();
  ::csi::v1::DeleteVolumeResponse response;
  const grpc::Status status = Send<Controller>(&Controller::Stub::DeleteVolume, request, &response);
  note.End(status);
  Hold("DeleteVolume", "volume " + volume->id, status, {Code::FAILED_PRECONDITION});
  if (!status.ok()) return status;
  if (const std::string place = note.PlaceThatStayed(); !place.empty()) {
    Violate("volume " + volume->id + " was deleted while " + place + " had it");
  }
  if (Exists(places_.pool + "/volumes/" + volume->id)) {
    Violate("volume " + volume->id + " was deleted, and has files");
  }
  world_.Gone(volume, /*keeps_name=*/OneIn(4));
  return status;
}

grpc::Status Client::Stage(const SharedVolume& volume, const std::string& path) {
  ::csi::v1::NodeStageVolumeRequest request;
  request.set_volume_id(volume->id);
  request.set_staging_target_path(path);
  *request.mutable_volume_capability() = CapabilityOf(volume->plan->kind);
  CallNote note(world_);
  const size_t exists = note.Watch(volume->exists);
  note.Makes(world_.Staged(*volume, path));
  note.Begin();
  ::csi::v1::NodeStageVolumeResponse response;
  const grpc::Status status = Send<Node>(&Node::Stub::NodeStageVolume, request, &response);
  note.End(status);
  HoldOfVolume("NodeStageVolume", *volume, status, {Code::NOT_FOUND, Code::FAILED_PRECONDITION},
               note, exists);
  return status;
}

grpc::Status Client::Unstage(const SharedVolume& volume, const std::string& path) {
  ::csi::v1::NodeUnstageVolumeRequest request;
  request.set_volume_id(volume->id);
  request.set_staging_target_path(path);
  CsiFact& staged = world_.Staged(*volume, path);
  CallNote note(world_);
  const size_t was = note.Watch(staged);
  note.WatchPlaces(*volume, /*also_staging=*/false);
  note.Ends(staged);
  note.Begin();
  ::csi::v1::NodeUnstageVolumeResponse response;
  const grpc::Status status = Send<Node>(&Node::Stub::NodeUnstageVolume, request, &response);
  note.End(status);
  Hold("NodeUnstageVolume", "volume " + volume->id, status, {Code::FAILED_PRECONDITION});
  const std::string place = note.PlaceThatStayed();
  if (status.ok() && !place.empty() && note.Before(was) == CsiState::kThere) {
    Violate("volume " + volume->id + " was unstaged while it was published at " + place);
  }
  return status;
}

grpc::Status Client::Publish(const SharedVolume& volume, const std::string& path) {
  const bool is_block = volume->plan->kind == VolumeKind::kBlock;
  ::csi::v1::NodePublishVolumeRequest request;
  request.set_volume_id(volume->id);
  request.set_staging_target_path(places_.Staging(volume->slot));
  request.set_target_path(path);
  request.set_readonly(!is_block && path == places_.Reader(volume->slot));
  *request.mutable_volume_capability() = CapabilityOf(volume->plan->kind);
  CallNote note(world_);
  const size_t exists = note.Watch(volume->exists);
  const size_t staged = note.Watch(world_.Staged(*volume, request.staging_target_path()));
  note.Makes(world_.Published(*volume, path));
  note.Begin();
  ::csi::v1::NodePublishVolumeResponse response;
  const grpc::Status status = Send<Node>(&Node::Stub::NodePublishVolume, request, &response);
  note.End(status);
  HoldOfVolume("NodePublishVolume", *volume, status, {Code::NOT_FOUND, Code::FAILED_PRECONDITION},
               note, exists);
  if (!status.ok()) return status;
  if (note.Stayed(staged, CsiState::kGone)) {
    Violate("volume " + volume->id + " was published and is not staged");
  }
  (void)Verify(volume, path);
  return status;
}

grpc::Status Client::Unpublish(const SharedVolume& volume, const std::string& path) {
  ::csi::v1::NodeUnpublishVolumeRequest request;
  request.set_volume_id(volume->id);
  request.set_target_path(path);
  CallNote note(world_);
  note.Ends(world_.Published(*volume, path));
  note.Begin();
  ::csi::v1::NodeUnpublishVolumeResponse response;
  const grpc::Status status = Send<Node>(&Node::Stub::NodeUnpublishVolume, request, &response);
  note.End(status);
  Hold("NodeUnpublishVolume", "volume " + volume->id, status, {Code::FAILED_PRECONDITION});
  return status;
}

grpc::Status Client::ControllerPublish(const SharedVolume& volume) {
  ::csi::v1::ControllerPublishVolumeRequest request;
  request.set_volume_id(volume->id);
  request.set_node_id(places_.node);
  *request.mutable_volume_capability() = CapabilityOf(volume->plan->kind);
  CallNote note(world_);
  const size_t exists = note.Watch(volume->exists);
  note.Makes(volume->leased);
  note.Begin();
  ::csi::v1::ControllerPublishVolumeResponse response;
  const grpc::Status status =
      Send<Controller>(&Controller::Stub::ControllerPublishVolume, request, &response);
  note.End(status);
  HoldOfVolume("ControllerPublishVolume", *volume, status,
               {Code::NOT_FOUND, Code::FAILED_PRECONDITION}, note, exists);
  return status;
}

grpc::Status Client::ControllerUnpublish(const SharedVolume& volume) {
  ::csi::v1::ControllerUnpublishVolumeRequest request;
  request.set_volume_id(volume->id);
  if (OneIn(2)) request.set_node_id(places_.node);
  CallNote note(world_);
  note.Ends(volume->leased);
  note.Begin();
  ::csi::v1::ControllerUnpublishVolumeResponse response;
  const grpc::Status status =
      Send<Controller>(&Controller::Stub::ControllerUnpublishVolume, request, &response);
  note.End(status);
  Hold("ControllerUnpublishVolume", "volume " + volume->id, status, {});
  return status;
}

// ---- plans of volumes ---------------------------------------------------------------------------

SharedVolumePlan Client::FreshVolumePlan(size_t slot) {
  constexpr size_t kBlockOneIn = 4;
  constexpr size_t kXfsOneIn = 8;
  VolumePlan plan;
  plan.name = Name("volume");
  plan.kind = slot % kXfsOneIn == kXfsOneIn - 1 ? VolumeKind::kXfs
              : slot % kBlockOneIn == 1         ? VolumeKind::kBlock
                                                : VolumeKind::kExt4;
  const size_t draw = Dice(10);
  if (draw < 4) {
    const SnapshotSlot there = world_.SnapshotAt(Dice(world_.snapshot_slots()));
    if (!there.made.empty()) plan.of_snapshot = there.made[Dice(there.made.size())];
    if (plan.of_snapshot) plan.kind = plan.of_snapshot->of->plan->kind;
  } else if (draw < 6) {
    plan.of_volume = VolumeWithContent();
    if (plan.of_volume) {
      plan.kind = plan.of_volume->plan->kind;
      plan.least = plan.of_volume->history->acknowledged();
    }
  }
  plan.bytes = BytesOf(plan.kind) + (plan.has_source() ? kMostGrowth : 0);
  return std::make_shared<const VolumePlan>(plan);
}

}  // namespace volumed::random_clients
