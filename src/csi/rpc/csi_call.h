// One CSI call: how it is to be made, and what is told of it when it has ended.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "csi/rpc/csi_cancel.h"
#include "csi/rpc/csi_methods.h"
#include "csi/rpc/csi_secret_memory.h"

namespace volumed {

// How much is read of an answer that is a stream of messages, and what was. The messages are one
// answer: what is repeated in them stands one after the other in it, and of anything else the last
// one counts. It is written before the call ends, and by nobody else.
struct CsiStream {
  int most_messages = 64;
  size_t most_bytes = 256 * 1024;  // the message that exceeds it is read still
  int messages = 0;
  bool is_cut = false;  // there was more
};

struct CsiCallOptions {
  // It counts from the moment of the call, also while the call waits for its turn. An infinite one
  // is taken for the channel's `longest_call`: a driver may never answer.
  Deadline deadline = Deadline::Infinite();
  // Null: the call cannot be cancelled.
  std::shared_ptr<CsiCancel> cancel = nullptr;
  // The volume is of a source that the driver has replaced; for observers.
  bool migrated = false;
  // What the driver was sent before, which is hidden in what it says, and what learns of this
  // request. Null: nobody remembers.
  std::shared_ptr<CsiSecretMemory> secrets = nullptr;
  // Of an RPC that answers by a stream: of one call alone. Null: such an RPC is refused.
  std::shared_ptr<CsiStream> stream = nullptr;
};

// A call that has ended, or was sent and has not ended, without its secrets.
struct CsiCallReport {
  std::string driver;
  const CsiMethod* method = nullptr;
  std::string key;  // CsiKeyOf()
  int64_t asked_unix_ms = 0;
  Duration waited = Duration::zero();    // for its turn, and for the connection
  Duration duration = Duration::zero();  // after that; until now, if it has not ended
  bool sent = false;
  bool migrated = false;            // CsiCallOptions::migrated
  std::optional<Error> error = {};  // nullopt: OK
  std::string request = {};         // CsiSecrets::StrippedText()
  std::string answer = {};          // likewise; empty if there is none
  bool under_way = false;           // it was sent, and has not ended
  std::string not_true = {};        // what the node showed after it said OK; empty: nothing else
};

// A call that has not ended.
struct CsiOpenCall {
  const CsiMethod* method = nullptr;
  std::string key;
  TimePoint asked;
  std::optional<TimePoint> sent = {};  // nullopt: it waits for its turn
};

// Told of every call: metrics and the trace. It must not block, nor destroy the channel.
class CsiCallObserver {
 public:
  virtual ~CsiCallObserver() = default;
  // The call is about to be sent: it is under way. It is told before the call ends, of the same
  // object. One that is never sent is not told here. On whatever thread sends it.
  virtual void CallSent(const CsiCallReport& /*report*/) {}
  // Once, before the caller has its answer, on whatever thread ended the call.
  virtual void CallEnded(const CsiCallReport& report) = 0;
};

}  // namespace volumed
