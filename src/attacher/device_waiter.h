// DeviceWaiter: waits until a block device is there: by the event that announces it first, by a
// slow second look against lost events, and never beyond the deadline.
//
// Whatever finds a device, it is given out only when its opened descriptor proves it to be the one
// that was asked for (attacher/device_query.h); that is done by the Kernel, since the opening of a
// device may hang. A stale link, a name that has a new owner, a device that goes while it is looked
// at: all count as "not there yet", and the error at the deadline names them. That proof is in
// device_waiter_proof.cc, all else in device_waiter.cc.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "attacher/announced_devices.h"
#include "attacher/device_query.h"
#include "attacher/known_devices.h"
#include "base/alive_guard.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "os/device_catalog.h"
#include "os/kernel.h"

namespace volumed {

// What led to the device, for figures: if events never do, something is wrong with udevd.
enum class DeviceFoundBy {
  kFirstLook,  // it was there when the wait began
  kEvent,
  kSecondLook,  // no event led to it: events were lost, or none announces it
};
// "first look", "event", "second look".
std::string_view DeviceFoundByName(DeviceFoundBy by);

// A device that was proven to be the wanted one, at the moment of the proof. It may go again at
// once.
struct FoundDevice {
  std::string node;   // "/dev/sdb"
  std::string link;   // the wanted link that leads there; empty when it was found otherwise
  DeviceFacts facts;  // `facts.identity` pins it for what follows: see IdentityDifference
  DeviceFoundBy found_by = DeviceFoundBy::kFirstLook;
  Duration waited{};
  Duration since_event{};  // with kEvent: from its receipt until now
};

// How often a device is looked for, and how many are opened at a time.
struct DeviceWaiterOptions {
  Duration first_recheck = std::chrono::seconds(1);  // doubling up to
  Duration longest_recheck = std::chrono::seconds(16);
  // A device that does not answer for so long is tried again at the next look.
  Duration identify_timeout = std::chrono::seconds(10);
  // Devices that are opened at a time: few workers stay warm, and many would have to be started for
  // a burst. One that takes longer than this is no longer counted, so that dead ones hold up
  // nobody.
  int max_identifying = 4;
  Duration slow_after = std::chrono::milliseconds(100);
  // Devices that are asked for their names at a time, if there is no udevd that knows them.
  int max_naming = 4;
};

// Totals since the waiter was made, but for `waiting`.
struct DeviceWaiterStats {
  size_t waiting = 0;
  uint64_t events = 0;
  uint64_t events_lost = 0;  // times, not events
  uint64_t looks = 0;
  uint64_t verifications = 0;  // devices opened, for whatever reason
  uint64_t known_early = 0;    // found by what they said before udevd's event
  uint64_t refused = 0;        // answers that were not the wanted one's, and devices that went
  uint64_t found_first = 0, found_by_event = 0, found_by_second_look = 0;
  uint64_t expired = 0;
};

// Names a wait; 0 is none.
using DeviceWaitId = uint64_t;

// Threads: the control thread; completions run there too, and never inside Wait() or Cancel(). An
// event costs as much as the waits that it concerns, however many others wait.
class DeviceWaiter final : private DeviceListener {
 public:
  // Errors, not applied: DeadlineExceeded, with what was looked for, which links there are and
  // where they lead, and why that is not it; InvalidArgument for a query that cannot be met, or an
  // infinite deadline.
  using Completion = std::function<void(Result<FoundDevice> found)>;

  // All outlive the waiter. It becomes the catalog's listener.
  DeviceWaiter(Scheduler& scheduler, Kernel& kernel, DeviceCatalog& catalog,
               DeviceWaiterOptions options = {});
  // Completions of waits that still wait are not called.
  ~DeviceWaiter() override;
  DeviceWaiter(const DeviceWaiter&) = delete;
  DeviceWaiter& operator=(const DeviceWaiter&) = delete;

  // `done` is called exactly once, unless the wait is cancelled; it may begin or cancel other
  // waits. Blocks: never.
  DeviceWaitId Wait(DeviceQuery query, Deadline deadline, Completion done);
  // The completion is not called any more, and is destroyed. False if there is no such wait, or no
  // longer.
  bool Cancel(DeviceWaitId id);

  // Hears of each device that comes, that is another by what is known of it, or that changes its
  // size, after the waits that it concerns. Not of news that say nothing new: udevd tells of a
  // device whenever somebody closes it who could write to it, e2fsck for one. At most one.
  void SetAppearanceListener(std::function<void(const CatalogDevice&)> listener) {
    appeared_ = std::move(listener);
  }

