// What can be said of one thing that calls make and take away (a volume, a mount at one place), of
// which several go on at once, some of them with an outcome that nobody knows.
//
// A call that nobody answered, or whose answer says nothing, stays in doubt: its effect may come at
// any later moment. It is over once a call for the same thing that another daemon took was done:
// a daemon that was killed takes no call any more, and the next one waits for what its workers
// still do.
#pragma once

#include <cstdint>
#include <map>

namespace volumed::random_clients {

enum class CsiState { kUnknown, kThere, kGone };
// What became of a call.
enum class CsiEnd { kDone, kRefused, kMaybe };

// Threads: one at a time.
class CsiFact {
 public:
  explicit CsiFact(CsiState state) : state_(state) {}

  // A call begins that makes the thing (kThere) or takes it away (kGone). `serial` orders the
  // beginnings and ends of all calls; `daemon` counts the daemons: this one or a later one takes
  // the call. REQUIRES: no two calls have one serial.
  void Begin(uint64_t serial, CsiState wanted, uint64_t daemon);
  // Of the call that began at `begun`. `daemon`: it was this one or an earlier one that had it.
  void End(uint64_t begun, CsiEnd end, uint64_t serial, uint64_t daemon);

  // kUnknown while calls go on, or are in doubt, that may change it.
  CsiState known() const;
  // Another one whenever it may have changed. So what was known before and after, with one number,
  // was so all the time.
  uint64_t version() const { return version_; }

 private:
  struct Call {
    CsiState wanted = CsiState::kUnknown;
    uint64_t daemon = 0;
    bool met_other = false;    // one that wants the other thing went on beside it
    uint64_t in_doubt_at = 0;  // 0: it goes on
  };
  void Set(CsiState state);
  void EndDoubts(uint64_t begun, uint64_t daemon);

  CsiState state_;
  uint64_t version_ = 0;
  std::map<uint64_t, Call> calls_;  // that go on or are in doubt, by their serials
};

}  // namespace volumed::random_clients
