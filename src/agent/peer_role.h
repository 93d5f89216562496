// Decides by the credentials of a peer what it may do over the control socket.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace volumed {

// Each role may do what the ones before it may.
enum class PeerRole { kNone, kRead, kOperate, kAdmin };
// "none", "read", "operate", "admin".
std::string_view PeerRoleName(PeerRole role);

struct PeerCredentials {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};

// The user root has the role admin, members of the operate group (primary or supplementary)
// operate, members of the read group read; every other user has no role. A group that is not set or
// does not exist has no members. Threads: any.
class PeerRoles {
 public:
  PeerRoles(std::optional<gid_t> operate_group, std::optional<gid_t> read_group)
      : operate_group_(operate_group), read_group_(read_group) {}

  // A member is whoever had the group as his primary one when he connected, or has it in the
  // system's group database now; which supplementary groups his process has is not looked at. If
  // the database has no such user, or does not answer, only the first counts. Blocks: while the
  // database is asked, which may be a server.
  PeerRole RoleOf(const PeerCredentials& peer) const;

 private:
  std::optional<gid_t> operate_group_;
  std::optional<gid_t> read_group_;
};

// The credentials of the peer of a connected unix socket, as of connect(2) (SO_PEERCRED). Blocks:
// never. Errors: errno's code, not applied. Source: unix(7).
Result<PeerCredentials> GetPeerCredentials(int socket);

// The group's number; nullopt if there is no such group, if the system's group database does not
// answer, or if `name` is empty. Threads: any. Blocks: while the database is asked.
std::optional<gid_t> FindGroup(const std::string& name);

}  // namespace volumed
