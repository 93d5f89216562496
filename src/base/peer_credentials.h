// Who is at the other end of a unix socket, and which groups of the system he is in.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace volumed {

struct PeerCredentials {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};

// The credentials of the peer of a connected unix socket, as of connect(2) (SO_PEERCRED). Blocks:
// never. Errors: errno's code, not applied. Source: unix(7).
Result<PeerCredentials> GetPeerCredentials(int socket);

// Whether the process is known to have other mounts than this one: what is mounted here reaches it
// only from a mount that is shared. False for a process of a pid namespace that is not seen from
// here (0), one that has ended, and one that may not be looked at. Threads: any. Blocks: never.
// Source: mount_namespaces(7).
bool HasOtherMounts(pid_t process);

// The group that the peer had as his primary one when he connected, and those that the system's
// databases have him in now; which supplementary groups his process has is not looked at, since an
// administrator edits the databases. If they have no such user, or do not answer, it is the first
// alone. Threads: any. Blocks: while the databases are asked, which may be a server.
std::vector<gid_t> GroupsOf(const PeerCredentials& peer);

// The group's number; nullopt if there is no such group, if the system's group database does not
// answer, or if `name` is empty. Threads: any. Blocks: while the database is asked.
std::optional<gid_t> FindGroup(const std::string& name);

}  // namespace volumed
