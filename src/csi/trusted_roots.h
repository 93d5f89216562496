// TrustedRoots: where the directories lie below which sockets of drivers are looked for. Such a
// directory may be a link, and nothing below it may be one.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"
#include "os/safe_path.h"

namespace volumed {

// A directory that is kept is followed once: whoever exchanges the link later on leads nobody
// elsewhere. The agent's root is, since what is mounted below it lies where it was at the start;
// and so is the directory in which drivers register. Any other one is its driver's, which may come
// back with another, and is followed at each look.
//
// Threads: any.
class TrustedRoots {
 public:
  TrustedRoots() = default;
  // `kept`: each directory as it is named, and where it lies; "" if that is to be found out at the
  // first look at it that succeeds.
  explicit TrustedRoots(std::map<std::string, std::string> kept) : kept_(std::move(kept)) {}

  // The same place, with a root that has no links in it and Resolve::kNoSymlinks. Blocks: for the
  // filesystem, if its root is not kept. Errors, not applied: the errno of a look-up.
  Result<SafePath> Real(const SafePath& place) EXCLUDES(mu_);

 private:
  Mutex mu_;
  std::map<std::string, std::string> kept_ GUARDED_BY(mu_);
};

}  // namespace volumed
