// FileCopier: how the file is made, gone on with and put on the disk that CopyFile and CopyDevice
// make of their sources.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "os/copy_steps.h"
#include "os/copy_target.h"
#include "os/kernel.h"

namespace volumed {

// How many bytes are copied between two syncs. What is copied is written by the kernel later, so
// that only a sync shows how fast the disk is; while one goes on nobody learns how far the copy is,
// and no cancel is heard. So they are as many as are on the disk within some seconds. But if others
// write to the disk in bulk each sync takes that long, and fewer bytes would only be more syncs. A
// value.
class SyncPace {
 public:
  using Duration = std::chrono::steady_clock::duration;

  int64_t bytes() const { return kLeast << size_; }
  // A sync of bytes() took so long.
  void Note(Duration time);

 private:
  static constexpr int64_t kLeast = 1 << 20;
  // Each twice the one before. 64 MiB are the most: so much is done again at most after a crash.
  static constexpr size_t kSizes = 7;

  bool IsOfOthers(double took) const;

  size_t size_ = 0;
  // By size: seconds of the last sync of so many bytes, and of the one before that.
  std::array<double, kSizes> last_took_ = {};
  std::array<double, kSizes> took_before_ = {};
};

// Threads: one. Blocks: as long as the bytes take at the rate that is given, and as the filesystems
// do; a cancel is seen within a fifth of a second, and of a disk that is slow to write once a sync
// has ended, which takes some seconds.
class FileCopier {
 public:
  // What is asked for, by either request.
  struct Wish {
    SafePath to;
    int64_t from_offset = 0;
    int64_t bytes_per_second = 0;  // 0: no limit
    std::string what;              // is put before each error
  };
  // Has the step called with what is to be copied of the source, from an offset on, in its order.
  using Walk = std::function<Status(int64_t from, const CopyStep& step)>;
  // Copies up to `bytes` from `at` on, and answers how many; 0: the source ends there.
  using Piece = std::function<Result<int64_t>(int target, int64_t at, int64_t bytes)>;

  // `features` and `options` outlive it.
  FileCopier(Wish wish, const KernelFeatures& features, const CallOptions& options);

  // Errors, not applied: InvalidArgument for an offset or rate below zero.
  Status Check() const;
  // Copies a source that has `size` bytes; a file of that size is made. Errors: as CopyFile's.
  Result<FileExtent> Run(CopySource source, int64_t size, const Walk& walk, const Piece& piece);

 private:
  using SteadyClock = std::chrono::steady_clock;

  Error Refused(Code code, const std::string& why) const;
  Error Failed(const std::string& step, Outcome outcome) const;
  Status Begin();
  Status CopyAll(const Walk& walk, const Piece& piece);
  Result<int64_t> CopyPiece(int64_t bytes, const Piece& piece);
  Status SyncData();

  const Wish wish_;
  const KernelFeatures& features_;
  CopyPace pace_;
  CopySource source_;
  MadeFile target_;
  int64_t size_ = 0;
  int64_t at_ = 0;        // copied up to here
  int64_t synced_ = 0;    // on the disk up to here
  int64_t copied_ = 0;    // bytes by this call
  int64_t unsynced_ = 0;  // of these
  SyncPace sync_pace_;
  SteadyClock::time_point last_sync_ = SteadyClock::now();
  SteadyClock::duration sync_took_ = SteadyClock::duration::zero();  // the last one
};

}  // namespace volumed
