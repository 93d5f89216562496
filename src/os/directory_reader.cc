#include "os/directory_reader.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace volumed {
namespace {

// Source: getdents64(2).
struct LinuxDirent64 {
  uint64_t inode;
  int64_t offset;
  unsigned short record_length;
  unsigned char type;
  char name[1];
};

bool IsDots(const char* name) {
  return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

}  // namespace

bool DirectoryReader::Next(RawEntry& entry) {
  while (true) {
    if (BlockEnds()) {
      const long size = ::syscall(SYS_getdents64, directory_, block_.data(), block_.size());
      if (size <= 0) {
        // ENOENT: the directory was removed while it was read; it has no more entries.
        if (size < 0 && errno != ENOENT) sys_errno_ = errno;
        return false;
      }
      size_ = static_cast<size_t>(size);
      position_ = 0;
    }
    const char* record = block_.data() + position_;
    unsigned short length = 0;
    std::memcpy(&length, record + offsetof(LinuxDirent64, record_length), sizeof(length));
    position_ += length;
    entry.type = static_cast<unsigned char>(record[offsetof(LinuxDirent64, type)]);
    entry.name = record + offsetof(LinuxDirent64, name);
    if (!IsDots(entry.name)) return true;
  }
}

FileType FileTypeFromDirent(unsigned char type) {
  switch (type) {
    case DT_REG:
      return FileType::kRegular;
    case DT_DIR:
      return FileType::kDirectory;
    case DT_LNK:
      return FileType::kSymlink;
    case DT_SOCK:
      return FileType::kSocket;
    case DT_CHR:
      return FileType::kCharDevice;
    case DT_BLK:
      return FileType::kBlockDevice;
    case DT_FIFO:
      return FileType::kFifo;
    default:
      return FileType::kMissing;
  }
}

FileType FileTypeFromMode(uint32_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return FileType::kRegular;
    case S_IFDIR:
      return FileType::kDirectory;
    case S_IFLNK:
      return FileType::kSymlink;
    case S_IFSOCK:
      return FileType::kSocket;
    case S_IFCHR:
      return FileType::kCharDevice;
    case S_IFBLK:
      return FileType::kBlockDevice;
    case S_IFIFO:
      return FileType::kFifo;
    default:
      return FileType::kMissing;
  }
}

}  // namespace volumed
