// The control socket that systemd made, and passed to this process.
#pragma once

#include "base/descriptor.h"
#include "base/result.h"

namespace volumed {

// The socket that systemd passed (LISTEN_FDS), close-on-exec and non-blocking; an invalid
// descriptor if none was passed. It can be taken once, since the environment is cleared of it.
// Errors: InvalidArgument, not applied, if it is not a listening unix stream socket, or if several
// were passed.
// Source: sd_listen_fds(3).
Result<Descriptor> TakePassedSocket();

}  // namespace volumed
