// The UUID of an xfs that is not mounted, on its file, in steps each of which can be gone on with.
//
// xfs_db cannot: it fills the log with zeros, writes it anew and then the superblocks. Cut off
// between these, the number of the log's cycle is lost; no kernel mounts the filesystem, and
// neither xfs_db nor xfs_repair finds the end of its log. Here the log keeps its cycles. Of a log
// with nothing to replay the first record is written first, with the new UUID and of the next
// cycle. So from then on everybody knows that nothing is to be replayed, and how to go on. Source:
// Linux fs/xfs/xfs_log_recover.c (xlog_find_head, xlog_check_unmount_rec, where a checksum of 0 is
// none), fs/xfs/libxfs/xfs_format.h, xfs_log_format.h; xfsprogs 6.1, db/sb.c (uuid_f),
// libxfs/rdwr.c (libxfs_log_clear).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"

namespace volumed {

// Threads: one file's at a time. Blocks: as the file's filesystem does.
class XfsUuid {
 public:
  // The file is open for reading and writing, outlives this, and has no loop device. The UUID is
  // as text. Errors, not applied: no xfs with checksums is there, or no such UUID; reading.
  static Result<XfsUuid> Open(int file, const std::string& new_uuid, const std::string& what);

  // Whether BeginLog was done with this UUID, and the log is not used since. Reads the whole log if
  // it may be. Errors, not applied: reading.
  Result<bool> IsLogBegun() const;
  // To be synced before the next step, as each. Reads the whole log. Errors: FailedPrecondition if
  // it has something to replay, reading (not applied); writing (maybe applied).
  Status BeginLog() const;
  // Of a log that has begun. Errors: reading (not applied); writing (maybe applied).
  Status WriteRestOfLog() const;
  // Writes the UUID to every superblock that has it not, to the first one last. Errors: another
  // superblock is missing (not applied); reading and writing, maybe applied.
  Status WriteSuperblocks() const;

 private:
  XfsUuid(int file, std::string uuid, std::string what)
      : file_(file), uuid_(std::move(uuid)), what_(std::move(what)) {}
  // The newest record of the log, if that says that nothing is to be replayed.
  struct Unmount {
    uint32_t block = 0;
    std::string header;
    std::string operation;  // the block with it
  };
  Status ReadGeometry();
  Result<std::optional<Unmount>> FindUnmount() const;
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
