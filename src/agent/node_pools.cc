#include "agent/node_pools.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "mounter/mount_refs.h"
#include "pool/pool_id.h"
#include "pool/pool_names.h"
#include "pool/pool_operations.h"
#include "pool/pool_plugin.h"
#include "pool/static_export.h"
#include "volume/unique_name.h"

namespace volumed {
namespace {

constexpr Duration kOpenPoolDeadline = std::chrono::minutes(1);
constexpr Duration kLookDeadline = std::chrono::seconds(10);
constexpr Duration kStaticDeadline = std::chrono::seconds(30);
constexpr Duration kFirstPoolDelay = std::chrono::seconds(1);
constexpr Duration kLongestPoolDelay = std::chrono::minutes(1);
// For so long a container may ask for more than its pod is allowed, with cgroups of version 1.
constexpr Duration kThrottlePeriod = std::chrono::seconds(5);

std::vector<std::unique_ptr<Pool>> MakePools(const NodePools::Parts& parts,
                                             std::vector<PoolSettings> settings) {
  std::vector<std::unique_ptr<Pool>> pools;
  for (PoolSettings& pool : settings) {
    pools.push_back(std::make_unique<Pool>(std::move(pool), parts.kernel, parts.store,
                                           parts.scheduler.clock(), parts.log));
  }
  return pools;
}

template <typename T>
Status Readable(const Result<T>& decoded) {
  return decoded.ok() ? OkStatus() : Status(decoded.error());
}

// Whether the path is the directory, or lies below it.
bool LiesAt(const std::string& path, const std::string& directory) {
  if (directory == "/" || path == directory) return true;
  return path.size() > directory.size() && path.starts_with(directory) &&
         path[directory.size()] == '/';
}

// Whether the filesystem on the device, or the device's node, is mounted anywhere.
Result<bool> IsMountedAnywhere(Kernel& kernel, const std::string& device, const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::vector<std::string> binds, FindMountRefs(kernel, device, call));
  if (!binds.empty()) return true;
  ASSIGN_OR_RETURN(const MountListing all, kernel.Call(ListMounts{}, call));
  return std::any_of(all.mounts.begin(), all.mounts.end(),
                     [&device](const MountEntry& mount) { return mount.source == device; });
}

// Of the volume's devices. Where a CO has one only the row of the device says, and that may be
// lost.
Result<bool> IsMountedAnywhere(Kernel& kernel, const Pool& pool, const std::string& id,
                               const CallOptions& call) {
  const std::optional<PoolId> parsed = ParsePoolId(id);
  const Pool::Opened* const opened = pool.opened();
  if (!parsed || opened == nullptr) return true;
  for (const auto& [kind, backend] : opened->backends) {
    ASSIGN_OR_RETURN(const std::vector<std::string> devices, backend->ListDevices(*parsed, call));
    for (const std::string& device : devices) {
      ASSIGN_OR_RETURN(const bool is_mounted, IsMountedAnywhere(kernel, device, call));
      if (is_mounted) return true;
    }
  }
  return false;
}

}  // namespace

std::vector<PoolSettings> PoolSettingsOf(const Config& config, const std::string& holder) {
  std::vector<PoolSettings> pools;
  for (const auto& [name, path] : config.pools) {
    PoolSettings pool;
    pool.name = name;
    pool.path = path;
    const auto capacity = config.pool_capacity.find(name);
    if (capacity != config.pool_capacity.end()) pool.limits.capacity_bytes = capacity->second;
    pool.limits.reserve_percent = config.pool_reserve_percent;
    const auto lvm = config.pool_lvm.find(name);
    if (lvm != config.pool_lvm.end()) pool.lvm = lvm->second;
    pool.holder = holder;
    pools.push_back(std::move(pool));
  }
  return pools;
}

