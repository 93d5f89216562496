#include "pool/lvm_backend.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "base/byte_text.h"
#include "base/printable_text.h"
#include "base/strings.h"
#include "mounter/host_directory.h"
#include "pool/artefact_directory.h"
#include "pool/bound_devices.h"

namespace volumed {
namespace {

constexpr char kLvmObjectType[] = "lvm";
// What a volume that is not active has of the thin pool; see lvm_backend.h.
constexpr char kMappedFile[] = "mapped";
constexpr uint32_t kMappedFileMode = 0600;
// In one round trip to a worker.
constexpr size_t kMappedReadAtOnce = 256;
// A thin pool without room in its metadata takes no volume, and no write of any; LVM itself lets
// nothing in that would leave less than a few MiB.
constexpr int64_t kMostMetadataUsed = 9500;

// How the names of a pool's volumes begin, and of its cuts.
std::string VolumesBegin(const std::string& pool_uuid) { return "v-" + PoolTag(pool_uuid) + "-"; }
std::string AllBegin(const std::string& pool_uuid) { return "[vs]-" + PoolTag(pool_uuid) + "-"; }

std::string PercentText(int64_t hundredths) {
  const int64_t rest = hundredths % 100;
  return std::to_string(hundredths / 100) + (rest < 10 ? ".0" : ".") + std::to_string(rest) + "%";
}

Error LvmRefusal(const std::string& why) {
  return Error::NotApplied(Code::kFailedPrecondition, why);
}

Error NoRoomInThinPool(const std::string& why) {
  return Error::NotApplied(Code::kResourceExhausted, why);
}

// After a tool that has ended, and has not done what it was to do.
Error NotDone(const std::string& what, const LvmTools::Complaint& complaint) {
  return Error::MaybeApplied(
      Code::kInternal,
      what + (complaint.empty() ? ": lvm2 says that it is done, and it is not" : ": " + complaint));
}

}  // namespace

StorageObject LogicalVolumeObject(const LogicalVolume& volume) {
  StorageObject object;
  object.fs_type = kLvmObjectType;
  object.fs_uuid = volume.group_uuid;
  object.inode = 1;  // what has none is on no record
  object.handle = volume.uuid;
  return object;
}

// ---- which one it is ----------------------------------------------------------------------------

Status LvmBackend::CheckIsOurs(const LogicalVolume& there, const std::string& id,
                               const StorageObject& recorded) const {
  const std::string shown = "logical volume " + tools_.names().volume_group + "/" + there.name;
  const auto& tags = there.tags;
  if (std::find(tags.begin(), tags.end(), LvmTagOf(id)) == tags.end()) {
    return LvmRefusal(shown + " does not have the tag " + LvmTagOf(id) +
                      ": it is somebody else's, and is left as it is");
  }
  const StorageObject now = LogicalVolumeObject(there);
  if (recorded.inode == 0 || recorded == now) return OkStatus();
  return LvmRefusal(shown + " is another one than that on record, and is left as it is: its UUID " +
                    "is " + now.handle + ", and was " + recorded.handle);
}

Status LvmBackend::Resume(const LogicalVolume& suspended, const CallOptions& call) const {
  ASSIGN_OR_RETURN(const LvmTools::Complaint complaint, tools_.Resume(suspended, call));
  ASSIGN_OR_RETURN(const Found after, tools_.Find({suspended.name}, call));
  const auto there = after.find(suspended.name);
  if (there == after.end() || !there->second.is_suspended) return OkStatus();
  return NotDone("end the suspension of logical volume " + suspended.name, complaint);
}

// lvs waits for tools that are at work: who has suspended it is no more.
Result<LvmBackend::Found> LvmBackend::FindWithPool(std::vector<std::string> names,
                                                   const CallOptions& call) const {
  names.push_back(tools_.names().thin_pool);
  ASSIGN_OR_RETURN(Found found, tools_.Find(names, call));
  const auto pool = found.find(tools_.names().thin_pool);
  if (pool == found.end() || !pool->second.is_suspended) return found;
  RETURN_IF_ERROR(Resume(pool->second, call));
  pool->second.is_suspended = false;
  return found;
}

Result<std::optional<LogicalVolume>> LvmBackend::Look(const std::string& id,
                                                      const StorageObject& recorded,
                                                      const CallOptions& call) const {
  ASSIGN_OR_RETURN(const Found found, FindWithPool({id}, call));
  const auto there = found.find(id);
  if (there == found.end()) return std::optional<LogicalVolume>();
  std::optional<LogicalVolume> volume = there->second;
  RETURN_IF_ERROR(CheckIsOurs(*volume, id, recorded));
  if (volume->is_suspended) RETURN_IF_ERROR(Resume(*volume, call));
  volume->is_suspended = false;
  return volume;
}

Result<LogicalVolume> LvmBackend::Need(const std::string& id, const StorageObject& recorded,
                                       const CallOptions& call) const {
  ASSIGN_OR_RETURN(std::optional<LogicalVolume> there, Look(id, recorded, call));
  if (there) return *std::move(there);
  return LvmRefusal("logical volume " + tools_.names().volume_group + "/" + id +
                    " is not there any more");
}

Status LvmBackend::EndHalfDone(const CallOptions& call) {
  RETURN_IF_ERROR(FindWithPool({}, call));
  ASSIGN_OR_RETURN(const std::vector<LogicalVolume> suspended,
                   tools_.FindSuspended(AllBegin(pool_uuid_), call));
  for (const LogicalVolume& volume : suspended) {
    if (!CheckIsOurs(volume, volume.name, {}).ok()) continue;
    RETURN_IF_ERROR(Resume(volume, call));
  }
  return OkStatus();
}

// ---- the thin pool ------------------------------------------------------------------------------

Status LvmBackend::CheckThinPool(const Found& found) const {
  const LvmNames& names = tools_.names();
  const std::string shown = "thin pool " + names.ToString();
  const auto pool = found.find(names.thin_pool);
  if (pool == found.end()) {
    return LvmRefusal("volume group " + names.volume_group + " has no thin pool " +
                      names.thin_pool);
  }
  const LogicalVolume& there = pool->second;
  if (there.health == "failed" || there.health == "metadata_read_only") {
    return LvmRefusal(shown + " takes no writes (" + there.health +
                      "): see lvmthin(7), \"Metadata check and repair\"");
  }
  if (!there.data_used) {
    return Error::NotApplied(Code::kUnavailable, shown + " is not active, or is no thin pool: " +
                                                     "`lvchange -ay " + names.ToString() + "`");
  }
  if (there.health == "out_of_data" || *there.data_used >= kWholeInHundredths) {
    return NoRoomInThinPool(shown + " is full: make it larger (lvextend --size +SIZE " +
                            names.ToString() + ")");
  }
  const int64_t metadata = there.metadata_used.value_or(0);
  if (metadata < kMostMetadataUsed) return OkStatus();
  return NoRoomInThinPool("the metadata of " + shown + " is full to " + PercentText(metadata) +
                          ": make it larger (lvextend --poolmetadatasize +SIZE " +
                          names.ToString() + ")");
}

Result<std::optional<PoolRoom>> LvmBackend::MeasureRoom(const CallOptions& call) {
  ASSIGN_OR_RETURN(const Found found, tools_.Find({tools_.names().thin_pool}, call));
  const Status takes_more = CheckThinPool(found);
  const bool is_short = !takes_more.ok() && takes_more.error().code() == Code::kResourceExhausted;
  if (!takes_more.ok() && !is_short) return takes_more.error();
  const LogicalVolume& pool = found.at(tools_.names().thin_pool);
  PoolRoom room;
  room.capacity_bytes = pool.size_bytes;
  room.available_bytes = is_short ? 0 : pool.size_bytes - UsedAtMost(pool);
  if (is_short) room.shortage = takes_more.error().message();
  return std::optional<PoolRoom>(std::move(room));
}

// ---- making and discarding ----------------------------------------------------------------------

// What an earlier call has made stays, since records of an earlier moment may not know that it has
// content by now.
Error LvmBackend::TakenBack(const PoolId& id, bool is_new, const Error& error,
                            const CallOptions& call) {
  if (error.maybe_applied()) return error;
  if (!is_new || !DiscardOne(id, {}, call).ok()) return error.AsMaybeApplied();
  return error;
}

// The tool has ended, whatever it says: so what is there now says what it has done.
Result<LogicalVolume> LvmBackend::MakeNow(const std::string& id, const MakeIt& make_it,
                                          const CallOptions& call) {
  ASSIGN_OR_RETURN(const Found before, FindWithPool({}, call));
  RETURN_IF_ERROR(CheckThinPool(before));
  ASSIGN_OR_RETURN(const LvmTools::Complaint complaint, make_it());
  const Result<Found> after = FindWithPool({id}, call);
  if (!after.ok()) return after.error().AsMaybeApplied();
  const auto there = after->find(id);
  if (there != after->end()) {
    const Status ours = CheckIsOurs(there->second, id, {});
    if (!ours.ok()) return ours.error();
    return there->second;
  }
  const Status takes_more = CheckThinPool(*after);
  if (!takes_more.ok()) return takes_more.error();
  const bool is_refused = complaint.find("above threshold") != std::string::npos;
  return Error::NotApplied(is_refused ? Code::kResourceExhausted : Code::kInternal,
                           NotDone("make logical volume " + id, complaint).message());
}

Result<LogicalVolume> LvmBackend::MakeOne(const PoolId& id, const std::string& description,
                                          const MakeIt& make_it, const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::optional<LogicalVolume> there, Look(id.ToString(), {}, call));
  ASSIGN_OR_RETURN(const bool is_new, MakeArtefactDirectory(kernel_, layout_, id, call));
  if (const Status described =
          DescribeArtefact(kernel_, layout_, id, description, DescriptionSync::kNow, call);
      !described.ok()) {
    return described.error();
  }
  if (there) return *there;
  Result<LogicalVolume> made = MakeNow(id.ToString(), make_it, call);
  if (made.ok()) return made;
  return TakenBack(id, is_new, made.error(), call);
}

