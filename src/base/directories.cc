#include "base/directories.h"

#include <sys/stat.h>

#include <cerrno>

namespace volumed {

Status MakeDirectories(const std::string& path, mode_t parent_mode, mode_t mode) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    const bool is_last = end == std::string::npos;
    if (::mkdir(part.c_str(), is_last ? mode : parent_mode) != 0 && errno != EEXIST) {
      return Error::FromErrno(errno, "make " + part, Outcome::kNotApplied);
    }
    if (is_last) return OkStatus();
  }
}

}  // namespace volumed
