#include "os/file_copier.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace volumed {
namespace {

// A copy that is slow to read is synced by time; but most of the time is the copy's.
constexpr std::chrono::seconds kSyncAfter{2};
constexpr int kCopyPerSync = 4;
constexpr double kSyncTakes = 3;  // seconds at most, unless that is of what others write
constexpr double kQuickSync = kSyncTakes / 4;

}  // namespace

// What fewer bytes took lately is of what others write, and more bytes would take twice as long at
// least if it were theirs. At the least only more bytes show whose time it is.
bool SyncPace::IsOfOthers(double took) const {
  double of_others = 0;
  for (size_t size = 0; size < std::max<size_t>(size_, 1); ++size) {
    of_others = std::max({of_others, last_took_[size], took_before_[size]});
  }
  return took < (size_ == 0 ? 1.3 : 1.5) * of_others;
}

void SyncPace::Note(Duration time) {
  const double took = std::chrono::duration<double>(time).count();
  const bool is_of_others = IsOfOthers(took);
  took_before_[size_] = std::exchange(last_took_[size_], took);
  if (took > kSyncTakes && !is_of_others) {
    size_ = size_ > 0 ? size_ - 1 : 0;
    return;
  }
  const bool is_cheap = took < kQuickSync || (took > kSyncTakes && size_ > 0);
  size_ = std::min(size_ + (is_cheap ? 2 : 1), kSizes - 1);
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
  const SteadyClock::duration after =
      std::max<SteadyClock::duration>(kSyncAfter, kCopyPerSync * sync_took_);
  const bool is_late = SteadyClock::now() - last_sync_ >= after;
  if (unsynced_ >= sync_pace_.bytes() || is_late) RETURN_IF_ERROR(SyncData());
  return got;
}

Status FileCopier::SyncData() {
  const SteadyClock::time_point begin = SteadyClock::now();
  if (::fdatasync(target_.file.get()) != 0) return Failed("sync", Outcome::kMaybeApplied);
  last_sync_ = SteadyClock::now();
  sync_took_ = last_sync_ - begin;
  // One that came because of the time had fewer bytes, and tells nothing of the disk.
  if (unsynced_ >= sync_pace_.bytes()) sync_pace_.Note(sync_took_);
  unsynced_ = 0;
  synced_ = at_;
  return OkStatus();
}

}  // namespace volumed