std::vector<StaticVolume> StaticVolumesOf(const Config& config) {
  std::vector<StaticVolume> volumes;
  if (config.pools.empty()) return volumes;
  const std::string& pool = config.pools.front().first;
  for (const auto& [name, device] : config.static_volumes) {
    volumes.push_back({name, pool, device, /*is_block=*/false});
  }
  for (const auto& [name, device] : config.static_block_volumes) {
    volumes.push_back({name, pool, device, /*is_block=*/true});
  }
  for (const auto& [name, text] : config.static_exports) {
    Result<StaticExport> exported = ParseStaticExport(text);
    // The parser of the configuration has let in no other text.
    if (!exported.ok()) continue;
    volumes.push_back({name, pool, /*device=*/"", /*is_block=*/false, *std::move(exported)});
  }
  return volumes;
}

NodePools::NodePools(Parts parts, std::vector<PoolSettings> pools,
                     std::vector<StaticVolume> static_volumes)
    : parts_(std::move(parts)),
      static_volumes_(std::move(static_volumes)),
      volumes_(
          {parts_.store, parts_.kernel, parts_.scheduler.clock(), parts_.log, parts_.irreversible},
          MakePools(parts_, std::move(pools))) {
  std::set<std::string> listed;
  for (const StaticVolume& volume : static_volumes_) listed.insert(volume.name);
  volumes_.ListStatic(std::move(listed));
  for (const std::unique_ptr<Pool>& pool : volumes_.pools()) {
    pool->SetAway([this, &pool = *pool, watch = alive_.watch()] {
      parts_.scheduler.Post([this, &pool, watch] {
        if (watch.alive()) Away(pool);
      });
    });
  }
  volumes_.SetShortChanged([this, watch = alive_.watch()](const std::string&) {
    parts_.scheduler.Post([this, watch] {
      if (!watch.alive()) return;
      for (const std::unique_ptr<Pool>& pool : volumes_.pools()) TellTrouble(*pool);
    });
  });
}

std::vector<OtherRecordKind> NodePools::RecordKinds() {
  return {
      {kPoolRecordKind, [](const Record& row) { return Readable(DecodePoolRecord(row)); }},
      {kPoolVolumeRecordKind,
       [](const Record& row) { return Readable(DecodePoolVolumeRecord(row)); }},
      {kPoolCutRecordKind, [](const Record& row) { return Readable(DecodePoolCutRecord(row)); }}};
}

bool NodePools::IsKindOf(const std::string& kind) {
  return kind == kPoolRecordKind || kind == kPoolVolumeRecordKind || kind == kPoolCutRecordKind;
}

void NodePools::NoteFound(const std::vector<PodVolumeRecord>& volumes) {
  const std::string prefix = GetUniqueVolumeName(kPoolPluginName, "").str();
  for (const PodVolumeRecord& volume : volumes) {
    const auto id = StripPrefix(volume.unique_name.str(), prefix);
    if (id) volumes_.NoteThrottled(std::string(*id), PodOfPublication(volume));
  }
}

void NodePools::KeepThrottlesLater() {
  keeps_throttles_ = true;
  parts_.scheduler.PostAfter(kThrottlePeriod, alive_.Guarded([this] {
    if (!volumes_.HasThrottlesToKeep()) return KeepThrottlesLater();
    parts_.scheduler.RunBlocking([this, watch = alive_.watch()] {
      CallOptions call;
      call.deadline = Deadline::After(parts_.scheduler.clock(), kThrottlePeriod);
      volumes_.KeepThrottles(call);
      parts_.scheduler.Post([this, watch] {
        if (watch.alive()) KeepThrottlesLater();
      });
    });
  }));
}

// Nobody opens such a pool, so that nobody can have its volumes or delete them.
void NodePools::NameMissingPools() {
  std::map<std::string, int> missing;
  for (const PoolVolumeRecord& volume : volumes_.All()) {
    if (!IsListed(volume.backend)) ++missing[volume.pool];
  }
  for (const std::unique_ptr<Pool>& pool : volumes_.pools()) missing.erase(pool->name());
  for (const auto& [name, count] : missing) {
    parts_.agent_parts.Set(
        "pool " + name,
        Error::NotApplied(Code::kFailedPrecondition,
                          "the configuration names it no more, and of its volumes " +
                              std::to_string(count) + " are on record: name it again, and delete " +
                              "them first if it is to go"),
        PartNeed::kOptional);
  }
}

