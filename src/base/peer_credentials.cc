#include "base/peer_credentials.h"

#include <grp.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>

namespace volumed {
namespace {

constexpr size_t kLookupBuffer = 64 * 1024;

}  // namespace

Result<PeerCredentials> GetPeerCredentials(int socket) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return Error::FromErrno(errno, "read the peer's credentials", Outcome::kNotApplied);
  }
  return PeerCredentials{credentials.pid, credentials.uid, credentials.gid};
}

bool HasOtherMounts(pid_t process) {
  struct stat ours = {};
  struct stat theirs = {};
  const std::string path = "/proc/" + std::to_string(process) + "/ns/mnt";
  if (::stat("/proc/self/ns/mnt", &ours) != 0 || ::stat(path.c_str(), &theirs) != 0) return false;
  return ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino;
}

std::vector<gid_t> GroupsOf(const PeerCredentials& peer) {
  std::vector<gid_t> groups = {peer.gid};
  std::vector<char> buffer(kLookupBuffer);
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(peer.uid, &entry, buffer.data(), buffer.size(), &found) != 0 || !found) {
    return groups;
  }
  int count = 256;
  std::vector<gid_t> listed(static_cast<size_t>(count));
  if (getgrouplist(entry.pw_name, entry.pw_gid, listed.data(), &count) < 0) {
    listed.resize(static_cast<size_t>(count));
    if (getgrouplist(entry.pw_name, entry.pw_gid, listed.data(), &count) < 0) return groups;
  }
  groups.insert(groups.end(), listed.begin(), listed.begin() + count);
  return groups;
}

std::optional<gid_t> FindGroup(const std::string& name) {
  if (name.empty()) return std::nullopt;
  std::vector<char> buffer(kLookupBuffer);
  group entry{};
  group* found = nullptr;
  if (getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 || !found) {
    return std::nullopt;
  }
  return entry.gr_gid;
}

}  // namespace volumed
