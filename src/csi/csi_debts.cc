#include "csi/csi_debts.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "csi.pb.h"
#include "csi/csi_capabilities.h"
#include "csi/csi_context.h"
#include "csi/csi_node_requests.h"
#include "csi/csi_proof.h"
#include "operation/call_options.h"
#include "operation/operation_executor.h"
#include "operation/operation_parts.h"
#include "operation/record_codec.h"
#include "volume/driver_domain.h"

namespace volumed {
namespace {

struct CsiDebtRow {
  CsiDebt debt{};
  static void WireFields(auto& v, auto& m) {
    v.Text(1, m.debt.volume.driver);
    v.Text(2, m.debt.volume.handle);
    v(3, m.debt.what);
    v.Text(4, m.debt.path);
    v(7, m.debt.since_unix_ms);
  }
};

std::string_view WordOf(OwedCall what) {
  return what == OwedCall::kUnstage ? "unstage" : "unpublish";
}

// A key ends with it.
std::string_view PathHashOf(std::string_view key) { return key.substr(key.rfind('/') + 1); }

Status MakeOwedCall(const CsiContext& context, CsiDriver& driver, const CsiDebt& debt,
                    const CallOptions& call) {
  const CsiCallScope scope(context, call);
  const CsiVolumeId& volume = debt.volume;
  if (debt.what == OwedCall::kUnpublish) {
    RETURN_IF_ERROR(driver.Call<::csi::v1::NodeUnpublishVolumeResponse>(
        NodeUnpublishRequest(volume.handle, debt.path), scope.options()));
  } else {
    RETURN_IF_ERROR(driver.Call<::csi::v1::NodeUnstageVolumeResponse>(
        NodeUnstageRequest(volume.handle, debt.path), scope.options()));
  }
  return OkStatus();
}

// Whether the driver has nothing to take back.
bool IsMoot(const CsiDriver& driver, const CsiDebt& debt, const Error& error) {
  if (error.code() == Code::kNotFound) return true;
  return debt.what == OwedCall::kUnstage && error.code() == Code::kUnimplemented &&
         !DriverStages(driver.facts());
}

// The agent had unmounted what was there, or has still to. A driver would unmount whatever it
// finds.
Status CheckNothingHasCome(Kernel& kernel, const CsiDebt& debt, const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::vector<MountEntry> layers, MountLayers(kernel, debt.path, call));
  if (layers.empty()) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition,
                           std::string(OwedCallName(debt.what)) + " of volume " +
                               debt.volume.handle + " is owed to CSI driver " + debt.volume.driver +
                               ", and waits: " + layers.back().source + " is mounted at " +
                               debt.path + ", and it may be another volume by now");
}

Status DeliverAll(const CsiContext& context, CsiDriver& driver, const std::vector<CsiDebt>& debts,
                  const CallOptions& call, const std::string& own_path) {
  for (const CsiDebt& debt : debts) {
    if (debt.path != own_path) {
      RETURN_IF_ERROR(CheckNothingHasCome(context.kernel(), debt, call));
    }
    const Status made = MakeOwedCall(context, driver, debt, call);
    if (!made.ok() && !IsMoot(driver, debt, made.error())) {
      return made.error().With("it is owed since the driver was absent");
    }
    RETURN_IF_ERROR(context.parts.debts->Forget(debt));
    context.parts.log.Info("a call that a CSI driver was owed was made",
                           {{"driver", debt.volume.driver},
                            {"volume", debt.volume.handle},
                            {"method", OwedCallName(debt.what)},
                            {"path", debt.path}});
  }
  return OkStatus();
}

}  // namespace

std::string_view OwedCallName(OwedCall what) {
  return what == OwedCall::kUnstage ? "NodeUnstageVolume" : "NodeUnpublishVolume";
}

std::string RecordKey(const CsiDebt& debt) {
  return debt.volume.driver + "/" + CsiHandleHash(debt.volume.handle) + "/" +
         std::string(WordOf(debt.what)) + "/" + CsiHandleHash(debt.path);
}

