#include "os/fault_domain.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <climits>
#include <deque>
#include <optional>
#include <utility>

#include "base/descriptor.h"
#include "base/strings.h"
#include "os/device_requests.h"

namespace volumed {
namespace {

// The kernel's own bound. Source: path_resolution(7).
constexpr int kMaxLinks = 40;
constexpr char kDevices[] = "/dev/";

// A directory on the root's filesystem, on the way to the path.
struct Place {
  std::string name;
  Descriptor directory;
};

// Never crosses into another mount, and starts no automount: the last component is not opened.
Descriptor OpenOnRoot(int directory, const std::string& name) {
  open_how how = {};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS;
  return Descriptor(
      static_cast<int>(::syscall(SYS_openat2, directory, name.c_str(), &how, sizeof(how))));
}

std::optional<std::string> LinkTarget(int link) {
  std::array<char, PATH_MAX> target{};
  const ssize_t size = ::readlinkat(link, "", target.data(), target.size());
  if (size <= 0 || static_cast<size_t>(size) == target.size()) return std::nullopt;
  return std::string(target.data(), static_cast<size_t>(size));
}

bool IsLink(int descriptor) {
  struct stat found = {};
  return ::fstatat(descriptor, "", &found, AT_EMPTY_PATH | AT_NO_AUTOMOUNT) == 0 &&
         S_ISLNK(found.st_mode);
}

void PutInFront(const std::string& path, std::deque<std::string>& names) {
  std::vector<std::string> parts = Split(path, '/');
  names.insert(names.begin(), parts.begin(), parts.end());
}

// The mount table is asked for clean paths alone.
std::string Text(const std::vector<Place>& way, const std::deque<std::string>& rest) {
  std::vector<std::string> names;
  names.reserve(way.size() + rest.size());
  for (const Place& place : way) names.push_back(place.name);
  for (const std::string& name : rest) {
    if (name == "..") {
      if (!names.empty()) names.pop_back();
    } else if (!name.empty() && name != ".") {
      names.push_back(name);
    }
  }
  return "/" + Join(names, "/");
}

std::string LowerCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// "nas-1" of "nas-1:/export", "[fe80::1]:/export" or "//nas-1/share"; empty for anything else.
std::string ServerOf(const MountEntry& mount) {
  const std::string& source = mount.source;
  if (mount.fs_type == "nfs" || mount.fs_type == "nfs4") {
    std::string server = source.substr(0, source.find(":/"));
    if (server.size() == source.size()) return "";
    if (server.size() > 2 && server.front() == '[' && server.back() == ']') {
      server = server.substr(1, server.size() - 2);
    }
    return server;
  }
  if (mount.fs_type == "cifs" || mount.fs_type == "smb3") {
    if (!source.starts_with("//")) return "";
    return source.substr(2, source.find('/', 2) - 2);
  }
  return "";
}

}  // namespace

std::string FollowLinksOnRoot(const std::string& path) {
  const Descriptor root(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return path;
  std::vector<Place> way;
  std::deque<std::string> rest;
  PutInFront(path, rest);
  for (int links = 0; !rest.empty();) {
    const std::string name = rest.front();
    if (name.empty() || name == ".") {
      rest.pop_front();
      continue;
    }
    if (name == "..") {
      rest.pop_front();
      if (!way.empty()) way.pop_back();
      continue;
    }
    Descriptor next = OpenOnRoot(way.empty() ? root.get() : way.back().directory.get(), name);
    if (!next.valid()) return Text(way, rest);
    rest.pop_front();
    if (!IsLink(next.get())) {
      way.push_back({name, std::move(next)});
      continue;
    }
    const std::optional<std::string> target = LinkTarget(next.get());
    if (!target || ++links > kMaxLinks) return path;
    if (target->starts_with('/')) way.clear();
    PutInFront(*target, rest);
  }
  return Text(way, rest);
}

// By what the kernel has in memory alone: so no automount on the way is woken, which a walk of more
// than one name would do.
bool HasNoLinkOnRoot(const std::string& path) {
  const Descriptor root(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return false;
  if (path == "/") return true;
  open_how how = {};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_CACHED;
  const Descriptor found(static_cast<int>(
      ::syscall(SYS_openat2, root.get(), path.substr(1).c_str(), &how, sizeof(how))));
  return found.valid() || errno == ENOENT;
}

FaultDomain DomainOfMount(const MountEntry& mount) {
  if (const std::string server = ServerOf(mount); !server.empty()) {
    const bool nfs = mount.fs_type.starts_with("nfs");
    return {LowerCase((nfs ? "nfs:" : "cifs:") + server),
            (nfs ? "NFS server " : "SMB server ") + server};
  }
  const std::string lane =
      "filesystem " + std::to_string(mount.device_major) + ":" + std::to_string(mount.device_minor);
  return {lane, lane + " (" + mount.fs_type + " at " + mount.mount_point + ")"};
}

std::string LaneBeside(const std::string& own_lane, const MountEntry& mount) {
  if (mount.fs_type == "tmpfs" || mount.fs_type == "ramfs") return "";
  const std::string lane = DomainOfMount(mount).lane;
  return lane == own_lane ? "" : lane;
}

const MountEntry* ClosestMount(const std::vector<MountEntry>& around) {
  const MountEntry* closest = nullptr;
  for (const MountEntry& mount : around) {
    // Of two at one place, the later one lies upon the other.
    if (closest == nullptr || mount.mount_point.size() >= closest->mount_point.size()) {
      closest = &mount;
    }
  }
  return closest;
}

FaultDomain DomainOfPath(const std::string& path, const std::vector<MountEntry>& around) {
  if (path.starts_with(kDevices)) return {DeviceDomain(path), "device " + path};
  const MountEntry* const closest = ClosestMount(around);
  // In a chroot, or with a table that could not be read, all such paths share one lane.
  if (closest == nullptr) return {"filesystem unknown", "a filesystem that is not known"};
  return DomainOfMount(*closest);
}

}  // namespace volumed
