#include "records/number_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "base/strings.h"

namespace volumed {
namespace {

// The slots are a page and a block apart, so that neither one write nor one bad block can damage
// both.
constexpr off_t kSlotDistance = 4096;
constexpr size_t kSlotBytes = 128;
constexpr int kSlots = 2;
constexpr char kWords[] = "volumed-records 1 ";

Error SystemError(const std::string& what, Outcome outcome = Outcome::kNotApplied) {
  return Error::FromErrno(errno, what, outcome);
}

std::string EncodeSlot(const RecordsNumber& number) {
  std::string text = kWords + number.records_id + " " + std::to_string(number.number) + " ";
  text += std::to_string(ExtendCrc32c(0, text));
  text.resize(kSlotBytes - 1, ' ');
  return text + "\n";
}

std::optional<RecordsNumber> DecodeSlot(const std::string& slot) {
  const std::vector<std::string> words = Split(TrimSpace(slot), ' ');
  if (words.size() != 5) return std::nullopt;
  const std::optional<uint64_t> number = ParseUint64(words[3]);
  if (!number) return std::nullopt;
  RecordsNumber decoded{words[2], *number};
  // The slot is compared as a whole, with its padding.
  if (EncodeSlot(decoded) != slot) return std::nullopt;
  return decoded;
}

std::optional<RecordsNumber> ReadSlot(int fd, int slot) {
  std::string bytes(kSlotBytes, '\0');
  // A slot whose block cannot be read counts as damaged; the other slot may be whole.
  const ssize_t got = pread(fd, bytes.data(), bytes.size(), slot * kSlotDistance);
  if (got != static_cast<ssize_t>(bytes.size())) return std::nullopt;
  return DecodeSlot(bytes);
}

Status WriteAll(int fd, const std::string& bytes, off_t offset, const std::string& path) {
  ssize_t written = -1;
  do {
    written = pwrite(fd, bytes.data(), bytes.size(), offset);
  } while (written < 0 && errno == EINTR);
  if (written < 0) return SystemError("write " + path, Outcome::kMaybeApplied);
  if (written != static_cast<ssize_t>(bytes.size())) {
    return Error::MaybeApplied(Code::kUnavailable, "write " + path + ": short write");
  }
  return OkStatus();
}

Status SyncDirectoryOf(const std::string& path) {
  const std::string directory = path.substr(0, path.rfind('/'));
  const Descriptor fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0 || fsync(fd.get()) != 0) {
    return SystemError("sync " + directory, Outcome::kMaybeApplied);
  }
  return OkStatus();
}

}  // namespace

Status NumberFile::Open() {
  state_ = State::kMissing;
  fd_ = Descriptor(open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (fd_.get() < 0) {
    if (errno == ENOENT) return OkStatus();
    // What is at this place is no file of this program, which is as bad as a damaged one.
    if (errno != ELOOP && errno != EISDIR && errno != ENXIO) return SystemError("open " + path_);
    state_ = State::kDamaged;
    return OkStatus();
  }
  state_ = State::kDamaged;
  for (int slot = 0; slot < kSlots; ++slot) {
    const std::optional<RecordsNumber> read = ReadSlot(fd_.get(), slot);
    if (!read || (state_ == State::kWhole && read->number < found_.number)) continue;
    found_ = *read;
    state_ = State::kWhole;
  }
  return OkStatus();
}

Status NumberFile::Make(const RecordsNumber& number) {
  const std::string fresh = path_ + ".new";
  if (unlink(fresh.c_str()) != 0 && errno != ENOENT) return SystemError("remove " + fresh);
  Descriptor fd(open(fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (fd.get() < 0) return SystemError("create " + fresh);
  std::string bytes(kSlots * kSlotDistance, ' ');
  const std::string slot = EncodeSlot(number);
  for (int i = 0; i < kSlots; ++i) {
    bytes.replace(static_cast<size_t>(i * kSlotDistance), kSlotBytes, slot);
  }
  RETURN_IF_ERROR(WriteAll(fd.get(), bytes, 0, fresh));
  if (fsync(fd.get()) != 0) return SystemError("sync " + fresh);
  if (rename(fresh.c_str(), path_.c_str()) != 0) return SystemError("rename " + fresh);
  fd_ = std::move(fd);
  state_ = State::kWhole;
  found_ = number;
  return SyncDirectoryOf(path_);
}

Status NumberFile::Write(const RecordsNumber& number) {
  const off_t slot = static_cast<off_t>(number.number % kSlots);
  return WriteAll(fd_.get(), EncodeSlot(number), slot * kSlotDistance, path_);
}

Status NumberFile::Sync() {
  if (fd_.get() < 0) return OkStatus();
  if (fdatasync(fd_.get()) != 0) return SystemError("sync " + path_);
  return OkStatus();
}

}  // namespace volumed
