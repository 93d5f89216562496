// Decides by the credentials of a peer what it may do over the control socket.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string_view>

#include "base/peer_credentials.h"
#include "base/stream_guests.h"

namespace volumed {

// Each role may do what the ones before it may.
enum class PeerRole { kNone, kRead, kOperate, kAdmin };
// "none", "read", "operate", "admin".
std::string_view PeerRoleName(PeerRole role);
// Its rank is the role. Those who may only read share few places.
GuestClass GuestClassOf(PeerRole role);

// The user root has the role admin, members of the operate group (primary or supplementary)
// operate, members of the read group read; every other user has no role. A group that is not set or
// does not exist has no members. Threads: any.
class PeerRoles {
 public:
  PeerRoles(std::optional<gid_t> operate_group, std::optional<gid_t> read_group)
      : operate_group_(operate_group), read_group_(read_group) {}

  // A member is whoever has the group by GroupsOf(). Blocks: as GroupsOf().
  PeerRole RoleOf(const PeerCredentials& peer) const;

 private:
  std::optional<gid_t> operate_group_;
  std::optional<gid_t> read_group_;
};

}  // namespace volumed
