#include "os/file_copy.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "os/copy_steps.h"
#include "os/copy_target.h"
#include "os/file_copier.h"

namespace volumed {

Result<FileExtent> DoCopyFile(const CopyFile& request, const KernelFeatures& features,
                              const CallOptions& options) {
  const std::string what = "copy " + request.from.Display() + " to " + request.to.Display();
  FileCopier copier({request.to, request.from_offset, request.bytes_per_second, what}, features,
                    options);
  RETURN_IF_ERROR(copier.Check());
  ASSIGN_OR_RETURN(CopySource source,
                   OpenCopySource(request.from, request.expected, features, what));
  const int file = source.file.get();
  struct stat info = {};
  if (::fstat(file, &info) != 0) {
    return Error::FromErrno(errno, what + ", look at it", Outcome::kNotApplied);
  }
  // Only a page that is clean tells of it when somebody writes to it by a mapping. Which filesystem
  // cannot be written to has no other.
  if (::fdatasync(file) != 0 && errno != EROFS && errno != EINVAL) {
    return Error::FromErrno(errno, what + ", sync it", Outcome::kNotApplied);
  }
  const auto walk = [&](int64_t from, const CopyStep& step) {
    return CopyData(file, from, info.st_size, what, step);
  };
  std::vector<char> buffer;
  const auto piece = [&](int target, int64_t at, int64_t bytes) {
    return CopyBytes(file, target, at, bytes, buffer, what);
  };
  return copier.Run(std::move(source), info.st_size, walk, piece);
}

}  // namespace volumed
