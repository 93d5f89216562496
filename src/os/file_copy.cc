#include "os/file_copy.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "os/copy_steps.h"
#include "os/copy_target.h"

namespace volumed {
namespace {

// So much is done again at most after a crash, and no sync takes for ever.
constexpr int64_t kSyncEvery = 64 << 20;

class FileCopier {
 public:
  FileCopier(const CopyFile& request, const KernelFeatures& features, const CallOptions& options)
      : request_(request),
        features_(features),
        what_("copy " + request.from.Display() + " to " + request.to.Display()),
        pace_(options, request.bytes_per_second) {}

  Result<FileExtent> Run() {
    if (request_.from_offset < 0 || request_.bytes_per_second < 0) {
      return Refused(Code::kInvalidArgument, "no such offset or rate");
    }
    ASSIGN_OR_RETURN(source_, OpenCopySource(request_.from, request_.expected, features_, what_));
    struct stat info = {};
    if (::fstat(source_.file.get(), &info) != 0) return Failed("look at it", kNotApplied);
    size_ = info.st_size;
    if (request_.from_offset > size_) return Refused(Code::kOutOfRange, "it ends before that");
    RETURN_IF_ERROR(Begin());
    RETURN_IF_ERROR(CopyAll());
    RETURN_IF_ERROR(target_.Sync(what_));
    ASSIGN_OR_RETURN(FileExtent extent, ExtentOfFile(target_.file.get(), features_, what_));
    extent.changed = true;
    return extent;
  }

 private:
  static constexpr Outcome kNotApplied = Outcome::kNotApplied;
  static constexpr Outcome kMaybe = Outcome::kMaybeApplied;

  Error Refused(Code code, const std::string& why) const {
    return Error::NotApplied(code, what_ + ": " + why);
  }
  Error Failed(const std::string& step, Outcome outcome) const {
    return Error::FromErrno(errno, what_ + ", " + step, outcome);
  }

  Status Begin() {
    const int64_t offset = request_.from_offset;
    if (offset == 0) {
      ASSIGN_OR_RETURN(target_, MakeCopyTarget(request_.to, source_, what_));
    } else {
      ASSIGN_OR_RETURN(target_, ReopenCopyTarget(request_.to, source_, what_));
      struct stat info = {};
      if (::fstat(target_.file.get(), &info) != 0) return Failed("look at the copy", kNotApplied);
      if (info.st_size < offset) return Refused(Code::kOutOfRange, "the copy ends before that");
      if (::ftruncate(target_.file.get(), offset) != 0) return Failed("cut it", kNotApplied);
    }
    // What lies in no data of the source stays a hole.
    if (::ftruncate(target_.file.get(), size_) != 0) {
      return TakenBack(target_, Failed("set its size", kMaybe));
    }
    at_ = synced_ = offset;
    return OkStatus();
  }

  Status CopyAll() {
    const auto step = [this](int64_t at, int64_t bytes) -> Result<int64_t> {
      at_ = at;
      return CopyPiece(bytes);
    };
    RETURN_IF_ERROR(CopyData(source_.file.get(), at_, size_, what_, step));
    at_ = size_;
    return SyncData();
  }

  Result<int64_t> CopyPiece(int64_t bytes) {
    RETURN_IF_ERROR(pace_.Wait(copied_, synced_));
    ASSIGN_OR_RETURN(const int64_t got,
                     CopyBytes(source_.file.get(), target_.file.get(), at_, bytes, buffer_, what_));
    if (got == 0) {
      return Error::MaybeApplied(Code::kFailedPrecondition,
                                 what_ + ": it was made smaller meanwhile");
    }
    at_ += got;
    copied_ += got;
    unsynced_ += got;
    if (unsynced_ >= kSyncEvery) RETURN_IF_ERROR(SyncData());
    return got;
  }

  Status SyncData() {
    if (::fdatasync(target_.file.get()) != 0) return Failed("sync", kMaybe);
    unsynced_ = 0;
    synced_ = at_;
    return OkStatus();
  }

  const CopyFile& request_;
  const KernelFeatures& features_;
  const std::string what_;
  CopyPace pace_;
  CopySource source_;
  MadeFile target_;
  int64_t size_ = 0;
  int64_t at_ = 0;        // copied up to here
  int64_t synced_ = 0;    // on the disk up to here
  int64_t copied_ = 0;    // bytes of data by this call
  int64_t unsynced_ = 0;  // of these
  std::vector<char> buffer_;
};

}  // namespace

Result<FileExtent> DoCopyFile(const CopyFile& request, const KernelFeatures& features,
                              const CallOptions& options) {
  return FileCopier(request, features, options).Run();
}

}  // namespace volumed
