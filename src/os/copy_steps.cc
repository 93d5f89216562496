#include "os/copy_steps.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

namespace volumed {
namespace {

constexpr int64_t kStep = 1 << 20;
constexpr std::chrono::milliseconds kNap{100};

Error CopyFailed(const std::string& what, const std::string& step) {
  return Error::FromErrno(errno, what + ", " + step, Outcome::kMaybeApplied);
}

}  // namespace

Status CopyPace::Wait(int64_t copied, int64_t told) {
  while (true) {
    if (const auto now = SteadyClock::now(); now >= tell_at_) {
      tell_at_ = now + WorkMeter::kInterval;
      if (options_.progress) options_.progress(told);
    }
    if (options_.cancel != nullptr && options_.cancel->cancelled()) {
      return WorkMeter::CancelledError(Outcome::kMaybeApplied);
    }
    if (bytes_per_second_ == 0) return OkStatus();
    const std::chrono::duration<double> due(static_cast<double>(copied) /
                                            static_cast<double>(bytes_per_second_));
    const std::chrono::duration<double> left = due - (SteadyClock::now() - begin_);
    if (left.count() <= 0) return OkStatus();
    std::this_thread::sleep_for(std::min<std::chrono::duration<double>>(left, kNap));
  }
}

Status CopyData(int file, int64_t from, int64_t end, const std::string& what,
                const CopyStep& step) {
  for (int64_t at = from; at < end;) {
    const off_t data = ::lseek(file, at, SEEK_DATA);
    if (data < 0 && errno != ENXIO) return CopyFailed(what, "look for data");
    // Nothing but a hole is left, or what was added to the file since this began.
    if (data < 0 || data >= end) return OkStatus();
    const off_t hole = ::lseek(file, data, SEEK_HOLE);
    if (hole < 0 && errno != ENXIO) return CopyFailed(what, "look for a hole");
    // It was made smaller since: the step meets its end.
    const int64_t last = hole < 0 ? end : std::min<int64_t>(hole, end);
    for (at = data; at < last;) {
      ASSIGN_OR_RETURN(const int64_t done, step(at, std::min(kStep, last - at)));
      if (done == 0) return OkStatus();
      at += done;
    }
  }
  return OkStatus();
}

Result<int64_t> CopyBytes(int from, int to, int64_t at, int64_t bytes, std::vector<char>& buffer,
                          const std::string& what) {
  buffer.resize(static_cast<size_t>(kStep));
  const ssize_t got = ::pread(from, buffer.data(), static_cast<size_t>(bytes), at);
  if (got < 0) return CopyFailed(what, "read");
  for (ssize_t done = 0; done < got;) {
    const ssize_t put =
        ::pwrite(to, buffer.data() + done, static_cast<size_t>(got - done), at + done);
    if (put < 0) return CopyFailed(what, "write");
    done += put;
  }
  return static_cast<int64_t>(got);
}

}  // namespace volumed
