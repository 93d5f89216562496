// KeepFewMounts: a mount namespace with the mounts that a test needs, and no others. A new
// namespace is a copy: on a node whose agent has thousands of mounts, tests that read the whole
// table again and again would take minutes.
#pragma once

#include <stdlib.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace volumed {

// What is mounted at or below these, and what these, the program and its directory lie on.
inline bool IsMountOfTests(const std::string& point) {
  const auto is_at_or_below = [](const std::string& path, const std::string& above) {
    return above == "/" || path == above || path.starts_with(above + "/");
  };
  for (const char* kept : {"/dev", "/proc", "/run", "/sys"}) {
    if (is_at_or_below(point, kept)) return true;
  }
  static const std::vector<std::string> kNeeded = {
      "/tmp", "/var/tmp", std::filesystem::current_path().string(),
      std::filesystem::read_symlink("/proc/self/exe").string()};
  for (const std::string& needed : kNeeded) {
    if (is_at_or_below(needed, point)) return true;
  }
  return false;
}

// REQUIRES: the thread is in a mount namespace of its own, and what is mounted there is private.
// False where the root cannot be exchanged, as that of an initramfs: then all mounts stay.
inline bool KeepFewMounts() {
  const std::string directory = std::filesystem::current_path().string();
  char root[] = "/tmp/volumed-root-XXXXXX";
  if (::mkdtemp(root) == nullptr) return false;
  std::set<std::string> bound;
  std::ifstream table("/proc/thread-self/mountinfo");
  const bool has_root = ::mount("/", root, nullptr, MS_BIND, nullptr) == 0;
  for (std::string line; has_root && std::getline(table, line);) {
    std::istringstream fields(line);
    std::string id, parent, device, inner, point;
    fields >> id >> parent >> device >> inner >> point;
    if (point == "/" || !IsMountOfTests(point) || !bound.insert(point).second) continue;
    // One that is hidden by another one is left out.
    (void)::mount(point.c_str(), (root + point).c_str(), nullptr, MS_BIND, nullptr);
  }
  // The old root is stacked on the new one, and taken away with all that is mounted on it.
  const bool done = has_root && ::chdir(root) == 0 && ::syscall(SYS_pivot_root, ".", ".") == 0 &&
                    ::umount2(".", MNT_DETACH) == 0;
  if (has_root && !done) ::umount2(root, MNT_DETACH);
  const bool is_back = ::chdir(directory.c_str()) == 0;
  ::rmdir(root);
  return done && is_back;
}

}  // namespace volumed