void NodePools::Open() {
  NameMissingPools();
  if (!keeps_throttles_ && !volumes_.pools().empty()) KeepThrottlesLater();
  for (const std::unique_ptr<Pool>& pool : volumes_.pools()) OpenPool(*pool);
}

void NodePools::MountsChanged(const std::vector<std::string>& mount_points) {
  for (const std::unique_ptr<Pool>& pool : volumes_.pools()) {
    const auto opening = openings_.find(pool.get());
    // Before the rows are restored nothing is opened.
    if (opening == openings_.end()) continue;
    const bool concerns = std::any_of(
        mount_points.begin(), mount_points.end(),
        [&pool](const std::string& mount_point) { return LiesAt(pool->path(), mount_point); });
    if (!concerns) continue;
    if (opening->second.is_open) {
      LookAt(*pool);
    } else {
      OpenPool(*pool);
    }
  }
}

// What is found is told by the pool itself.
void NodePools::LookAt(const Pool& pool) {
  parts_.scheduler.RunBlocking([this, &pool] {
    CallOptions call;
    call.deadline = Deadline::After(parts_.scheduler.clock(), kLookDeadline);
    call.domain = pool.path();
    (void)pool.CheckThere(call);
  });
}

void NodePools::Away(Pool& pool) {
  Opening& opening = openings_[&pool];
  const Status state = pool.state();
  if (!opening.is_open || state.ok()) return;  // it was tried since
  opening.is_open = false;
  parts_.agent_parts.Set("pool " + pool.name(), state, PartNeed::kOptional);
  TellTrouble(pool);
  if (opening.runs) {
    opening.again = true;
  } else {
    TryLater(pool);
  }
}

PoolTrouble NodePools::TroubleOf(const Pool& pool, const Opening& opening) const {
  const Status state = pool.state();
  if (!opening.was_tried) return {};
  if (!state.ok()) return {kPoolUnreachableReason, state.error().message()};
  const PoolSeen seen = volumes_.Seen(pool.name());
  const bool is_short = seen.account && seen.account->is_short;
  if (!is_short) return {};
  return {kPoolShortReason, "pool " + pool.name() + ": " + kPoolShortText};
}

void NodePools::TellTrouble(const Pool& pool) {
  const auto opening = openings_.find(&pool);
  if (opening == openings_.end()) return;
  PoolTrouble trouble = TroubleOf(pool, opening->second);
  if (trouble == opening->second.told) return;
  opening->second.told = std::move(trouble);
  if (parts_.troubled) parts_.troubled(pool.path(), opening->second.told);
}

// What no record knows may be on the node all the same, if its records were lost.
bool NodePools::MayBeOnNode(const Pool& pool, const std::string& id,
                            const CallOptions& call) const {
  const std::optional<DeviceRecord> device =
      parts_.devices.Find(GetUniqueVolumeName(kPoolPluginName, id));
  if (device && !IsGone(*device)) return true;
  const Result<std::optional<MountEntry>> mount =
      FindMountAt(parts_.kernel, PoolDevicePlace(parts_.paths, id).Display(), call);
  if (!mount.ok() || mount->has_value()) return true;
  const Result<bool> is_mounted = IsMountedAnywhere(parts_.kernel, pool, id, call);
  return !is_mounted.ok() || *is_mounted;
}

// A pool whose directory does not answer keeps no other one from being opened.
void NodePools::OpenPool(Pool& pool) {
  Opening& opening = openings_[&pool];
  ++opening.trial;  // one that waits for its time is not needed any more
  if (opening.runs) {
    opening.again = true;
    return;
  }
  opening.runs = true;
  parts_.scheduler.RunBlocking([this, &pool, watch = alive_.watch()] {
    CallOptions call;
    call.deadline = Deadline::After(parts_.scheduler.clock(), kOpenPoolDeadline);
    const Status state = volumes_.Recover(
        pool, [this, &pool, &call](const std::string& id) { return MayBeOnNode(pool, id, call); },
        call);
    parts_.scheduler.Post([this, &pool, watch, state] {
      if (watch.alive()) Tried(pool, state);
    });
  });
}

