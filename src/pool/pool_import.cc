#include "pool/pool_import.h"

#include <utility>

#include "base/printable_text.h"
#include "kube/decode.h"
#include "kube/digest.h"
#include "kube/field_rules.h"
#include "pool/pool_import_parts.h"
#include "pool/pool_names.h"

namespace volumed {
namespace {

constexpr size_t kShownSource = 256;  // bytes of a source in a message
constexpr size_t kLongestSource = 4095;
constexpr size_t kNameDigits = 12;  // of the digest of a source, in the name that follows from it
// Of a volume that is not made yet: no id, so that no volume is ever taken for it.
constexpr const char* kHandleToCome = "<drawn when it is made>";

Error BadImport(const std::string& why) { return Error::NotApplied(Code::kInvalidArgument, why); }

Status CheckImportRequest(const ImportRequest& request) {
  const std::string& source = request.source;
  if (source.empty() || source.size() > kLongestSource || !IsText(source)) {
    return BadImport("the source of an import cannot be " + Quoted(source, kShownSource));
  }
  if (request.size_bytes < 0) return BadImport("a size is not below zero");
  if (request.pv_name.empty()) return OkStatus();
  const auto reason = rules::kDnsSubdomain.broken(request.pv_name);
  return reason ? Status(BadImport("the name " + *reason)) : OkStatus();
}

Status CheckCleanPath(const std::string& path) {
  const bool is_clean = CleanPath(path) == path && (path + "/").find("/../") == std::string::npos;
  if (is_clean && path != "/") return OkStatus();
  return BadImport("the path " + Quoted(path, kShownSource) +
                   " is not clean: it has \"//\", \".\", \"..\" or a \"/\" at its end");
}

// As it would be applied: the name of a driver, a handle or a path may break the kind's rules.
Status CheckImportedObject(const PersistentVolume& object) {
  const ManifestDecode decoded = DecodeManifest("", EncodeObjectJson(Object(object)));
  if (decoded.problems.empty()) return OkStatus();
  return BadImport("the PersistentVolume would be refused: " + decoded.problems.front().field_path +
                   ": " + decoded.problems.front().reason);
}

// A volume of a pool of this node, whose PersistentVolume was lost.
Result<ImportPlan> PlanOwnVolume(const ImportParts& parts, const ImportRequest& request,
                                 const std::string& id) {
  ASSIGN_OR_RETURN(const PoolVolumeRecord record, parts.volumes.Find(id));
  RETURN_IF_ERROR(CheckNotInline(record));
  ImportPlan plan = NewImportPlan(request, ImportKind::kCsi);
  plan.size_bytes = record.capacity_bytes;
  plan.is_block = record.is_block;
  plan.filesystem.type = PoolFilesystemOf(record);
  plan.filesystem.uuid = record.filesystem.uuid;
  plan.volume = id;
  plan.deed = "it is a volume of pool " + record.pool + " already: nothing is done";
  PlanPoolVolume(parts, id, plan);
  return plan;
}

Result<ImportPlan> PlanCsiVolume(const ImportParts& parts, const ImportRequest& request) {
  const size_t caret = request.source.find('^');
  if (caret == std::string::npos || caret == 0 || caret + 1 == request.source.size()) {
    return BadImport(Quoted(request.source, kShownSource) +
                     " is neither an absolute path nor DRIVER^HANDLE");
  }
  if (!request.pool.empty()) return BadImport("a volume of a CSI driver becomes none of a pool");
  const std::string driver = request.source.substr(0, caret);
  const std::string handle = request.source.substr(caret + 1);
  if (driver == parts.driver) return PlanOwnVolume(parts, request, handle);
  if (request.size_bytes == 0) {
    return BadImport(
        "how large a volume of a CSI driver is cannot be seen on a node: say its size");
  }
  ImportPlan plan = NewImportPlan(request, ImportKind::kCsi);
  plan.size_bytes = request.size_bytes;
  plan.deed = "nothing is done: the driver has the volume, and the PersistentVolume names it";
  plan.notes.emplace_back(
      "whether another node has the volume cannot be seen from here: see that none has before the "
      "PersistentVolume is applied");
  CsiPersistentVolumeSource source;
  source.driver = driver;
  source.volume_handle = handle;
  plan.object.spec.source = std::move(source);
  plan.object.spec.capacity = Quantity::FromBytes(plan.size_bytes);
  return plan;
}

Result<ImportPlan> PlanAny(const ImportParts& parts, const ImportRequest& request,
                           const CallOptions& call) {
  if (request.source.front() != '/') return PlanCsiVolume(parts, request);
  RETURN_IF_ERROR(CheckCleanPath(request.source));
  if (request.source.starts_with("/dev/")) return PlanDeviceImport(parts, request, call);
  return PlanFileImport(parts, request, call);
}

}  // namespace

std::string_view ImportKindName(ImportKind kind) {
  switch (kind) {
    case ImportKind::kDirectory:
      return "directory";
    case ImportKind::kImage:
      return "image";
    case ImportKind::kLogicalVolume:
      return "logical volume";
    case ImportKind::kCsi:
      return "csi";
  }
  __builtin_unreachable();
}

ImportPlan NewImportPlan(const ImportRequest& request, ImportKind kind) {
  ImportPlan plan;
  plan.kind = kind;
  plan.object.metadata.name = request.pv_name;
  if (request.pv_name.empty()) {
    plan.object.metadata.name = "imported-" + Sha256Hex(request.source).substr(0, kNameDigits);
  }
  plan.object.spec.access_modes = {AccessMode::kReadWriteOnce};
  plan.object.spec.reclaim_policy = ReclaimPolicy::kRetain;
  return plan;
}

void PlanLocalVolume(const ImportParts& parts, const std::string& path, ImportPlan& plan) {
  LocalVolumeSource source;
  source.path = path;
  if (!plan.is_block) source.fs_type = plan.filesystem.type;
  PersistentVolumeSpec& spec = plan.object.spec;
  spec.source = std::move(source);
  spec.capacity = Quantity::FromBytes(plan.size_bytes);
  spec.volume_mode = plan.is_block ? VolumeMode::kBlock : VolumeMode::kFilesystem;
  NodeSelectorTerm here;
  here.match_expressions.push_back({"kubernetes.io/hostname", NodeOperator::kIn, {parts.node}});
  spec.node_affinity = VolumeNodeAffinity{{{std::move(here)}}};
}

void PlanPoolVolume(const ImportParts& parts, const std::string& id, ImportPlan& plan) {
  const PersistentVolume made = PoolPersistentVolume(
      parts.driver, id.empty() ? kHandleToCome : id, plan.filesystem.type,
      plan.is_block ? VolumeMode::kBlock : VolumeMode::kFilesystem, plan.size_bytes, parts.node);
  PersistentVolumeSpec& spec = plan.object.spec;
  spec.source = made.spec.source;
  spec.capacity = made.spec.capacity;
  spec.volume_mode = made.spec.volume_mode;
  spec.node_affinity = made.spec.node_affinity;
}

Result<ImportPlan> PlanImport(const ImportParts& parts, const ImportRequest& request,
                              const CallOptions& call) {
  RETURN_IF_ERROR(CheckImportRequest(request));
  ASSIGN_OR_RETURN(ImportPlan plan, PlanAny(parts, request, call));
  RETURN_IF_ERROR(CheckImportedObject(plan.object));
  return plan;
}

Result<ImportPlan> DoImport(const ImportParts& parts, ImportPlan plan, const CallOptions& call) {
  if (!plan.wish) return plan;
  ASSIGN_OR_RETURN(const PoolVolumeRecord made, parts.volumes.Import(*plan.wish, call));
  plan.volume = made.id;
  PlanPoolVolume(parts, made.id, plan);
  return plan;
}

}  // namespace volumed
