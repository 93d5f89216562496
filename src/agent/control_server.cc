#include "agent/control_server.h"

#include <endian.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

namespace volumed {
namespace {

constexpr int kBacklog = 128;
// A manifest of many documents is the largest message.
constexpr int kMaxMessageBytes = 16 * 1024 * 1024;

// Lets the members of one more group connect: user::rw, group:: as it is, group:readers:rw, mask
// rw. Source: Linux include/uapi/linux/posix_acl_xattr.h, acl(5).
Status LetConnect(const std::string& path, gid_t readers, bool owning_group) {
  const auto entry = [](uint16_t tag, uint16_t permissions, uint32_t id) {
    return posix_acl_xattr_entry{htole16(tag), htole16(permissions), htole32(id)};
  };
  constexpr uint16_t kReadWrite = ACL_READ | ACL_WRITE;
  struct {
    posix_acl_xattr_header header;
    posix_acl_xattr_entry entries[5];
  } const list = {
      {htole32(POSIX_ACL_XATTR_VERSION)},
      {entry(ACL_USER_OBJ, kReadWrite, ACL_UNDEFINED_ID),
       entry(ACL_GROUP_OBJ, owning_group ? kReadWrite : 0, ACL_UNDEFINED_ID),
       entry(ACL_GROUP, kReadWrite, readers), entry(ACL_MASK, kReadWrite, ACL_UNDEFINED_ID),
       entry(ACL_OTHER, 0, ACL_UNDEFINED_ID)}};
  if (::setxattr(path.c_str(), "system.posix_acl_access", &list, sizeof(list), 0) == 0) {
    return OkStatus();
  }
  if (errno == EOPNOTSUPP && ::chmod(path.c_str(), 0666) == 0) return OkStatus();
  return Error::FromErrno(errno, "let the readers' group connect to " + path,
                          Outcome::kMaybeApplied);
}

Result<Descriptor> BindSocket(const ControlSocketOptions& options) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (options.path.size() >= sizeof(address.sun_path)) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "socket path is longer than " +
                                 std::to_string(sizeof(address.sun_path) - 1) +
                                 " bytes: " + options.path);
  }
  std::memcpy(address.sun_path, options.path.c_str(), options.path.size() + 1);
  ASSIGN_OR_RETURN(Descriptor socket,
                   DescriptorFrom(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
                                  "make the control socket"));
  struct stat found {};
  if (::lstat(options.path.c_str(), &found) == 0) {
    if (!S_ISSOCK(found.st_mode)) {
      return Error::NotApplied(Code::kAlreadyExists, options.path + " is not a socket");
    }
    ::unlink(options.path.c_str());
  }
  // Nobody may connect before owner and mode are right.
  const mode_t old_mask = ::umask(0177);
  const int bound =
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  const int bind_errno = errno;
  ::umask(old_mask);
  if (bound != 0) {
    return Error::FromErrno(bind_errno, "bind " + options.path, Outcome::kNotApplied);
  }
  if (options.group && (::chown(options.path.c_str(), 0, *options.group) != 0 ||
                        ::chmod(options.path.c_str(), 0660) != 0)) {
    return Error::FromErrno(errno, "give " + options.path + " to its group",
                            Outcome::kMaybeApplied);
  }
  if (options.read_group) {
    RETURN_IF_ERROR(LetConnect(options.path, *options.read_group, options.group.has_value()));
  }
  return socket;
}

}  // namespace

Result<Descriptor> MakeControlSocket(const ControlSocketOptions& options) {
  const int passed = sd_listen_fds(/*unset_environment=*/1);
  if (passed > 1) {
    return Error::NotApplied(Code::kInvalidArgument, "more than one socket was passed by systemd");
  }
  if (passed == 1) {
    Descriptor socket(SD_LISTEN_FDS_START);
    if (sd_is_socket_unix(socket.get(), SOCK_STREAM, /*listening=*/1, nullptr, 0) <= 0) {
      return Error::NotApplied(Code::kInvalidArgument,
                               "the passed descriptor is not a listening unix stream socket");
    }
    ::fcntl(socket.get(), F_SETFL, O_NONBLOCK);
    return socket;
  }
  ASSIGN_OR_RETURN(Descriptor socket, BindSocket(options));
  if (::listen(socket.get(), kBacklog) != 0) {
    return Error::FromErrno(errno, "listen on " + options.path, Outcome::kMaybeApplied);
  }
  return socket;
}

ControlServer::ControlServer(Descriptor socket, PeerRoles roles, EventLoop& loop, Logger& log,
                             const std::map<PeerRole, grpc::Service*>& services)
    : socket_(std::move(socket)), roles_(std::move(roles)), loop_(loop), log_(log) {
  for (const auto& [role, service] : services) {
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
    builder.RegisterService(service);
    servers_[role] = builder.BuildAndStart();
  }
}

ControlServer::~ControlServer() {
  loop_.UnwatchFd(socket_.get());
  const auto deadline = std::chrono::system_clock::now() + std::chrono::seconds(1);
  for (auto& [role, server] : servers_) server->Shutdown(deadline);
}

Status ControlServer::Start() {
  return loop_.WatchFd(socket_.get(), EPOLLIN, [this](uint32_t) { AcceptAll(); });
}

void ControlServer::AcceptAll() {
  for (;;) {
    Descriptor connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection.valid()) {
      if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
        log_.LogLimited("accept", LogLevel::kWarning, "cannot accept a control connection",
                        {{"error", ErrnoName(errno)}});
      }
      if (errno != EINTR && errno != ECONNABORTED) return;
      continue;
    }
    Admit(std::move(connection));
  }
}

void ControlServer::Admit(Descriptor connection) {
  const Result<PeerCredentials> peer = GetPeerCredentials(connection.get());
  if (!peer.ok()) {
    log_.LogLimited("peer", LogLevel::kWarning, "control connection refused",
                    {{"error", peer.error()}});
    return;
  }
  const PeerRole role = roles_.RoleOf(*peer);
  const auto server = servers_.find(role);
  if (server == servers_.end()) {
    log_.LogLimited("refused-" + std::to_string(peer->uid), LogLevel::kWarning,
                    "control connection refused: no role",
                    {{"uid", peer->uid}, {"gid", peer->gid}, {"pid", peer->pid}});
    return;
  }
  grpc::AddInsecureChannelFromFd(server->second.get(), connection.Release());
}

}  // namespace volumed
