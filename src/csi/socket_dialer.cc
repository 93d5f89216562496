#include "csi/socket_dialer.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/descriptor.h"
#include "base/strings.h"
#include "os/safe_open.h"

namespace volumed {
namespace {

Error Refused(Code code, std::string why) {
  return Error::NotApplied(code, std::move(why)).About(kCsiSocketRefused);
}

std::string OwnersText(const SocketOwners& owners) {
  std::vector<std::string> uids;
  for (const uint32_t uid : owners) uids.push_back(std::to_string(uid));
  return Join(uids, ", ");
}

// `what` is of this uid.
Status CheckOwner(const std::string& what, uint32_t uid, const SocketOwners& owners) {
  if (owners.count(uid) > 0) return OkStatus();
  return OfSocketOwner(Refused(Code::kPermissionDenied,
                               what + " is of uid " + std::to_string(uid) + "; used are those of " +
                                   OwnersText(owners) + " (csi-socket-owners)"),
                       uid);
}

Error OpenError(const SafePath& place, const Error& error) {
  const std::string path = place.Display();
  switch (error.sys_errno()) {
    case ELOOP:
      return Refused(Code::kFailedPrecondition, path + " is a symbolic link, or lies behind one");
    case EXDEV:
      return Refused(Code::kFailedPrecondition,
                     path + " does not lie on the filesystem of " + place.root);
    default:
      return error;
  }
}

timeval TimevalOf(Duration duration) {
  const auto micros =
      std::max<int64_t>(1, std::chrono::duration_cast<std::chrono::microseconds>(duration).count());
  return {.tv_sec = micros / 1'000'000, .tv_usec = micros % 1'000'000};
}

// Both files have been dialled for the same driver; the socket outlives the channel, whose path is
// its descriptor.
class ChannelCaller final : public CsiCaller {
 public:
  ChannelCaller(std::shared_ptr<const CsiSocket> socket, CsiDialer::StateSeen state_seen)
      : socket_(std::move(socket)), state_seen_(std::move(state_seen)) {}

  Status Connect(CsiChannelOptions options, const Clock& clock, CsiStateWatch& watch)
      EXCLUDES(mu_) {
    options.socket = ConnectPathOf(*socket_);
    options.connection_changed = [this] { Changed(); };
    ASSIGN_OR_RETURN(std::unique_ptr<CsiChannel> channel,
                     CsiChannel::Create(std::move(options), clock, watch));
    {
      MutexLock lock(mu_);
      made_ = channel.get();
    }
    channel_ = std::move(channel);
    // Of what has changed before, nobody was told.
    const CsiConnectionState now = channel_->connection().state;
    if (now == CsiConnectionState::kReady || now == CsiConnectionState::kTransientFailure) {
      state_seen_(now);
    }
    return OkStatus();
  }

  void Start(const google::protobuf::Message& request, const CsiCallOptions& options,
             CsiChannel::Done done) override {
    const Linked linked(options.cancel, end_);
    channel_->Start(
        request, linked.Options(options),
        [linked, socket = socket_, done = std::move(done)](CsiChannel::AnyAnswer answer) {
          linked.Remove();
          done(WithName(*socket, std::move(answer)));
        });
  }
  CsiChannel::AnyAnswer Perform(const google::protobuf::Message& request,
                                const CsiCallOptions& options) override {
    const Linked linked(options.cancel, end_);
    CsiChannel::AnyAnswer answer = channel_->Perform(request, linked.Options(options));
    linked.Remove();
    return WithName(*socket_, std::move(answer));
  }
  void End() override { end_->Cancel(); }

 private:
  // A cancel of one call, which its owner's cancels, and that of all calls.
  class Linked {
   public:
    Linked(std::shared_ptr<CsiCancel> of_owner, std::shared_ptr<CsiCancel> of_all)
        : of_owner_(std::move(of_owner)), of_all_(std::move(of_all)) {
      const auto pass_on = [call = call_] { call->Cancel(); };
      if (of_owner_ != nullptr) owner_hook_ = of_owner_->Add(pass_on);
      all_hook_ = of_all_->Add(pass_on);
    }
    CsiCallOptions Options(CsiCallOptions options) const {
      options.cancel = call_;
      return options;
    }
    void Remove() const {
      if (of_owner_ != nullptr) of_owner_->Remove(owner_hook_);
      of_all_->Remove(all_hook_);
    }

   private:
    std::shared_ptr<CsiCancel> of_owner_;
    std::shared_ptr<CsiCancel> of_all_;
    std::shared_ptr<CsiCancel> call_ = std::make_shared<CsiCancel>();
    uint64_t owner_hook_ = 0;
    uint64_t all_hook_ = 0;
  };

  // gRPC's text of a failed connection names the descriptor, of which nobody knows what it was.
  static CsiChannel::AnyAnswer WithName(const CsiSocket& socket, CsiChannel::AnyAnswer answer) {
    if (answer.ok()) return answer;
    const Error& error = answer.error();
    const std::string shown = "unix:" + ConnectPathOf(socket) + ":";
    const size_t at = error.message().find(shown);
    if (at == std::string::npos) return answer;
    std::string message = error.message();
    message.replace(at, shown.size(), socket.path() + ":");
    Error named =
        Error::FromParts(error.code(), error.outcome(), error.sys_errno(), std::move(message));
    for (const std::string& subject : error.about()) named = named.About(subject);
    return named;
  }

