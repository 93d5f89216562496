// DirectoryReader: the entries of one directory in the kernel's order, block by block, by
// getdents64. "." and ".." are left out.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "os/kernel_requests.h"

namespace volumed {

struct RawEntry {
  const char* name;    // valid until the next Next()
  unsigned char type;  // DT_*; DT_UNKNOWN on some filesystems
};

// Threads: one. Blocks: as the filesystem does.
class DirectoryReader {
 public:
  // `directory` is open for reading, not O_PATH, and is not owned. `block` is the caller's memory,
  // for as long as the reader lives.
  DirectoryReader(int directory, std::vector<char>& block) : directory_(directory), block_(block) {}

  // False at the end, and on an error: then sys_errno() is not 0.
  bool Next(RawEntry& entry);
  int sys_errno() const { return sys_errno_; }
  // Whether the next Next() needs a system call, that is, whether a block ends here.
  bool BlockEnds() const { return position_ >= size_; }

 private:
  const int directory_;
  std::vector<char>& block_;
  size_t position_ = 0;
  size_t size_ = 0;
  int sys_errno_ = 0;
};

// 32 KiB: about 1,000 entries a call; more gains nothing. Source: measured.
constexpr size_t kDirectoryBlockBytes = 32768;

// From d_type; kMissing for DT_UNKNOWN, after which the entry has to be asked.
FileType FileTypeFromDirent(unsigned char type);
// From st_mode; kMissing for a type that Linux does not have.
FileType FileTypeFromMode(uint32_t mode);

}  // namespace volumed
