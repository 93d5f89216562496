// The import of a directory, and of an image file.
#include <algorithm>
#include <utility>

#include "base/printable_text.h"
#include "kube/digest.h"
#include "mounter/host_directory.h"
#include "mounter/mount_refs.h"
#include "pool/directory_backend.h"
#include "pool/pool_directory.h"
#include "pool/pool_import_parts.h"

namespace volumed {
namespace {

constexpr int64_t kSizeUnit = int64_t{1} << 20;  // what a directory has is rounded up to that

struct ImportedPath {
  std::string path;
  StorageIdentity identity;
  // It stays where it is, and pods get it from there.
  bool is_in_place = false;
  ImportedFile file() const { return {SplitLast(path), identity.object}; }
};

bool LiesIn(const std::string& path, const std::string& directory) {
  return path == directory || path.starts_with(directory + "/");
}

std::string RootOf(const Pool& pool) {
  const Pool::Opened* const opened = pool.opened();
  return opened == nullptr ? pool.path() : opened->layout.root();
}

CallOptions InDomain(CallOptions call, const std::string& domain) {
  call.domain = domain;
  return call;
}

// Whether the one is the other, or contains it, by whatever path.
bool Contains(const StorageIdentity& outer, const StorageIdentity& inner) {
  const auto has = [](const std::vector<std::string>& keys, const std::string& key) {
    return std::find(keys.begin(), keys.end(), key) != keys.end();
  };
  return std::any_of(outer.own.begin(), outer.own.end(), [&](const std::string& key) {
    return has(inner.own, key) || has(inner.within, key);
  });
}

Status CheckOutsideOfPool(const ImportParts& parts, const Pool& pool, const ImportedPath& source,
                          const CallOptions& call) {
  const PoolLayout layout(RootOf(pool));
  // What is not open is not waited for.
  if (!pool.state().ok()) {
    if (!LiesIn(source.path, layout.root())) return OkStatus();
    return ImportRefusal(source.path + " lies in pool " + pool.name() + ", which is not open");
  }
  const CallOptions in_pool = InDomain(call, pool.path());
  for (const SafePath& own : {layout.Volumes(), layout.Cuts()}) {
    ASSIGN_OR_RETURN(const StorageIdentity there,
                     parts.kernel.Call(IdentifyStorage{.path = own}, in_pool));
    if (!Contains(there, source.identity)) continue;
    return ImportRefusal(source.path + " is in pool " + pool.name() + " already");
  }
  ASSIGN_OR_RETURN(const StorageIdentity root,
                   parts.kernel.Call(IdentifyStorage{.path = layout.Directory()}, in_pool));
  // A filesystem that is mounted in a directory has no key of that.
  if (Contains(source.identity, root) || LiesIn(layout.root(), source.path)) {
    return ImportRefusal("pool " + pool.name() + " is in " + source.path);
  }
  if (!source.is_in_place || !Contains(root, source.identity)) return OkStatus();
  return ImportRefusal(source.path + " lies in the directory of pool " + pool.name());
}

// What is the agent's own, or a pool's, is nobody's to import, whatever path leads to it.
Status CheckForeign(const ImportParts& parts, const ImportedPath& source, const CallOptions& call) {
  ASSIGN_OR_RETURN(
      const StorageIdentity own,
      parts.kernel.Call(IdentifyStorage{.path = HostPath(parts.agent_root)}, InDomain(call, "")));
  if (Contains(own, source.identity) || Contains(source.identity, own) ||
      LiesIn(parts.agent_root, source.path)) {
    return ImportRefusal(source.path + " lies in the agent's own directory, or that in it");
  }
  for (const auto& pool : parts.volumes.pools()) {
    RETURN_IF_ERROR(CheckOutsideOfPool(parts, *pool, source, call));
  }
  return OkStatus();
}

// Where it is, and that no link leads to it: whoever could change one could have another thing
// imported.
Result<ImportedPath> FindImported(const ImportParts& parts, const std::string& path,
                                  const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::string found, FindPoolDirectory(parts.kernel, path, call));
  if (found != path) {
    return ImportRefusal("a link is on the way of " + path + ", which leads to " + found +
                         ": name it by that");
  }
  ImportedPath imported;
  imported.path = path;
  ASSIGN_OR_RETURN(imported.identity,
                   parts.kernel.Call(IdentifyStorage{.path = SplitLast(path)}, call));
  ASSIGN_OR_RETURN(const std::vector<std::string> places, FindMountRefs(parts.kernel, path, call));
  if (places.empty()) return imported;
  return ImportRefusal(path + " is mounted at " + places.front() + ", too");
}

// By which an import of the same thing is found again, whatever path leads to it. No other volume
// has a name of this form.
std::string ImportNameOf(const StorageObject& object) {
  return "import:" + HalfSha256Hex(object.fs_type + ":" + object.fs_uuid + ":" +
                                   std::to_string(object.inode) + ":" + object.handle);
}

// The pool on whose filesystem it lies, if that is the one that is asked for.
Result<const Pool*> PoolOfImported(const ImportParts& parts, const ImportRequest& request,
                                   const ImportedPath& source, const CallOptions& call) {
  Status why = Error::NotApplied(Code::kNotFound, request.pool.empty()
                                                      ? "this node has no pool"
                                                      : "this node has no pool " + request.pool);
  for (const auto& pool : parts.volumes.pools()) {
    if (!request.pool.empty() && pool->name() != request.pool) continue;
    why = pool->state();
    if (!why.ok()) continue;
    ASSIGN_OR_RETURN(const StorageIdentity root,
                     parts.kernel.Call(IdentifyStorage{.path = pool->opened()->layout.Directory()},
                                       InDomain(call, pool->path())));
    if (MayShareFilesystem(root.object, source.identity.object)) return pool.get();
    why = ImportRefusal(source.path + " does not lie on the filesystem of pool " + pool->name() +
                        ", and nothing is copied: put it there first");
  }
  return why.error();
}

// What an earlier call has made, or begun. Whether that was the whole import.
bool FindEarlierImport(const ImportParts& parts, const std::string& name, ImportPlan& plan) {
  const std::optional<PoolVolumeRecord> there = parts.volumes.FindByName(name);
  if (!there) return false;
  plan.volume = there->id;
  if (there->state == PoolVolumeState::kMaking) {
    plan.notes.push_back("an import of it was begun as volume " + there->id + ", and goes on");
    return false;
  }
  plan.size_bytes = there->capacity_bytes;
  plan.is_block = there->is_block;
  plan.filesystem = there->filesystem;
  plan.deed = "it was imported before, as volume " + there->id + " of pool " + there->pool + " (" +
              std::string(PoolVolumeStateName(there->state)) + "): nothing is done";
  PlanPoolVolume(parts, there->id, plan);
  return true;
}

Status CheckSharesBlocks(const ImportedPath& source) {
  const std::string& type = source.identity.object.fs_type;
  if (type == "xfs" || type == "btrfs") return OkStatus();
  return Error::NotApplied(
      Code::kUnimplemented,
      source.path + " lies on a filesystem of type " + type +
          ", where two files share no blocks: it could become a volume only by a move within that, "
          "and there is no effect on the node for that (rename(2))");
}

Status CheckImageFits(const ImportedPath& source, const ImportPlan& plan, int64_t bytes) {
  if (bytes % kPoolBlockBytes != 0) {
    return ImportRefusal(source.path + " has " + std::to_string(bytes) +
                         " bytes, and sizes of volumes are multiples of " +
                         std::to_string(kPoolBlockBytes) + ": `truncate -s %4096` makes it so");
  }
  if (plan.is_block || IsPoolFilesystem(plan.filesystem.type)) return OkStatus();
  return ImportRefusal(source.path + " has a filesystem of type " + plan.filesystem.type +
                       ", and volumes of pools have ext4, xfs or btrfs");
}

Result<ImportPlan> PlanImage(const ImportParts& parts, const ImportRequest& request,
                             const ImportedPath& source, const CallOptions& call) {
  if (request.size_bytes != 0) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "an image has the size that it has: no other one can be said");
  }
  ImportPlan plan = NewImportPlan(request, ImportKind::kImage);
  const std::string name = ImportNameOf(source.identity.object);
  if (FindEarlierImport(parts, name, plan)) return plan;
  ASSIGN_OR_RETURN(const Pool* const pool, PoolOfImported(parts, request, source, call));
  RETURN_IF_ERROR(CheckSharesBlocks(source));
  ASSIGN_OR_RETURN(const FileInfo info, parts.kernel.Call(Stat{SplitLast(source.path)}, call));
  RETURN_IF_ERROR(LookAtImage(parts.kernel, source.file(), plan, call));
  RETURN_IF_ERROR(CheckImageFits(source, plan, info.size_bytes));
  plan.size_bytes = info.size_bytes;
  plan.wish = PoolImportWish{.name = name,
                             .pool = pool->name(),
                             .backend = PoolBackendKind::kImage,
                             .source = source.file(),
                             .bytes = info.size_bytes,
                             .is_block = plan.is_block,
                             .filesystem = plan.filesystem};
  plan.deed = "it becomes a volume of pool " + pool->name() +
              " that shares its blocks: nothing is copied, and the file stays as it is";
  plan.notes.push_back(
      "the file stays, with a filesystem of the same UUID: remove it once the volume is in use, "
      "and "
      "mount it never beside that");
  PlanPoolVolume(parts, "", plan);
  return plan;
}

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
Status CheckIsSubvolume(const ImportParts& parts, const ImportedPath& source,
                        const CallOptions& call) {
  if (source.identity.object.fs_type != "btrfs") return DirectoryNotImported(source.path);
  const Result<TreeQuota> quota = parts.kernel.Call(ReadTreeQuota{SplitLast(source.path)}, call);
  if (quota.ok()) return OkStatus();
  if (quota.error().code() != Code::kUnimplemented) return quota.error();
  return DirectoryNotImported(source.path);
}

