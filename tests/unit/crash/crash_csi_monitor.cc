// What a correct agent owes to the CSI driver and its volumes.
#include <optional>
#include <vector>

#include "base/strings.h"
#include "csi.pb.h"
#include "csi/csi_names.h"
#include "csi/rpc/csi_methods.h"
#include "operation/object_record.h"
#include "operation/recorded_volume.h"
#include "operation/volume_record.h"
#include "unit/crash/crash_csi.h"
#include "unit/crash/crash_world.h"

namespace volumed {
namespace {

using google::protobuf::Message;

constexpr const char* kStage = "NodeStageVolume";
constexpr const char* kUnstage = "NodeUnstageVolume";
constexpr const char* kPublish = "NodePublishVolume";
constexpr const char* kUnpublish = "NodeUnpublishVolume";
constexpr const char* kAttach = "ControllerPublishVolume";
constexpr const char* kDetach = "ControllerUnpublishVolume";

std::string InverseOf(const std::string& rpc) {
  for (const auto& [does, undoes] : {std::pair{kStage, kUnstage}, std::pair{kPublish, kUnpublish},
                                     std::pair{kAttach, kDetach}}) {
    if (rpc == does) return undoes;
    if (rpc == undoes) return does;
  }
  return rpc;
}

bool IsExpand(const std::string& rpc) { return rpc.find("Expand") != std::string::npos; }

// What became of a call for one pod's target says nothing of another's, and a growth has to do with
// none of the places. They are not made at one time all the same.
bool AreApart(const CsiTruth::Call& a, const CsiTruth::Call& b) {
  const auto is_of_pod = [](const std::string& rpc) {
    return rpc == kPublish || rpc == kUnpublish;
  };
  if (IsExpand(a.first) || IsExpand(b.first)) return true;
  return is_of_pod(a.first) && is_of_pod(b.first) && a.second != b.second;
}

std::string TextOf(const CsiAbout& about) {
  return about.call.first + " of " + about.handle + " " + about.call.second;
}

// ---- what the records say

std::optional<DeviceRecord> DeviceOf(const CrashWorld& world, const std::string& handle) {
  const UniqueVolumeName name = CsiUniqueName(kCrashCsiDriver, handle);
  const std::optional<Record> row = world.store->Find(kDeviceRecordKind, RecordKey(name));
  if (!row) return std::nullopt;
  const Result<DeviceRecord> record = DecodeDeviceRecord(*row);
  if (!record.ok()) return std::nullopt;
  return AfterRestart(*record, BootId(world.boot_id()));
}

std::string DeviceMustBe(const CrashWorld& world, const std::string& handle, VolumeState state) {
  const std::optional<DeviceRecord> record = DeviceOf(world, handle);
  if (!record) return "there is no record of the device";
  if (record->state == state) return "";
  return "the record of the device says " + std::string(VolumeStateName(record->state));
}

// Whose target it is, mounted or raw.
std::optional<PodVolumeKey> PodAt(const CrashWorld& world, const std::string& target) {
  const std::vector<std::string> names = Split(target.substr(1), '/');
  if (names.size() < 4) return std::nullopt;
  const std::string pods = world.paths.GetPodsDir().Display() + "/";
  if (target.starts_with(pods)) {
    const std::vector<std::string> below = Split(target.substr(pods.size()), '/');
    if (below.size() < 4) return std::nullopt;
    return PodVolumeKey{PodUid(below[0]), SpecName(below[3])};
  }
  return PodVolumeKey{PodUid(names.back()), SpecName(names[names.size() - 2])};
}

std::string PodMustBe(const CrashWorld& world, const PodVolumeKey& key,
                      const std::set<VolumeState>& states) {
  const std::optional<Record> row = world.store->Find(kPodVolumeRecordKind, RecordKey(key));
  if (!row) return "there is no record of the pod's volume";
  const Result<PodVolumeRecord> record = DecodePodVolumeRecord(*row);
  if (!record.ok()) return record.error().message();
  const VolumeState now = AfterRestart(*record, BootId(world.boot_id())).state;
  if (states.contains(now)) return "";
  return "the record of the pod's volume says " + std::string(VolumeStateName(now));
}

std::optional<ProvisionRecord> ProvisionOf(const CrashWorld& world, const std::string& name) {
  const std::optional<Record> row = world.store->Find(kProvisionRecordKind, name);
  if (!row) return std::nullopt;
  const Result<ProvisionRecord> record = DecodeProvisionRecord(*row);
  return record.ok() ? std::optional(*record) : std::nullopt;
}

// ---- the rules of each call; "" if it breaks none

bool HasContext(const CrashWorld& world, const std::string& handle,
                const google::protobuf::Map<std::string, std::string>& sent) {
  const auto answered = world.csi->publish_context.find(handle);
  if (answered == world.csi->publish_context.end()) return true;
  const auto found = sent.find("devicePath");
  return found != sent.end() && found->second == answered->second;
}

std::string BrokenStage(const CrashWorld& world, const CsiTruth::Volume& volume,
                        const ::csi::v1::NodeStageVolumeRequest& request) {
  if (world.csi->attaches && !volume.attached) return "it is not attached";
  if (!HasContext(world, request.volume_id(), request.publish_context())) {
    return "it lacks what attaching has answered";
  }
  const std::optional<DeviceRecord> record = DeviceOf(world, request.volume_id());
  if (record && record->staged != StagedState::kStaged) return "no record says that it is staged";
  return DeviceMustBe(world, request.volume_id(), VolumeState::kMountingDevice);
}

std::string BrokenUnstage(const CrashWorld& world, const CsiTruth::Volume& volume,
                          const ::csi::v1::NodeUnstageVolumeRequest& request) {
  for (const std::string& target : volume.published) return "it is published at " + target;
  return DeviceMustBe(world, request.volume_id(), VolumeState::kUnmountingDevice);
}

std::string BrokenPublish(const CrashWorld& world, const CsiTruth::Volume& volume,
                          const ::csi::v1::NodePublishVolumeRequest& request) {
  const std::string& target = request.target_path();
  const std::optional<PodVolumeKey> key = PodAt(world, target);
  if (!key) return target + " is no pod's";
  if (const std::string broken = PodMustBe(
          world, *key, {VolumeState::kSettingUp, VolumeState::kSetUp, VolumeState::kMapping});
      !broken.empty()) {
    return broken;
  }
  if (request.volume_id().starts_with("csi-")) return "";
  if (world.csi->attaches && !volume.attached) return "it is not attached";
  if (!HasContext(world, request.volume_id(), request.publish_context())) {
    return "it lacks what attaching has answered";
  }
  const std::string& staging = request.staging_target_path();
  if (!staging.empty() && !volume.staged.contains(staging)) return "it is not staged";
  if (staging.empty() && world.csi->stages && volume.staged.empty()) return "it is not staged";
  for (const std::string& other : volume.published) {
    if (volume.one_pod && other != target) return "it is another pod's alone, at " + other;
  }
  // A reboot has taken it from that pod, but it has a right to it still.
  const auto has = world.pods.find(volume.pod);
  if (has != world.pods.end() && has->second.is_protected() && volume.pod != key->pod.str()) {
    return "it is pod " + volume.pod + "'s alone";
  }
  return DeviceMustBe(world, request.volume_id(), VolumeState::kDeviceMounted);
}

std::string BrokenUnpublish(const CrashWorld& world,
                            const ::csi::v1::NodeUnpublishVolumeRequest& request) {
  const std::optional<PodVolumeKey> key = PodAt(world, request.target_path());
  if (!key) return request.target_path() + " is no pod's";
  const auto pod = world.pods.find(key->pod.str());
  if (pod != world.pods.end() && pod->second.is_protected()) {
    const auto has = pod->second.volumes.find(key->spec.str());
    const bool established = has != pod->second.volumes.end() && has->second.established;
    if (established) return "pod " + key->pod.str() + " has the volume";
  }
  return PodMustBe(world, *key, {VolumeState::kTearingDown, VolumeState::kUnmapping});
}

std::string BrokenAttach(const CrashWorld& world, const std::string& handle,
                         const std::string& node) {
  if (node != kCrashCsiNodeId) return "it is another node's";
  const std::optional<DeviceRecord> record = DeviceOf(world, handle);
  if (record && record->attach_way != AttachWay::kByController) return "no record says the way";
  return DeviceMustBe(world, handle, VolumeState::kAttaching);
}

std::string BrokenDetach(const CrashWorld& world, const CsiTruth::Volume& volume,
                         const std::string& handle, const std::string& node) {
  if (node != kCrashCsiNodeId) return "it is another node's";
  for (const std::string& target : volume.published) return "it is published at " + target;
  for (const std::string& place : volume.staged) return "it is staged at " + place;
  return DeviceMustBe(world, handle, VolumeState::kDetaching);
}

std::string BrokenCreate(const CrashWorld& world, const ::csi::v1::CreateVolumeRequest& request) {
  const std::optional<ProvisionRecord> record = ProvisionOf(world, request.name());
  if (!record) return "there is no record of the volume that is made";
  const bool made = record->state == ProvisionState::kProvisioned;
  return made ? "its record says that it was made" : "";
}

std::string BrokenDelete(const CrashWorld& world, const CsiTruth::Volume& volume) {
  for (const std::string& target : volume.published) return "it is published at " + target;
  for (const std::string& place : volume.staged) return "it is staged at " + place;
  if (volume.attached) return "it is attached";
  for (const auto& [uid, pod] : world.pods) {
    if (pod.wanted && pod.volumes.contains(volume.name)) return "pod " + uid + " wants it";
  }
  const std::optional<ProvisionRecord> record = ProvisionOf(world, volume.name);
  // What was made for a claim that is not wanted any more, and was never bound.
  if (!record || record->state == ProvisionState::kProvisioning) return "";
  const auto row = world.store->Find(kClaimBindingRecordKind, volume.name);
  if (!row) return "no binding of the volume is on record";
  const Result<ClaimBindingRecord> binding = DecodeClaimBindingRecord(*row);
  if (!binding.ok()) return binding.error().message();
  const BindingState state = binding->binding.state;
  const bool released = state == BindingState::kReleased || state == BindingState::kReclaimFailed;
  return released ? "" : "the volume is not released";
}

std::string BrokenExpand(const CrashWorld& world, const CsiAbout& about) {
  const std::optional<DeviceRecord> record = DeviceOf(world, about.handle);
  // Of a volume that no pod has only the claim says that it grows.
  if (about.call.first == "ControllerExpandVolume") return "";
  if (!record || record->target_bytes == 0) return "no target size is on record";
  return DeviceMustBe(world, about.handle, VolumeState::kExpanding);
}

template <typename Request>
const Request* As(const Message& request) {
  return request.GetDescriptor() == Request::descriptor() ? static_cast<const Request*>(&request)
                                                          : nullptr;
}

std::string BrokenRule(const CrashWorld& world, const Message& request, const CsiAbout& about) {
  using namespace ::csi::v1;  // NOLINT(google-build-using-namespace): the names of its requests
  const auto found = world.csi->volumes.find(about.handle);
  const CsiTruth::Volume volume =
      found == world.csi->volumes.end() ? CsiTruth::Volume() : found->second;
  if (const auto* asked = As<NodeStageVolumeRequest>(request)) {
    return BrokenStage(world, volume, *asked);
  }
  if (const auto* asked = As<NodeUnstageVolumeRequest>(request)) {
    return BrokenUnstage(world, volume, *asked);
  }
  if (const auto* asked = As<NodePublishVolumeRequest>(request)) {
    return BrokenPublish(world, volume, *asked);
  }
  if (const auto* asked = As<NodeUnpublishVolumeRequest>(request)) {
    return BrokenUnpublish(world, *asked);
  }
  if (As<ControllerPublishVolumeRequest>(request)) {
    return BrokenAttach(world, about.handle, about.call.second);
  }
  if (As<ControllerUnpublishVolumeRequest>(request)) {
    return BrokenDetach(world, volume, about.handle, about.call.second);
  }
  if (const auto* asked = As<CreateVolumeRequest>(request)) return BrokenCreate(world, *asked);
  if (As<DeleteVolumeRequest>(request)) return BrokenDelete(world, volume);
  return BrokenExpand(world, about);
}

// Besides the same call and its inverse. After a reboot a volume is attached and staged anew for
// one pod while another one, which had it before, leaves; and what was staged is unstaged before it
// is detached. Whatever became of the calls for one of them, the other one's are right.
bool MayFollow(const CsiTruth::Call& in_doubt, const CsiTruth::Call& next) {
  if (next.first == kUnpublish) return in_doubt.first == kAttach || in_doubt.first == kStage;
  if (next.first == kUnstage) return in_doubt.first == kAttach;
  return in_doubt.first == kUnpublish && (next.first == kAttach || next.first == kStage);
}

// What is staged is staged once more after a growth of unknown outcome, to see that its mount is
// there. That changes nothing, whatever became of another pod's publish.
bool IsStagedOnceMore(const CrashWorld& world, const CsiTruth::Call& in_doubt,
                      const CsiAbout& next) {
  const auto volume = world.csi->volumes.find(next.handle);
  return in_doubt.first == kPublish && next.call.first == kStage &&
         volume != world.csi->volumes.end() && volume->second.staged.contains(next.call.second);
}

// Of a volume one call is made at a time, whatever it is. After one of which nobody knows whether
// it was made, only the same or its inverse may come.
std::string BrokenSequence(const CrashWorld& world, const CsiAbout& about) {
  if (const auto others = world.csi->in_flight.find(about.handle);
      others != world.csi->in_flight.end() && !others->second.empty()) {
    return others->second.begin()->first + " of it is under way";
  }
  const auto open = world.csi->open.find(about.handle);
  if (open == world.csi->open.end()) return "";
  for (const CsiTruth::Call& call : open->second) {
    const bool is_same = call == about.call;
    const bool is_inverse = CsiTruth::Call{InverseOf(call.first), call.second} == about.call;
    const bool is_right = is_same || is_inverse || MayFollow(call, about.call) ||
                          AreApart(call, about.call) || IsStagedOnceMore(world, call, about);
    if (!is_right) {
      return "nobody knows whether " + call.first + " of it was made";
    }
  }
  return "";
}

}  // namespace

std::string PodOfCsiTarget(const CrashWorld& world, const std::string& target) {
  const std::optional<PodVolumeKey> key = PodAt(world, target);
  return key ? key->pod.str() : "";
}

CsiAbout AboutOf(const Message& request) {
  const auto text = [&](const std::string& name) -> std::string {
    const auto* field = request.GetDescriptor()->FindFieldByName(name);
    return field == nullptr ? "" : request.GetReflection()->GetString(request, field);
  };
  CsiAbout about;
  about.call.first = CsiMethodOf(request.GetDescriptor())->name;
  about.handle = text("volume_id");
  if (about.handle.empty()) about.handle = "vol-" + text("name");
  for (const char* name : {"target_path", "node_id"}) {
    if (about.call.second.empty()) about.call.second = text(name);
  }
  // A publish names the staging path too.
  if (about.call.second.empty() && !IsExpand(about.call.first)) {
    about.call.second = text("staging_target_path");
  }
  return about;
}

void CheckCsiCall(CrashWorld& world, const Message& request) {
  const CsiAbout about = AboutOf(request);
  std::string broken = BrokenSequence(world, about);
  if (broken.empty()) broken = BrokenRule(world, request, about);
  if (!broken.empty()) world.Violation(TextOf(about) + ": " + broken);
}

bool BeginCsiCall(CrashWorld& world, const CsiAbout& about) {
  world.csi->in_flight[about.handle].insert(about.call);
  return !world.csi->open[about.handle].insert(about.call).second;
}

void EndCsiCall(CrashWorld& world, const CsiAbout& about, bool was_open, CsiHeard heard) {
  std::multiset<CsiTruth::Call>& under_way = world.csi->in_flight[about.handle];
  if (const auto own = under_way.find(about.call); own != under_way.end()) under_way.erase(own);
  const auto open = world.csi->open.find(about.handle);
  if (open == world.csi->open.end()) return;
  if (heard == CsiHeard::kDone || (heard == CsiHeard::kRefused && !was_open)) {
    open->second.erase(about.call);
  }
  if (heard == CsiHeard::kDone) {
    open->second.erase({InverseOf(about.call.first), about.call.second});
  }
  if (open->second.empty()) world.csi->open.erase(open);
}

void CheckCsiVolume(CrashWorld& world, const std::string& pod, const std::string& spec,
                    const std::string& when) {
  const std::string path = world.VolumePath(pod, spec);
  const bool is_block = world.pods.at(pod).volumes.at(spec).is_block;
  for (const auto& [handle, volume] : world.csi->volumes) {
    for (const std::string& target : volume.published) {
      const auto key = PodAt(world, target);
      if (!key || key->pod.str() != pod || key->spec.str() != spec) continue;
      if (!is_block) return;  // its mount is looked for with those of others
      if (world.kernel->Find(path).type == FileType::kSymlink) return;
      return world.Violation("pod " + pod + " has no link to its device " + when);
    }
  }
  world.Violation("volume " + spec + " of pod " + pod + " is not published " + when);
}

void CheckCsiProvisioned(CrashWorld& world, const std::string& when) {
  std::map<std::string, std::string> of_claim;
  for (const auto& [handle, volume] : world.csi->volumes) {
    if (volume.name.empty()) continue;
    const std::optional<ProvisionRecord> record = ProvisionOf(world, volume.name);
    if (!record) {
      world.Violation("volume " + handle + " of the driver is nobody's " + when);
      continue;
    }
    const auto [first, is_first] = of_claim.emplace(record->claim_uid, handle);
    if (!is_first) world.Violation("a claim has " + first->second + " and " + handle + " " + when);
  }
}

std::string LeftOfCsi(const CrashWorld& world) {
  for (const auto& [handle, volume] : world.csi->volumes) {
    for (const std::string& target : volume.published) return handle + " published at " + target;
    for (const std::string& place : volume.staged) return handle + " staged at " + place;
    if (volume.attached && world.csi->attaches) return handle + " attached";
    const std::string place = CsiStageDir(world.paths, kCrashCsiDriver, handle).Display();
    if (world.kernel->Exists(place)) return "directory " + place;
  }
  for (const auto& [handle, calls] : world.csi->open) {
    for (const CsiTruth::Call& call : calls) {
      // No call takes a growth back.
      if (!IsExpand(call.first)) return "an open " + call.first + " of " + handle;
    }
  }
  return "";
}

void NoteCsi(CrashWorld& world, const std::string& handle, const std::string& what) {
  constexpr size_t kKept = 40;
  if (handle.empty()) {
    for (const auto& [each, volume] : world.csi->volumes) NoteCsi(world, each, what);
    return;
  }
  std::deque<std::string>& of_volume = world.csi->history[handle];
  of_volume.push_back(std::to_string(world.clock.WallUnixMillis()) + " " + what);
  if (of_volume.size() > kKept) of_volume.pop_front();
}

std::string CsiHistoryText(const CrashWorld& world) {
  std::string text;
  for (const auto& [handle, lines] : world.csi->history) {
    text += "what happened to " + handle + ":\n";
    for (const std::string& line : lines) text += "  " + line + "\n";
  }
  return text;
}

std::string CsiText(const CrashWorld& world) {
  if (!world.csi) return "";
  std::string text = "volumes of the driver:\n";
  for (const auto& [handle, volume] : world.csi->volumes) {
    text += handle + " " + volume.name + " " + std::to_string(volume.bytes) +
            (volume.attached ? " attached" : "");
    for (const std::string& place : volume.staged) text += " staged at " + place;
    for (const std::string& target : volume.published) text += " published at " + target;
    text += "\n";
  }
  return text;
}

}  // namespace volumed
