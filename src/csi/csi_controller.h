// Calls to the controller of a CSI driver that attach and detach, and what its list of volumes says
// of them.
// Source: CSI spec v1.13.0, ControllerPublishVolume, ControllerUnpublishVolume, ListVolumes.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "csi/csi_capabilities.h"
#include "csi/csi_context.h"
#include "csi/csi_names.h"
#include "kube/object_meta.h"
#include "os/kernel.h"

namespace volumed {

// Of a context that a driver gives to a volume, its keys and values together. The specification
// asks for 4 KiB, and drivers in use have more; what is kept in a record and sent with each call
// must have an end.
inline constexpr size_t kMostCsiContextBytes = 65536;

// Attaches the volume to the node that the driver calls so, and returns the publish context.
// Blocks: until the answer or the deadline. Errors: those of CallDriver() and, not applied, of
// ControllerPublishRequest(); Unavailable, not applied, without the Secret that the volume names;
// Internal, maybe applied, for a context that is too large to be kept.
Result<StringMap> ControllerPublish(const CsiContext& context, const CsiDriverFacts& facts,
                                    const CsiVolume& volume, const CallOptions& call);

// Takes it from that node. A volume or node that the driver does not know is success.
// `with_secrets` is the volume, whose Secret is sent; null: that is not known, and none is sent.
// REQUIRES: `node_id` is not empty, which would stand for all nodes. Blocks, Errors: as above.
Status ControllerUnpublish(const CsiContext& context, const CsiVolumeId& id,
                           const std::string& node_id, const CsiVolume* with_secrets,
                           const CallOptions& call);

// Which volumes are attached to this node, as drivers list them (LIST_VOLUMES_PUBLISHED_NODES). A
// list costs the driver as much as it has volumes, so each is asked for one in 30 s at most; until
// then what it said last is said again. The exception is a volume about which it has lied.
// Threads: any. Blocks: until the answer, 5 s, or the call's deadline.
class CsiPublishedNodes {
 public:
  static constexpr Duration kPause = std::chrono::seconds(30);
  static constexpr Duration kLongest = std::chrono::seconds(5);
  // What is asked of a driver: volumes, each with the name by which its node was called.
  using Question = std::map<std::string, std::string>;
  // By handle. A volume that the driver does not list, or that was not asked about in time, is not
  // in it: nothing is known of it.
  using Listed = std::map<std::string, bool>;

  // The context outlives this object.
  explicit CsiPublishedNodes(const CsiContext& context) : context_(context) {}

  // Nothing is asked of a driver that cannot list so, or that is away or silent. Errors: none; what
  // is not known is not in the answer.
  Listed Ask(const std::string& driver, const Question& question, const CallOptions& call)
      EXCLUDES(mu_);

  // The driver has said that the volume is attached to this node (or not): holds its list against
  // it. Success if nothing speaks against it. Errors: that of DriverLied(); Unavailable, maybe
  // applied, if the driver has lied about this volume before and does not list its volumes now.
  Status Prove(const CsiVolumeId& id, const std::string& node_id, bool attached,
               const CallOptions& call) EXCLUDES(mu_);

 private:
  struct Last {
    std::optional<TimePoint> asked;
    Listed listed;
    uint64_t changes = 0;            // of what may be attached; a list that one overtakes is old
    std::set<std::string> suspects;  // volumes about which it has lied
  };
  // What is to be done about a question: it is asked (then no answer is known yet), or not.
  struct Turn {
    bool asks = false;
    uint64_t changes = 0;
    Listed known;
  };

  bool CanList(const std::string& driver) const;
  Turn TakeTurn(const std::string& driver, const Question& question) EXCLUDES(mu_);
  Result<Listed> List(const std::string& driver, const Question& question,
                      const CallOptions& call) const;
  void Remember(const std::string& driver, const Turn& turn, const Listed& listed) EXCLUDES(mu_);
  // The driver was called to attach or detach it. True if it has lied about it last.
  bool Changed(const CsiVolumeId& id) EXCLUDES(mu_);
  void SetSuspect(const CsiVolumeId& id, bool suspect) EXCLUDES(mu_);

  const CsiContext& context_;
  mutable Mutex mu_;
  std::map<std::string, Last> drivers_ GUARDED_BY(mu_);
};

// Runs all, side by side on executor threads as far as there are any, and returns when all have
// ended. This thread takes part, so it never waits for one that was not begun. Blocks: as they do.
void RunSideBySide(Scheduler& scheduler, std::vector<std::function<void()>> tasks);

}  // namespace volumed
