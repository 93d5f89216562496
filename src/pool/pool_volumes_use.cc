// Volumes that are there: opened, closed, and made larger.
#include <algorithm>
#include <utility>

#include "pool/pool_volumes_parts.h"
#include "pool/static_backend.h"

namespace volumed {
Error AboutFilesOf(const std::string& id, const Error& error) {
  if (error.code() != Code::kNotFound) return error;
  return Error::FromParts(
      Code::kFailedPrecondition, error.outcome(), error.sys_errno(),
      "volume " + id + " is on record, but something of it is missing: " + error.message());
}

Status CheckUsable(const PoolVolumeRecord& record) {
  if (record.state == PoolVolumeState::kReady || record.state == PoolVolumeState::kExpanding) {
    return OkStatus();
  }
  return PoolRefusal("volume " + record.id + " is " +
                     std::string(PoolVolumeStateName(record.state)));
}

Result<OpenedVolume> PoolVolumes::Open(const std::string& id, bool read_only,
                                       const CallOptions& call) {
  ASSIGN_OR_RETURN(Held held, HoldThere(id, call));
  RETURN_IF_ERROR(CheckUsable(held.record));
  RETURN_IF_ERROR(CheckStillListed(held.record));
  const Result<PoolTuning> tuning = ParsePoolTuning(held.record.mutable_parameters);
  // A later program has tuned it in a way that this one does not know.
  if (!tuning.ok()) return PoolRefusal("volume " + id + ": " + tuning.error().message());
  const bool waits = held.parameters.consistency != PoolConsistency::kBestEffort;
  if (!read_only && waits) RETURN_IF_ERROR(CheckNotCopied(id));
  if (!held.record.used) {
    held.record.used = true;
    RETURN_IF_ERROR(Write(held.record));
  }
  RETURN_IF_ERROR(CompleteFile(held));
  PoolBackend::BeforeOpen before;
  if (!held.record.filesystem.new_uuid.empty()) {
    before = [this, &held](const SafePath& file) {
      return GiveOwnIdentity(held.record, file, held.call);
    };
  }
  Result<OpenedVolume> opened =
      held.backend->Open(held.record, *tuning, read_only, before, held.call);
  if (!opened.ok()) return AboutFilesOf(id, opened.error());
  RETURN_IF_ERROR(NoteBound(held.record, *opened));
  return opened;
}

// An earlier program has made it without that on record, or the filesystem could not count then.
Status PoolVolumes::NoteBound(PoolVolumeRecord& record, const OpenedVolume& opened) {
  if (!opened.why_unbounded.empty()) {
    parts_.log.Warning("a directory has not the limit that its size is to be",
                       {{"volume", record.id}, {"why", opened.why_unbounded}});
  }
  if (opened.project_id == 0 || record.project_id == opened.project_id) return OkStatus();
  record.project_id = opened.project_id;
  return Write(record);
}

// A row that is ready has no file if MakeAnew() was cut off.
Status PoolVolumes::CompleteFile(Held& held) {
  const bool has_file = !IsListed(held.record.backend);
  if (!has_file || held.record.object.inode != 0) return OkStatus();
  ASSIGN_OR_RETURN(const MadeArtefact made,
                   held.backend->Make(held.record, held.parameters, held.call));
  held.record.object = made.object;
  held.record.project_id = made.project_id.value_or(0);
  return Write(held.record);
}

Status PoolVolumes::MakeAnew(const std::string& id, const CallOptions& call) {
  ASSIGN_OR_RETURN(Held held, HoldThere(id, call));
  if (held.record.state != PoolVolumeState::kReady) {
    return PoolRefusal("volume " + id + " is " +
                       std::string(PoolVolumeStateName(held.record.state)));
  }
  const bool has_content = !held.record.from_snapshot.empty() || !held.record.from_volume.empty() ||
                           IsListed(held.record.backend) || !held.record.source.empty();
  if (held.record.is_block || has_content || held.record.filesystem != PoolFilesystem{}) {
    return PoolRefusal("volume " + id + " may have somebody's data, and is not made anew");
  }
  RETURN_IF_ERROR(CheckNotCopied(id));
  RETURN_IF_ERROR(parts_.irreversible.Admit(IrreversibleStep::kFormat, held.record.name));
  RETURN_IF_ERROR(held.backend->Close(ParsePoolId(id).value(), held.call));
  const PoolVolumeRecord before = held.record;
  held.record.object = {};
  RETURN_IF_ERROR(Write(held.record));
  if (const Status gone = held.backend->Discard(before, held.call); !gone.ok()) {
    // Nothing was removed: what is there may be another file, which must not become the volume's.
    if (!gone.error().maybe_applied() && Write(before).ok()) return gone;
    return gone.error().AsMaybeApplied();
  }
  parts_.log.Warning(
      "the first format of a volume did not end: its file is made anew, and is empty",
      {{"volume", id}});
  const Status made = CompleteFile(held);
  return made.ok() ? made : Status(made.error().AsMaybeApplied());
}

Status PoolVolumes::Close(const std::string& id, const CallOptions& call) {
  if (IsLost(id)) return CloseLost(id, call);
  Result<Held> held = HoldToClose(id, call);
  if (!held.ok() && held.error().code() == Code::kNotFound) return OkStatus();
  if (!held.ok()) return held.error();
  return held->backend->Close(ParsePoolId(id).value(), held->call);
}

Status PoolVolumes::NoteFilesystem(const std::string& id, const PoolFilesystem& filesystem) {
  ASSIGN_OR_RETURN(Held held, Hold(id, {}));
  PoolFilesystem& recorded = held.record.filesystem;
  if (recorded == filesystem) return OkStatus();
  if (recorded != PoolFilesystem{}) {
    return PoolRefusal("volume " + id + " has the filesystem " + recorded.type + " " +
                       recorded.uuid + " on record, and " + filesystem.type + " " +
                       filesystem.uuid + " on its device");
  }
  recorded = filesystem;
  return Write(held.record);
}

Result<int64_t> PoolVolumes::Expand(const std::string& id, int64_t bytes, const CallOptions& call) {
  ASSIGN_OR_RETURN(const int64_t wanted, RoundPoolSize(bytes));
  ASSIGN_OR_RETURN(Held held, HoldThere(id, call));
  PoolVolumeRecord& record = held.record;
  RETURN_IF_ERROR(CheckUsable(record));
  RETURN_IF_ERROR(CheckListedSize(record, wanted));
  if (wanted <= record.capacity_bytes) return record.capacity_bytes;
  RETURN_IF_ERROR(CheckNotCopied(id));
  if (PoolFilesystemOf(record) == "btrfs" && wanted < kLeastResizedBtrfs) {
    return Error::NotApplied(Code::kOutOfRange, "volume " + id +
                                                    " has a btrfs, which no kernel resizes to less "
                                                    "than 256Mi: ask for that at least");
  }
  RETURN_IF_ERROR(CompleteFile(held));
  // An earlier call may have made the file as large as its own target already.
  const int64_t promised = std::max(record.capacity_bytes, record.target_bytes);
  const int64_t target = std::max(wanted, record.target_bytes);
  if (record.state == PoolVolumeState::kReady || target != record.target_bytes) {
    const int64_t more = held.parameters.overcommit ? 0 : target - promised;
    const Pool* const pool = PoolNamed(record.pool);
    ASSIGN_OR_RETURN(const Reservation reserved, Reserve(*pool, record.backend, id, more, call));
    record.target_bytes = target;
    RETURN_IF_ERROR(Advance(record, PoolVolumeEvent::kExpand));
  }
  const Result<MadeArtefact> larger =
      held.backend->Grow(record, target, held.parameters, held.call);
  if (!larger.ok()) return AboutFilesOf(id, larger.error());
  record.capacity_bytes = target;
  record.target_bytes = 0;
  if (record.project_id == 0) record.project_id = larger->project_id.value_or(0);
  if (const Status grown = Advance(record, PoolVolumeEvent::kDone); !grown.ok()) {
    return grown.error().AsMaybeApplied();
  }
  TellChanged();
  return target;
}

}  // namespace volumed
