// SafePath: a place on the node, with the part of it that may be trusted. Part of
// os/kernel_requests.h.
#pragma once

#include <string>

#include "base/wire_enum.h"

namespace volumed {

// How the part of a path below `root` is resolved. Both refuse "..", magic links and anything that
// leads out of the root. Source: openat2(2).
enum class Resolve {
  kNoSymlinks,  // RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS
  kBeneath,     // RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS: links that stay inside are followed
};
constexpr WireEnum<Resolve> WireEnumOf(Resolve) {
  return {.last = Resolve::kBeneath, .otherwise = Resolve::kNoSymlinks};
}

// A place on the node. `root` is trusted: an absolute, clean path that only root can change (the
// agent's own directory, or a path that an administrator named). `relative` may be influenced by a
// pod, and is resolved below the root by descriptor; empty means the root itself.
struct SafePath {
  std::string root;
  std::string relative;
  Resolve resolve = Resolve::kNoSymlinks;

  // For display only.
  std::string Display() const { return relative.empty() ? root : root + "/" + relative; }
  // The same root, one or more names further down. `name` is checked when the path is opened, not
  // here.
  SafePath Below(const std::string& name) const {
    return {root, relative.empty() ? name : relative + "/" + name, resolve};
  }
  static void WireFields(auto& v, auto& m) {
    v(1, m.root);
    v(2, m.relative);
    v(3, m.resolve);
  }
  friend bool operator==(const SafePath&, const SafePath&) = default;
};

}  // namespace volumed
