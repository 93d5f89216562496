// AttachLimits: how many volumes of a kind the node can take, which volume has each slot, and which
// ones wait. A volume that would exceed the limit is refused at once, with a reason that names the
// limit and the user of each slot. The volume that has waited longest gets the next slot.
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
  // Why a device may not be attached now, and since when it waits.
  struct Refusal {
    Error error;
    int64_t since_unix_ms = 0;
    bool is_new = false;  // the device was not waiting before
  };

  // All arguments outlive this object.
  AttachLimits(const Clock& clock, const VolumePluginMgr& plugins,
               const DesiredStateOfWorld& desired, const ActualStateOfWorld& actual)
      : clock_(clock), plugins_(plugins), desired_(desired), actual_(actual) {}

  // nullopt if the device may be attached now. Otherwise it waits from now on, and the error is
  // ResourceExhausted, not applied, or the one of GetVolumeLimits if the plugin cannot be used on
  // this node. A device that may be attached is always admitted: it keeps its slot even if the
  // limit was lowered.
  std::optional<Refusal> Admit(const UniqueVolumeName& device, const WantedVolume& wanted);
  // The device waits no more. True if it waited before.
  bool Forget(const UniqueVolumeName& device);

  // To be asked when a slot may have become free: returns, for each limit, the first devices in
  // turn, as many as there are free slots and at least one, so that the first hears why it still
  // waits. If the plugin names no limit any more, all that wait are returned; if it does not tell
  // its limits, the first. The number of devices that wait does not add to the cost.
  std::vector<UniqueVolumeName> NextInTurn() const;
  // Why this device waits, by the present slots; nullopt if it does not wait.
  std::optional<Refusal> Find(const UniqueVolumeName& device) const;

 private:
  struct Waiter {
    std::string plugin_name;
    std::string limit_key;
    int64_t since_unix_ms = 0;
    uint64_t turn = 0;  // the lower one came first
  };

  std::optional<Error> Check(const UniqueVolumeName& device, const Waiter& waiter) const;
  // How many devices have waited longer for a slot of the same limit.
  int64_t AheadOf(const Waiter& waiter) const;
  // The devices that take a slot of this limit, except `device`.
  std::vector<UniqueVolumeName> SlotsOf(const std::string& limit_key,
                                        const UniqueVolumeName& device) const;
  std::string UsersText(const UniqueVolumeName& device) const;

  const Clock& clock_;
  const VolumePluginMgr& plugins_;
  const DesiredStateOfWorld& desired_;
  const ActualStateOfWorld& actual_;
  uint64_t last_turn_ = 0;
  std::map<UniqueVolumeName, Waiter> waiting_;
  std::map<std::string, std::map<uint64_t, UniqueVolumeName>> turns_;  // waiting_ by limit and turn
};

}  // namespace volumed
