// Calls that have to be refused, whatever the state is: fields that are missing, too large or of no
// known value, ids and paths that lead elsewhere, and what was deleted.
#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "integration/csi/random/random_client.h"

namespace volumed::random_clients {
namespace {

using ::csi::v1::Controller;
using ::csi::v1::GroupController;
using ::csi::v1::Node;
using Mode = ::csi::v1::VolumeCapability::AccessMode;

constexpr size_t kLongText = 200;       // more than the specification allows a string
constexpr size_t kLongPath = 5000;      // more than a path has
constexpr size_t kHugeText = 5u << 20;  // more than a request may have
constexpr int kUnknownMode = 77;

constexpr char kOfAnotherPool[] = "v-00000000-0123456789abcdef01234567";

}  // namespace

void Client::Expect(const std::string& what, const grpc::Status& status, Codes codes) {
  const Codes transient = {Code::ABORTED, Code::UNAVAILABLE, Code::CANCELLED,
                           Code::DEADLINE_EXCEEDED, Code::UNKNOWN};
  const auto has = [&status](Codes all) {
    return std::find(all.begin(), all.end(), status.error_code()) != all.end();
  };
  world_.Count("bad calls");
  if (has(codes)) world_.Count("bad calls answered");
  if (has(codes) || has(transient)) return;
  Violate(what + " was answered " + std::to_string(status.error_code()) + ": " +
          status.error_message());
}

void Client::ActBadly() {
  switch (Dice(7)) {
    case 0:
    case 1:
      return CreateBadly();
    case 2:
      return NameBadly();
    case 3:
      return PlaceBadly();
    case 4:
      return ListBadly();
    case 5:
      return SnapshotBadly();
    default:
      return UseTheDead();
  }
}

void Client::CreateBadly() {
  using Request = ::csi::v1::CreateVolumeRequest;
  const auto capability = [](Request& request) -> ::csi::v1::VolumeCapability& {
    return *request.mutable_volume_capabilities(0);
  };
  const std::vector<std::pair<const char*, std::function<void(Request&)>>> kinds = {
      {"no name", [](Request& r) { r.clear_name(); }},
      {"a long name", [](Request& r) { r.set_name(std::string(kLongText, 'n')); }},
      {"a control character", [](Request& r) { r.set_name(std::string("a\x01z")); }},
      {"no capability", [](Request& r) { r.clear_volume_capabilities(); }},
      {"no mode", [&](Request& r) { capability(r).clear_access_mode(); }},
      {"an unknown mode",
       [&](Request& r) {
         capability(r).mutable_access_mode()->set_mode(static_cast<Mode::Mode>(kUnknownMode));
       }},
      {"several nodes",
       [&](Request& r) {
         capability(r).mutable_access_mode()->set_mode(Mode::MULTI_NODE_MULTI_WRITER);
       }},
      {"a filesystem", [&](Request& r) { capability(r).mutable_mount()->set_fs_type("ntfs"); }},
      {"a flag", [&](Request& r) { capability(r).mutable_mount()->add_mount_flags("loop=/x"); }},
      {"bytes", [](Request& r) { r.mutable_capacity_range()->set_required_bytes(-1); }},
      {"a limit", [](Request& r) { r.mutable_capacity_range()->set_limit_bytes(4096); }},
      {"a parameter", [](Request& r) { (*r.mutable_parameters())["mkfsOptions"] = "-F /x"; }},
      {"a large map",
       [](Request& r) { (*r.mutable_parameters())["a"] = std::string(kLongPath, 'v'); }},
      {"a source",
       [](Request& r) { r.mutable_volume_content_source()->mutable_volume()->set_volume_id(""); }}};
  const auto& [what, spoil] = kinds[Dice(kinds.size())];
  Request request;
  request.set_name(Name("bad"));
  request.mutable_capacity_range()->set_required_bytes(32 * kMiB);
  *request.add_volume_capabilities() = CapabilityOf(VolumeKind::kExt4);
  spoil(request);
  ::csi::v1::CreateVolumeResponse response;
  Expect(std::string("CreateVolume with ") + what,
         Send<Controller>(&Controller::Stub::CreateVolume, request, &response),
         {Code::INVALID_ARGUMENT});
}

// Ids that are none, and one of a pool that another node has.
void Client::NameBadly() {
  const std::vector<std::string> ids = {"../../../etc",
                                        "v-../..",
                                        "v-00000000-0123456789abcdef0123456/",
                                        "V-00000000-0123456789ABCDEF01234567",
                                        std::string(1, '\n'),
                                        std::string(kLongText, 'x'),
                                        kOfAnotherPool,
                                        OneIn(20) ? std::string(kHugeText, 'x') : "v"};
  const std::string& id = ids[Dice(ids.size())];
  const bool is_other = id == kOfAnotherPool;
  const std::string what = " of the id " + id.substr(0, kLongText);
  const int slot = static_cast<int>(Dice(world_.volume_slots()));
  if (OneIn(2)) {
    ::csi::v1::DeleteVolumeRequest request;
    request.set_volume_id(id);
    ::csi::v1::DeleteVolumeResponse response;
    const grpc::Status status =
        Send<Controller>(&Controller::Stub::DeleteVolume, request, &response);
    if (is_other) return Expect("DeleteVolume" + what, status, {Code::FAILED_PRECONDITION});
    // To delete what there is not is done.
    return Expect("DeleteVolume" + what, status,
                  {Code::OK, Code::INVALID_ARGUMENT, Code::RESOURCE_EXHAUSTED});
  }
  ::csi::v1::NodeStageVolumeRequest request;
  request.set_volume_id(id);
  request.set_staging_target_path(places_.Staging(slot));
  *request.mutable_volume_capability() = CapabilityOf(VolumeKind::kExt4);
  ::csi::v1::NodeStageVolumeResponse response;
  const grpc::Status status = Send<Node>(&Node::Stub::NodeStageVolume, request, &response);
  if (is_other) return Expect("NodeStageVolume" + what, status, {Code::FAILED_PRECONDITION});
  Expect("NodeStageVolume" + what, status,
         {Code::NOT_FOUND, Code::INVALID_ARGUMENT, Code::RESOURCE_EXHAUSTED});
}

// Paths of a volume that may well be there.
void Client::PlaceBadly() {
  const size_t slot = Dice(world_.volume_slots());
  const SharedVolume volume = world_.VolumeAt(slot).volume;
  if (!volume) return NameBadly();
  const std::vector<std::string> paths = {places_.elsewhere,
                                          places_.co,
                                          places_.co + "/../elsewhere",
                                          places_.Staging(volume->slot) + "/../../elsewhere",
                                          "relative/path",
                                          "/",
                                          "",
                                          places_.co + "/" + std::string(1, '\0') + "x",
                                          places_.co + "/" + std::string(kLongPath, 'p')};
  const std::string& path = paths[Dice(paths.size())];
  const std::string what = " at the path " + path.substr(0, kLongText);
  const Codes refused = {Code::INVALID_ARGUMENT};
  if (OneIn(3)) {
    ::csi::v1::NodeStageVolumeRequest request;
    request.set_volume_id(volume->id);
    request.set_staging_target_path(path);
    *request.mutable_volume_capability() = CapabilityOf(volume->plan->kind);
    ::csi::v1::NodeStageVolumeResponse response;
    return Expect("NodeStageVolume" + what,
                  Send<Node>(&Node::Stub::NodeStageVolume, request, &response), refused);
  }
  if (OneIn(2)) {
    ::csi::v1::NodePublishVolumeRequest request;
    request.set_volume_id(volume->id);
    request.set_staging_target_path(places_.Staging(volume->slot));
    request.set_target_path(path);
    *request.mutable_volume_capability() = CapabilityOf(volume->plan->kind);
    ::csi::v1::NodePublishVolumeResponse response;
    return Expect("NodePublishVolume" + what,
                  Send<Node>(&Node::Stub::NodePublishVolume, request, &response), refused);
  }
  ::csi::v1::NodeUnpublishVolumeRequest request;
  request.set_volume_id(volume->id);
  request.set_target_path(path);
  ::csi::v1::NodeUnpublishVolumeResponse response;
  Expect("NodeUnpublishVolume" + what,
         Send<Node>(&Node::Stub::NodeUnpublishVolume, request, &response), refused);
}

void Client::ListBadly() {
  ::csi::v1::ListVolumesRequest request;
  ::csi::v1::ListVolumesResponse response;
  const bool is_negative = OneIn(3);
  if (is_negative) {
    request.set_max_entries(-1);
  } else {
    request.set_starting_token(OneIn(2) ? "volumes/../../etc" : "7");
  }
  const grpc::Status status = Send<Controller>(&Controller::Stub::ListVolumes, request, &response);
  if (is_negative) return Expect("ListVolumes of -1", status, {Code::INVALID_ARGUMENT});
  Expect("ListVolumes with a token of nobody", status, {Code::ABORTED});
}

void Client::SnapshotBadly() {
  const SharedVolume volume = VolumeWithContent();
  if (volume && OneIn(2)) {
    ::csi::v1::CreateVolumeGroupSnapshotRequest request;
    request.set_name(Name("bad"));
    for (const int times : {1, 2}) {
      if (times == 1 || OneIn(2)) request.add_source_volume_ids(volume->id);
    }
    // Twice the same, or a name that is too long.
    if (request.source_volume_ids_size() == 1) request.set_name(std::string(kLongText, 'g'));
    ::csi::v1::CreateVolumeGroupSnapshotResponse response;
    return Expect("CreateVolumeGroupSnapshot with a volume twice or a long name",
                  Send<GroupController>(&GroupController::Stub::CreateVolumeGroupSnapshot, request,
                                        &response),
                  {Code::INVALID_ARGUMENT});
  }
  ::csi::v1::CreateSnapshotRequest request;
  request.set_name(Name("bad"));
  request.set_source_volume_id(OneIn(2) ? "../../etc" : std::string(kLongText, 'v'));
  ::csi::v1::CreateSnapshotResponse response;
  Expect("CreateSnapshot of no volume",
         Send<Controller>(&Controller::Stub::CreateSnapshot, request, &response),
         {Code::NOT_FOUND, Code::INVALID_ARGUMENT});
}

// What was deleted stays so: nothing is made of it, and nothing is done with it.
void Client::UseTheDead() {
  const std::vector<SharedVolume> volumes = world_.volumes();
  if (volumes.empty()) return ListBadly();
  const SharedVolume volume = volumes[Dice(volumes.size())];
  if (!world_.IsKnownGone(volume->exists)) return ListBadly();
  switch (Dice(5)) {
    case 0:
      return (void)Stage(volume, places_.Staging(volume->slot));
    case 1:
      return (void)Publish(volume, places_.Target(volume->slot));
    case 2:
      return (void)Unstage(volume, places_.Staging(volume->slot));
    case 3:
      return (void)Unpublish(volume, places_.Target(volume->slot));
    default:
      break;
  }
  ::csi::v1::CreateVolumeRequest request;
  request.set_name(Name("of the dead"));
  request.mutable_capacity_range()->set_required_bytes(volume->plan->bytes + kMostGrowth);
  *request.add_volume_capabilities() = CapabilityOf(volume->plan->kind);
  auto& source = *request.mutable_volume_content_source();
  source.mutable_volume()->set_volume_id(volume->id);
  for (const SharedSnapshot& snapshot : world_.snapshots()) {
    if (snapshot->of != volume || !world_.IsKnownGone(snapshot->exists)) continue;
    source.mutable_snapshot()->set_snapshot_id(snapshot->id);
  }
  ::csi::v1::CreateVolumeResponse response;
  Expect("CreateVolume of what was deleted",
         Send<Controller>(&Controller::Stub::CreateVolume, request, &response),
         {Code::NOT_FOUND, Code::RESOURCE_EXHAUSTED});
}

}  // namespace volumed::random_clients
