// Preloaded into mkfs: cuts it off at one of its writes to a block device, or loses some of them.
//
// VOLUMED_COUNT=FILE: when the program ends, the number of its writes is written there.
// VOLUMED_CUT_AT=N: of the Nth write the first half of its sectors is made, and then SIGKILL.
// VOLUMED_LOSE=SEED: one write in four is dropped and said to be made.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr size_t kSector = 512;

struct Counter {
  uint64_t writes = 0;
  ~Counter() {
    const char* path = std::getenv("VOLUMED_COUNT");
    if (path == nullptr || writes == 0) return;
    if (FILE* file = std::fopen(path, "w")) {
      std::fprintf(file, "%lu\n", static_cast<unsigned long>(writes));
      std::fclose(file);
    }
  }
};
Counter counter;

enum class Fate { kMade, kCut, kLost };

Fate NextWrite(int fd) {
  struct stat info = {};
  if (::fstat(fd, &info) != 0 || !S_ISBLK(info.st_mode)) return Fate::kMade;
  ++counter.writes;
  if (const char* at = std::getenv("VOLUMED_CUT_AT")) {
    return std::strtoull(at, nullptr, 10) == counter.writes ? Fate::kCut : Fate::kMade;
  }
  if (const char* seed = std::getenv("VOLUMED_LOSE")) {
    // Source: SplitMix64.
    uint64_t mixed = std::strtoull(seed, nullptr, 10) * 1000003 + counter.writes;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return ((mixed ^ (mixed >> 31)) & 3) == 0 ? Fate::kLost : Fate::kMade;
  }
  return Fate::kMade;
}

template <typename Function>
Function Real(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

using Pwrite = ssize_t (*)(int, const void*, size_t, off64_t);

ssize_t Write(const char* name, int fd, const void* bytes, size_t size, off64_t offset) {
  static const auto real = Real<Pwrite>(name);
  switch (NextWrite(fd)) {
    case Fate::kMade:
      break;
    case Fate::kLost:
      return static_cast<ssize_t>(size);
    case Fate::kCut:
      if (const size_t half = size / 2 / kSector * kSector; half != 0) {
        (void)real(fd, bytes, half, offset);
      }
      ::kill(::getpid(), SIGKILL);
  }
  return real(fd, bytes, size, offset);
}

int Allocate(const char* name, int fd, int mode, off64_t offset, off64_t length) {
  static const auto real = Real<int (*)(int, int, off64_t, off64_t)>(name);
  const Fate fate = NextWrite(fd);
  if (fate == Fate::kLost) return 0;
  if (fate == Fate::kCut) ::kill(::getpid(), SIGKILL);
  return real(fd, mode, offset, length);
}

}  // namespace

extern "C" {

ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t offset) {
  return Write("pwrite64", fd, bytes, size, offset);
}
ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  return Write("pwrite64", fd, bytes, size, offset);
}
int fallocate64(int fd, int mode, off64_t offset, off64_t length) {
  return Allocate("fallocate64", fd, mode, offset, length);
}
int fallocate(int fd, int mode, off_t offset, off_t length) {
  return Allocate("fallocate64", fd, mode, offset, length);
}

}  // extern "C"
