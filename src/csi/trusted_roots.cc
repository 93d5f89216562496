#include "csi/trusted_roots.h"

#include <filesystem>
#include <system_error>
#include <utility>

namespace volumed {

Result<SafePath> TrustedRoots::Real(const SafePath& place) {
  {
    MutexLock lock(mu_);
    const auto kept = kept_.find(place.root);
    if (kept != kept_.end() && !kept->second.empty()) {
      return SafePath{kept->second, place.relative, Resolve::kNoSymlinks};
    }
  }
  std::error_code error;
  std::string real = std::filesystem::canonical(place.root, error).string();
  if (error) {
    return Error::FromErrno(error.value(), "look at " + place.root, Outcome::kNotApplied);
  }
  MutexLock lock(mu_);
  if (const auto kept = kept_.find(place.root); kept != kept_.end()) {
    // Another look may have been first.
    if (kept->second.empty()) kept->second = std::move(real);
    real = kept->second;
  }
  return SafePath{std::move(real), place.relative, Resolve::kNoSymlinks};
}

}  // namespace volumed