Record EncodeRecord(const CsiDebt& debt) {
  return EncodeRow(kCsiDebtRecordKind, RecordKey(debt), CsiDebtRow{debt}, kCsiDebtRecordVersion);
}

Result<CsiDebt> DecodeCsiDebt(const Record& row) {
  ASSIGN_OR_RETURN(CsiDebtRow read,
                   ParseRow<CsiDebtRow>(row, kCsiDebtRecordKind, kCsiDebtRecordVersion));
  if (read.debt.what == OwedCall::kNotKnown) {
    return UnreadableRow(row, "owes a call that this program does not know");
  }
  RETURN_IF_ERROR(BelongsUnder(RecordKey(read.debt), row, !read.debt.volume.driver.empty()));
  return std::move(read.debt);
}

// Of a volume all debts are neighbours.
std::string CsiDebts::PrefixOf(const CsiVolumeId& volume) {
  return volume.driver + "/" + CsiHandleHash(volume.handle) + "/";
}

void CsiDebts::Index(const std::string& key) { by_path_[std::string(PathHashOf(key))].insert(key); }

void CsiDebts::Restore(const LoadedRecords& rows) {
  const MutexLock lock(mu_);
  for (const Record& row : rows.records) {
    Result<CsiDebt> debt = DecodeCsiDebt(row);
    if (debt.ok()) {
      debts_[row.key] = *std::move(debt);
    } else {
      unreadable_[row.key] = debt.error().message();
    }
    Index(row.key);
  }
  for (const QuarantinedRecord& row : rows.quarantined) {
    unreadable_[row.key] = row.reason;
    Index(row.key);
  }
}

void CsiDebts::SetListener(std::function<void(const CsiVolumeId&)> listener) {
  const MutexLock lock(mu_);
  listener_ = std::move(listener);
}

bool CsiDebts::MayOwe(const std::string& driver) const {
  const Duration limit = parts_.settings.Get().absent_limit;
  if (limit <= Duration::zero()) return false;
  const std::shared_ptr<CsiDriver> found = parts_.drivers.Find(driver);
  if (found == nullptr) return false;
  const std::optional<TimePoint> since = found->health().absent_since;
  return since && parts_.clock.Now() - *since >= limit;
}

std::optional<int64_t> CsiDebts::MayOweFromUnixMillis(const std::string& driver) const {
  const Duration limit = parts_.settings.Get().absent_limit;
  const std::shared_ptr<CsiDriver> found = parts_.drivers.Find(driver);
  if (limit <= Duration::zero() || found == nullptr) return std::nullopt;
  const std::optional<TimePoint> since = found->health().absent_since;
  if (!since) return std::nullopt;
  const Duration left = *since + limit - parts_.clock.Now();
  const int64_t from = parts_.clock.WallUnixMillis() +
                       std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
  return from - from % 1000;
}

Status CsiDebts::Owe(CsiDebt debt) {
  const std::string key = RecordKey(debt);
  std::function<void(const CsiVolumeId&)> listener;
  {
    const MutexLock lock(mu_);
    if (debts_.contains(key)) return OkStatus();
    listener = listener_;
  }
  RETURN_IF_ERROR(parts_.store.Put(EncodeRecord(debt), kCsiDebtRecordDurability));
  const CsiVolumeId volume = debt.volume;
  {
    const MutexLock lock(mu_);
    debts_[key] = std::move(debt);
    Index(key);
  }
  if (listener) listener(volume);
  return OkStatus();
}

Status CsiDebts::Forget(const CsiDebt& debt) {
  const std::string key = RecordKey(debt);
  RETURN_IF_ERROR(parts_.store.Remove(kCsiDebtRecordKind, key, kCsiDebtRecordDurability));
  const MutexLock lock(mu_);
  debts_.erase(key);
  const auto there = by_path_.find(std::string(PathHashOf(key)));
  if (there == by_path_.end()) return OkStatus();
  there->second.erase(key);
  if (there->second.empty()) by_path_.erase(there);
  return OkStatus();
}

