// CsiFigures: what is counted of CSI drivers, their calls and their registrations.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "csi/csi_drivers.h"
#include "csi/registration.h"
#include "csi/rpc/csi_call.h"
#include "metrics/exported_families.h"

namespace volumed {

// A code as Go's gRPC names it, "Canceled"; "OK" for none. Source: grpc-go codes/code_string.go
// (Code.String).
std::string GoCodeName(std::optional<Code> code);

// Names that others chose become labels, which last as long as the program: of all but the first
// 256 the label is "other". Threads: any, but for Collect(). Blocks: never.
class CsiFigures final : public CsiCallObserver {
 public:
  // It outlives this object.
  explicit CsiFigures(ExportedFamilies& families) : families_(families) {}

  // Counts calls of csi.v1; those by which plugins register are none. Source: kubernetes
  // pkg/volume/util/metrics.go@v1.36.2 (RecordCSIOperationLatencyMetrics).
  void CallEnded(const CsiCallReport& report) override;
  // Without a name if the plugin gave none.
  void RegistrationEnded(const std::string& driver, bool registered);
  // A driver said that the RPC ("NodePublishVolume") succeeded, and the node shows otherwise.
  void Lied(const std::string& driver, const std::string& method);

  // What is so now. `waiting` has how many operations wait, by the driver's lane. Threads: control.
  void Collect(const std::vector<DriverView>& drivers, const std::vector<RegisteredSocket>& sockets,
               const std::map<std::string, int>& waiting);

  // How many calls drivers are owed now. Threads: control.
  void CollectDebts(const std::map<std::string, int>& by_driver);

 private:
  std::string LabelOf(const std::string& driver) EXCLUDES(mu_);

  ExportedFamilies& families_;
  Mutex mu_;
  std::set<std::string> labels_ GUARDED_BY(mu_);
};

}  // namespace volumed