Result<LogicalVolume> LvmBackend::ExtendTo(const LogicalVolume& there, int64_t bytes,
                                           const CallOptions& call) const {
  if (there.size_bytes >= bytes) return there;
  ASSIGN_OR_RETURN(const LvmTools::Complaint complaint, tools_.Extend(there, bytes, call));
  const Result<LogicalVolume> after = Need(there.name, LogicalVolumeObject(there), call);
  if (!after.ok()) return after.error().AsMaybeApplied();
  if (after->size_bytes >= bytes) return after;
  return NotDone("make logical volume " + there.name + " larger", complaint);
}

Result<MadeArtefact> LvmBackend::Make(const PoolVolumeRecord& volume, const PoolParameters&,
                                      const CallOptions& call) {
  const MakeIt make_it = [&] {
    return tools_.MakeThin(volume.id, LvmTagOf(volume.id), volume.capacity_bytes, call);
  };
  ASSIGN_OR_RETURN(LogicalVolume made,
                   MakeOne(LvmIdOf(volume.id), DescriptionOf(volume, pool_uuid_), make_it, call));
  const Result<LogicalVolume> whole = ExtendTo(made, volume.capacity_bytes, call);
  if (!whole.ok()) return whole.error().AsMaybeApplied();
  return MadeArtefact{.object = LogicalVolumeObject(*whole),
                      .size_bytes = whole->size_bytes,
                      .allocated_bytes = whole->data_used ? UsedAtLeast(*whole) : 0};
}

