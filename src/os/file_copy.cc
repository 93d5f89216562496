#include "os/file_copy.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "os/copy_target.h"
#include "os/work_meter.h"

namespace volumed {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int64_t kStep = 1 << 20;
// So much is done again at most after a crash, and no sync takes for ever.
constexpr int64_t kSyncEvery = 64 << 20;
constexpr std::chrono::milliseconds kNap{100};

class FileCopier {
 public:
  FileCopier(const CopyFile& request, const KernelFeatures& features, const CallOptions& options)
      : request_(request),
        features_(features),
        options_(options),
        what_("copy " + request.from.Display() + " to " + request.to.Display()) {}

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
    while (at_ < size_) {
      const off_t data = ::lseek(source_.file.get(), at_, SEEK_DATA);
      if (data < 0 && errno != ENXIO) return Failed("look for data", kMaybe);
      // Nothing but a hole is left, or what was added to the file since this began.
      if (data < 0 || data >= size_) break;
      const off_t hole = ::lseek(source_.file.get(), data, SEEK_HOLE);
      if (hole < 0) return Failed("look for a hole", kMaybe);
      const int64_t end = std::min<int64_t>(hole, size_);
      at_ = data;
      while (at_ < end) RETURN_IF_ERROR(CopyStep(std::min(kStep, end - at_)));
    }
    at_ = size_;
    return SyncData();
  }

  Status CopyStep(int64_t bytes) {
    RETURN_IF_ERROR(Pace());
    buffer_.resize(static_cast<size_t>(kStep));
    const ssize_t got =
        ::pread(source_.file.get(), buffer_.data(), static_cast<size_t>(bytes), at_);
    if (got < 0) return Failed("read", kMaybe);
    if (got == 0) {
      return Error::MaybeApplied(Code::kFailedPrecondition,
                                 what_ + ": it was made smaller meanwhile");
    }
    for (ssize_t done = 0; done < got;) {
      const ssize_t put = ::pwrite(target_.file.get(), buffer_.data() + done,
                                   static_cast<size_t>(got - done), at_ + done);
      if (put < 0) return Failed("write", kMaybe);
      done += put;
    }
    at_ += got;
    copied_ += got;
    unsynced_ += got;
    return unsynced_ >= kSyncEvery ? SyncData() : OkStatus();
  }

  Status SyncData() {
    if (::fdatasync(target_.file.get()) != 0) return Failed("sync", kMaybe);
    unsynced_ = 0;
    synced_ = at_;
    return OkStatus();
  }

  // Waits until the rate allows another step, and sees a cancel.
  Status Pace() {
    while (true) {
      if (const auto now = SteadyClock::now(); now >= tell_at_) {
        tell_at_ = now + WorkMeter::kInterval;
        if (options_.progress) options_.progress(synced_);
      }
      if (options_.cancel != nullptr && options_.cancel->cancelled()) {
        return WorkMeter::CancelledError(kMaybe);
      }
      if (request_.bytes_per_second == 0) return OkStatus();
      const std::chrono::duration<double> due(static_cast<double>(copied_) /
                                              static_cast<double>(request_.bytes_per_second));
      const std::chrono::duration<double> left = due - (SteadyClock::now() - begin_);
      if (left.count() <= 0) return OkStatus();
      std::this_thread::sleep_for(std::min<std::chrono::duration<double>>(left, kNap));
    }
  }

  const CopyFile& request_;
  const KernelFeatures& features_;
  const CallOptions& options_;
  const std::string what_;
  const SteadyClock::time_point begin_ = SteadyClock::now();
  SteadyClock::time_point tell_at_ = begin_ + WorkMeter::kInterval;
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