  // On the watch's thread, which has just set the state. The channel is there: its destructor waits
  // for this.
  void Changed() EXCLUDES(mu_) {
    CsiConnectionState now = CsiConnectionState::kIdle;
    {
      MutexLock lock(mu_);
      if (made_ == nullptr) return;
      now = made_->connection().state;
    }
    state_seen_(now);
  }

  const std::shared_ptr<CsiCancel> end_ = std::make_shared<CsiCancel>();
  const std::shared_ptr<const CsiSocket> socket_;
  const CsiDialer::StateSeen state_seen_;
  Mutex mu_;
  CsiChannel* made_ GUARDED_BY(mu_) = nullptr;
  std::unique_ptr<CsiChannel> channel_;
};

// A channel's destructor waits for its callbacks, and so may not run in one.
std::shared_ptr<CsiCaller> DestroyedElsewhere(Scheduler& scheduler,
                                              std::shared_ptr<CsiCaller> caller) {
  CsiCaller* const pointer = caller.get();
  return {pointer, [&scheduler, caller = std::move(caller)](CsiCaller*) mutable {
            scheduler.RunBlocking([caller = std::move(caller)] {});
          }};
}

}  // namespace

std::string ConnectPathOf(const CsiSocket& socket) { return ProcFdPath(socket.handle()); }

Result<std::shared_ptr<const CsiSocket>> OpenCsiSocket(const SafePath& place,
                                                       const SocketOwners& owners,
                                                       TrustedRoots& roots) {
  RETURN_IF_ERROR(ValidateSafePath(place));
  ASSIGN_OR_RETURN(const SafePath real, roots.Real(place));
  Result<Descriptor> opened = OpenSafePath(real, O_PATH, RESOLVE_NO_XDEV);
  if (!opened.ok()) return OpenError(place, opened.error());
  const std::string path = place.Display();
  struct stat found {};
  if (::fstat(opened->get(), &found) != 0) {
    return Error::FromErrno(errno, "look at " + path, Outcome::kNotApplied);
  }
  if (!S_ISSOCK(found.st_mode)) {
    return Refused(Code::kFailedPrecondition, path + " is no socket");
  }
  RETURN_IF_ERROR(CheckOwner(path, found.st_uid, owners));
  return std::make_shared<const CsiSocket>(
      path, found.st_uid, SocketIdentity{found.st_dev, found.st_ino}, *std::move(opened));
}

Status CheckListener(const CsiSocket& socket, const SocketOwners& owners, const Clock& clock,
                     Deadline deadline) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = ConnectPathOf(socket);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  ASSIGN_OR_RETURN(const Descriptor connection,
                   DescriptorFrom(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
                                  "make a socket for " + socket.path()));
  // The time for which connect(2) waits for a place in the listener's queue. Source: unix(7).
  if (!deadline.infinite()) {
    const timeval wait = TimevalOf(deadline.Remaining(clock));
    ::setsockopt(connection.get(), SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
  }
  if (::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
      0) {
    if (errno == ECONNREFUSED) {
      return Error::NotApplied(Code::kUnavailable, "nobody listens at " + socket.path());
    }
    if (errno == EAGAIN) {
      return Error::NotApplied(Code::kDeadlineExceeded, "the process that listens at " +
                                                            socket.path() + " takes no connection");
    }
    return Error::FromErrno(errno, "connect to " + socket.path(), Outcome::kNotApplied);
  }
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return Error::FromErrno(errno, "ask who listens at " + socket.path(), Outcome::kNotApplied);
  }
  return CheckOwner("the process that listens at " + socket.path(), peer.uid, owners);
}

SocketDialer::SocketDialer(Parts parts, SocketOwners owners, CsiChannelOptions channel)
    : parts_(std::move(parts)), channel_(std::move(channel)), owners_(std::move(owners)) {}

Result<std::shared_ptr<const CsiSocket>> SocketDialer::Open(const SafePath& place,
                                                            Deadline deadline) {
  SocketOwners owners;
  {
    MutexLock lock(mu_);
    owners = owners_;
  }
  ASSIGN_OR_RETURN(std::shared_ptr<const CsiSocket> socket,
                   OpenCsiSocket(place, owners, *parts_.roots));
  const Status listener = CheckListener(*socket, owners, parts_.clock, deadline);
  if (listener.ok()) return socket;
  // One whose listener is somebody else's is shown with him.
  if (SocketOwnerOf(listener.error())) return listener.error();
  return OfSocketOwner(listener.error(), socket->owner());
}

Result<std::shared_ptr<CsiCaller>> SocketDialer::Dial(const std::string& driver,
                                                      std::shared_ptr<const CsiSocket> socket,
                                                      StateSeen state_seen) {
  CsiChannelOptions options = channel_;
  options.driver = driver;
  options.observers = parts_.observers;
  auto caller = std::make_shared<ChannelCaller>(std::move(socket), std::move(state_seen));
  RETURN_IF_ERROR(caller->Connect(std::move(options), parts_.clock, parts_.watch));
  return DestroyedElsewhere(parts_.scheduler, std::move(caller));
}

void SocketDialer::SetOwners(SocketOwners owners) {
  MutexLock lock(mu_);
  owners_ = std::move(owners);
}

}  // namespace volumed
