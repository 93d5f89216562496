// The import of what a path leads to that is no device: whose it is, and what becomes of an image
// file.
#include <algorithm>
#include <utility>

#include "base/byte_text.h"
#include "base/printable_text.h"
#include "kube/digest.h"
#include "mounter/mount_refs.h"
#include "pool/known_pools.h"
#include "pool/owned_files.h"
#include "pool/pool_directory.h"
#include "pool/pool_import_parts.h"

namespace volumed {
namespace {

bool LiesIn(const std::string& path, const std::string& directory) {
  return path == directory || path.starts_with(directory + "/");
}

std::string RootOf(const Pool& pool) {
  const Pool::Opened* const opened = pool.opened();
  return opened == nullptr ? pool.path() : opened->layout.root();
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

Status CheckOutsideOf(const ImportParts& parts, const std::string& own, const ImportedPath& source,
                      const CallOptions& call) {
  ASSIGN_OR_RETURN(const StorageIdentity there,
                   parts.kernel.Call(IdentifyStorage{.path = HostPath(own)}, InDomain(call, "")));
  if (!Contains(there, source.identity) && !Contains(source.identity, there) &&
      !LiesIn(own, source.path)) {
    return OkStatus();
  }
  return ImportRefusal(source.path + " lies in the agent's own directory " + own +
                       ", or that in it");
}

// What is the agent's own, or a pool's, is nobody's to import, whatever path leads to it.
Status CheckForeign(const ImportParts& parts, const ImportedPath& source, const CallOptions& call) {
  RETURN_IF_ERROR(CheckOutsideOf(parts, parts.agent_root, source, call));
  for (const std::string& own : parts.own_directories) {
    RETURN_IF_ERROR(CheckOutsideOf(parts, own, source, call));
  }
  for (const auto& pool : parts.volumes.pools()) {
    RETURN_IF_ERROR(CheckOutsideOfPool(parts, *pool, source, call));
  }
  if (source.identity.type != FileType::kRegular) return OkStatus();
  // A hard link to a volume's file lies wherever somebody has put it.
  const std::string owner = OwnerOfObject(parts.volumes, source.identity.object);
  if (owner.empty()) return OkStatus();
  return ImportRefusal(source.path + " is a link to the file of " + owner +
                       " of a pool of this node: nothing is a volume twice");
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

Status CheckSharesBlocks(const ImportedPath& source) {
  const std::string& type = source.identity.object.fs_type;
  if (type == "xfs" || type == "btrfs") return OkStatus();
  return Error::NotApplied(
      Code::kUnimplemented,
      source.path + " lies on a filesystem of type " + type +
          ", where two files share no blocks: an image there becomes no volume without being "
          "copied: copy it to the filesystem of a pool on xfs or btrfs, and import that file");
}

Status CheckImageFits(const ImportedPath& source, const ImportPlan& plan, int64_t bytes) {
  if (bytes % kPoolBlockBytes != 0) {
    return ImportRefusal(source.path + " has " + BytesForPeople(bytes) +
                         ", and sizes of volumes are multiples of " +
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
  plan.notes.emplace_back(
      plan.is_block ? "the file stays, and no write to the volume reaches it: remove it once the "
                      "volume is in use"
                    : "the file stays, with a filesystem of the same UUID: remove it once the "
                      "volume is in use, and mount it never beside that");
  PlanPoolVolume(parts, "", plan);
  return plan;
}

}  // namespace

std::string ImportNameOf(const StorageObject& object) {
  return "import:" + HalfSha256Hex(object.fs_type + ":" + object.fs_uuid + ":" +
                                   std::to_string(object.inode) + ":" + object.handle);
}

Result<const Pool*> PoolOfImported(const ImportParts& parts, const ImportRequest& request,
                                   const ImportedPath& source, const CallOptions& call) {
  Status why = NoSuchPool(parts.volumes.pools(), request.pool);
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

bool FindEarlierImport(const ImportParts& parts, const std::string& name, ImportPlan& plan) {
  const std::optional<PoolVolumeRecord> there = parts.volumes.FindByName(name);
  return there && IsWholeImport(parts, *there, plan);
}

bool IsWholeImport(const ImportParts& parts, const PoolVolumeRecord& there, ImportPlan& plan) {
  plan.volume = there.id;
  if (there.state == PoolVolumeState::kMaking) {
    plan.notes.push_back("an import of it was begun as volume " + there.id + ", and goes on");
    return false;
  }
  plan.size_bytes = there.capacity_bytes;
  plan.is_block = there.is_block;
  plan.filesystem = there.filesystem;
  plan.deed = "it was imported before, as volume " + there.id + " of pool " + there.pool + " (" +
              std::string(PoolVolumeStateName(there.state)) + "): nothing is done";
  PlanPoolVolume(parts, there.id, plan);
  return true;
}

Result<ImportPlan> PlanFileImport(const ImportParts& parts, const ImportRequest& request,
                                  const CallOptions& call) {
  Result<ImportedPath> found = FindImported(parts, request.source, call);
  if (!found.ok() && found.error().code() == Code::kNotFound) {
    ASSIGN_OR_RETURN(std::optional<ImportPlan> before, PlanMovedBefore(parts, request));
    if (before) return *std::move(before);
  }
  if (!found.ok()) return found.error();
  ImportedPath source = *std::move(found);
  const bool is_directory = source.identity.type == FileType::kDirectory;
  source.is_in_place = is_directory && request.pool.empty();
  RETURN_IF_ERROR(CheckForeign(parts, source, call));
  if (is_directory) return PlanDirectory(parts, request, source, call);
  if (source.identity.type == FileType::kRegular) return PlanImage(parts, request, source, call);
  return ImportRefusal(source.path + " is neither a directory nor a regular file");
}

}  // namespace volumed
