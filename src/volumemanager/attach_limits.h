// AttachLimits: how many volumes of a kind the node can take, who has each slot, and who waits for
// one. A volume that would exceed the limit is refused at once, with a reason that names the limit
// and the user of each slot; the one that waited longest gets the next slot.
// Source: kubernetes pkg/volume/plugins.go@v1.21.1 (VolumePluginWithAttachLimits), which the
// scheduler asks there.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "volumemanager/actual_state_of_world.h"
#include "volumemanager/desired_state_of_world.h"

namespace volumed {

// Threads: the control thread. Blocks: never.
class AttachLimits {
 public:
  struct Refusal {
    Error error;
    int64_t since_unix_ms = 0;
    bool is_new = false;  // it was not waiting before
  };

  // All outlive this.
  AttachLimits(const Clock& clock, const VolumePluginMgr& plugins,
               const DesiredStateOfWorld& desired, const ActualStateOfWorld& actual)
      : clock_(clock), plugins_(plugins), desired_(desired), actual_(actual) {}

  // nullopt: it may be attached now. Otherwise it waits from now on: ResourceExhausted, not
  // applied; or what GetVolumeLimits says when the plugin cannot be used on this node.
  std::optional<Refusal> Admit(const UniqueVolumeName& device, const WantedVolume& wanted);
  // It waits no more. True if it did.
  bool Forget(const UniqueVolumeName& device);

  // For when a slot may have become free: those whose turn it is, as many of each limit as there
  // are free slots, and one to hear why it still waits. Costs nothing for the others that wait.
  std::vector<UniqueVolumeName> NextInTurn() const;
  // Why this one waits, as the slots are now; nullopt if it does not.
  std::optional<Refusal> Find(const UniqueVolumeName& device) const;

 private:
  struct Waiter {
    std::string plugin_name;
    std::string limit_key;
    int64_t since_unix_ms = 0;
    uint64_t turn = 0;  // the lower one came first
  };

  std::optional<Error> Check(const UniqueVolumeName& device, const Waiter& waiter) const;
  // How many wait longer for a slot of the same limit.
  int64_t AheadOf(const Waiter& waiter) const;
  // The devices that take a slot of this limit, without `device`.
  std::vector<UniqueVolumeName> SlotsOf(const std::string& limit_key,
                                        const UniqueVolumeName& device) const;
  std::string UsersText(const UniqueVolumeName& device) const;

  const Clock& clock_;
  const VolumePluginMgr& plugins_;
  const DesiredStateOfWorld& desired_;
  const ActualStateOfWorld& actual_;
  uint64_t last_turn_ = 0;
  std::map<UniqueVolumeName, Waiter> waiting_;
  std::map<std::string, std::map<uint64_t, UniqueVolumeName>> turns_;  // of waiting_, by limit
};

}  // namespace volumed
