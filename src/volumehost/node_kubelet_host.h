// NodeKubeletHost: the KubeletHost of this agent. It knows what the sources say of CSI drivers, and
// what plugins say keeps the node from being ready.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "kube/object_catalog.h"
#include "volumehost/volume_host.h"

namespace volumed {

// Threads: Follow and SetSynced on the control thread; the rest any, except WaitForCacheSync, which
// must not be called on the control thread, since it waits for it.
class NodeKubeletHost final : public KubeletHost {
 public:
  explicit NodeKubeletHost(const Clock& clock) : clock_(clock) {}

  // Takes over the changes that the catalog reports, and calls the listeners, on this thread, for
  // each that is of a CSI driver. A driver of which it is not known any more whether it exists
  // stays as it was last, and nobody is called: volumes that are on the node were made by what it
  // said, and a default in its place could be the opposite.
  void Follow(const std::vector<ObjectChange>& changes) EXCLUDES(mu_);
  // Whether every expected source has delivered a complete list. Wakes those who wait for it.
  void SetSynced(bool synced) EXCLUDES(mu_);

  // What plugins said last; nullopt if nothing is wrong. For readiness.
  std::optional<Error> kubelet_error() const EXCLUDES(mu_);

  void SetKubeletError(std::optional<Error> error) override EXCLUDES(mu_);
  Result<CsiDriverPtr> GetCsiDriver(const std::string& name) const override EXCLUDES(mu_);
  std::vector<CsiDriverPtr> ListCsiDrivers() const override EXCLUDES(mu_);
  bool CsiDriversSynced() const override EXCLUDES(mu_);
  Status WaitForCacheSync(const CallOptions& call) override EXCLUDES(mu_);
  void AddCsiDriverListener(CsiDriverListener listener) override EXCLUDES(mu_);

 private:
  const Clock& clock_;
  mutable Mutex mu_;
  CondVar synced_changed_;
  bool synced_ GUARDED_BY(mu_) = false;
  std::optional<Error> error_ GUARDED_BY(mu_);
  std::map<std::string, CsiDriverPtr> drivers_ GUARDED_BY(mu_);
  // Drivers whose content was never known here -> why, with the file.
  std::map<std::string, std::string> unknown_ GUARDED_BY(mu_);
  std::vector<CsiDriverListener> listeners_ GUARDED_BY(mu_);
};

}  // namespace volumed
