#include "agent/passed_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

namespace volumed {

Result<Descriptor> TakePassedSocket() {
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
  return Descriptor();
}

}  // namespace volumed
