// CsiDebts: calls that drivers are owed. A driver that is absent for longer than
// driver-absent-limit holds up no pod that leaves: what is certainly a plain mount is unmounted
// without it (csi/csi_owing.h), and the NodeUnpublishVolume or NodeUnstageVolume that this leaves
// out goes on record first, and is made when the driver is there again, before any other call about
// the volume. Drivers go by the path: nothing is put at one that a debt names, and the call is not
// made while something is mounted there that has come since.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/wire_enum.h"
#include "csi/csi_drivers.h"
#include "csi/csi_names.h"
#include "csi/csi_settings.h"
#include "operation/operation.h"
#include "os/kernel.h"
#include "records/record_store.h"

namespace volumed {

struct CsiContext;

inline constexpr const char* kCsiDebtRecordKind = "csi-debt";
inline constexpr uint32_t kCsiDebtRecordVersion = 1;
// A driver keeps over a reboot what it believes to be published.
inline constexpr Durability kCsiDebtRecordDurability = Durability::kPowerLoss;

// The numbers are stored in records. They are delivered in this order.
enum class OwedCall { kNotKnown, kUnpublish, kUnstage };
constexpr WireEnum<OwedCall> WireEnumOf(OwedCall) {
  return {OwedCall::kUnstage, OwedCall::kNotKnown};
}
// "NodeUnstageVolume". REQUIRES: it is known.
std::string_view OwedCallName(OwedCall what);

// Key: "<driver>/<sha256 of the handle>/<unpublish or unstage>/<sha256 of the path>".
struct CsiDebt {
  CsiVolumeId volume{};
  OwedCall what = OwedCall::kNotKnown;
  std::string path{};  // the target path, or the staging path
  int64_t since_unix_ms = 0;
  friend bool operator==(const CsiDebt&, const CsiDebt&) = default;
};

// All three: pure; threads: any.
std::string RecordKey(const CsiDebt& debt);
Record EncodeRecord(const CsiDebt& debt);
// Errors: those of ParseRow(); DataLoss, not applied, under another key, and for a call that this
// program does not know.
Result<CsiDebt> DecodeCsiDebt(const Record& row);

// Threads: any. Blocks: Owe() and Forget(), until the store has answered; the others never.
class CsiDebts {
 public:
  // They outlive this object.
  struct Parts {
    RecordStore& store;
    const CsiDrivers& drivers;
    const SharedCsiPluginSettings& settings;
    const Clock& clock;
    Logger& log;
  };
  explicit CsiDebts(Parts parts) : parts_(parts) {}
  CsiDebts(const CsiDebts&) = delete;
  CsiDebts& operator=(const CsiDebts&) = delete;

  // Takes over what earlier runs owe. A row that cannot be read keeps its volume from everybody.
  void Restore(const LoadedRecords& rows) EXCLUDES(mu_);
  // Called on any thread after a debt was made; must not block.
  void SetListener(std::function<void(const CsiVolumeId&)> listener) EXCLUDES(mu_);

  // Whether the driver is absent for longer than the limit, so that it may be done without.
  bool MayOwe(const std::string& driver) const;
  // From when on it is so, to the second; nullopt if the driver is there, or there is no limit.
  std::optional<int64_t> MayOweFromUnixMillis(const std::string& driver) const;
  // The call is owed from now on, on record; no effect if it is already. Errors, not applied: the
  // store's.
  Status Owe(CsiDebt debt) EXCLUDES(mu_);
  // It was made, or is not needed. Errors, not applied: the store's.
  Status Forget(const CsiDebt& debt) EXCLUDES(mu_);
  bool Has(const CsiDebt& debt) const EXCLUDES(mu_);

