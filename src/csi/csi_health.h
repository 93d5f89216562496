// What drivers say of the health of their volumes, and of the storage behind them.
//
// Up to 1.12 of the specification a volume's condition comes with its figures; since 1.13 there are
// RPCs for it, which are called only if the settings say csi-level 1.13 and the driver can do them.
// Source: CSI spec v1.12.0 (VolumeCondition), v1.13.0 (NodeGetVolumeHealth, NodeGetStorageHealth);
// kubernetes KEP-1432.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/alive_guard.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "csi.pb.h"
#include "csi/csi_context.h"
#include "csi/csi_driver_record.h"
#include "csi/csi_drivers.h"
#include "csi/csi_settings.h"
#include "metrics/exported_families.h"
#include "os/kernel.h"

namespace volumed {

struct CsiCondition {
  bool abnormal = false;
  std::string message;  // printable
  friend bool operator==(const CsiCondition&, const CsiCondition&) = default;
};

// Threads: any, for these four. Blocks: never.
//
// Whether the driver tells of conditions by figures, or by an RPC of its own.
bool TellsCondition(const CsiDriverFacts& driver);
bool TellsHealth(const CsiDriverFacts& driver, CsiLevel level);
// Nullopt if the answer has none. The secrets of the driver are removed from its words.
std::optional<CsiCondition> ConditionOf(const ::csi::v1::NodeGetVolumeStatsResponse& answer,
                                        const CsiSecrets& secrets = {});
// "DATA_LOSS: DiskFailure: two disks are gone; ..": abnormal if there is any entry.
CsiCondition ConditionOf(const ::csi::v1::VolumeHealth& health, const CsiSecrets& secrets = {});

// Calls NodeGetVolumeHealth. `publish_path` may be empty. Threads: any but control. Blocks: until
// the deadline. Errors: those of CallDriver(); Internal, not applied, if the answer says nothing,
// which counts as a lie: a volume that is well has an empty list.
Result<CsiCondition> AskVolumeHealth(const CsiContext& context, const std::string& driver,
                                     const std::string& handle, const std::string& publish_path,
                                     const CallOptions& call);

// Asks the drivers that can tell (GET_STORAGE_HEALTH) of the storage behind their volumes, each
// once in a period, and shows the answers as csi_node_storage_health_status. A driver is not asked
// again while it has not answered; one that is away, or whose answer is an error, has no series.
// Threads: control. Blocks: never. Errors: none; failures are logged.
class CsiStorageHealth {
 public:
  // They outlive this.
  struct Parts {
    Scheduler& scheduler;
    const CsiDrivers& drivers;
    const SharedCsiPluginSettings& settings;
    ExportedFamilies& metrics;
    Logger& log;
  };
  // Zero or less: nobody is ever asked.
  CsiStorageHealth(Parts parts, Duration period);
  ~CsiStorageHealth();
  CsiStorageHealth(const CsiStorageHealth&) = delete;
  CsiStorageHealth& operator=(const CsiStorageHealth&) = delete;

  // Holds from now on.
  void SetPeriod(Duration period);

 private:
  // Status and reason.
  using Ills = std::set<std::pair<std::string, std::string>>;

  void Arm();
  void AskAll();
  void Ask(const std::string& driver);
  void Take(const std::string& driver,
            const Result<::csi::v1::NodeGetStorageHealthResponse>& answer);
  void Show();

  const Parts parts_;
  Duration period_;
  TimerId timer_ = 0;
  std::set<std::string> asked_;  // who has not answered
  std::map<std::string, Ills> ills_;
  AliveGuard alive_;
};

}  // namespace volumed
