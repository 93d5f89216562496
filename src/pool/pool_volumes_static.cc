// Volumes that are devices or exports of the administrator's: how they get and keep their rows.
#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/byte_text.h"
#include "base/printable_text.h"
#include "base/strings.h"
#include "mounter/host_directory.h"
#include "pool/owned_files.h"
#include "pool/pool_volumes_parts.h"
#include "pool/static_backend.h"

namespace volumed {
namespace {

constexpr size_t kShownListed = 256;  // bytes of what a device says of itself

// It has a colon, as those of COs and of inline volumes have, and begins like none of them.
std::string NameOfStatic(const std::string& listed) { return "static:" + listed; }

// By what a listed volume is known again.
const std::string& IdentityOf(const PoolVolumeRecord& row) {
  return row.backend == PoolBackendKind::kExport ? row.source : row.source_identity;
}

// Whether the second device is a partition of the first one, as these identities have it
// (DeviceIdentity::stable_id).
bool IsPartitionOf(const std::string& disk, const std::string& device) {
  const std::optional<std::string_view> part = StripPrefix(device, disk + "-part");
  return !disk.empty() && part && !part->empty() &&
         std::all_of(part->begin(), part->end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Whoever had the disk that a pool is on would have every volume of the pool.
Status CheckNotUnderAPool(const PoolVolumes& volumes, Kernel& kernel, const StaticVolume& wish,
                          const StorageIdentity& device, const CallOptions& call) {
  for (const std::unique_ptr<Pool>& pool : volumes.pools()) {
    if (!pool->state().ok()) continue;
    ASSIGN_OR_RETURN(const StorageIdentity directory,
                     kernel.Call(IdentifyStorage{.path = pool->opened()->layout.Directory()},
                                 InPool(call, *pool)));
    std::vector<std::string> common;
    std::set_intersection(device.own.begin(), device.own.end(), directory.within.begin(),
                          directory.within.end(), std::back_inserter(common));
    if (common.empty()) continue;
    return PoolRefusal("static volume " + wish.name + ": on the device " + wish.device +
                       " is pool " + pool->name() + " at " + pool->path() +
                       ": list a device of your own");
  }
  return OkStatus();
}

// A loop device of a pool's volume says as much of itself as a disk does, and would be that volume
// twice.
Status CheckNotOfAPool(const PoolVolumes& volumes, Kernel& kernel, const StaticVolume& wish,
                       const CallOptions& call) {
  CallOptions of_device = call;
  of_device.domain = DeviceDomain(wish.device);
  ASSIGN_OR_RETURN(const StorageIdentity identity,
                   kernel.Call(IdentifyStorage{.path = HostPath(wish.device)}, of_device));
  for (const StorageFile& file : identity.files) {
    const std::string owner = OwnerOfObject(volumes, file.object);
    if (owner.empty()) continue;
    return PoolRefusal("static volume " + wish.name + ": the device " + wish.device +
                       " is, or lies on, the loop device of " + file.path + ", which is " + owner +
                       " of a pool of this node: list a device of your own");
  }
  return CheckNotUnderAPool(volumes, kernel, wish, identity, call);
}

// Of what is on nobody's record the copies would have its UUID, too. Only what is proven blank is
// formatted when it is mounted first, and so is what was made of it then. What is on the device
// instead of what is on record is mounted nowhere, nor is a copy of it.
Status CheckHasItsFilesystem(const PoolVolumeRecord& volume, const DeviceProbe& probe,
                             const std::string& shown) {
  const PoolFilesystem& known = volume.filesystem;
  if (known.type.empty() && probe.blank) return OkStatus();
  if (known.type.empty()) {
    return PoolRefusal(shown +
                       ", of which it is not on record what filesystem it has: it can be "
                       "cut once it was mounted");
  }
  if (probe.spans_devices) {
    return PoolRefusal(shown + ", and a part of its " + known.type + " is on another device");
  }
  if (probe.fs_type == known.type && probe.identity.uuid == known.uuid) return OkStatus();
  const std::string there = probe.fs_type.empty()
                                ? "has none"
                                : "has " + Quoted(probe.fs_type, kShownListed) + " with UUID " +
                                      Quoted(probe.identity.uuid, kShownListed);
  return PoolRefusal(shown + ", which is to have the " + known.type + " with UUID " + known.uuid +
                     ", and " + there);
}

// What is mounted from then on, and nothing else; empty of a device without any signature, which is
// formatted when it is staged first, if it is proven blank by then.
Result<PoolFilesystem> FilesystemOn(const StaticVolume& wish, const DeviceProbe& probe) {
  if (wish.is_block) return PoolFilesystem{};
  const std::string shown = "static volume " + wish.name + ", the device " + wish.device + ", ";
  if (!probe.partition_table.empty()) {
    return PoolRefusal(shown + "has a partition table (" + probe.partition_table +
                       "): list a partition, or the disk as a block volume");
  }
  if (probe.fs_type.empty()) return PoolFilesystem{};
  if (probe.spans_devices) {
    return PoolRefusal(shown + "has a " + probe.fs_type +
                       " on it of which a part is on another device, and a volume is all on one");
  }
  if (IsPoolFilesystem(probe.fs_type) && !probe.unfinished && !probe.identity.uuid.empty()) {
    return PoolFilesystem{probe.fs_type, probe.identity.uuid, ""};
  }
  return PoolRefusal(shown + "has a " + probe.fs_type +
                     " on it, and is to have a whole ext4, xfs or btrfs, or nothing");
}

}  // namespace

void PoolVolumes::ListStatic(std::set<std::string> names) {
  MutexLock lock(mu_);
  listed_static_.clear();
  for (const std::string& name : names) listed_static_.insert(NameOfStatic(name));
}

bool PoolVolumes::IsListedStatic(const std::string& name) const {
  MutexLock lock(mu_);
  return listed_static_.contains(name);
}

Status PoolVolumes::CheckStillListed(const PoolVolumeRecord& volume) const {
  if (!IsListed(volume.backend) || IsListedStatic(volume.name)) return OkStatus();
  return PoolRefusal("volume " + volume.id + " is " + ShownSource(volume) +
                     ", which is not listed in the configuration any more");
}

Result<std::string> PoolVolumes::PrepareListed(const CutRequest& request, PoolVolumeRecord& source,
                                               const CallOptions& call) {
  const std::string shown = "volume " + source.id + " is " + ShownSource(source);
  if (source.backend == PoolBackendKind::kExport) {
    return PoolRefusal(shown + ", of which no snapshots are made here: its files are its server's");
  }
  RETURN_IF_ERROR(CheckStillListed(source));
  RETURN_IF_ERROR(CheckNoPartListed(source.name, source.source_identity));
  const std::string when = shown + ", which is copied only while nobody can write to it: ";
  if (!request.writer.empty()) {
    return PoolRefusal(when + request.writer +
                       ": take it away there, or have it there for readers");
  }
  const Result<IdentifiedDevice> device = FindDeviceToCopy(parts_.kernel, source, call);
  if (!device.ok()) return AboutFilesOf(source.id, device.error());
  // It may have grown since it was listed, and its filesystem with it.
  source.capacity_bytes = device->facts.identity.size_bytes;
  // Whoever copies it has it for himself meanwhile, and looks himself.
  if (CheckNotCopied(source.id).ok()) {
    const Status idle = CheckNobodyWrites(parts_.kernel, source, *device, call);
    if (!idle.ok()) return AboutFilesOf(source.id, idle.error()).With(shown);
  }
  if (device->block_bytes > kPoolBlockBytes) {
    return PoolRefusal(shown + ", whose blocks have " + BytesForPeople(device->block_bytes) +
                       ", which no volume of a pool has");
  }
  if (device->block_bytes > 0) source.block_bytes = device->block_bytes;
  if (source.is_block) return device->writes;
  CallOptions of_device = call;
  of_device.domain = DeviceDomain(source.source);
  ASSIGN_OR_RETURN(const DeviceProbe probe,
                   parts_.kernel.Call(ProbeDevice{device->path}, of_device));
  RETURN_IF_ERROR(CheckHasItsFilesystem(source, probe, shown));
  return device->writes;
}

Result<PoolVolumeRecord> PoolVolumes::TakeStatic(const StaticVolume& wish,
                                                 const CallOptions& call) {
  const std::string name = NameOfStatic(wish.name);
  RETURN_IF_ERROR(CheckAllReadable(call));
  ASSIGN_OR_RETURN(const Taken taken, Take({NameKey(name)}));
  if (!wish.exported.source.empty()) return TakeExport(wish);
  ASSIGN_OR_RETURN(const IdentifiedDevice device, IdentifyListed(parts_.kernel, wish.device, call));
  if (device.facts.identity.stable_id.empty()) {
    return PoolRefusal("static volume " + wish.name + ": the device " + wish.device +
                       " says nothing of itself by which it is known again");
  }
  RETURN_IF_ERROR(CheckNotOfAPool(*this, parts_.kernel, wish, call));
  if (const std::optional<PoolVolumeRecord> row = FindByName(name)) {
    return MeetStatic(wish, device, row->id);
  }
  return NewStatic(wish, device, call);
}

Result<PoolVolumeRecord> PoolVolumes::MeetStatic(const StaticVolume& wish,
                                                 const IdentifiedDevice& device,
                                                 const std::string& id) {
  ASSIGN_OR_RETURN(const Taken taken, Take({id}));
  ASSIGN_OR_RETURN(PoolVolumeRecord row, Find(id));
  const DeviceIdentity& there = device.facts.identity;
  const std::string shown = "static volume " + wish.name + ", on record as " + row.id + ", ";
  if (row.backend != PoolBackendKind::kStatic) {
    return PoolRefusal(shown + "is " + ShownSource(row) + ": list a device by another name");
  }
  if (there.stable_id != row.source_identity) {
    return PoolRefusal(shown + "is the device " + Quoted(row.source_identity, kShownListed) +
                       ", and " + wish.device + " is " + Quoted(there.stable_id, kShownListed) +
                       ": list another device by another name");
  }
  RETURN_IF_ERROR(CheckNoPartListed(row.name, there.stable_id));
  if (wish.is_block != row.is_block) {
    return PoolRefusal(shown + (row.is_block ? "is a block volume" : "has a filesystem") +
                       ": list it so, or by another name once this one was deleted");
  }
  const int64_t bytes = there.size_bytes;
  if (bytes < row.capacity_bytes) {
    return PoolRefusal(shown + "has become smaller: " + BytesForPeople(bytes) + ", and had " +
                       BytesForPeople(row.capacity_bytes));
  }
  const PoolVolumeRecord before = row;
  row.source = wish.device;
  row.capacity_bytes = bytes;
  return Relist(before, std::move(row));
}

// Whoever writes to the one writes to the other, and each is asked for by itself. One that is not
// listed any more may be had still.
Status PoolVolumes::WhyPartOnRecord(const std::string& name, const std::string& identity) const {
  for (const auto& [id, row] : volumes_) {
    if (row.backend != PoolBackendKind::kStatic || row.name == name) continue;
    const bool is_part = IsPartitionOf(row.source_identity, identity);
    if (!is_part && !IsPartitionOf(identity, row.source_identity)) continue;
    return PoolRefusal("the device of " + name + (is_part ? " is a part of " : " has a part, ") +
                       row.source + ", which is " + row.name + ", volume " + id +
                       ": list one of the two, and take the other's id away "
                       "(`volumectl pool delete`) once nobody has it");
  }
  return OkStatus();
}

Status PoolVolumes::CheckNoPartListed(const std::string& name, const std::string& identity) const {
  MutexLock lock(mu_);
  return WhyPartOnRecord(name, identity);
}

// Of several devices that are taken at once each is to see the others.
Status PoolVolumes::BeginListing(const std::string& name, const std::string& identity) {
  MutexLock lock(mu_);
  RETURN_IF_ERROR(WhyPartOnRecord(name, identity));
  for (const std::string& other : listing_) {
    if (other == identity || IsPartitionOf(other, identity) || IsPartitionOf(identity, other)) {
      return PoolRefusal("the device of " + name + ", " + Quoted(identity, kShownListed) +
                         ", is, is a part of, or has as a part one that is just being listed");
    }
  }
  listing_.insert(identity);
  return OkStatus();
}

void PoolVolumes::EndListing(const std::string& identity) {
  MutexLock lock(mu_);
  listing_.erase(identity);
}

Result<PoolVolumeRecord> PoolVolumes::Relist(const PoolVolumeRecord& before, PoolVolumeRecord row) {
  if (row.state == PoolVolumeState::kMaking) {
    RETURN_IF_ERROR(Advance(row, PoolVolumeEvent::kDone));
  } else if (row != before) {
    RETURN_IF_ERROR(CheckUsable(row));
    RETURN_IF_ERROR(Write(row));
  }
  if (row != before) TellChanged();
  return row;
}

Result<PoolVolumeRecord> PoolVolumes::PlanListed(const StaticVolume& wish, PoolBackendKind backend,
                                                 const std::string& identity) {
  PoolParameters parameters;
  parameters.pool = wish.pool;
  ASSIGN_OR_RETURN(const Pool* const pool, OpenPoolFor(parameters));
  RETURN_IF_ERROR(CheckLookedThrough(*pool));
  PoolVolumeRecord record;
  record.id = NewPoolId(PoolObject::kVolume, pool->tag()).ToString();
  record.pool = pool->name();
  record.name = NameOfStatic(wish.name);
  record.backend = backend;
  record.is_block = wish.is_block;
  record.parameters = {{"pool", pool->name()}};
  record.family = record.id;
  record.used = true;  // its content is somebody's
  record.created_unix_ms = parts_.clock.WallUnixMillis();
  record.source = backend == PoolBackendKind::kExport ? wish.exported.source : wish.device;
  MutexLock lock(mu_);
  for (const auto& [id, row] : volumes_) {
    const bool is_same = backend == row.backend && identity == IdentityOf(row);
    if (!is_same) continue;
    return PoolRefusal("static volume " + wish.name + ": " + ShownSource(record) + " is " +
                       row.name + ", volume " + id + ", already");
  }
  return record;
}

Result<PoolVolumeRecord> PoolVolumes::WriteListed(const StaticVolume& wish,
                                                  PoolVolumeRecord record) {
  RETURN_IF_ERROR(parts_.irreversible.Admit(IrreversibleStep::kProvision, record.name));
  RETURN_IF_ERROR(Advance(record, PoolVolumeEvent::kMake));
  if (const Status ready = Advance(record, PoolVolumeEvent::kDone); !ready.ok()) {
    return ready.error().AsMaybeApplied();
  }
  const bool is_export = record.backend == PoolBackendKind::kExport;
  parts_.log.Info(is_export ? "a listed export is a volume" : "a listed device is a volume",
                  {{"static_volume", wish.name},
                   {"volume", record.id},
                   {is_export ? "export" : "device", record.source}});
  TellChanged();
  return record;
}

Result<PoolVolumeRecord> PoolVolumes::NewStatic(const StaticVolume& wish,
                                                const IdentifiedDevice& device,
                                                const CallOptions& call) {
  const std::string& identity = device.facts.identity.stable_id;
  RETURN_IF_ERROR(BeginListing(NameOfStatic(wish.name), identity));
  Result<PoolVolumeRecord> taken = WriteStatic(wish, device, call);
  EndListing(identity);
  return taken;
}

Result<PoolVolumeRecord> PoolVolumes::WriteStatic(const StaticVolume& wish,
                                                  const IdentifiedDevice& device,
                                                  const CallOptions& call) {
  const DeviceIdentity& there = device.facts.identity;
  ASSIGN_OR_RETURN(PoolVolumeRecord record,
                   PlanListed(wish, PoolBackendKind::kStatic, there.stable_id));
  CallOptions of_device = call;
  of_device.domain = DeviceDomain(wish.device);
  ASSIGN_OR_RETURN(const DeviceProbe probe,
                   parts_.kernel.Call(ProbeDevice{device.path}, of_device));
  if (probe.identity.stable_id != there.stable_id) {
    return Error::NotApplied(Code::kUnavailable,
                             wish.device + " has become another device just now: try again");
  }
  ASSIGN_OR_RETURN(record.filesystem, FilesystemOn(wish, probe));
  record.capacity_bytes = there.size_bytes;
  record.block_bytes = kPoolBlockBytes;
  record.source_identity = there.stable_id;
  if (record.capacity_bytes <= 0) {
    return PoolRefusal("static volume " + wish.name + ": the device " + wish.device +
                       " has no room");
  }
  return WriteListed(wish, std::move(record));
}

// ---- exports ------------------------------------------------------------------------------------

Result<PoolVolumeRecord> PoolVolumes::TakeExport(const StaticVolume& wish) {
  if (const std::optional<PoolVolumeRecord> row = FindByName(NameOfStatic(wish.name))) {
    return MeetExport(wish, row->id);
  }
  return NewExport(wish);
}

// By its name alone it is known, so another name is another volume, whatever its server has there.
Result<PoolVolumeRecord> PoolVolumes::MeetExport(const StaticVolume& wish, const std::string& id) {
  ASSIGN_OR_RETURN(const Taken taken, Take({id}));
  ASSIGN_OR_RETURN(PoolVolumeRecord row, Find(id));
  if (row.backend != PoolBackendKind::kExport || row.source != wish.exported.source) {
    return PoolRefusal("static volume " + wish.name + ", on record as " + row.id + ", is " +
                       ShownSource(row) + ", and not the export " + wish.exported.source +
                       ": list another one by another name");
  }
  const PoolVolumeRecord before = row;
  row.source_options = wish.exported.options;
  row.source_read_only = wish.exported.read_only;
  return Relist(before, std::move(row));
}

Result<PoolVolumeRecord> PoolVolumes::NewExport(const StaticVolume& wish) {
  ASSIGN_OR_RETURN(PoolVolumeRecord record,
                   PlanListed(wish, PoolBackendKind::kExport, wish.exported.source));
  record.source_options = wish.exported.options;
  record.source_read_only = wish.exported.read_only;
  return WriteListed(wish, std::move(record));
}

}  // namespace volumed