  // What is owed about the volume, in the order in which it is to be delivered. Errors, not
  // applied: FailedPrecondition if a row about it cannot be read.
  Result<std::vector<CsiDebt>> Of(const CsiVolumeId& volume) const EXCLUDES(mu_);
  // All that is owed to the driver. Errors, not applied: FailedPrecondition if a row of it cannot
  // be read.
  Result<std::vector<CsiDebt>> AllOf(const std::string& driver) const EXCLUDES(mu_);
  // The driver's volumes about which anything is owed.
  std::vector<CsiVolumeId> VolumesOf(const std::string& driver) const EXCLUDES(mu_);
  // What is owed to the driver, for people: "NodeUnstageVolume of volume v".
  std::vector<std::string> TextsOf(const std::string& driver) const EXCLUDES(mu_);
  // Whether anything is owed to the driver, or may be.
  bool HasOf(const std::string& driver) const EXCLUDES(mu_);
  // Which call is owed, or may be, about this path, whatever the volume, for people: "CSI driver x
  // is owed NodeUnpublishVolume of volume y"; "" if none is.
  std::string WhatIsOwedAt(const std::string& path) const EXCLUDES(mu_);
  // How many calls are owed, by driver.
  std::map<std::string, int> Counts() const EXCLUDES(mu_);

  // Of several deliveries for one volume one begins; each that has begun ends.
  bool BeginDelivery(const CsiVolumeId& volume) EXCLUDES(mu_);
  void EndDelivery(const CsiVolumeId& volume) EXCLUDES(mu_);

 private:
  static std::string PrefixOf(const CsiVolumeId& volume);
  void Index(const std::string& key) REQUIRES(mu_);
  // Those whose keys begin so. Errors, not applied: FailedPrecondition, with the words "<whose>
  // cannot be read", if one of them cannot.
  Result<std::vector<CsiDebt>> Under(const std::string& prefix, const std::string& whose) const
      REQUIRES(mu_);

  const Parts parts_;
  mutable Mutex mu_;
  std::map<std::string, CsiDebt> debts_ GUARDED_BY(mu_);           // by key
  std::map<std::string, std::string> unreadable_ GUARDED_BY(mu_);  // key -> why
  // The keys of both, by the hash of the path with which they end.
  std::map<std::string, std::set<std::string>> by_path_ GUARDED_BY(mu_);
  std::set<std::string> delivering_ GUARDED_BY(mu_);
  std::function<void(const CsiVolumeId&)> listener_ GUARDED_BY(mu_);
};

// Makes the calls that are owed about the volume: unpublish before unstage. A driver that does not
// know the volume is owed nothing. Threads: any but control. Blocks: until the answers or the
// deadline. Errors: those of FindDriver() and of the calls, and of the store; Unavailable, not
// applied, if it is being delivered already; FailedPrecondition, not applied, while something is
// mounted at a path that a debt names, for it may be another volume's; that of CsiDebts::Of(). What
// was not delivered stays owed. `own_path` is the one from which the caller takes this very volume
// away: what is mounted there is its own, as after an unmount that was left unfinished.
Status DeliverCsiDebts(const CsiContext& context, const CsiVolumeId& volume,
                       const CallOptions& call, const std::string& own_path = "");

// An administrator's word that the driver never comes back: it is owed nothing any more. Returns
// what was given up, for people. Nothing is if anything is mounted at the path of a debt: that may
// be what the driver was to take away. Threads: any but control. Blocks: for the mount table until
// the deadline, and for the store. Errors: those of AllOf() and of the look, not applied;
// FailedPrecondition, not applied; those of the store, maybe applied if something was given up
// already.
Result<std::vector<std::string>> GiveUpCsiDebts(CsiDebts& debts, Kernel& kernel,
                                                const std::string& driver, const CallOptions& call);

// Whether nothing is owed about the path at which something is to be put. Threads: any. Blocks:
// never. Errors: Unavailable, not applied, naming the debt.
Status CheckNothingIsOwedAt(const CsiContext& context, const std::string& path);

inline constexpr const char* kDeliverDebtsOperation = "csi_debt";

// The same as an operation, beside which nothing else is done to the volume's device.
struct DeliverDebts : OperationOf<Unit> {
  // The context outlives the operation.
  DeliverDebts(const CsiContext& of_context, CsiVolumeId of_volume)
      : context(&of_context), volume(std::move(of_volume)) {}

  // "csi-debt/<driver>^<handle>"
  OperationKey key() const;
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      Unit& result) const;

  const CsiContext* context;
  CsiVolumeId volume;
};

}  // namespace volumed
