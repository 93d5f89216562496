#include "csi/csi_call_by_hand.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "csi/csi_places.h"
#include "csi/rpc/csi_json.h"
#include "csi/rpc/csi_methods.h"
#include "csi/rpc/csi_outcome.h"
#include "operation/operation_executor.h"
#include "operation/operation_parts.h"
#include "operation/storage_guard.h"
#include "volume/driver_domain.h"
#include "volume/storage_name.h"

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

bool Deletes(const CsiCommandRecord& command) { return command.method == kCsiDeleteVolume; }

StorageHolder HolderOf(const CsiCommandRecord& command) {
  StorageHolder holder;
  holder.id = "command/" + KeyText(command);
  holder.volume = holder.id;
  // Nobody has it beside: what a call by hand changes, no pod and no delete may meet; and what it
  // deletes, no PersistentVolume may even name.
  holder.use = Deletes(command) ? StorageUse::kReclaim : StorageUse::kRaw;
  holder.text = command.method + " by hand";
  return holder;
}

constexpr const char* kCallStep = "Call";

struct NamedPath {
  std::string field;
  std::string path;
};

std::vector<NamedPath> PathsOf(const google::protobuf::Message& request) {
  std::vector<NamedPath> paths;
  for (const char* name : kPathFields) {
    const auto* const field = request.GetDescriptor()->FindFieldByName(name);
    if (field == nullptr) continue;
    std::string path = request.GetReflection()->GetString(request, field);
    if (!path.empty()) paths.push_back({name, std::move(path)});
  }
  return paths;
}

bool Names(const google::protobuf::Message& request, const std::string& path) {
  const std::vector<NamedPath> paths = PathsOf(request);
  return std::any_of(paths.begin(), paths.end(),
                     [&path](const NamedPath& named) { return named.path == path; });
}

// A driver may take away what is at the path, whatever volume it is told of. After a call whose
// outcome is open, a start finds on no record what that call has mounted: it is to be taken back.
Status CheckPathsUnused(const OperationParts& parts, const google::protobuf::Message& request,
                        bool is_open, const CallOptions& call) {
  const std::vector<NamedPath> paths = PathsOf(request);
  if (paths.empty()) return OkStatus();
  ASSIGN_OR_RETURN(MountListing table, parts.host.kernel.Call(ListMounts{}, call));
  const MountSnapshot mounts(std::move(table.mounts));
  std::vector<std::string> own;
  for (const NamedPath& named : paths) {
    if (is_open) own.push_back(named.path);
  }
  for (const NamedPath& named : paths) {
    Result<std::string> who = WhoHasPlace(parts, mounts, named.path, call, own);
    if (!who.ok()) return who.error().With(named.field);
    if (who->empty()) continue;
    return Error::NotApplied(Code::kFailedPrecondition,
                             named.field + " " + named.path + " is in use: " + *who);
  }
  return OkStatus();
}

Error InUse(const CsiVolumeId& volume, const std::string& who) {
  return Error::NotApplied(
      Code::kFailedPrecondition,
      "volume " + volume.handle + " of CSI driver " + volume.driver + " is in use: " + who);
}

StorageName StorageOf(const CsiVolumeId& volume) {
  return {.path = volume.handle, .server = "", .driver = volume.driver};
}

// After lost records a pod may have the volume still: its mount alone tells, and perhaps by no more
// than the name of a PersistentVolume.
Status CheckVolumeUnused(const OperationParts& parts, const CallByHand& command, bool is_open,
                         const CallOptions& call) {
  const CsiVolumeId& volume = *command.volume;
  const std::string who = WhoHasCsiVolume(parts, volume);
  if (!who.empty()) return InUse(volume, who + " has it");
  std::set<std::string> names = parts.storage.NamedBy(StorageOf(volume));
  if (Deletes(command.command) && !names.empty()) {
    return InUse(volume, "persistent volume " + *names.begin() + " has it");
  }
  names.insert("");
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const std::vector<UnrecordedMounts::Mounted> mounted,
                     FindUnrecorded(*parts.unrecorded, parts.host, volume, SpecName(name), call));
    for (const UnrecordedMounts::Mounted& mount : mounted) {
      const bool is_its_own = is_open && Names(*command.request, mount.mount_point);
      if (!is_its_own) return InUse(volume, UnrecordedMounts::Describe(mount));
    }
  }
  return OkStatus();
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

StorageGuard::Deletions OpenDeletionsOf(const CsiCommands& commands) {
  return [&commands] {
    std::vector<StorageGuard::Deletion> deletions;
    for (auto& [volume, text] : commands.OpenDeletions()) {
      deletions.push_back({StorageOf(volume), std::move(text)});
    }
    return deletions;
  };
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
                         .plugin_name = CsiFullPluginName(command.driver),
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
  const bool is_open = commands->IsOpen(command);
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
    if (volume) RETURN_IF_ERROR(CheckVolumeUnused(parts, *this, is_open, look));
    RETURN_IF_ERROR(CheckPathsUnused(parts, *request, is_open, look));
    // Who came since the look above is found, and who comes from now on is kept out.
    if (volume) RETURN_IF_ERROR(parts.storage.Take(holder, StorageOf(*volume), look));
    progress.EnterStep(step = "RecordIntent");
    RETURN_IF_ERROR(commands->Write(command));
    progress.EnterStep(step = kCallStep);
    ASSIGN_OR_RETURN(const auto message, driver->Perform(*request, {.deadline = deadline}));
    // It has succeeded, whatever can be shown of it.
    Result<std::string> json = CsiShownJsonOf(*message, CsiSecrets(*request, driver->secrets()));
    answer = json.ok() ? *std::move(json) : "{}";
    return OkStatus();
  };
  const Status done = call();
  // What the agent itself refuses tells nothing of an earlier call.
  const bool was_sent = done.ok() || step == std::string_view(kCallStep);
  commands->End(command, was_sent ? done : Status(done.error().About(kCsiNeverSent)));
  // What is open is kept from others by the commands themselves.
  (void)parts.storage.Release(holder.id);
  if (done.ok()) return std::nullopt;
  return failed(step, done.error());
}

}  // namespace volumed