Status LvmBackend::CheckNobodyHas(const LogicalVolume& there, const CallOptions& call) const {
  if (!there.is_active) return OkStatus();
  RETURN_IF_ERROR(CheckNotShown(kernel_, {there.device}, call));
  if (!there.is_open) return OkStatus();
  return LvmRefusal("somebody has " + there.device + " open, the device of " + there.name);
}

Status LvmBackend::PrepareDiscard(const PoolId& id, const StorageObject& recorded,
                                  const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::optional<LogicalVolume> there, Look(id.ToString(), recorded, call));
  return there ? CheckNobodyHas(*there, call) : OkStatus();
}

Status LvmBackend::DiscardOne(const PoolId& id, const StorageObject& recorded,
                              const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::optional<LogicalVolume> there, Look(id.ToString(), recorded, call));
  if (there) {
    RETURN_IF_ERROR(CheckNobodyHas(*there, call));
    ASSIGN_OR_RETURN(const LvmTools::Complaint complaint, tools_.Remove(*there, call));
    const Result<Found> after = tools_.Find({id.ToString()}, call);
    if (!after.ok()) return after.error().AsMaybeApplied();
    if (after->contains(id.ToString())) {
      return NotDone("remove logical volume " + id.ToString(), complaint);
    }
  }
  return RemoveArtefactDirectory(kernel_, layout_, id, {kMappedFile, UnfinishedName(kMappedFile)},
                                 call);
}

