#include "csi/csi_call_by_hand.h"

#include <array>
#include <utility>
#include <vector>

#include "csi/csi_places.h"
#include "csi/rpc/csi_json.h"
#include "csi/rpc/csi_methods.h"
#include "operation/operation_executor.h"
#include "operation/operation_parts.h"
#include "operation/storage_guard.h"
#include "volume/driver_domain.h"

namespace volumed {
namespace {

using Failure = std::optional<OperationFailure>;

// Where on the node a driver is to do something.
constexpr std::array kPathFields{"target_path", "staging_target_path", "volume_path"};

// Of a volume that a node may have; the handle of anything else is none.
std::optional<CsiVolumeId> VolumeOf(const CsiCommandRecord& command) {
  const CsiMethod* const method = FindCsiMethod(command.method);
  if (method == nullptr || method->key_field != "volume_id") return std::nullopt;
  return CsiVolumeId{command.driver, command.about};
}

std::string KeyText(const CsiCommandRecord& command) {
  return EncodeRecord(command).key;  // the row's, which says what the call is about
}

// An inline volume has no device, and its handle is made of its pod and name.
std::string WhoHasInline(const VolumeRecordKeeper& volumes, const CsiVolumeId& volume) {
  std::string who;
  const std::string domain = DriverDomain(volume.driver);
  volumes.HasAny([&](const PodVolumeRecord& record) {
    const bool is_it = record.fault_domain == domain && record.unique_name.empty() &&
                       CsiInlineHandle(record.key.pod, record.key.spec) == volume.handle;
    if (is_it) who = "pod " + record.pod_namespace + "/" + record.pod_name;
    return is_it;
  });
  return who;
}

StorageHolder HolderOf(const CsiCommandRecord& command) {
  StorageHolder holder;
  holder.id = "command/" + KeyText(command);
  holder.volume = holder.id;
  // Nobody has it beside: what a call by hand changes, no pod and no delete may meet.
  holder.use = StorageUse::kRaw;
  holder.text = command.method + " by hand";
  return holder;
}

// A driver may take away what is at the path, whatever volume it is told of.
Status CheckPathsUnused(const OperationParts& parts, const google::protobuf::Message& request,
                        const CallOptions& call) {
  for (const char* name : kPathFields) {
    const auto* const field = request.GetDescriptor()->FindFieldByName(name);
    if (field == nullptr) continue;
    const std::string path = request.GetReflection()->GetString(request, field);
    if (path.empty()) continue;
    Result<std::string> who = WhoHasPlace(parts, path, call);
    if (!who.ok()) return who.error().With(name);
    if (who->empty()) continue;
    return Error::NotApplied(Code::kFailedPrecondition,
                             std::string(name) + " " + path + " is in use: " + *who);
  }
  return OkStatus();
}

Status CheckVolumeUnused(const OperationParts& parts, const CsiVolumeId& volume) {
  const std::string who = WhoHasCsiVolume(parts, volume);
  if (who.empty()) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition, "volume " + volume.handle +
                                                          " of CSI driver " + volume.driver +
                                                          " is in use: " + who + " has it");
}

}  // namespace

std::string WhoHasCsiVolume(const OperationParts& parts, const CsiVolumeId& volume) {
  const UniqueVolumeName device = CsiUniqueName(volume.driver, volume.handle);
  const std::vector<PodVolumeRecord> pods = parts.volumes->FindOfDevice(device);
  if (!pods.empty()) {
    return "pod " + pods.front().pod_namespace + "/" + pods.front().pod_name;
  }
  const std::optional<DeviceRecord> record = parts.devices.Find(device);
  if (record && !IsGone(*record)) {
    return "this node, for volume " + record->spec.str() + ", whose device is " +
           std::string(VolumeStateName(record->state)) + ",";
  }
  return WhoHasInline(*parts.volumes, volume);
}

CallByHand::CallByHand(CsiCommands& of_commands, std::shared_ptr<CsiDriver> of_driver,
                       CsiCommandRecord of_command,
                       std::shared_ptr<const google::protobuf::Message> message, Deadline until)
    : commands(&of_commands),
      driver(std::move(of_driver)),
      command(std::move(of_command)),
      volume(VolumeOf(command)),
      request(std::move(message)),
      deadline(until) {}

OperationKey CallByHand::key() const {
  return OperationKey(UniqueVolumeName("csi-command/" + KeyText(command)));
}

OperationTraits CallByHand::Traits() const {
  OperationTraits traits{.key = key(),
                         .name = kCallByHandOperation,
                         .plugin_name = kCsiPluginName,
                         .pod_display_name = ""};
  if (volume) {
    traits.device = CsiUniqueName(volume->driver, volume->handle);
    traits.use = DeviceUse::kExclusive;
  }
  traits.domain = {DriverDomain(command.driver), ""};
  return traits;
}

Failure CallByHand::Run(const OperationParts& parts, OperationProgress& progress,
                        std::string& answer) const {
  const auto failed = [](const char* step, const Error& error) {
    return OperationFailure{kCallByHandOperation, step, error};
  };
  progress.EnterStep("CheckUnused");
  // First it is known to all others, and only then they are looked for: so of two that come at once
  // one sees the other.
  if (const Status begun = commands->Begin(command); !begun.ok()) {
    return failed("Begin", begun.error());
  }
  const StorageHolder holder = HolderOf(command);
  const char* step = "CheckUnused";
  const auto call = [&]() -> Status {
    CallOptions look;
    look.deadline = deadline;
    if (volume) RETURN_IF_ERROR(CheckVolumeUnused(parts, *volume));
    RETURN_IF_ERROR(CheckPathsUnused(parts, *request, look));
    if (volume) {
      const StorageName name{.path = volume->handle, .server = "", .driver = volume->driver};
      RETURN_IF_ERROR(parts.storage.Take(holder, name, look));
    }
    progress.EnterStep(step = "RecordIntent");
    RETURN_IF_ERROR(commands->Write(command));
    progress.EnterStep(step = "Call");
    ASSIGN_OR_RETURN(const auto message, driver->Perform(*request, {.deadline = deadline}));
    // It has succeeded, whatever can be shown of it.
    Result<std::string> json = CsiShownJsonOf(*message, CsiSecrets(*request, driver->secrets()));
    answer = json.ok() ? *std::move(json) : "{}";
    return OkStatus();
  };
  const Status done = call();
  commands->End(command, done);
  // What is open is kept from others by the commands themselves.
  (void)parts.storage.Release(holder.id);
  if (done.ok()) return std::nullopt;
  return failed(step, done.error());
}

}  // namespace volumed