  // Hears of each device that goes, with the names that it had, as far as an event told them. At
  // most one.
  void SetRemovalListener(std::function<void(const CatalogDevice&)> listener) {
    vanished_ = std::move(listener);
  }

  DeviceWaiterStats stats() const;

 private:
  struct Candidate {
    CatalogDevice record;
    std::string link;
  };
  struct Waiting {
    DeviceQuery query;
    Deadline deadline = Deadline::Infinite();
    Completion done;
    TimePoint since{};
    TimerId deadline_timer = 0;
    TimerId recheck_timer = 0;
    Duration recheck_after{};
    DeviceFoundBy trigger = DeviceFoundBy::kFirstLook;
    TimePoint event_at{};
    // One device at a time is being verified. `verifying` counts up with each.
    std::shared_ptr<CancelToken> verification;
    std::string verified_node;
    uint64_t attempt = 0;
    bool look_again = false;
    std::map<std::string, std::string> refused;  // node: why, when last opened
  };

  void OnDevice(const DeviceEvent& event) override;
  void OnAnnounced(const DeviceEvent& event) override;
  void OnEventsLost(const std::string& why) override;
  void TellOfChange(const DeviceEvent& event);

  void LookAtWaitsFor(const std::vector<std::string>& keys, TimePoint event_at);
  void Look(DeviceWaitId id, Waiting& wait);
  void Recheck(DeviceWaitId id);
  std::vector<Candidate> FindCandidates(const Waiting& wait);
  std::vector<Candidate> FindByLinks(const DeviceQuery& query);
  std::vector<Candidate> FindByOwnName(const DeviceQuery& query);
  std::optional<Candidate> Choose(const Waiting& wait, std::vector<Candidate> candidates) const;

  void Verify(DeviceWaitId id, Waiting& wait, Candidate candidate);
  void Verified(DeviceWaitId id, uint64_t attempt, const Candidate& candidate,
                const Result<DeviceFacts>& facts);
  bool IsStillThere(const Waiting& wait, const Candidate& candidate);
  void Give(DeviceWaitId id, Waiting& wait, const Candidate& candidate, const DeviceFacts& facts);

  void Expire(DeviceWaitId id);
  std::string WhyNot(const Waiting& wait);
  std::string WhyNot(const Waiting& wait, const Candidate& candidate) const;
  // Takes the wait out, with its timers and keys.
  Completion Take(DeviceWaitId id);

  // The serials and WWIDs of the node's devices. Listed anew if older than the first re-check.
  void RefreshKnown(bool now);
  void NameDevices();
  void Named(DeviceNumber number, const Result<DeviceFacts>& facts);
  struct Identification {
    std::string node;
    Deadline deadline = Deadline::Infinite();
    std::shared_ptr<CancelToken> cancel;
    std::function<void(const Result<DeviceFacts>&)> then;
  };
  // Is done beside the control thread, in its turn; `then` hears of it unless the waiter is gone or
  // it was cancelled before its turn.
  void Identify(Identification what);
  void StartIdentifications();
  // Of what the kernel announced, while somebody waits and nobody else is to be identified.
  void StartAnnounced();
  void Answered(const CatalogDevice& device, const Result<DeviceFacts>& facts);
  // No longer counted among those that run.
  void Uncount(uint64_t identification);

  Scheduler& scheduler_;
  Kernel& kernel_;
  DeviceCatalog& catalog_;
  const DeviceWaiterOptions options_;

  DeviceWaitId last_id_ = 0;
  std::map<DeviceWaitId, Waiting> waits_;
  std::unordered_multimap<std::string, DeviceWaitId> index_;  // by DeviceKeys

  KnownDevices known_;
  AnnouncedDevices announced_;
  std::map<DeviceNumber, std::shared_ptr<CancelToken>> asking_;  // of these, those that are asked
  std::optional<TimePoint> listed_at_;
  TimePoint source_checked_at_{};
  size_t by_own_name_ = 0;  // waits that only a serial or WWID leads to
  int naming_ = 0;          // devices that are being asked for their names

  std::deque<Identification> to_identify_;
  uint64_t last_identification_ = 0;
  std::map<uint64_t, TimerId> identifying_;  // with the timers that stop counting them

  std::function<void(const CatalogDevice&)> appeared_;
  std::function<void(const CatalogDevice&)> vanished_;
  std::map<DeviceNumber, CatalogDevice> heard_;  // of devices that are there, as of the last event
  DeviceWaiterStats stats_;
  AliveGuard alive_;
};

}  // namespace volumed