void NodePools::Tried(Pool& pool, const Status& recovered) {
  Opening& opening = openings_.at(&pool);
  opening.runs = false;
  opening.was_tried = true;
  // What could not be ended in a pool that is open is a trouble of its own; and one that was opened
  // may be away again by now.
  const Status now = pool.state();
  const Status state = recovered.ok() ? now : recovered;
  const bool was_open = std::exchange(opening.is_open, now.ok());
  parts_.agent_parts.Set("pool " + pool.name(), state, PartNeed::kOptional);
  TellTrouble(pool);
  if (opening.is_open && !was_open && parts_.opened) parts_.opened();
  if (opening.is_open && !was_open) {
    TakeStatic(pool);
    LookForLost();
  }
  if (std::exchange(opening.again, false)) return OpenPool(pool);
  if (state.ok()) {
    opening.delay = {};
  } else {
    TryLater(pool);
  }
}

Status NodePools::TryStatic(const StaticVolume& volume) {
  CallOptions call;
  call.deadline = Deadline::After(parts_.scheduler.clock(), kStaticDeadline);
  const Result<PoolVolumeRecord> taken = volumes_.TakeStatic(volume, call);
  return taken.ok() ? OkStatus() : Status(taken.error());
}

void NodePools::TakeStatic(const Pool& pool) {
  for (const StaticVolume& volume : static_volumes_) {
    if (volume.pool != pool.name() || !static_begun_.insert(volume.name).second) continue;
    parts_.scheduler.RunBlocking([this, volume, watch = alive_.watch()] {
      const Status state = TryStatic(volume);
      parts_.scheduler.Post([this, volume, watch, state] {
        if (!watch.alive()) return;
        const std::string part = "static volume " + volume.name;
        if (state.ok()) return parts_.agent_parts.Set(part, state, PartNeed::kOptional);
        parts_.agent_parts.Retry(
            part, state.error(), [this, volume] { return TryStatic(volume); },
            [] { return OkStatus(); }, PartNeed::kOptional);
      });
    });
  }
}

// What is not known yet is a pool's that is not open, which is a part itself.
Status NodePools::CheckNoneIsLost() {
  CallOptions call;
  call.deadline = Deadline::After(parts_.scheduler.clock(), kLookDeadline);
  Status known = volumes_.CheckNamesKnown(call);
  const bool is_lost = !known.ok() && known.error().code() == Code::kFailedPrecondition;
  return is_lost ? known : OkStatus();
}

void NodePools::LookForLost() {
  if (std::exchange(looks_for_lost_, true)) return;
  parts_.scheduler.RunBlocking([this, watch = alive_.watch()] {
    const Status state = CheckNoneIsLost();
    parts_.scheduler.Post([this, watch, state] {
      if (!watch.alive()) return;
      const std::string part = "records of the pools";
      if (state.ok()) {
        looks_for_lost_ = false;
        return parts_.agent_parts.Set(part, state, PartNeed::kOptional);
      }
      const auto found = [this] {
        looks_for_lost_ = false;
        return OkStatus();
      };
      parts_.agent_parts.Retry(
          part, state.error(), [this] { return CheckNoneIsLost(); }, found, PartNeed::kOptional);
    });
  });
}

void NodePools::TryLater(Pool& pool) {
  Opening& opening = openings_.at(&pool);
  opening.delay = opening.delay == Duration::zero()
                      ? kFirstPoolDelay
                      : std::min(opening.delay * 2, kLongestPoolDelay);
  parts_.scheduler.PostAfter(opening.delay, alive_.Guarded([this, &pool, trial = opening.trial] {
    if (openings_.at(&pool).trial == trial) OpenPool(pool);
  }));
}

}  // namespace volumed
