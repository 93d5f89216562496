#include "os/worker_channel.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace volumed {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
// Kind, and where the body is.
constexpr size_t kHeaderBytes = 2;
constexpr char kInline = 'i';
constexpr char kMemfd = 'm';
constexpr char kBeside = 'd';  // in the packet, and a descriptor beside it

Error NotApplied(const char* what) { return Error::FromErrno(errno, what, Outcome::kNotApplied); }

Error Malformed(const char* why) {
  return Error::MaybeApplied(Code::kDataLoss, std::string("worker message: ") + why);
}

Result<Descriptor> MakeBody(std::string_view body) {
  Descriptor memory(::memfd_create("volumed-body", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.valid()) return NotApplied("make a message body");
  size_t written = 0;
  while (written < body.size()) {
    const ssize_t size = ::write(memory.get(), body.data() + written, body.size() - written);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return NotApplied("write a message body");
    written += static_cast<size_t>(size);
  }
  if (::fcntl(memory.get(), F_ADD_SEALS, kSeals) != 0) return NotApplied("seal a message body");
  return memory;
}

Result<std::string> ReadBody(int memory) {
  struct stat stat = {};
  if (::fcntl(memory, F_GET_SEALS) != kSeals) return Malformed("its body is not sealed");
  if (::fstat(memory, &stat) != 0) return Malformed("its body has no size");
  std::string body(static_cast<size_t>(stat.st_size), '\0');
  size_t size = 0;
  while (size < body.size()) {
    const ssize_t got =
        ::pread(memory, body.data() + size, body.size() - size, static_cast<off_t>(size));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Malformed("its body cannot be read");
    size += static_cast<size_t>(got);
  }
  return body;
}

Descriptor TakeDescriptor(msghdr& message) {
  Descriptor taken;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(part), sizeof(fd));
    taken.Reset(fd);
  }
  return taken;
}

}  // namespace

WorkerChannel::WorkerChannel(Descriptor socket)
    : socket_(std::move(socket)), buffer_(kMaxInlineBody + kHeaderBytes) {}

Status WorkerChannel::Send(MessageKind kind, std::string_view body, bool as_memfd) {
  if (!as_memfd && body.size() <= kMaxInlineBody) return SendPacket(kind, kInline, body, -1);
  ASSIGN_OR_RETURN(const Descriptor memory, MakeBody(body));
  return SendPacket(kind, kMemfd, "", memory.get());
}

Status WorkerChannel::SendWithDescriptor(MessageKind kind, std::string_view body, int descriptor) {
  if (body.size() > kMaxInlineBody) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "a message with a descriptor holds at most 64 KiB");
  }
  return SendPacket(kind, kBeside, body, descriptor);
}

Status WorkerChannel::SendPacket(MessageKind kind, char place, std::string_view inline_body,
                                 int descriptor) {
  char header[kHeaderBytes] = {static_cast<char>(kind), place};
  iovec parts[2] = {{header, sizeof(header)},
                    {const_cast<char*>(inline_body.data()), inline_body.size()}};
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = inline_body.empty() ? 1 : 2;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &descriptor, sizeof(descriptor));
  }
  while (::sendmsg(socket_.get(), &message, MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return NotApplied("send to the worker socket");
  }
  return OkStatus();
}

Result<std::optional<WorkerMessage>> WorkerChannel::Receive(bool wait) {
  iovec part = {buffer_.data(), buffer_.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t size = -1;
  do {
    size = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
  } while (size < 0 && errno == EINTR);
  if (size < 0 && errno == ECONNRESET) return std::optional<WorkerMessage>();
  if (size < 0) return NotApplied("receive from the worker socket");
  if (size == 0) return std::optional<WorkerMessage>();

  Descriptor beside = TakeDescriptor(message);
  if (static_cast<size_t>(size) < kHeaderBytes || (message.msg_flags & MSG_TRUNC) != 0) {
    return Malformed("wrong size");
  }
  WorkerMessage received;
  received.kind = static_cast<MessageKind>(buffer_[0]);
  if (buffer_[1] == kMemfd) {
    if (!beside.valid()) return Malformed("its body is missing");
    ASSIGN_OR_RETURN(received.body, ReadBody(beside.get()));
  } else {
    if (buffer_[1] == kBeside) received.descriptor = std::move(beside);
    received.body.assign(buffer_.data() + kHeaderBytes, static_cast<size_t>(size) - kHeaderBytes);
  }
  return std::optional<WorkerMessage>(std::move(received));
}

}  // namespace volumed
