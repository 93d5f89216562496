// The import of a directory: it stays where it is, or becomes a volume of a pool, as a snapshot of
// a subvolume, or by being moved there.
#include <algorithm>
#include <utility>

#include "base/byte_text.h"
#include "base/printable_text.h"
#include "mounter/mount_refs.h"
#include "os/mount_index.h"
#include "pool/pool_import_parts.h"

namespace volumed {
namespace {

constexpr int64_t kSizeUnit = int64_t{1} << 20;  // what a directory has is rounded up to that

Status CheckNothingInside(const ImportParts& parts, const ImportedPath& source,
                          const CallOptions& call) {
  ASSIGN_OR_RETURN(const MountListing inside,
                   parts.kernel.Call(ListMounts{.below = source.path}, call));
  for (const MountEntry& mount : inside.mounts) {
    if (mount.mount_point == source.path) continue;
    return ImportRefusal("something is mounted in " + source.path + ", at " + mount.mount_point);
  }
  if (source.identity.owner.empty()) return OkStatus();
  return ImportRefusal(source.path + " bears the mark of " + PrintableText(source.identity.owner) +
                       ": it is that volume's");
}

// Only the root of a subvolume has an account of its own on a btrfs.
Result<bool> IsSubvolume(const ImportParts& parts, const ImportedPath& source,
                         const CallOptions& call) {
  if (source.identity.object.fs_type != "btrfs") return false;
  const Result<TreeQuota> quota = parts.kernel.Call(ReadTreeQuota{SplitLast(source.path)}, call);
  if (quota.ok()) return true;
  if (quota.error().code() != Code::kUnimplemented) return quota.error();
  return false;
}

PoolImportWish WishFor(const ImportedPath& source, const Pool& pool, PoolBackendKind backend,
                       int64_t bytes) {
  return {.name = ImportNameOf(source.identity.object),
          .pool = pool.name(),
          .backend = backend,
          .source = source.file(),
          .bytes = bytes,
          .is_block = false,
          .filesystem = {}};
}

void PlanSnapshot(const Pool& pool, ImportPlan& plan) {
  plan.deed = "a snapshot of the subvolume becomes a volume of pool " + pool.name() +
              " with that limit: nothing is copied, and the subvolume stays as it is";
  plan.notes.emplace_back("subvolumes that lie in it are not taken along");
}

void PlanMove(const std::string& path, const std::string& pool, ImportPlan& plan) {
  plan.deed = "it becomes a volume of pool " + pool + " by being moved there: nothing is copied, " +
              "and nothing is at " + path + " any more";
  plan.notes.emplace_back(
      "whoever has made it (local-path, hostpath) would not find it any more: see that nothing of "
      "his names it, and that no program has it open");
  plan.notes.emplace_back(
      "its size is what the pool promises it, and bounds it only if nothing is in it: project "
      "quota "
      "does not count what was there before");
}

// Whoever has it, or a part of it, would see it go from the place that he knows.
Status CheckShownNowhere(const ImportParts& parts, const ImportedPath& source,
                         const MountEntry& covering, const CallOptions& call) {
  const FilesystemPart part = PartAt(covering, source.path);
  FilesystemPart any = part;
  any.root.clear();
  ASSIGN_OR_RETURN(const MountListing shown, parts.kernel.Call(ListMounts{.showing = any}, call));
  for (const MountEntry& mount : shown.mounts) {
    if (!IsAtOrBelow(mount.root, part.root)) continue;
    return ImportRefusal("something of " + source.path + " is mounted at " + mount.mount_point);
  }
  return OkStatus();
}

// What rename(2) would refuse, too. A mount that shows the same filesystem is another one all the
// same.
Status CheckCanBeMoved(const ImportParts& parts, const ImportedPath& source, const Pool& pool,
                       const CallOptions& call) {
  if (SplitLast(source.path).root == "/") {
    return ImportRefusal(source.path +
                         " lies at the top of the node, and is not moved: name a directory in it");
  }
  const SafePath root = pool.opened()->layout.Directory();
  ASSIGN_OR_RETURN(const std::optional<MountEntry> its,
                   FindMountAround(parts.kernel, source.path, call));
  ASSIGN_OR_RETURN(const std::optional<MountEntry> pools,
                   FindMountAround(parts.kernel, root.Display(), call));
  if (!its || !pools) return ImportRefusal("the mount of " + source.path + " was taken away");
  if (its->mount_id != pools->mount_id) {
    return ImportRefusal(source.path + " is seen by the mount at " + its->mount_point +
                         ", and pool " + pool.name() + " by the one at " + pools->mount_point +
                         ": nothing is moved from one to the other, and nothing is copied: name it "
                         "as the pool's mount shows it");
  }
  RETURN_IF_ERROR(CheckShownNowhere(parts, source, *its, call));
  ASSIGN_OR_RETURN(const FileInfo here, parts.kernel.Call(Stat{SplitLast(source.path)}, call));
  ASSIGN_OR_RETURN(const FileInfo there,
                   parts.kernel.Call(Stat{root}, InDomain(call, pool.path())));
  if (here.device == there.device) return OkStatus();
  return ImportRefusal(source.path + " lies in another subvolume than pool " + pool.name() +
                       ", and nothing is copied");
}

Status PlanForPool(const ImportParts& parts, const ImportRequest& request,
                   const ImportedPath& source, ImportPlan& plan, const CallOptions& call) {
  ASSIGN_OR_RETURN(const Pool* const pool, PoolOfImported(parts, request, source, call));
  ASSIGN_OR_RETURN(const bool is_subvolume, IsSubvolume(parts, source, call));
  if (!is_subvolume) RETURN_IF_ERROR(CheckCanBeMoved(parts, source, *pool, call));
  ASSIGN_OR_RETURN(plan.size_bytes, RoundPoolSize(plan.size_bytes));
  const auto backend = is_subvolume ? PoolBackendKind::kSubvolume : PoolBackendKind::kDirectory;
  plan.wish = WishFor(source, *pool, backend, plan.size_bytes);
  if (is_subvolume) {
    PlanSnapshot(*pool, plan);
  } else {
    PlanMove(source.path, pool->name(), plan);
  }
  PlanPoolVolume(parts, "", plan);
  return OkStatus();
}

}  // namespace

Result<ImportPlan> PlanDirectory(const ImportParts& parts, const ImportRequest& request,
                                 const ImportedPath& source, const CallOptions& call) {
  RETURN_IF_ERROR(CheckNothingInside(parts, source, call));
  ImportPlan plan = NewImportPlan(request, ImportKind::kDirectory);
  const bool is_for_pool = !request.pool.empty();
  if (is_for_pool && FindEarlierImport(parts, ImportNameOf(source.identity.object), plan)) {
    return plan;
  }
  if (is_for_pool && request.size_bytes == 0) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "a directory has no size: --size says how large the volume is to be");
  }
  ASSIGN_OR_RETURN(const UsageInfo usage, parts.kernel.Call(Usage{SplitLast(source.path)}, call));
  if (request.size_bytes != 0 && request.size_bytes < usage.used_bytes) {
    return Error::NotApplied(
        Code::kOutOfRange,
        source.path + " has " + BytesForPeople(usage.used_bytes) + ", which is more than the size");
  }
  const int64_t units = std::max<int64_t>(1, (usage.used_bytes + kSizeUnit - 1) / kSizeUnit);
  plan.size_bytes = request.size_bytes != 0 ? request.size_bytes : units * kSizeUnit;
  if (is_for_pool) {
    RETURN_IF_ERROR(PlanForPool(parts, request, source, plan, call));
    return plan;
  }
  plan.deed = "nothing is done: the directory stays where it is, and the PersistentVolume names it";
  plan.notes.emplace_back(
      "whoever has made it (local-path, hostpath) may still delete it: see that nothing of his "
      "names it any more");
  if (request.size_bytes == 0) {
    plan.notes.emplace_back(
        "its size is what it holds now, rounded up, and no claim that asks for more gets it: "
        "--size says a larger one");
  }
  PlanLocalVolume(parts, source.path, plan);
  return plan;
}