std::string CsiDebts::WhatIsOwedAt(const std::string& path) const {
  const MutexLock lock(mu_);
  if (by_path_.empty()) return "";
  const auto there = by_path_.find(CsiHandleHash(path));
  if (there == by_path_.end()) return "";
  const std::string& key = *there->second.begin();
  const auto debt = debts_.find(key);
  if (debt == debts_.end()) {
    return "CSI driver " + key.substr(0, key.find('/')) +
           " may be owed a call, whose record cannot be read";
  }
  return "CSI driver " + debt->second.volume.driver + " is owed " +
         std::string(OwedCallName(debt->second.what)) + " of volume " + debt->second.volume.handle;
}

bool CsiDebts::Has(const CsiDebt& debt) const {
  const MutexLock lock(mu_);
  return debts_.contains(RecordKey(debt));
}

Result<std::vector<CsiDebt>> CsiDebts::Under(const std::string& prefix,
                                             const std::string& whose) const {
  std::vector<CsiDebt> owed;
  const auto bad = unreadable_.lower_bound(prefix);
  if (bad != unreadable_.end() && bad->first.starts_with(prefix)) {
    return Error::NotApplied(Code::kFailedPrecondition, whose + " cannot be read: " + bad->second);
  }
  for (auto at = debts_.lower_bound(prefix); at != debts_.end() && at->first.starts_with(prefix);
       ++at) {
    owed.push_back(at->second);
  }
  return owed;
}

Result<std::vector<CsiDebt>> CsiDebts::Of(const CsiVolumeId& volume) const {
  const MutexLock lock(mu_);
  if (debts_.empty() && unreadable_.empty()) return std::vector<CsiDebt>();
  ASSIGN_OR_RETURN(
      std::vector<CsiDebt> owed,
      Under(PrefixOf(volume), "volume " + volume.handle + " of CSI driver " + volume.driver +
                                  ": what the driver is owed about it"));
  std::stable_sort(owed.begin(), owed.end(),
                   [](const CsiDebt& a, const CsiDebt& b) { return a.what < b.what; });
  return owed;
}

Result<std::vector<CsiDebt>> CsiDebts::AllOf(const std::string& driver) const {
  const MutexLock lock(mu_);
  return Under(driver + "/", "CSI driver " + driver + ": what it is owed");
}

std::vector<CsiVolumeId> CsiDebts::VolumesOf(const std::string& driver) const {
  std::vector<CsiVolumeId> volumes;
  const MutexLock lock(mu_);
  const std::string prefix = driver + "/";
  for (auto at = debts_.lower_bound(prefix); at != debts_.end() && at->first.starts_with(prefix);
       ++at) {
    if (volumes.empty() || volumes.back() != at->second.volume) {
      volumes.push_back(at->second.volume);
    }
  }
  return volumes;
}

std::vector<std::string> CsiDebts::TextsOf(const std::string& driver) const {
  std::vector<std::string> texts;
  const std::string prefix = driver + "/";
  const MutexLock lock(mu_);
  for (auto at = debts_.lower_bound(prefix); at != debts_.end() && at->first.starts_with(prefix);
       ++at) {
    const CsiDebt& debt = at->second;
    texts.push_back(std::string(OwedCallName(debt.what)) + " of volume " + debt.volume.handle);
  }
  for (auto at = unreadable_.lower_bound(prefix);
       at != unreadable_.end() && at->first.starts_with(prefix); ++at) {
    texts.push_back("a call whose record cannot be read: " + at->second);
  }
  return texts;
}

bool CsiDebts::HasOf(const std::string& driver) const {
  const std::string prefix = driver + "/";
  const MutexLock lock(mu_);
  const auto owed = debts_.lower_bound(prefix);
  const auto bad = unreadable_.lower_bound(prefix);
  return (owed != debts_.end() && owed->first.starts_with(prefix)) ||
         (bad != unreadable_.end() && bad->first.starts_with(prefix));
}

std::map<std::string, int> CsiDebts::Counts() const {
  std::map<std::string, int> counts;
  const MutexLock lock(mu_);
  for (const auto& [key, debt] : debts_) ++counts[debt.volume.driver];
  return counts;
}

