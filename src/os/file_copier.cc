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
constexpr std::chrono::seconds kSyncTakes{1};  // besides what each takes
constexpr size_t kLastSyncs = 4;
constexpr double kMostGrowth = 4;
constexpr double kGrowthIfSlow = 1.5;

double SecondsOf(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

void SyncPace::Note(int64_t bytes, Duration took) {
  last_.push_back(took);
  if (last_.size() > kLastSyncs) last_.pop_front();
  const double of_bytes = SecondsOf(took - *std::min_element(last_.begin(), last_.end()));
  const double most =
      static_cast<double>(bytes_) * (took < kSyncTakes ? kMostGrowth : kGrowthIfSlow);
  const double wanted =
      of_bytes > 0 ? static_cast<double>(bytes) * SecondsOf(kSyncTakes) / of_bytes : most;
  bytes_ = std::clamp(static_cast<int64_t>(std::min(wanted, most)), kLeast, kMost);
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
  sync_pace_.Note(unsynced_, last_sync_ - begin);
  unsynced_ = 0;
  synced_ = at_;
  return OkStatus();
}

}  // namespace volumed
