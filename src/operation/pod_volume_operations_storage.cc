// PodVolumeOperations: the operations on persistent volumes that are of no pod: expanding,
// forgetting, reclaiming, provisioning.
#include <memory>
#include <string>
#include <utility>

#include "operation/expand_operations.h"
#include "operation/pod_volume_operations.h"
#include "operation/provision_operations.h"
#include "operation/reclaim_operations.h"

namespace volumed {
namespace {

using Failure = std::optional<OperationFailure>;

constexpr const char* kForgetStorageOperation = "forget_storage";      // ours
constexpr const char* kAcceptDirectoryOperation = "accept_directory";  // ours

}  // namespace

OperationKey ExpandKey(const UniqueVolumeName& volume) {
  return OperationKey(UniqueVolumeName("expand/" + volume.str()));
}

StartResult PodVolumeOperations::ExpandVolume(
    ExpandRequest request, std::function<void(OperationOutcome<ExpandedVolume>)> done) {
  const Result<VolumePlugin*> plugin = parts_.plugins.FindPluginBySpec(request.spec);
  OperationExecutor::Operation operation{
      .key = ExpandKey(request.volume),
      .name = kExpandVolumeOperation,
      .plugin_name = plugin.ok() ? (*plugin)->GetPluginName() : std::string(),
      .pod_display_name = "",
      .device = request.volume,
      .use = DeviceUse::kExclusive};
  auto result = std::make_shared<ExpandedVolume>();
  const ExpansionAudience audience{request.pods, request.claim};
  const SpecName spec = request.spec.name();
  return executor_.Start(
      std::move(operation),
      [parts = parts_, request = std::move(request), result](OperationProgress& progress) {
        return RunExpand(parts.ForDevices(), request, *result, progress);
      },
      [&host = parts_.host, audience, spec, result,
       done = std::move(done)](const Failure& failure) {
        if (failure) {
          TellOfExpansion(host.events, audience, EventType::kWarning, kVolumeResizeFailed,
                          ExpansionFailedText(spec, failure->error));
        } else {
          TellOfExpansion(host.events, audience, EventType::kNormal, kFileSystemResizeSuccessful,
                          ExpansionDoneText(spec, host.node.GetNodeName(), result->note));
        }
        done(OutcomeOf(failure, *result));
      });
}

StartResult PodVolumeOperations::ForgetDevice(UniqueVolumeName device,
                                              std::function<void(OperationOutcome<Unit>)> done) {
  OperationExecutor::Operation operation{.key = OperationKey(device),
                                         .name = kForgetDeviceOperation,
                                         .plugin_name = "",
                                         .pod_display_name = "",
                                         .device = device,
                                         .use = DeviceUse::kExclusive};
  return executor_.Start(
      std::move(operation),
      [parts = parts_, device](OperationProgress& progress) -> Failure {
        progress.EnterStep("RemoveRecord");
        const Status forgotten = parts.devices.Forget(device);
        if (forgotten.ok()) return std::nullopt;
        return OperationFailure{kForgetDeviceOperation, "RemoveRecord", forgotten.error()};
      },
      [done = std::move(done)](const Failure& failure) { done(OutcomeOf(failure, Unit())); });
}

StartResult PodVolumeOperations::ForgetRecords(const std::string& key,
                                               std::function<Status(StorageGuard&)> forget,
                                               std::function<void(OperationOutcome<Unit>)> done) {
  OperationExecutor::Operation operation{.key = OperationKey(UniqueVolumeName(key)),
                                         .name = kForgetStorageOperation,
                                         .plugin_name = "",
                                         .pod_display_name = ""};
  return executor_.Start(
      std::move(operation),
      [parts = parts_, forget = std::move(forget)](OperationProgress& progress) -> Failure {
        progress.EnterStep("RemoveRecord");
        const Status forgotten = forget(parts.storage);
        if (forgotten.ok()) return std::nullopt;
        return OperationFailure{kForgetStorageOperation, "RemoveRecord", forgotten.error()};
      },
      [done = std::move(done)](const Failure& failure) { done(OutcomeOf(failure, Unit())); });
}

StartResult PodVolumeOperations::ForgetStorage(std::string volume_name,
                                               std::function<void(OperationOutcome<Unit>)> done) {
  const std::string key = "storage/" + volume_name;
  return ForgetRecords(
      key, [volume_name](StorageGuard& guard) { return guard.Forget(volume_name); },
      std::move(done));
}

StartResult PodVolumeOperations::ForgetStorageBut(
    std::set<std::string> volume_names, std::function<void(OperationOutcome<Unit>)> done) {
  return ForgetRecords(
      "storage",
      [volume_names = std::move(volume_names)](StorageGuard& guard) {
        return guard.ForgetBut(volume_names);
      },
      std::move(done));
}

StartResult PodVolumeOperations::AcceptDirectory(
    const std::string& volume_name, std::function<void(OperationOutcome<AcceptedDirectory>)> done) {
  const OperationKey key(UniqueVolumeName("accept/" + volume_name));
  executor_.ResetBackoff(key);  // a person asks
  OperationExecutor::Operation operation{
      .key = key, .name = kAcceptDirectoryOperation, .plugin_name = "", .pod_display_name = ""};
  const auto accepted = std::make_shared<AcceptedDirectory>();
  return executor_.Start(
      std::move(operation),
      [parts = parts_, volume_name, accepted](OperationProgress& progress) -> Failure {
        progress.EnterStep("Accept");
        CallOptions call;
        call.deadline = Deadline::After(parts.host.clock, parts.settings.set_up);
        Result<AcceptedDirectory> said = parts.storage.AcceptDirectory(volume_name, call);
        if (!said.ok()) return OperationFailure{kAcceptDirectoryOperation, "Accept", said.error()};
        *accepted = std::move(said).value();
        return std::nullopt;
      },
      [done = std::move(done), accepted](const Failure& failure) {
        done(OutcomeOf(failure, *accepted));
      });
}

OperationKey ReclaimKey(const std::string& volume_name) {
  return OperationKey(UniqueVolumeName("reclaim/" + volume_name));
}

StartResult PodVolumeOperations::ReclaimVolume(ReclaimRequest request,
                                               std::function<void(OperationOutcome<Unit>)> done) {
  const VolumeSpec spec = VolumeSpec::FromPersistentVolume(*request.volume, false);
  const Result<VolumePlugin*> plugin = parts_.plugins.FindPluginBySpec(spec);
  OperationExecutor::Operation operation{
      .key = ReclaimKey(request.volume->metadata.name),
      .name = ReclaimOperationName(request.action),
      .plugin_name = plugin.ok() ? (*plugin)->GetPluginName() : std::string(),
      .pod_display_name = ""};
  return executor_.Start(
      std::move(operation),
      [parts = parts_, request = std::move(request), spec](OperationProgress& progress) {
        return RunReclaim({parts.plugins, parts.host, parts.settings, parts.logger, parts.storage},
                          request, spec, progress);
      },
      [done = std::move(done)](const Failure& failure) { done(OutcomeOf(failure, Unit())); });
}

OperationKey ProvisionKey(const std::string& volume_name) {
  return OperationKey(UniqueVolumeName("provision/" + volume_name));
}

StartResult PodVolumeOperations::ProvisionVolume(
    ProvisionRequest request, std::function<void(OperationOutcome<PersistentVolume>)> done) {
  OperationExecutor::Operation operation{.key = ProvisionKey(request.planned.metadata.name),
                                         .name = kProvisionOperation,
                                         .plugin_name = request.plugin_name,
                                         .pod_display_name = ""};
  const auto made = std::make_shared<PersistentVolume>();
  return executor_.Start(
      std::move(operation),
      [parts = parts_, request = std::move(request), made](OperationProgress& progress) -> Failure {
        Result<PersistentVolume> volume = RunProvision(
            {parts.plugins, parts.host, parts.settings, parts.storage}, request, progress);
        if (!volume.ok()) return OperationFailure{kProvisionOperation, "Provision", volume.error()};
        *made = std::move(volume).value();
        return std::nullopt;
      },
      [done = std::move(done), made](const Failure& failure) { done(OutcomeOf(failure, *made)); });
}

StartResult PodVolumeOperations::UndoProvision(ProvisionRequest request,
                                               std::function<void(OperationOutcome<Unit>)> done) {
  OperationExecutor::Operation operation{.key = ProvisionKey(request.planned.metadata.name),
                                         .name = kUndoProvisionOperation,
                                         .plugin_name = request.plugin_name,
                                         .pod_display_name = ""};
  return executor_.Start(
      std::move(operation),
      [parts = parts_, request = std::move(request)](OperationProgress& progress) -> Failure {
        const Status undone = RunUndoProvision(
            {parts.plugins, parts.host, parts.settings, parts.storage}, request, progress);
        if (undone.ok()) return std::nullopt;
        return OperationFailure{kUndoProvisionOperation, "Undo", undone.error()};
      },
      [done = std::move(done)](const Failure& failure) { done(OutcomeOf(failure, Unit())); });
}

}  // namespace volumed
