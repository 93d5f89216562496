#include "os/file_copier.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace volumed {
namespace {

// A copy that is slow to read is synced by time.
constexpr std::chrono::seconds kSyncAfter{2};
constexpr double kSyncTakes = 3;  // seconds at most, unless that is of what others write
constexpr double kQuickSync = kSyncTakes / 4;

}  // namespace

// A sync whose time was of its bytes would have taken as many times longer, or shorter, than the
// last one as it had more, or fewer. The half of that tells it from one that waited for others. At
// the least there is nothing to compare with: only more bytes show whose time it is.
bool SyncPace::IsOfOthers(double took) const {
  if (last_bytes_ == 0) return false;
  if (bytes_ == last_bytes_) return bytes_ == kLeast;
  const double times = static_cast<double>(bytes_) / static_cast<double>(last_bytes_);
  const double between = last_took_ * (1 + times) / 2;
  return bytes_ > last_bytes_ ? took < between : took > between;
}

void SyncPace::Note(Duration time) {
  const double took = std::chrono::duration<double>(time).count();
  double times = took > 0 ? kSyncTakes / took : 1;
  if (took <= kSyncTakes || IsOfOthers(took)) times = took < kQuickSync ? 4 : 2;
  last_bytes_ = bytes_;
  last_took_ = took;
  bytes_ = std::clamp(static_cast<int64_t>(static_cast<double>(bytes_) * times), kLeast, kMost);
}

FileCopier::FileCopier(Wish wish, const KernelFeatures& features, const CallOptions& options)
    : wish_(std::move(wish)), features_(features), pace_(options, wish_.bytes_per_second) {}

Error FileCopier::Refused(Code code, const std::string& why) const {
  return Error::NotApplied(code, wish_.what + ": " + why);
}

Error FileCopier::Failed(const std::string& step, Outcome outcome) const {
  return Error::FromErrno(errno, wish_.what + ", " + step, outcome);
}

Status FileCopier::Check() const {
  if (wish_.from_offset >= 0 && wish_.bytes_per_second >= 0) return OkStatus();
  return Refused(Code::kInvalidArgument, "no such offset or rate");
}

Result<FileExtent> FileCopier::Run(CopySource source, int64_t size, const Walk& walk,
                                   const Piece& piece) {
  source_ = std::move(source);
  size_ = size;
  if (wish_.from_offset > size_) return Refused(Code::kOutOfRange, "it ends before that");
  RETURN_IF_ERROR(Begin());
  RETURN_IF_ERROR(CopyAll(walk, piece));
  RETURN_IF_ERROR(CheckSourceUnchanged(source_, wish_.what));
  RETURN_IF_ERROR(target_.Sync(wish_.what));
  ASSIGN_OR_RETURN(FileExtent extent, ExtentOfFile(target_.file.get(), features_, wish_.what));
  extent.changed = true;
  return extent;
}

Status FileCopier::Begin() {
  const int64_t offset = wish_.from_offset;
  if (offset == 0) {
    ASSIGN_OR_RETURN(target_, MakeCopyTarget(wish_.to, source_, wish_.what));
  } else {
    ASSIGN_OR_RETURN(target_, ReopenCopyTarget(wish_.to, source_, wish_.what));
    struct stat info = {};
    if (::fstat(target_.file.get(), &info) != 0) {
      return Failed("look at the copy", Outcome::kNotApplied);
    }
    if (info.st_size < offset) return Refused(Code::kOutOfRange, "the copy ends before that");
    if (::ftruncate(target_.file.get(), offset) != 0) return Failed("cut it", Outcome::kNotApplied);
  }
  // What is not copied stays a hole.
  if (::ftruncate(target_.file.get(), size_) != 0) {
    return TakenBack(target_, Failed("set its size", Outcome::kMaybeApplied));
  }
  at_ = synced_ = offset;
  return OkStatus();
}

Status FileCopier::CopyAll(const Walk& walk, const Piece& piece) {
  const auto step = [this, &piece](int64_t at, int64_t bytes) -> Result<int64_t> {
    at_ = at;
    return CopyPiece(bytes, piece);
  };
  RETURN_IF_ERROR(walk(at_, step));
  at_ = size_;
  return SyncData();
}

Result<int64_t> FileCopier::CopyPiece(int64_t bytes, const Piece& piece) {
  RETURN_IF_ERROR(pace_.Wait(copied_, synced_));
  ASSIGN_OR_RETURN(const int64_t got, piece(target_.file.get(), at_, bytes));
  if (got == 0) {
    return Error::MaybeApplied(Code::kFailedPrecondition,
                               wish_.what + ": it was made smaller meanwhile");
  }
  at_ += got;
  copied_ += got;
  unsynced_ += got;
  const bool is_late = SteadyClock::now() - last_sync_ >= kSyncAfter;
  if (unsynced_ >= sync_pace_.bytes() || is_late) RETURN_IF_ERROR(SyncData());
  return got;
}

Status FileCopier::SyncData() {
  const SteadyClock::time_point begin = SteadyClock::now();
  if (::fdatasync(target_.file.get()) != 0) return Failed("sync", Outcome::kMaybeApplied);
  last_sync_ = SteadyClock::now();
  // One that came because of the time had fewer bytes, and tells nothing of the disk.
  if (unsynced_ >= sync_pace_.bytes()) sync_pace_.Note(last_sync_ - begin);
  unsynced_ = 0;
  synced_ = at_;
  return OkStatus();
}

}  // namespace volumed
