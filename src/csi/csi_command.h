// CsiCommands: calls to drivers that a person makes by hand and that change something: what is
// known of each from before it is sent until its outcome is known, on record, so that nobody else
// calls a driver about the same volume meanwhile; least of all after a call whose outcome is open.
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/mutex.h"
#include "base/result.h"
#include "csi/csi_names.h"
#include "csi/rpc/csi_methods.h"
#include "records/record_store.h"

namespace volumed {

inline constexpr const char* kCsiCommandRecordKind = "csi-command";
inline constexpr uint32_t kCsiCommandRecordVersion = 1;
// The one call that nothing takes back.
inline constexpr const char* kCsiDeleteVolume = "DeleteVolume";
// After a power cut, too, nobody else may go on with the volume.
inline constexpr Durability kCsiCommandRecordDurability = Durability::kPowerLoss;

// A call that was begun. As long as there is its row, it may have had its effect.
struct CsiCommandRecord {
  std::string driver;
  // What the request is about, by the key field of its method: a volume's handle, or the name of
  // what is to be made.
  std::string about;
  std::string method;  // "NodeStageVolume"
  // The plain fields of the request alone: no map and no message, for these may have secrets.
  std::string request_json;
  int64_t since_unix_ms = 0;
  friend bool operator==(const CsiCommandRecord&, const CsiCommandRecord&) = default;
};

// All are pure; threads: any.
//
// What calls must not be about at the same time, and the key of the row: of a volume its unique
// name; of anything else the method's name comes first. Nullopt for a request that says nothing of
// what it is about.
std::optional<std::string> CsiCommandKey(const std::string& driver, const CsiMethod& method,
                                         const google::protobuf::Message& request);
// The handle of the volume that the request of a call is about, if the call changes something; else
// empty.
std::string CsiVolumeToChange(const google::protobuf::Message& request);
// REQUIRES: the request is the method's, and has a key.
CsiCommandRecord CsiCommandOf(const std::string& driver, const CsiMethod& method,
                              const google::protobuf::Message& request, int64_t now_unix_ms);
// The call that takes back what this one does to the volume, both ways; empty if there is none that
// is about the same volume.
std::string_view CsiInverseOf(std::string_view method);

Record EncodeRecord(const CsiCommandRecord& record);
// Errors: those of ParseRow(); DataLoss, not applied, for a method that there is not, or under
// another key.
Result<CsiCommandRecord> DecodeCsiCommandRecord(const Record& row);

// Threads: any. Blocks: Write(), End() and GiveUp(), until the store has answered; the others
// never.
class CsiCommands {
 public:
  // They outlive this object.
  CsiCommands(RecordStore& store, Logger& log) : store_(store), log_(log) {}
  CsiCommands(const CsiCommands&) = delete;
  CsiCommands& operator=(const CsiCommands&) = delete;

  // Takes over what an earlier run has begun: each of these calls has an open outcome. What a row
  // that cannot be read was about is kept from everybody.
  void Restore(const LoadedRecords& rows) EXCLUDES(mu_);

  // What an operation has while it calls a driver: until it is destroyed, no call by hand about the
  // same volume begins. Threads: any.
  class Pass {
   public:
    Pass() = default;  // of a call that nothing excludes
    Pass(CsiCommands& commands, std::string key) : commands_(&commands), key_(std::move(key)) {}
    Pass(Pass&& other) noexcept
        : commands_(std::exchange(other.commands_, nullptr)), key_(std::move(other.key_)) {}
    Pass& operator=(Pass&& other) noexcept {
      std::swap(commands_, other.commands_);
      std::swap(key_, other.key_);
      return *this;
    }
    ~Pass() {
      if (commands_ != nullptr) commands_->OperationEnded(key_);
    }

   private:
    CsiCommands* commands_ = nullptr;
    std::string key_;
  };
  // Whether the agent may make this call itself. Errors, not applied: Unavailable while a call by
  // hand about the same volume is under way; FailedPrecondition after one whose outcome is open,
  // saying what is to be done. Calls that change nothing are never refused.
  Result<Pass> AdmitOperation(const std::string& driver, const google::protobuf::Message& request)
      EXCLUDES(mu_);
  // Whether a call by hand about the volume is under way, or has an open outcome. Errors: those of
  // AdmitOperation().
  Status CheckVolume(const std::string& driver, const std::string& handle) const EXCLUDES(mu_);
  // Whether anything of the driver is open.
  bool HasOf(const std::string& driver) const EXCLUDES(mu_);
  // Whether an earlier call about the same is open.
  bool IsOpen(const CsiCommandRecord& command) const EXCLUDES(mu_);
  // The DeleteVolume calls whose outcome is open: the handle of each with its driver, and what it
  // is called, for people. A row that cannot be read may be one of them.
  std::vector<std::pair<CsiVolumeId, std::string>> OpenDeletions() const EXCLUDES(mu_);
  // What is open of it, for people: 'DeleteVolume by hand of "v"'.
  std::vector<std::string> OpenOf(const std::string& driver) const EXCLUDES(mu_);

  // An administrator's word that the driver never comes back. The paths that its open calls name,
  // each with the call, for people. Errors, not applied: Unavailable while a call is under way,
  // FailedPrecondition if a row cannot be read: nothing is given up then.
  Result<std::map<std::string, std::string>> PathsToGiveUp(const std::string& driver) const
      EXCLUDES(mu_);
  // What is open of the driver keeps nothing from anybody any more; returns it, as OpenOf() does.
  // Errors: those of PathsToGiveUp(); those of the store, maybe applied if something was given up.
  Result<std::vector<std::string>> GiveUp(const std::string& driver) EXCLUDES(mu_);

  // Whether this call may be made by hand, as far as other calls are concerned: after one by hand
  // whose outcome is open only the same about the same place, or its inverse. Errors, not applied:
  // Unavailable while another call about the volume is under way, FailedPrecondition.
  Status CheckCommand(const CsiCommandRecord& command) const EXCLUDES(mu_);
  // The call begins: from now on AdmitOperation() refuses others about the volume. REQUIRES: after
  // success End() is called. Errors: as of CheckCommand().
  Status Begin(const CsiCommandRecord& command) EXCLUDES(mu_);
  // Puts it on record, before it is sent. REQUIRES: it has begun. Errors, not applied: the store's.
  Status Write(const CsiCommandRecord& command) EXCLUDES(mu_);
  // It has ended with this. REQUIRES: it has begun. Once nothing is open the row goes, and the
  // agent may go on; returns whether that is so. A row that cannot be removed leaves the outcome
  // open.
  bool End(const CsiCommandRecord& command, const Status& answer) EXCLUDES(mu_);

 private:
  struct Entry {
    CsiCommandRecord command;
    bool running = false;
    bool open = false;            // an earlier call of it may have had its effect
    bool stored = false;          // it has a row, or may have
    std::string unreadable = {};  // why its row cannot be read; else empty
  };

  void OperationEnded(const std::string& key) EXCLUDES(mu_);
  Status CheckLocked(const CsiCommandRecord& command) const REQUIRES(mu_);
  Status CheckAgainst(const Entry& there, const CsiCommandRecord& command) const;
  Error Refusal(const Entry& there) const;
  // Errors: those of PathsToGiveUp().
  Status CheckGiveUp(const std::string& driver) const REQUIRES(mu_);

  RecordStore& store_;
  Logger& log_;
  mutable Mutex mu_;
  std::map<std::string, Entry> entries_ GUARDED_BY(mu_);
  std::map<std::string, int> operations_ GUARDED_BY(mu_);  // how many call, by key
};

}  // namespace volumed
