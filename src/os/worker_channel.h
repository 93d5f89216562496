// WorkerChannel: messages between the agent and one worker over a SOCK_SEQPACKET socket. A body
// goes in the packet, or, when it is large or secret, as a sealed memfd beside it: then it is in no
// socket buffer and nobody can change it while it is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"

namespace volumed {

// What a message is; the letter is its first byte.
enum class MessageKind : char {
  kBody = 'B',      // a request, or an answer
  kProgress = 'P',  // to the agent; the body is the count in decimal
  kCancel = 'C',    // to the worker, without a body
};

struct WorkerMessage {
  MessageKind kind = MessageKind::kBody;
  std::string body;
  Descriptor descriptor;  // that was sent beside the body; invalid: none
};

// Bodies up to this size go in the packet.
constexpr size_t kMaxInlineBody = 64 * 1024;

// Threads: one may receive while another sends. Blocks: see each.
class WorkerChannel {
 public:
  // `socket` is one end of a SOCK_SEQPACKET pair, which is closed with this.
  explicit WorkerChannel(Descriptor socket);

  int fd() const { return socket_.get(); }
  void Close() { socket_.Reset(); }

  // Blocks: while the socket's buffer is full. Errors: EPIPE, not applied, when the other end is
  // closed; other errno, not applied: a message is sent whole or not at all. With `as_memfd` the
  // body goes beside the packet whatever its size: for secrets.
  Status Send(MessageKind kind, std::string_view body, bool as_memfd = false);
  // The same, with a descriptor beside the body: the other end gets one of its own.
  // InvalidArgument, not applied, for a body that is too large for the packet.
  Status SendWithDescriptor(MessageKind kind, std::string_view body, int descriptor);

  // The next message; nothing when the other end is closed. Blocks: until then, if `wait`; else
  // Unavailable with EAGAIN when there is none. Errors: DataLoss, maybe applied, for a malformed
  // one.
  Result<std::optional<WorkerMessage>> Receive(bool wait);

 private:
  Status SendPacket(MessageKind kind, char place, std::string_view inline_body, int descriptor);

  Descriptor socket_;
  std::vector<char> buffer_;
};

}  // namespace volumed
