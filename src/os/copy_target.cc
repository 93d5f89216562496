#include "os/copy_target.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace volumed {
namespace {

constexpr char kCopyAttribute[] = "trusted.volumed.copy_of";
constexpr size_t kLongestMark = 512;
constexpr char kChangedSince = '@';  // before the time of the source's last change

// Which file it is.
std::string MarkOf(const StorageObject& object) {
  return object.fs_uuid + ":" + std::to_string(object.inode) + ":" + object.handle;
}

// And as it was then.
std::string MarkOf(const CopySource& source) {
  const std::string file = MarkOf(source.object);
  return source.changed.empty() ? file : file + kChangedSince + source.changed;
}

std::string ReadMark(int file) {
  std::array<char, kLongestMark> text;
  const ssize_t size = ::fgetxattr(file, kCopyAttribute, text.data(), text.size());
  return size < 0 ? std::string() : std::string(text.data(), static_cast<size_t>(size));
}

bool IsMarkOf(const std::string& mark, const CopySource& source) {
  return mark.substr(0, mark.find(kChangedSince)) == MarkOf(source.object);
}

// An earlier program did not write it down.
bool IsAsMarked(const std::string& mark, const CopySource& source) {
  const bool says_when = mark.find(kChangedSince) != std::string::npos;
  return !says_when || mark == MarkOf(source);
}

Error WrittenMeanwhile(const std::string& what, Outcome outcome) {
  return Error::FromParts(Code::kFailedPrecondition, outcome, 0,
                          what +
                              ": somebody has changed the file that is copied meanwhile, so "
                              "that the copy would be of two moments");
}

Result<std::string> ChangeOf(int file, const std::string& what) {
  struct stat info = {};
  if (::fstat(file, &info) != 0) return Error::FromErrno(errno, what, Outcome::kNotApplied);
  return std::to_string(info.st_ctim.tv_sec) + "." + std::to_string(info.st_ctim.tv_nsec);
}

Status CheckIsAnother(const MadeFile& target, const CopySource& source, const std::string& what) {
  struct stat to = {};
  struct stat from = {};
  if (::fstat(target.file.get(), &to) != 0 || ::fstat(source.file.get(), &from) != 0) {
    return Error::FromErrno(errno, what, Outcome::kNotApplied);
  }
  if (to.st_dev != from.st_dev || to.st_ino != from.st_ino) return OkStatus();
  return Error::NotApplied(Code::kInvalidArgument, what + ": it is to be a copy of itself");
}

}  // namespace

Result<CopySource> OpenCopySource(const SafePath& from, const StorageObject& expected,
                                  const KernelFeatures& features, const std::string& what) {
  CopySource source;
  ASSIGN_OR_RETURN(source.file, OpenRegularFile(from, O_RDONLY | O_NONBLOCK | O_NOCTTY, expected,
                                                features, what));
  ASSIGN_OR_RETURN(source.object, ObjectOfFile(source.file.get(), features, what));
  ASSIGN_OR_RETURN(source.changed, ChangeOf(source.file.get(), what));
  return source;
}

Status CheckSourceUnchanged(const CopySource& source, const std::string& what) {
  if (source.changed.empty()) return OkStatus();
  const Result<std::string> now = ChangeOf(source.file.get(), what);
  if (!now.ok()) return now.error().AsMaybeApplied();
  if (*now == source.changed) return OkStatus();
  return WrittenMeanwhile(what, Outcome::kMaybeApplied);
}

Error TakenBack(const MadeFile& target, const Error& error) {
  const Outcome outcome = target.Unmake() ? Outcome::kNotApplied : Outcome::kMaybeApplied;
  return Error::FromParts(error.code(), outcome, error.sys_errno(), error.message());
}

Result<MadeFile> MakeCopyTarget(const SafePath& to, const CopySource& source,
                                const std::string& what) {
  const std::string mark = MarkOf(source);
  ASSIGN_OR_RETURN(MadeFile target, MakeRegularFile(to, what));
  const int file = target.file.get();
  RETURN_IF_ERROR(CheckIsAnother(target, source, what));
  struct stat info = {};
  if (::fstat(file, &info) != 0) {
    return TakenBack(target, Error::FromErrno(errno, what, Outcome::kNotApplied));
  }
  const bool is_ours = IsMarkOf(ReadMark(file), source);
  if (is_ours && info.st_size != 0 && ::ftruncate(file, 0) != 0) {
    return Error::FromErrno(errno, what + ", empty it", Outcome::kNotApplied);
  }
  if (!is_ours && info.st_size != 0) {
    return Error::NotApplied(Code::kAlreadyExists,
                             what + ": there is a file that is no copy of it");
  }
  if (::fsetxattr(file, kCopyAttribute, mark.data(), mark.size(), 0) == 0) return target;
  const Error failed = Error::FromErrno(errno, what + ", mark it", Outcome::kNotApplied);
  return target.made ? TakenBack(target, failed) : failed;
}

Result<MadeFile> ReopenCopyTarget(const SafePath& to, const CopySource& source,
                                  const std::string& what) {
  MadeFile target;
  ASSIGN_OR_RETURN(target.place, OpenParent(to));
  ASSIGN_OR_RETURN(const Descriptor there, OpenSafePath(to, O_PATH).With(what));
  ASSIGN_OR_RETURN(target.file,
                   ReopenRegularFile(there.get(), O_RDWR | O_NONBLOCK | O_NOCTTY, what));
  RETURN_IF_ERROR(CheckIsAnother(target, source, what));
  const std::string mark = ReadMark(target.file.get());
  if (!IsMarkOf(mark, source)) {
    return Error::NotApplied(Code::kFailedPrecondition, what + ": there is no beginning of a copy");
  }
  if (!IsAsMarked(mark, source)) return WrittenMeanwhile(what, Outcome::kNotApplied);
  return target;
}

}  // namespace volumed
