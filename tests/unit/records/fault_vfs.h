// FaultVfs: a SQLite VFS that passes everything on to the default one, until told to fail. For
// what no test can make a real disk do.
#pragma once

#include <atomic>
#include <string>

#include <sqlite3.h>

namespace volumed {

// Threads: any. REQUIRES: outlives every connection made with it.
class FaultVfs {
 public:
  FaultVfs();
  ~FaultVfs();
  FaultVfs(const FaultVfs&) = delete;
  FaultVfs& operator=(const FaultVfs&) = delete;

  const std::string& name() const { return name_; }

  std::atomic<int> failing_syncs{0};        // that many syncs fail with EIO
  std::atomic<bool> no_space{false};        // every write fails as ENOSPC does
  std::atomic<bool> failing_writes{false};  // every write fails with EIO
  std::atomic<int> syncs{0};                // asked for so far

 private:
  std::string name_;
  sqlite3_vfs vfs_{};
};

}  // namespace volumed
