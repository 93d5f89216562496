// Who may do what over the control socket: the peer's credentials decide its role.
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
std::string_view PeerRoleName(PeerRole role);

struct PeerCredentials {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};

// root is admin; members of the operate group (primary or supplementary) operate; members of the
// read group read; everybody else has no role. Groups that are not set or do not exist match
// nobody.
class PeerRoles {
 public:
  PeerRoles(std::optional<gid_t> operate_group, std::optional<gid_t> read_group)
      : operate_group_(operate_group), read_group_(read_group) {}

  // Blocks: looks the user's groups up in the system's group database.
  PeerRole RoleOf(const PeerCredentials& peer) const;

 private:
  std::optional<gid_t> operate_group_;
  std::optional<gid_t> read_group_;
};

// SO_PEERCRED of a connected unix socket: the credentials at connect(2). Source: unix(7).
Result<PeerCredentials> GetPeerCredentials(int socket);

// The group's number; nullopt when there is no such group, or `name` is empty.
std::optional<gid_t> FindGroup(const std::string& name);

}  // namespace volumed
