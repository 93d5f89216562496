// What is left to do of a change of an xfs's UUID that xfs_db began and was cut off in, on its
// file.
//
// xfs_db refuses a log with something to replay. Then it writes the log anew: first a record that
// says that nothing is to be replayed, with the new UUID, and then the rest of it; and last the
// superblocks, the first one first. Between these no kernel mounts it, because the log has another
// UUID than the superblock, and neither xfs_db nor xfs_repair finds the end of the log.
// Source: xfsprogs 6.1, db/sb.c (uuid_f), libxfs/rdwr.c (libxfs_log_clear); Linux
// fs/xfs/xfs_log_recover.c (xlog_find_head), fs/xfs/libxfs/xfs_format.h, xfs_log_format.h.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace volumed {

// Threads: one file's at a time. Blocks: as the file's filesystem does.
class XfsUuid {
 public:
  // The file is open for reading and writing, outlives this, and has no loop device. The UUID is
  // as text. Errors, not applied: no xfs with checksums is there, or no such UUID; reading.
  static Result<XfsUuid> Open(int file, const std::string& new_uuid, const std::string& what);

  // Whether the first record of the log is xfs_db's with the new UUID, and the newest one. Nothing
  // is to be replayed then. Reads the whole log if it may be. Errors, not applied: reading.
  Result<bool> IsLogBegun() const;
  // Writes the rest of a log that has begun so. Errors, maybe applied: writing.
  Status WriteRestOfLog() const;
  // Writes the UUID to every superblock that has it not, to the first one last. Errors: another
  // superblock is missing (not applied); reading and writing, maybe applied.
  Status WriteSuperblocks() const;

 private:
  XfsUuid(int file, std::string uuid, std::string what)
      : file_(file), uuid_(std::move(uuid)), what_(std::move(what)) {}
  Status ReadGeometry();
  Result<std::string> Read(off_t begin, size_t size) const;
  Status Write(const std::string& bytes, off_t begin) const;
  std::string WithNewUuid(std::string first) const;

  int file_;
  std::string uuid_;  // its 16 bytes
  std::string what_;
  std::string first_;  // superblock, of the size of a sector
  off_t group_bytes_ = 0;
  uint64_t groups_ = 0;
  off_t log_begin_ = 0;
  off_t log_bytes_ = 0;
};

}  // namespace volumed
