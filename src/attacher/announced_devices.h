// AnnouncedDevices: what is known already of devices that the kernel has announced and udevd is
// still at work on. Its rules take longer than to ask a device who it is; so that is asked
// meanwhile, and the answer is there when udevd's event comes.
//
// What a device said counts only for the very disk that said it (its disk sequence), and only until
// the kernel announces a change of it. An announcement that a program asked for is none: udevd has
// each device announced again that somebody closed who could write to it, each fsck for one.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "os/device_catalog.h"
#include "os/device_requests.h"

namespace volumed {

// Threads: one. Blocks: never.
class AnnouncedDevices {
 public:
  using Then = std::function<void(const Result<DeviceFacts>& facts)>;

  // Keeps a whole disk with a sequence, to be asked; others are not kept, nor is what comes while
  // 256 are to be asked. What was known of the number is void. A device that is made of others
  // (device-mapper, md) is not asked early: whoever takes it apart must find it closed. An
  // announcement `by_program` (as in DeviceEvent) makes void only what was known of another disk
  // with this number, and nobody is asked for it.
  void Announce(const CatalogDevice& device, bool by_program = false);
  // Forgets what was said, or is about to be said: whoever has joined still hears of the answer.
  void Forget(DeviceNumber number);
  // Forgets all of them.
  void Clear();

  // The next one to be asked, in the order of their announcements, or nullopt; Answered() has to
  // follow, with the same device.
  std::optional<CatalogDevice> TakeNext();
  // Returns those who joined: each is to be told what was answered. Of a device that was announced
  // again meanwhile nobody is told: it is to be asked again.
  std::vector<Then> Answered(const CatalogDevice& device, const Result<DeviceFacts>& facts);
  // How many were taken and have not answered.
  int asked() const { return asked_; }

  // What this very disk has said, valid until the next call of another method; null if nothing is
  // known.
  const DeviceFacts* Find(const CatalogDevice& device) const;
  // True while this very disk is being asked: `then` hears of it. Else it is not asked any more on
  // its announcement alone.
  bool Join(const CatalogDevice& device, Then then);

 private:
  enum class State { kQueued, kAsked, kKnown };
  struct Entry {
    CatalogDevice device;
    State state = State::kQueued;
    bool again = false;  // announced anew while it was asked
    bool gone = false;   // forgotten while it was asked
    DeviceFacts facts;
    std::vector<Then> joined;
  };
  std::map<DeviceNumber, Entry> entries_;
  std::deque<DeviceNumber> queue_;
  int asked_ = 0;
};

}  // namespace volumed