Status LvmBackend::Discard(const PoolVolumeRecord& volume, const CallOptions& call) {
  return DiscardOne(LvmIdOf(volume.id), volume.object, call);
}

Result<MadeArtefact> LvmBackend::Grow(const PoolVolumeRecord& volume, int64_t bytes,
                                      const PoolParameters&, const CallOptions& call) {
  ASSIGN_OR_RETURN(const LogicalVolume there, Need(volume.id, volume.object, call));
  RETURN_IF_ERROR(CheckHasItsEnd(volume, "logical volume", there.size_bytes));
  const int64_t extents = bytes / there.extent_bytes + (bytes % there.extent_bytes != 0 ? 1 : 0);
  if (there.size_bytes > extents * there.extent_bytes) {
    return LvmRefusal("logical volume " + there.name + " has " + BytesForPeople(there.size_bytes) +
                      ", and is to be made larger to " + BytesForPeople(bytes));
  }
  ASSIGN_OR_RETURN(const LogicalVolume grown, ExtendTo(there, bytes, call));
  return MadeArtefact{.object = LogicalVolumeObject(grown),
                      .size_bytes = grown.size_bytes,
                      .allocated_bytes = grown.data_used ? UsedAtLeast(grown) : 0};
}

// ---- opening and closing ------------------------------------------------------------------------

Result<LogicalVolume> LvmBackend::Activated(const LogicalVolume& there, bool read_only,
                                            const CallOptions& call) const {
  if (there.is_active && there.is_read_only == read_only) return there;
  if (there.is_active) {
    return LvmRefusal("the device of " + there.name + ", " + there.device + ", is open already, " +
                      (there.is_read_only ? "and takes no writes" : "and takes writes"));
  }
  LvmTools::Complaint complaint;
  if (there.is_read_only != read_only) {
    ASSIGN_OR_RETURN(complaint, tools_.SetReadOnly(there, read_only, call));
  }
  if (complaint.empty()) {
    ASSIGN_OR_RETURN(complaint, tools_.Activate(there, call));
  }
  const Result<LogicalVolume> after = Need(there.name, LogicalVolumeObject(there), call);
  if (!after.ok()) return after.error().AsMaybeApplied();
  if (after->is_active && after->is_read_only == read_only) return after;
  return NotDone("activate logical volume " + there.name, complaint);
}

Status LvmBackend::Deactivate(const LogicalVolume& there, const CallOptions& call) const {
  ASSIGN_OR_RETURN(const LvmTools::Complaint complaint, tools_.Deactivate(there, call));
  const Result<Found> found = tools_.Find({there.name}, call);
  if (!found.ok()) return found.error().AsMaybeApplied();
  const auto after = found->find(there.name);
  if (after == found->end() || !after->second.is_active) return OkStatus();
  if (!after->second.is_open) return NotDone("deactivate logical volume " + there.name, complaint);
  return Error::MaybeApplied(
      Code::kFailedPrecondition,
      "somebody still has " + after->second.device + " open, the device of " + there.name);
}

