#include "agent/peer_role.h"

#include <algorithm>
#include <vector>

namespace volumed {

std::string_view PeerRoleName(PeerRole role) {
  switch (role) {
    case PeerRole::kNone:
      return "none";
    case PeerRole::kRead:
      return "read";
    case PeerRole::kOperate:
      return "operate";
    case PeerRole::kAdmin:
      return "admin";
  }
  return "unknown";
}

GuestClass GuestClassOf(PeerRole role) {
  return {.rank = static_cast<int>(role), .shares_few = role == PeerRole::kRead};
}

PeerRole PeerRoles::RoleOf(const PeerCredentials& peer) const {
  if (peer.uid == 0) return PeerRole::kAdmin;
  const std::vector<gid_t> groups = GroupsOf(peer);
  const auto member_of = [&](const std::optional<gid_t>& group) {
    return group && std::find(groups.begin(), groups.end(), *group) != groups.end();
  };
  if (member_of(operate_group_)) return PeerRole::kOperate;
  if (member_of(read_group_)) return PeerRole::kRead;
  return PeerRole::kNone;
}

}  // namespace volumed
