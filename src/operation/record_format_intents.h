// RecordFormatIntents: keeps the intents of formats in the records of devices, so that one row says
// everything about a device, and has one writer.
#pragma once

#include <optional>
#include <string>

#include "base/ids.h"
#include "mounter/format_intents.h"
#include "operation/storage_guard.h"
#include "operation/volume_record_keeper.h"

namespace volumed {

// Keys are unique volume names. Threads, Blocks: as FormatIntents. Errors: those of the
// StorageGuard and of the store. Begin and Finish fail with FailedPrecondition, not applied, if the
// device is not being mounted, or if its storage was not reserved.
class RecordFormatIntents final : public FormatIntents {
 public:
  // `devices` and `storage` outlive this object.
  RecordFormatIntents(DeviceRecordKeeper& devices, StorageGuard& storage, BootId boot_id)
      : devices_(devices), storage_(storage), boot_id_(std::move(boot_id)) {}

  Result<std::optional<FormatIntent>> Find(const std::string& key) override;
  // Takes the device's storage to be mounted; Begin changes that to a format, and Finish and
  // Withdraw change it back.
  Status Reserve(const std::string& key, const std::string& device,
                 const CallOptions& call) override;
  Status Begin(const std::string& key, const FormatIntent& intent) override;
  Status Finish(const std::string& key, const FormatIntent& intent) override;
  Status Withdraw(const std::string& key) override;

 private:
  Status Put(const std::string& key, const FormatIntent& intent, bool finished);

  DeviceRecordKeeper& devices_;
  StorageGuard& storage_;
  const BootId boot_id_;
};

}  // namespace volumed