Result<IdentifiedDevice> LvmBackend::Identify(const LogicalVolume& there,
                                              const CallOptions& call) const {
  return kernel_.Call(IdentifyDevice{.path = HostPath(there.device)}, call);
}

// There is no other way to what is on it than its device. What udev sees of it then is a second
// filesystem of the same UUID, which nobody mounts: nobody knows the device yet.
Status LvmBackend::RunBefore(const PoolVolumeRecord& volume, const LogicalVolume& there,
                             const BeforeOpen& before, const CallOptions& call) const {
  ASSIGN_OR_RETURN(const LogicalVolume active, Activated(there, /*read_only=*/false, call));
  const Status done = before(HostPath(active.device));
  if (done.ok()) return done;
  const Status gone = Deactivate(active, call);
  return gone.ok() ? done : Status(done.error().AsMaybeApplied().With("volume " + volume.id));
}

Result<OpenedVolume> LvmBackend::Open(const PoolVolumeRecord& volume, const PoolTuning&,
                                      bool read_only, const BeforeOpen& before,
                                      const CallOptions& call) {
  ASSIGN_OR_RETURN(LogicalVolume there, Need(volume.id, volume.object, call));
  RETURN_IF_ERROR(CheckHasItsEnd(volume, "logical volume", there.size_bytes));
  if (before) {
    RETURN_IF_ERROR(RunBefore(volume, there, before, call));
    ASSIGN_OR_RETURN(there, Need(volume.id, volume.object, call));
    if (read_only) {
      RETURN_IF_ERROR(Deactivate(there, call));
      ASSIGN_OR_RETURN(there, Need(volume.id, volume.object, call));
    }
  }
  // What it has changes from now on, and is not known if the node loses its power.
  RETURN_IF_ERROR(kernel_.Call(RemoveFile{MappedFile(LvmIdOf(volume.id))}, call));
  ASSIGN_OR_RETURN(const LogicalVolume active, Activated(there, read_only, call));
  const Result<IdentifiedDevice> device = Identify(active, call);
  if (device.ok()) return OpenedVolume{active.device, device->facts.identity, /*direct_io=*/true};
  if (there.is_active && !before) return device.error();
  const Status gone = Deactivate(active, call);
  return gone.ok() ? device.error() : device.error().AsMaybeApplied();
}

Result<bool> LvmBackend::Throttle(const PoolVolumeRecord& volume, const IoLimits& limits,
                                  const std::vector<std::string>& cgroups,
                                  const CallOptions& call) {
  ASSIGN_OR_RETURN(const LogicalVolume there, Need(volume.id, volume.object, call));
  if (!there.is_active) {
    return LvmRefusal("volume " + volume.id + " has no device to be throttled");
  }
  ASSIGN_OR_RETURN(const IdentifiedDevice device, Identify(there, call));
  const SetIoLimits request{.device = there.device,
                            .expected = device.facts.identity,
                            .cgroups = cgroups,
                            .limits = limits};
  ASSIGN_OR_RETURN(const CgroupIoLimits set, kernel_.Call(request, call));
  return set.is_each_alone;
}

Status LvmBackend::Close(const PoolId& volume, const CallOptions& call) {
  ASSIGN_OR_RETURN(const Found found, FindWithPool({volume.ToString()}, call));
  const auto there = found.find(volume.ToString());
  // What is somebody else's is no device of the volume.
  const bool is_ours =
      there != found.end() && CheckIsOurs(there->second, volume.ToString(), {}).ok();
  if (!is_ours || !there->second.is_active) return OkStatus();
  if (const Status free = CheckNotBound(kernel_, {there->second.device}, call); !free.ok()) {
    return free.error().With("volume " + volume.ToString());
  }
  RETURN_IF_ERROR(Deactivate(there->second, call));
  // Nobody has written to it since it was looked at, as nobody had it.
  NoteMapped(volume, UsedAtLeast(there->second), call);
  return OkStatus();
}

