// CsiTrace: the calls of the last hour to each driver, and those under way, without their secrets,
// for people who ask what a driver was told and what it said.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "csi/rpc/csi_call.h"

namespace volumed {

// For each driver; what is beyond goes, oldest first.
struct CsiTraceLimits {
  Duration age = std::chrono::hours(1);
  // Of calls that were to change something, or failed.
  size_t calls = 1000;
  // Of read-only calls that went well. They are many (statistics, capabilities) and would push out
  // what one looks for.
  size_t quiet_calls = 200;
  size_t bytes = 1024 * 1024;  // of all texts; of the two kinds the one that has more gives way
  size_t drivers = 64;         // the one that was called longest ago is forgotten
};

// Threads: any. Blocks: never, but for a copy of what is asked for.
class CsiTrace final : public CsiCallObserver {
 public:
  // `clock` outlives this.
  explicit CsiTrace(const Clock& clock, CsiTraceLimits limits = {});

  void CallSent(const CsiCallReport& report) override;
  void CallEnded(const CsiCallReport& report) override;
  // What the driver said by its last call of this RPC about this key is not so: `why` is what was
  // found. Two calls that have both, as of two pods' publishes of one volume, are not told apart.
  // Nothing happens if that call is not kept any more.
  void Lied(const std::string& driver, const std::string& rpc, const std::string& key,
            const std::string& why);

  // Its calls in the order in which they ended, and then those under way, in that in which they
  // were sent. Empty for a driver that nobody has called.
  std::vector<CsiCallReport> Of(const std::string& driver) const;
  // By name.
  std::vector<std::string> Drivers() const;
  void Forget(const std::string& driver);

 private:
  struct Entry {
    uint64_t number = 0;
    TimePoint ended;
    size_t bytes = 0;
    CsiCallReport report;
  };
  struct Open {
    uint64_t number = 0;
    TimePoint sent;
    CsiCallReport report;
  };
  struct Ring {
    std::deque<Entry> entries;
    size_t bytes = 0;
    void Add(Entry entry);
    void DropOldest();
  };
  struct Driver {
    Ring told;
    Ring quiet;
    TimePoint last_call;
  };

  void Trim(Driver& driver, TimePoint now) const;
  void AddEnded(const std::string& driver, std::vector<CsiCallReport>& out) const REQUIRES(mu_);
  void AddOpen(const std::string& driver, std::vector<CsiCallReport>& out) const REQUIRES(mu_);
  void MakeRoom() REQUIRES(mu_);

  const Clock& clock_;
  const CsiTraceLimits limits_;
  mutable Mutex mu_;
  uint64_t next_number_ GUARDED_BY(mu_) = 1;
  mutable std::map<std::string, Driver> drivers_ GUARDED_BY(mu_);
  // By the object of which it will be told that the call has ended: as many as channels are wide.
  std::map<const CsiCallReport*, Open> open_ GUARDED_BY(mu_);
};

}  // namespace volumed
