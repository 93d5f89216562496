// PodVolumeOperations: the operations of the attach pipeline, and what pods hear of them.
#include <string>
#include <utility>

#include "operation/attach_operations.h"
#include "operation/pod_volume_operations.h"

namespace volumed {
namespace {

using Failure = std::optional<OperationFailure>;

// Source: kubernetes pkg/kubelet/events/event.go@v1.36.2 (FailedAttachVolume,
// SuccessfulAttachVolume).
constexpr const char* kFailedAttach = "FailedAttachVolume";
constexpr const char* kSuccessfulAttach = "SuccessfulAttachVolume";

// Source: operation_generator.go@v1.36.2 (GenerateAttachVolumeFunc).
void TellPods(HostEvents& events, const std::vector<PodUid>& pods, const SpecName& spec,
              const Failure& failure) {
  const std::string of = " for volume \"" + spec.str() + "\" ";
  for (const PodUid& pod : pods) {
    if (failure) {
      events.RecordPodEvent(
          pod, EventType::kWarning, kFailedAttach,
          "AttachVolume." + failure->step + " failed" + of + ": " + failure->error.message());
    } else {
      events.RecordPodEvent(pod, EventType::kNormal, kSuccessfulAttach,
                            "AttachVolume.Attach succeeded" + of);
    }
  }
}

}  // namespace

StartResult PodVolumeOperations::AttachVolume(
    AttachRequest request, std::function<void(OperationOutcome<AttachedVolume>)> done) {
  const Result<VolumePlugin*> plugin = parts_.plugins.FindPluginBySpec(request.spec);
  OperationExecutor::Operation operation{
      .key = OperationKey(request.device),
      .name = kAttachOperation,
      .plugin_name = plugin.ok() ? (*plugin)->GetPluginName() : std::string(),
      .pod_display_name = "",
      .device = request.device,
      .use = DeviceUse::kExclusive};
  auto result = std::make_shared<AttachedVolume>();
  const std::vector<PodUid> pods = request.pods;
  const SpecName spec = request.spec.name();
  return executor_.Start(
      std::move(operation),
      [parts = parts_, request = std::move(request), result](OperationProgress& progress) {
        return RunAttach(parts.ForDevices(), request, *result, progress);
      },
      [&events = parts_.host.events, pods, spec, result,
       done = std::move(done)](const Failure& failure) {
        TellPods(events, pods, spec, failure);
        done(OutcomeOf(failure, *result));
      });
}

StartResult PodVolumeOperations::DetachVolume(DetachRequest request,
                                              std::function<void(OperationOutcome<Unit>)> done) {
  OperationExecutor::Operation operation{.key = OperationKey(request.device),
                                         .name = kDetachOperation,
                                         .plugin_name = request.plugin_name,
                                         .pod_display_name = "",
                                         .device = request.device,
                                         .use = DeviceUse::kExclusive};
  return executor_.Start(
      std::move(operation),
      [parts = parts_, request = std::move(request)](OperationProgress& progress) {
        return RunDetach(parts.ForDevices(), request, progress);
      },
      [done = std::move(done)](const Failure& failure) { done(OutcomeOf(failure, Unit())); });
}

OperationKey VerifyAttachedKey(const std::string& plugin_name) {
  return OperationKey(UniqueVolumeName("verify/" + plugin_name));
}

StartResult PodVolumeOperations::VerifyVolumesAreAttached(
    VerifyAttachedRequest request,
    std::function<void(OperationOutcome<VerifiedAttachments>)> done) {
  OperationExecutor::Operation operation{
      .key = VerifyAttachedKey(request.plugin_name),
      .name = VerifyAttachedOperationName(parts_.plugins, request.plugin_name),
      .plugin_name = request.plugin_name,
      .pod_display_name = ""};
  auto result = std::make_shared<VerifiedAttachments>();
  return executor_.Start(
      std::move(operation),
      [parts = parts_, request = std::move(request), result](OperationProgress& progress) {
        return RunVerifyAttached(parts.ForDevices(), request, *result, progress);
      },
      [result, done = std::move(done)](const Failure& failure) {
        done(OutcomeOf(failure, *result));
      });
}

}  // namespace volumed