Result<std::optional<ImportPlan>> PlanMovedBefore(const ImportParts& parts,
                                                  const ImportRequest& request) {
  const std::optional<PoolVolumeRecord> there = parts.volumes.FindMovedFrom(request.source);
  if (!there) return std::optional<ImportPlan>();
  if (!request.pool.empty() && request.pool != there->pool) {
    return Error::NotApplied(Code::kInvalidArgument,
                             request.source + " was imported into pool " + there->pool +
                                 " before, or was begun to be, as volume " + there->id);
  }
  ImportPlan plan = NewImportPlan(request, ImportKind::kDirectory);
  if (IsWholeImport(parts, *there, plan)) return std::optional(std::move(plan));
  ASSIGN_OR_RETURN(plan.size_bytes, RoundPoolSize(request.size_bytes != 0 ? request.size_bytes
                                                                          : there->capacity_bytes));
  plan.wish = PoolImportWish{.name = there->name,
                             .pool = there->pool,
                             .backend = there->backend,
                             .source = {SplitLast(request.source), there->object},
                             .bytes = plan.size_bytes,
                             .is_block = false,
                             .filesystem = {}};
  PlanMove(request.source, there->pool, plan);
  PlanPoolVolume(parts, "", plan);
  return std::optional(std::move(plan));
}

}  // namespace volumed
