// What the parts of this folder need of the way to a driver: sockets that are opened without trust
// in their paths, and calls over a connection. Tests have fakes of both; the real ones are in
// csi/socket_dialer.h.
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/descriptor.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "csi/rpc/csi_channel.h"
#include "os/safe_path.h"

namespace volumed {

// Which file a socket is. As long as somebody has it open, no other file gets these numbers; and no
// two processes in turn listen at one file, unless one hands the listening socket to the other, for
// bind(2) makes a new file.
struct SocketIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  friend bool operator==(const SocketIdentity&, const SocketIdentity&) = default;
};

// A socket that was opened with O_PATH, and whose kind and owner were looked at: whoever connects
// by it reaches the very file that was looked at, whatever has become of its name.
// Threads: any; it does not change. Blocks: never.
class CsiSocket {
 public:
  CsiSocket(std::string path, uint32_t owner, SocketIdentity identity, Descriptor handle)
      : path_(std::move(path)), owner_(owner), identity_(identity), handle_(std::move(handle)) {}

  // For display only.
  const std::string& path() const { return path_; }
  uint32_t owner() const { return owner_; }  // a uid
  const SocketIdentity& identity() const { return identity_; }
  // Of the O_PATH descriptor; it stays this object's.
  int handle() const { return handle_.get(); }

 private:
  const std::string path_;
  const uint32_t owner_;
  const SocketIdentity identity_;
  const Descriptor handle_;
};

// Calls over one connection, which is never made to another file than the socket that it was
// dialled for. A connection that breaks off may be made anew to that file; whoever wants none such
// drops the caller, which ends its calls as CsiChannel's destructor does. So who makes a call keeps
// the caller until that has ended. Threads: any. The caller may be dropped on any thread, in a
// callback too.
class CsiCaller {
 public:
  virtual ~CsiCaller() = default;
  // Both as CsiChannel has them.
  virtual void Start(const google::protobuf::Message& request, const CsiCallOptions& options,
                     CsiChannel::Done done) = 0;
  virtual CsiChannel::AnyAnswer Perform(const google::protobuf::Message& request,
                                        const CsiCallOptions& options) = 0;
  // Cancels all calls, those that begin later too. Blocks: never.
  virtual void End() = 0;
};

// Error::About() of what stays refused until somebody changes the socket: a link, another owner, no
// socket at all, another filesystem.
inline constexpr const char* kCsiSocketRefused = "csi: socket refused";

// Marks an error as one of a socket, or of a listener, that belongs to this uid.
Error OfSocketOwner(const Error& error, uint32_t uid);
// That uid; nullopt if the error does not say. Pure.
std::optional<uint32_t> SocketOwnerOf(const Error& error);

// Threads: any.
class CsiDialer {
 public:
  virtual ~CsiDialer() = default;

  // Opens the socket, and finds out that a process which may be trusted listens. Blocks: for the
  // filesystem, and for a listener that is busy, as long as `deadline` says. Errors, not applied:
  // NotFound; Unavailable: nobody listens (yet); DeadlineExceeded; about kCsiSocketRefused,
  // PermissionDenied for another owner, and FailedPrecondition for the rest.
  virtual Result<std::shared_ptr<const CsiSocket>> Open(const SafePath& place,
                                                        Deadline deadline) = 0;

  // Told of the connection's states, those that end it above all; of kIdle and kConnecting of the
  // first attempt maybe not.
  using StateSeen = std::function<void(CsiConnectionState)>;
  // Begins to connect. `state_seen` is called on any thread, also before this returns, and must not
  // block. `driver` is for texts. Blocks: never. Errors: those of CsiChannel::Create().
  virtual Result<std::shared_ptr<CsiCaller>> Dial(const std::string& driver,
                                                  std::shared_ptr<const CsiSocket> socket,
                                                  StateSeen state_seen) = 0;
};

// Starts a call, and tells its answer on the control thread. REQUIRES: Response is the answer of
// this request. `done` is called once, or is dropped with the scheduler; it asks itself whether its
// owner is still there.
template <typename Response>
void AskOnControl(Scheduler& scheduler, const std::shared_ptr<CsiCaller>& caller,
                  const google::protobuf::Message& request, const CsiCallOptions& options,
                  std::function<void(Result<Response>)> done) {
  caller->Start(request, options,
                [&scheduler, caller, done = std::move(done)](CsiChannel::AnyAnswer answer) {
                  // A task is copied, and an answer cannot be.
                  auto kept = std::make_shared<CsiChannel::AnyAnswer>(std::move(answer));
                  scheduler.Post([done, kept] {
                    if (!kept->ok()) return done(kept->error());
                    done(std::move(static_cast<Response&>(***kept)));
                  });
                });
}

}  // namespace volumed