bool CsiDebts::BeginDelivery(const CsiVolumeId& volume) {
  const MutexLock lock(mu_);
  return delivering_.insert(PrefixOf(volume)).second;
}

void CsiDebts::EndDelivery(const CsiVolumeId& volume) {
  const MutexLock lock(mu_);
  delivering_.erase(PrefixOf(volume));
}

Status DeliverCsiDebts(const CsiContext& context, const CsiVolumeId& volume,
                       const CallOptions& call, const std::string& own_path) {
  CsiDebts* const debts = context.parts.debts;
  if (debts == nullptr) return OkStatus();
  ASSIGN_OR_RETURN(std::vector<CsiDebt> owed, debts->Of(volume));
  if (owed.empty()) return OkStatus();
  ASSIGN_OR_RETURN(const std::shared_ptr<CsiDriver> driver, FindDriver(context, volume.driver));
  if (!debts->BeginDelivery(volume)) {
    return Error::NotApplied(Code::kUnavailable,
                             "volume " + volume.handle + " of CSI driver " + volume.driver +
                                 ": what the driver is owed about it is just being made up for");
  }
  // Whoever delivered before may have ended since they were looked for.
  Result<std::vector<CsiDebt>> left = debts->Of(volume);
  const Status delivered =
      left.ok() ? DeliverAll(context, *driver, *left, call, own_path) : Status(left.error());
  debts->EndDelivery(volume);
  return delivered;
}

Result<std::vector<std::string>> GiveUpCsiDebts(CsiDebts& debts, Kernel& kernel,
                                                const std::string& driver,
                                                const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::vector<CsiDebt> owed, debts.AllOf(driver));
  for (const CsiDebt& debt : owed) RETURN_IF_ERROR(CheckNothingHasCome(kernel, debt, call));
  std::vector<std::string> given_up;
  for (const CsiDebt& debt : owed) {
    if (const Status forgotten = debts.Forget(debt); !forgotten.ok()) {
      return given_up.empty() ? forgotten.error() : forgotten.error().AsMaybeApplied();
    }
    given_up.push_back(std::string(OwedCallName(debt.what)) + " of volume " + debt.volume.handle +
                       " at " + debt.path);
  }
  return given_up;
}

Status CheckNothingIsOwedAt(const CsiContext& context, const std::string& path) {
  if (context.parts.debts == nullptr || path.empty()) return OkStatus();
  const std::string owed = context.parts.debts->WhatIsOwedAt(path);
  if (owed.empty()) return OkStatus();
  return Error::NotApplied(Code::kUnavailable,
                           owed + " at " + path + ": nothing is put there before it was made");
}

OperationKey DeliverDebts::key() const {
  return OperationKey(UniqueVolumeName("csi-debt/" + CsiVolumeName(volume.driver, volume.handle)));
}

OperationTraits DeliverDebts::Traits(const OperationParts&) const {
  OperationTraits traits{.key = key(),
                         .name = kDeliverDebtsOperation,
                         .plugin_name = CsiFullPluginName(volume.driver),
                         .pod_display_name = ""};
  traits.device = CsiUniqueName(volume.driver, volume.handle);
  traits.use = DeviceUse::kExclusive;
  traits.domain = {DriverDomain(volume.driver), ""};
  traits.takes_away = true;
  return traits;
}

std::optional<OperationFailure> DeliverDebts::Run(const OperationParts&,
                                                  OperationProgress& progress, Unit&) const {
  progress.EnterStep("Deliver");
  CallOptions call = OperationCall(key().ToString(), "", "", progress);
  call.deadline = Deadline::After(context->host.clock, context->parts.settings.Get().deadline);
  // To be admitted to the driver about the volume is to have delivered.
  const auto pass =
      AdmitCall(*context, volume.driver, NodeUnpublishRequest(volume.handle, ""), call);
  if (pass.ok()) return std::nullopt;
  return OperationFailure{kDeliverDebtsOperation, "Deliver", pass.error()};
}

}  // namespace volumed
