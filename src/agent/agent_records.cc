// Agent: its records, and what it does with records that may be older than the disks.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <utility>

#include "agent/agent.h"
#include "agent/command_admission.h"
#include "base/regular_file.h"
#include "base/strings.h"
#include "csi/csi_debts.h"
#include "csi/csi_driver_record.h"
#include "kube/directory_identity.h"
#include "operation/object_record.h"
#include "operation/storage_operations.h"
#include "operation/storage_record.h"
#include "operation/volume_record.h"
#include "os/filesystem_uuid.h"

namespace volumed {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMachineIdDigits = 32;  // Source: machine-id(5).

constexpr size_t kMaxMachineIdBytes = 4096;

// "" if the machine has no id: the file is missing, or says "uninitialized".
std::string ReadMachineId(const std::string& path) {
  const Result<std::string> text = ReadRegularFile(path, kMaxMachineIdBytes);
  const std::string id(TrimSpace(text.ok() ? *text : ""));
  const bool is_id = id.size() == kMachineIdDigits && std::all_of(id.begin(), id.end(), [](char c) {
                       return std::isxdigit(static_cast<unsigned char>(c)) != 0;
                     });
  return is_id ? id : "";
}

bool HoldsAnything(const std::string& directory) {
  std::error_code error;
  return fs::directory_iterator(directory, error) != fs::directory_iterator();
}

// Identifies the directory: a copy of it, or one that was restored from a copy, is another one. ""
// if its filesystem keeps no identity longer than a mount.
std::string IdentityOf(const std::string& directory) {
  const Result<OpenDirectory> open = OpenDirectoryAt(directory);
  if (!open.ok()) return "";
  const Result<KnownDirectory> known = IdentifyDirectory(open->fd);
  if (!known.ok() || !known->inode || !known->birth_unix_nanos) return "";
  return "inode " + std::to_string(*known->inode) + " made at " +
         std::to_string(*known->birth_unix_nanos);
}

// A root's objects and pods without records show that somebody has lost or removed the records. In
// an adopted root the pods are a kubelet's, which has other records.
std::string SignOfUse(const std::string& root, bool adopted) {
  std::string objects = root + "/volumed/objects";
  if (HoldsAnything(objects)) return objects;
  const std::string pods = root + "/pods";
  return !adopted && HoldsAnything(pods) ? pods : "";
}

}  // namespace

Status Agent::OpenRecords() {
  SqliteRecordStoreOptions options;
  options.directory = config_.root + "/volumed/records";
  options.place.root_uuid = FilesystemUuid(config_.root);
  // The directory is made before it is identified, so that the first start knows it, too.
  std::error_code error;
  fs::create_directory(options.directory, error);
  options.place.directory = error ? "" : IdentityOf(options.directory);
  // If the file does not answer, the machine is not compared, as without an id; the next start does
  // that.
  if (const Status answers = Answers(config_.machine_id_file); answers.ok()) {
    options.place.machine_id = ReadMachineId(config_.machine_id_file);
  } else {
    parts_->Retry(
        "machine-id-file", answers.error(),
        [this, file = config_.machine_id_file] { return Answers(file); },
        [] { return OkStatus(); });
  }
  options.sign_of_use = SignOfUse(config_.root, root_lock_->adopted());
  options.now_unix_ms = scheduler_->clock().WallUnixMillis();
  // Lost rows of these kinds are recorded again, or concern what is kept if nothing is known of it.
  // If rows of other kinds are lost, data could be given to another claim, or a disk be taken for a
  // new one.
  options.expendable_kinds = {
      kPodRecordKind,           kPodVolumeRecordKind,    kHoldRecordKind,
      kKnownObjectRecordKind,   kObjectSourceRecordKind, kDeletedObjectRecordKind,
      kCommandNumberRecordKind, kStorageOwnerRecordKind, kStorageReservationRecordKind,
      kLostRowsRecordKind,      kCsiDriverRecordKind};
  // The driver says it all anew when it registers.
  options.renewed_kinds = {kCsiDriverRecordKind};
  // A pod whose driver is absent leaves once it is on record what the driver is owed; and whoever
  // deletes a volume, which may be what makes room, reserves its storage for that first.
  options.teardown_kinds = {kCsiDebtRecordKind,
                            kStorageReservationRecordKind + std::string("/reclaim")};
  ASSIGN_OR_RETURN(records_, SqliteRecordStore::Open(options));
  recovery_gate_ = std::make_unique<RecoveryGate>(*records_, scheduler_->clock());
  const RecordsRecovery recovery = records_->recovery();
  log_->Info("records", {{"number", recovery.number},
                         {"not_compared", recovery.not_compared},
                         {"number_problem", recovery.number_problem}});
  if (recovery.active) {
    log_->Error(
        "the records may be older than the disks: mkfs, recycle, delete and provision are held "
        "back",
        {{"reason", recovery.reason}});
  }
  return OkStatus();
}

void Agent::AcceptRecords(const std::optional<std::string>& volume, RecordsAccepted done) {
  scheduler_->RunBlocking([this, volume, done = std::move(done)] {
    // The doubt ends with that, and at the next start nobody would know of it.
    Status ready = snapshots_->engine().SaveDoubted();
    if (ready.ok()) ready = pools_->volumes().SaveDoubted();
    Result<std::vector<PendingStep>> permitted =
        ready.ok() ? recovery_gate_->Accept(volume) : ready.error();
    scheduler_->Post([this, volume, done, permitted = std::move(permitted)] {
      if (!permitted.ok()) return done(permitted.error());
      log_->Warning("records accepted by command",
                    {{"volume", volume.value_or("all")}, {"permitted", permitted->size()}});
      pools_->Open();  // one whose directory is empty may become a pool by now
      AcceptedSteps steps;
      for (const PendingStep& step : *permitted) {
        const bool is_there = manager_->events().RetryStorage(step.volume);
        (is_there ? steps.tried : steps.gone).push_back(step);
      }
      watchdog_->Status(NotReadyReason().value_or("ready"));
      done(steps);
    });
  });
}

void Agent::AcceptVolume(const std::string& volume,
                         const std::function<void(const Result<AcceptedDirectory>&)>& done) {
  const auto ended = [this, volume, done](const OperationOutcome<AcceptedDirectory>& outcome) {
    if (outcome.failure) return done(outcome.failure->error);
    const bool is_other = outcome.value->was_other;
    log_->Log(is_other ? LogLevel::kWarning : LogLevel::kInfo,
              is_other ? "the directory of a persistent volume was accepted by command"
                       : "the directory of a persistent volume was the one on record already",
              {{"volume", volume},
               {"path", outcome.value->path},
               {"before", outcome.value->before},
               {"now", outcome.value->now}});
    manager_->events().RetryStorage(volume);
    done(*outcome.value);
  };
  if (const Status may = CheckAcceptVolume(*catalog_, *manager_, volume); !may.ok()) {
    return done(may.error());
  }
  const AcceptDirectory accept(volume);
  operations_->ResetBackoff(accept.key());  // a person has asked
  if (operations_->Start(accept, ended) == StartResult::kStarted) return;
  done(Error::NotApplied(Code::kUnavailable,
                         "the storage of persistent volume " + volume + " is being looked at"));
}

}  // namespace volumed
