// What a client does next, and the calls that change nothing.
#include <algorithm>
#include <set>
#include <utility>

#include "integration/csi/random/random_client.h"

namespace volumed::random_clients {
namespace {

using ::csi::v1::Controller;
using ::csi::v1::Node;

// A walk over all pages of a list, whose members nobody may miss that were there all the time.
struct Listed {
  std::set<std::string> ids;
  bool is_whole = false;
  bool has_twice = false;

  void Add(const std::string& id) { has_twice = !ids.insert(id).second || has_twice; }
};

constexpr int kMostPages = 200;

}  // namespace

void Client::Run() {
  while (!world_.IsOver()) Act();
}

void Client::Act() {
  constexpr size_t kStaysFor = 20;
  if (OneIn(kStaysFor)) focus_ = Dice(world_.volume_slots());
  const size_t slot = OneIn(4) ? Dice(world_.volume_slots()) : focus_;
  const size_t draw = Dice(100);
  if (draw < 30) return Advance(slot);
  if (draw < 45) return ActBadly();
  if (draw < 61) return ActOnSnapshots();
  if (draw < 64) return ListVolumes();
  if (draw < 67) return AskCapacity();
  if (draw < 70) return (void)Create(slot);
  const SharedVolume volume = world_.VolumeAt(slot).volume;
  if (!volume) return Advance(slot);
  if (draw < 73) return TakeDown(volume);
  ActOnVolume(volume);
}

// The next step of a life in good order, as far as it is known.
void Client::Advance(size_t slot) {
  const SharedVolume volume = world_.VolumeAt(slot).volume;
  if (!volume) return (void)Create(slot);
  const std::string staging = places_.Staging(volume->slot);
  const std::string target = places_.Target(volume->slot);
  if (!world_.VersionIfThere(world_.Staged(*volume, staging))) {
    return (void)Stage(volume, staging);
  }
  if (!world_.VersionIfThere(world_.Published(*volume, target))) {
    return (void)Publish(volume, target);
  }
  Write(volume);
  if (OneIn(4)) (void)Verify(volume, target);
  if (OneIn(4)) ActOnVolume(volume);
}

void Client::TakeDown(const SharedVolume& volume) {
  (void)Unpublish(volume, places_.Target(volume->slot));
  (void)Unpublish(volume, places_.Reader(volume->slot));
  (void)Unstage(volume, places_.Staging(volume->slot));
  (void)ControllerUnpublish(volume);
  if (OneIn(2)) (void)Delete(volume);
}

// Others' places, too.
std::string Client::StagingFor(const VolumeTruth& volume) {
  constexpr size_t kStrayOneIn = 25;
  return places_.Staging(OneIn(kStrayOneIn) ? static_cast<int>(Dice(world_.volume_slots()))
                                            : volume.slot);
}

std::string Client::TargetFor(const VolumeTruth& volume) {
  return OneIn(2) ? places_.Target(volume.slot) : places_.Reader(volume.slot);
}

void Client::ActOnVolume(const SharedVolume& volume) {
  switch (Dice(16)) {
    case 0:
      return (void)Delete(volume);
    case 1:
      return (void)Stage(volume, StagingFor(*volume));
    case 2:
      return (void)Unstage(volume, StagingFor(*volume));
    case 3:
    case 4:
      return (void)Publish(volume, TargetFor(*volume));
    case 5:
      return (void)Unpublish(volume, TargetFor(*volume));
    case 6:
      return (void)ControllerPublish(volume);
    case 7:
      return (void)ControllerUnpublish(volume);
    case 8:
      return Grow(volume);
    case 9:
      return GrowOnNode(volume);
    case 10:
      return Measure(volume);
    case 11:
    case 12:
      return Get(volume);
    case 13:
      return Validate(volume);
    default:
      Write(volume);
      (void)Verify(volume, TargetFor(*volume));
  }
}

// ---- growth -------------------------------------------------------------------------------------

void Client::Grow(const SharedVolume& volume) {
  ::csi::v1::ControllerExpandVolumeRequest request;
  request.set_volume_id(volume->id);
  // What is made of another one is as large from its beginning.
  const int64_t growth =
      volume->plan->has_source() ? 0 : kMostGrowth / static_cast<int64_t>(1 + Dice(2));
  const int64_t bytes = volume->plan->bytes + growth;
  request.mutable_capacity_range()->set_required_bytes(bytes);
  CallNote note(world_);
  const size_t exists = note.Watch(volume->exists);
  note.Begin();
  ::csi::v1::ControllerExpandVolumeResponse response;
  const grpc::Status status =
      Send<Controller>(&Controller::Stub::ControllerExpandVolume, request, &response);
  note.End(status);
  HoldOfVolume("ControllerExpandVolume", *volume, status,
               {Code::NOT_FOUND, Code::FAILED_PRECONDITION, Code::OUT_OF_RANGE}, note, exists);
  if (!status.ok()) return;
  if (response.capacity_bytes() < bytes) Violate("volume " + volume->id + " has not grown");
  world_.Grown(*volume, response.capacity_bytes());
}

void Client::GrowOnNode(const SharedVolume& volume) {
  ::csi::v1::NodeExpandVolumeRequest request;
  request.set_volume_id(volume->id);
  request.set_volume_path(OneIn(2) ? places_.Target(volume->slot) : places_.Staging(volume->slot));
  CallNote note(world_);
  const size_t exists = note.Watch(volume->exists);
  note.Begin();
  ::csi::v1::NodeExpandVolumeResponse response;
  const grpc::Status status = Send<Node>(&Node::Stub::NodeExpandVolume, request, &response);
  note.End(status);
  Hold("NodeExpandVolume", "volume " + volume->id, status,
       {Code::NOT_FOUND, Code::FAILED_PRECONDITION, Code::OUT_OF_RANGE});
  if (status.ok() && note.Before(exists) == CsiState::kGone) {
    Violate("volume " + volume->id + " grew on the node and was deleted before");
  }
}

// ---- questions ----------------------------------------------------------------------------------

void Client::Measure(const SharedVolume& volume) {
  ::csi::v1::NodeGetVolumeStatsRequest request;
  request.set_volume_id(volume->id);
  request.set_volume_path(places_.Target(volume->slot));
  CallNote note(world_);
  const size_t published = note.Watch(world_.Published(*volume, request.volume_path()));
  note.Begin();
  ::csi::v1::NodeGetVolumeStatsResponse response;
  const grpc::Status status = Send<Node>(&Node::Stub::NodeGetVolumeStats, request, &response);
  note.End(status);
  Hold("NodeGetVolumeStats", "volume " + volume->id, status,
       {Code::NOT_FOUND, Code::FAILED_PRECONDITION});
  if (status.ok() && note.Stayed(published, CsiState::kGone)) {
    Violate("volume " + volume->id + " is measured where it is not");
  }
  if (status.error_code() == Code::NOT_FOUND && note.Stayed(published, CsiState::kThere)) {
    Violate("volume " + volume->id +
            " is published and not found there: " + status.error_message());
  }
}

void Client::Get(const SharedVolume& volume) {
  ::csi::v1::ControllerGetVolumeRequest request;
  request.set_volume_id(volume->id);
  const int64_t had = world_.CapacityOf(*volume);
  CallNote note(world_);
  const size_t exists = note.Watch(volume->exists);
  note.Begin();
  ::csi::v1::ControllerGetVolumeResponse response;
  const grpc::Status status =
      Send<Controller>(&Controller::Stub::ControllerGetVolume, request, &response);
  note.End(status);
  HoldOfVolume("ControllerGetVolume", *volume, status, {Code::NOT_FOUND}, note, exists);
  if (status.ok() && response.volume().capacity_bytes() < had) {
    Violate("volume " + volume->id + " is smaller than it was");
  }
}

void Client::Validate(const SharedVolume& volume) {
  ::csi::v1::ValidateVolumeCapabilitiesRequest request;
  request.set_volume_id(volume->id);
  const bool is_right = OneIn(2);
  const bool is_block = volume->plan->kind == VolumeKind::kBlock;
  const VolumeKind other = is_block ? VolumeKind::kExt4 : VolumeKind::kBlock;
  *request.add_volume_capabilities() = CapabilityOf(is_right ? volume->plan->kind : other);
  CallNote note(world_);
  const size_t exists = note.Watch(volume->exists);
  note.Begin();
  ::csi::v1::ValidateVolumeCapabilitiesResponse response;
  const grpc::Status status =
      Send<Controller>(&Controller::Stub::ValidateVolumeCapabilities, request, &response);
  note.End(status);
  HoldOfVolume("ValidateVolumeCapabilities", *volume, status, {Code::NOT_FOUND}, note, exists);
  if (status.ok() && response.has_confirmed() != is_right) {
    Violate("volume " + volume->id + " is told to be of another mode: " + response.message());
  }
}

void Client::AskCapacity() {
  ::csi::v1::GetCapacityResponse response;
  const grpc::Status status =
      Send<Controller>(&Controller::Stub::GetCapacity, ::csi::v1::GetCapacityRequest(), &response);
  Hold("GetCapacity", "the pool", status, {});
  const int64_t bytes = response.available_capacity();
  if (status.ok() && (bytes < 0 || bytes > places_.pool_bytes)) {
    Violate("the pool has room for " + std::to_string(bytes) + " bytes");
  }
}

// ---- lists --------------------------------------------------------------------------------------

void Client::ListVolumes() {
  const std::vector<SharedVolume> known = world_.volumes();
  CallNote note(world_);
  for (const SharedVolume& volume : known) (void)note.Watch(volume->exists);
  note.Begin();
  Listed listed;
  ::csi::v1::ListVolumesRequest request;
  request.set_max_entries(OneIn(4) ? 0 : static_cast<int32_t>(3 + Dice(20)));
  grpc::Status status;
  for (int page = 0; page < kMostPages && status.ok() && !listed.is_whole; ++page) {
    ::csi::v1::ListVolumesResponse response;
    status = Send<Controller>(&Controller::Stub::ListVolumes, request, &response);
    Hold("ListVolumes", "a page", status, {});
    for (const auto& entry : response.entries()) listed.Add(entry.volume().volume_id());
    listed.is_whole = status.ok() && response.next_token().empty();
    request.set_starting_token(response.next_token());
  }
  note.End(status);
  if (listed.has_twice) Violate("a volume is listed twice");
  for (size_t i = 0; i < known.size(); ++i) {
    const bool is_listed = listed.ids.contains(known[i]->id);
    if (is_listed && note.Before(i) == CsiState::kGone) {
      Violate("volume " + known[i]->id + " is listed and was deleted before");
    }
    if (!is_listed && listed.is_whole && note.Stayed(i, CsiState::kThere)) {
      Violate("volume " + known[i]->id + " is there and not listed");
    }
  }
}

void Client::ListSnapshots() {
  const std::vector<SharedSnapshot> known = world_.snapshots();
  CallNote note(world_);
  for (const SharedSnapshot& snapshot : known) (void)note.Watch(snapshot->exists);
  note.Begin();
  Listed listed;
  ::csi::v1::ListSnapshotsRequest request;
  request.set_max_entries(OneIn(4) ? 0 : static_cast<int32_t>(3 + Dice(20)));
  grpc::Status status;
  for (int page = 0; page < kMostPages && status.ok() && !listed.is_whole; ++page) {
    ::csi::v1::ListSnapshotsResponse response;
    status = Send<Controller>(&Controller::Stub::ListSnapshots, request, &response);
    Hold("ListSnapshots", "a page", status, {});
    for (const auto& entry : response.entries()) listed.Add(entry.snapshot().snapshot_id());
    listed.is_whole = status.ok() && response.next_token().empty();
    request.set_starting_token(response.next_token());
  }
  note.End(status);
  if (listed.has_twice) Violate("a snapshot is listed twice");
  for (size_t i = 0; i < known.size(); ++i) {
    const bool is_listed = listed.ids.contains(known[i]->id);
    if (is_listed && note.Before(i) == CsiState::kGone) {
      Violate("snapshot " + known[i]->id + " is listed and was deleted before");
    }
    if (!is_listed && listed.is_whole && note.Stayed(i, CsiState::kThere)) {
      Violate("snapshot " + known[i]->id + " is there and not listed");
    }
  }
}

}  // namespace volumed::random_clients
