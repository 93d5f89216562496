#include "snapshot/snapshot_operations.h"

#include "operation/call_options.h"
#include "os/answers.h"
#include "os/place_names.h"
#include "pool/pool_operations.h"
#include "pool/pool_plugin.h"

namespace volumed {
namespace {

constexpr const char* kCutOperation = "snapshot_cut";
constexpr const char* kCopyOperation = "snapshot_copy";
constexpr const char* kDiscardOperation = "snapshot_discard";
constexpr const char* kFindMountsStep = "FindMounts";
constexpr const char* kCutStep = "Cut";
constexpr const char* kCopyStep = "Copy";
constexpr const char* kDiscardStep = "Discard";

OperationKey SnapshotKey(const char* what, const std::string& id) {
  return OperationKey(UniqueVolumeName(std::string(what) + "/" + id));
}

// The path of the cut's pool, for lanes; "" if it is not known.
std::string DomainOfCut(const PoolVolumes& volumes, const std::string& cut) {
  const Result<PoolCutRecord> row = volumes.FindCut(cut);
  if (!row.ok()) return "";
  for (const std::unique_ptr<Pool>& pool : volumes.pools()) {
    if (pool->name() == row->pool) return pool->path();
  }
  return "";
}

// A copy of a listed device waits for that, and what is in the pool does not wait with it.
std::string DomainOfCopy(const PoolVolumes& volumes, const std::string& cut) {
  const Result<PoolCutRecord> row = volumes.FindCut(cut);
  const Result<PoolVolumeRecord> source = row.ok() ? volumes.Find(row->volume) : row.error();
  const bool is_of_device = source.ok() && source->backend == PoolBackendKind::kStatic;
  return is_of_device ? volumes.DomainOf(source->id) : DomainOfCut(volumes, cut);
}

OperationTraits SnapshotTraits(OperationKey key, const char* name, std::string domain) {
  // Without a pool that is known nothing but the records is touched.
  const bool on_own = domain.empty();
  return {.key = std::move(key),
          .name = name,
          .plugin_name = kPoolPluginName,
          .pod_display_name = "",
          .domain = {std::move(domain), ""},
          .on_own_filesystem = on_own};
}

std::optional<OperationFailure> FailureOf(const char* operation, const char* step,
                                          const Status& status) {
  if (status.ok()) return std::nullopt;
  return OperationFailure{operation, step, status.error()};
}

// A filesystem is frozen by the path where it is mounted. A CO's may lie on one that hangs, and
// then the cut would wait there in the pool's stead.
Status CheckPlacesAnswer(const VolumeHost& host, const CutVolumes::Requests& requests) {
  for (const PoolVolumes::CutRequest& request : requests) {
    if (!request.mounted || host.paths.BelowRoot(request.mounted->place.Display()).ok()) continue;
    RETURN_IF_ERROR(
        CheckAnswers(host.kernel, host.clock, ParentOf(request.mounted->place).Display()));
  }
  return OkStatus();
}

}  // namespace

OperationKey CutVolumes::key() const { return SnapshotKey("cut", requests.front().cut); }

OperationTraits CutVolumes::Traits(const OperationParts&) const {
  OperationTraits traits =
      SnapshotTraits(key(), kCutOperation, volumes->DomainOf(requests.front().volume));
  for (const PoolVolumes::CutRequest& request : requests) {
    traits.more_devices.insert(PoolDeviceName(request.volume));
  }
  return traits;
}

std::optional<OperationFailure> CutVolumes::Run(const OperationParts& parts,
                                                OperationProgress& progress, Unit&) const {
  progress.EnterStep(kFindMountsStep);
  CallOptions call =
      OperationCall(key().ToString(), volumes->DomainOf(requests.front().volume), "", progress);
  call.deadline = Deadline::After(parts.host.clock, parts.settings.provision);
  Requests placed = requests;
  const Status found =
      FindWhereMounted(*volumes, parts.host.paths, parts.devices, parts.host.kernel, placed, call);
  if (!found.ok()) return FailureOf(kCutOperation, kFindMountsStep, found);
  if (const Status answers = CheckPlacesAnswer(parts.host, placed); !answers.ok()) {
    return FailureOf(kCutOperation, kFindMountsStep, answers);
  }
  progress.EnterStep(kCutStep);
  return FailureOf(kCutOperation, kCutStep, cut(placed, call));
}

OperationKey CopyCutBytes::key() const { return SnapshotKey("copy", id); }

OperationTraits CopyCutBytes::Traits(const OperationParts&) const {
  return SnapshotTraits(key(), kCopyOperation, DomainOfCopy(*volumes, id));
}

std::optional<OperationFailure> CopyCutBytes::Run(const OperationParts&,
                                                  OperationProgress& progress, Unit&) const {
  progress.EnterStep(kCopyStep);
  CallOptions call = OperationCall(key().ToString(), DomainOfCopy(*volumes, id), "", progress);
  call.cancel = cancel.get();
  return FailureOf(kCopyOperation, kCopyStep, copy(call));
}

OperationKey DiscardCut::key() const { return SnapshotKey("discard", id); }

OperationTraits DiscardCut::Traits(const OperationParts&) const {
  return SnapshotTraits(key(), kDiscardOperation, DomainOfCut(*volumes, cut));
}

std::optional<OperationFailure> DiscardCut::Run(const OperationParts& parts,
                                                OperationProgress& progress, Unit&) const {
  progress.EnterStep(kDiscardStep);
  CallOptions call = OperationCall(key().ToString(), DomainOfCut(*volumes, cut), "", progress);
  call.deadline = Deadline::After(parts.host.clock, parts.settings.reclaim);
  return FailureOf(kDiscardOperation, kDiscardStep, discard(call));
}

Status FindWhereMounted(const PoolVolumes& volumes, const KubeletPaths& paths,
                        const DeviceRecordKeeper& devices, Kernel& kernel,
                        CutVolumes::Requests& requests, const CallOptions& call) {
  for (PoolVolumes::CutRequest& request : requests) {
    ASSIGN_OR_RETURN(request.mounted,
                     MountedForWriting(volumes, paths, devices, kernel, request.volume, call));
    request.writer = WriterByRecord(devices, request.volume);
  }
  return OkStatus();
}

}  // namespace volumed