Status PlanSubvolume(const ImportParts& parts, const ImportRequest& request,
                     const ImportedPath& source, ImportPlan& plan, const CallOptions& call) {
  ASSIGN_OR_RETURN(const Pool* const pool, PoolOfImported(parts, request, source, call));
  RETURN_IF_ERROR(CheckIsSubvolume(parts, source, call));
  ASSIGN_OR_RETURN(const int64_t bytes, RoundPoolSize(plan.size_bytes));
  plan.size_bytes = bytes;
  plan.wish = PoolImportWish{.name = ImportNameOf(source.identity.object),
                             .pool = pool->name(),
                             .backend = PoolBackendKind::kSubvolume,
                             .source = source.file(),
                             .bytes = bytes,
                             .is_block = false,
                             .filesystem = {}};
  plan.deed = "a snapshot of the subvolume becomes a volume of pool " + pool->name() +
              " with that limit: nothing is copied, and the subvolume stays as it is";
  plan.notes.emplace_back("subvolumes that lie in it are not taken along");
  PlanPoolVolume(parts, "", plan);
  return OkStatus();
}

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
                             "a directory has no size: say how large the volume is to be");
  }
  ASSIGN_OR_RETURN(const UsageInfo usage, parts.kernel.Call(Usage{SplitLast(source.path)}, call));
  if (request.size_bytes != 0 && request.size_bytes < usage.used_bytes) {
    return Error::NotApplied(Code::kOutOfRange, source.path + " has " +
                                                    std::to_string(usage.used_bytes) +
                                                    " bytes, which is more than the size");
  }
  const int64_t units = std::max<int64_t>(1, (usage.used_bytes + kSizeUnit - 1) / kSizeUnit);
  plan.size_bytes = request.size_bytes != 0 ? request.size_bytes : units * kSizeUnit;
  if (is_for_pool) {
    RETURN_IF_ERROR(PlanSubvolume(parts, request, source, plan, call));
    return plan;
  }
  plan.deed = "nothing is done: the directory stays where it is, and the PersistentVolume names it";
  plan.notes.emplace_back(
      "whoever has made it (local-path, hostpath) may still delete it: see that nothing of his "
      "names it any more");
  PlanLocalVolume(parts, source.path, plan);
  return plan;
}

}  // namespace

Result<ImportPlan> PlanFileImport(const ImportParts& parts, const ImportRequest& request,
                                  const CallOptions& call) {
  ASSIGN_OR_RETURN(ImportedPath source, FindImported(parts, request.source, call));
  const bool is_directory = source.identity.type == FileType::kDirectory;
  source.is_in_place = is_directory && request.pool.empty();
  RETURN_IF_ERROR(CheckForeign(parts, source, call));
  if (is_directory) return PlanDirectory(parts, request, source, call);
  if (source.identity.type == FileType::kRegular) return PlanImage(parts, request, source, call);
  return ImportRefusal(source.path + " is neither a directory nor a regular file");
}

}  // namespace volumed
