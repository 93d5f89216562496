// The call of the control API that makes PersistentVolumes of storage that is there already.
#include <string>
#include <utility>
#include <variant>

#include "agent/control_service.h"
#include "agent/snapshot_backend.h"
#include "base/printable_text.h"
#include "kube/decode.h"

namespace volumed {
namespace {

using ImportCall = UnaryCall<v1::ImportVolumeRequest, v1::ImportVolumeResponse>;

bool IsOrLiesIn(const std::string& path, const std::string& directory) {
  return path == directory || path.starts_with(directory + "/");
}

// Whether the PersistentVolume has what the source of an import names, or something in it.
bool NamesImported(const PersistentVolume& volume, const std::string& source) {
  if (const auto* local = std::get_if<LocalVolumeSource>(&volume.spec.source)) {
    return IsOrLiesIn(local->path, source);
  }
  if (const auto* host_path = std::get_if<HostPathVolumeSource>(&volume.spec.source)) {
    return IsOrLiesIn(host_path->path, source);
  }
  const auto* csi = std::get_if<CsiPersistentVolumeSource>(&volume.spec.source);
  return csi != nullptr && csi->driver + "^" + csi->volume_handle == source;
}

// Errors, not applied: FailedPrecondition if a PersistentVolume has it already, Unavailable while
// not every source was looked into, which may have one.
Status CheckImportIsFree(const ControlBackend& backend, const v1::ImportVolumeRequest& request) {
  for (const auto& volume : backend.catalog.PersistentVolumes()) {
    if (!NamesImported(*volume, request.source())) continue;
    return Error::NotApplied(Code::kFailedPrecondition,
                             AnswerText(request.source()) +
                                 ", or something in it, is that of PersistentVolume " +
                                 volume->metadata.name);
  }
  if (!request.yes()) return OkStatus();
  const std::string why = backend.manager.WhyUnseen();
  return why.empty() ? OkStatus() : Status(Error::NotApplied(Code::kUnavailable, why));
}

void AnswerImport(const ImportCall& call, const ImportPlan& plan) {
  v1::ImportVolumeResponse& response = *call.response;
  response.set_kind(std::string(ImportKindName(plan.kind)));
  response.set_deed(AnswerText(plan.deed));
  for (const std::string& note : plan.notes) response.add_notes(AnswerText(note));
  response.set_to_do(plan.wish.has_value() && !call.request.yes());
  response.set_volume(plan.volume);
  response.set_size_bytes(plan.size_bytes);
  response.set_volume_mode(plan.is_block ? "Block" : "Filesystem");
  response.set_fs_type(AnswerText(plan.filesystem.type));
  response.set_fs_uuid(AnswerText(plan.filesystem.uuid));
  response.set_manifest(EncodeObjectJson(Object(plan.object)));
  call.Finish(OkStatus());
}

void HandleImportVolume(const ImportCall& call) {
  call.backend.scheduler.Post([call] {
    if (call.backend.snapshots == nullptr) {
      return call.Finish(Error::NotApplied(Code::kUnavailable, "this agent has no pools"));
    }
    if (const Status free = CheckImportIsFree(call.backend, call.request); !free.ok()) {
      return call.Finish(free);
    }
    SnapshotBackend& snapshots = *call.backend.snapshots;
    ImportPoolVolume import(snapshots.pools,
                            {.source = call.request.source(),
                             .pool = call.request.pool(),
                             .pv_name = call.request.pv_name(),
                             .size_bytes = call.request.size_bytes()},
                            call.request.yes());
    // What it has waited for is over: a person asks.
    snapshots.operations.ResetBackoff(import.key());
    const StartResult started = snapshots.operations.Start(
        std::move(import), VolumeOperations::Done<ImportPoolVolume>(
                               [call](const OperationOutcome<ImportPlan>& outcome) {
                                 if (outcome.failure) return call.Finish(outcome.failure->error);
                                 AnswerImport(call, *outcome.value);
                               }));
    if (started == StartResult::kStarted) return;
    call.Finish(Error::NotApplied(Code::kAborted,
                                  "it is just being looked at, or imported, for an earlier call"));
  });
}

}  // namespace

void AddImportCalls(ControlService& service) {
  service.Unary("ImportVolume", PeerRole::kOperate, HandleImportVolume);
}

}  // namespace volumed