Result<std::vector<PoolId>> LvmBackend::ListOpen(const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   tools_.FindActive(VolumesBegin(pool_uuid_), call));
  std::vector<PoolId> open;
  for (const std::string& name : names) {
    if (const std::optional<PoolId> id = ParsePoolId(name)) open.push_back(*id);
  }
  return open;
}

Result<std::vector<std::string>> LvmBackend::ListDevices(const PoolId& volume,
                                                         const CallOptions& call) {
  ASSIGN_OR_RETURN(const Found found, tools_.Find({volume.ToString()}, call));
  const auto there = found.find(volume.ToString());
  if (there == found.end() || !there->second.is_active) return std::vector<std::string>();
  return std::vector<std::string>{there->second.device};
}

// ---- measuring ----------------------------------------------------------------------------------

SafePath LvmBackend::MappedFile(const PoolId& id) const {
  return layout_.ArtefactDir(id).Below(kMappedFile);
}

void LvmBackend::NoteMapped(const PoolId& id, int64_t bytes, const CallOptions& call) const {
  static_cast<void>(
      kernel_.Call(WriteFile{.path = MappedFile(id),
                             .content = Secret<std::string>(std::to_string(bytes) + "\n"),
                             .mode = kMappedFileMode},
                   call));
}

Result<std::map<PoolId, int64_t>> LvmBackend::ReadMapped(const std::vector<PoolId>& ids,
                                                         const CallOptions& call) const {
  std::map<PoolId, int64_t> mapped;
  for (size_t at = 0; at < ids.size(); at += kMappedReadAtOnce) {
    const size_t count = std::min(kMappedReadAtOnce, ids.size() - at);
    Batch batch{.path = layout_.Directory(), .items = {}};
    for (size_t i = 0; i < count; ++i) {
      batch.items.push_back({.request = ReadFile{MappedFile(ids[at + i])}});
    }
    ASSIGN_OR_RETURN(const BatchAnswer answer, kernel_.Call(batch, call));
    for (size_t i = 0; i < count && i < answer.items.size(); ++i) {
      const Result<AnyAnswer>& result = answer.items[i].result;
      const auto* content = result.ok() ? std::get_if<FileContent>(&result.value()) : nullptr;
      if (content == nullptr) continue;
      const std::optional<int64_t> bytes = ParseInt64(TrimSpace(content->bytes));
      if (bytes && *bytes >= 0) mapped[ids[at + i]] = *bytes;
    }
  }
  return mapped;
}

Result<std::map<PoolId, MadeArtefact>> LvmBackend::Measure(const std::vector<PoolId>& volumes,
                                                           OfDamaged /*damaged*/,
                                                           const CallOptions& call) {
  std::map<PoolId, MadeArtefact> measured;
  if (volumes.empty()) return measured;
  std::vector<std::string> names;
  for (const PoolId& id : volumes) names.push_back(id.ToString());
  ASSIGN_OR_RETURN(const Found found, tools_.Find(names, call));
  std::vector<PoolId> inactive;
  for (const PoolId& id : volumes) {
    const auto there = found.find(id.ToString());
    if (there == found.end() || !CheckIsOurs(there->second, id.ToString(), {}).ok()) continue;
    MadeArtefact& artefact = measured[id];
    artefact.size_bytes = there->second.size_bytes;
    artefact.allocated_bytes = UsedAtLeast(there->second);
    if (!there->second.is_active) inactive.push_back(id);
  }
  ASSIGN_OR_RETURN(const auto mapped, ReadMapped(inactive, call));
  for (const auto& [id, bytes] : mapped) {
    measured[id].allocated_bytes = std::min(bytes, measured[id].size_bytes);
  }
  return measured;
}

std::unique_ptr<PoolBackend> MakeLvmBackend(Kernel& kernel, PoolLayout layout,
                                            std::string pool_uuid, LvmNames names) {
  return std::make_unique<LvmBackend>(kernel, std::move(layout), std::move(pool_uuid),
                                      std::move(names));
}

}  // namespace volumed
