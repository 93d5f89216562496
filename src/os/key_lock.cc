#include "os/key_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>

namespace volumed {
namespace {

// NAME_MAX is 255; the checksum and its separator need 17.
constexpr size_t kMaxPlainName = 200;

bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

// FNV-1a, 64 bits. Two long keys with one sum would only wait for each other.
uint64_t Checksum(const std::string& text) {
  uint64_t sum = 14695981039346656037ull;
  for (const char c : text) {
    sum ^= static_cast<unsigned char>(c);
    sum *= 1099511628211ull;
  }
  return sum;
}

}  // namespace

std::string KeyFileName(const std::string& key) {
  std::string name = "key-";  // so that no key gives "." or a hidden file
  char hex[32];
  for (const char c : key) {
    if (IsPlain(c)) {
      name += c;
    } else {
      std::snprintf(hex, sizeof(hex), "%%%02X",
                    static_cast<unsigned>(static_cast<unsigned char>(c)));
      name += hex;
    }
  }
  if (name.size() <= kMaxPlainName) return name;
  std::snprintf(hex, sizeof(hex), "~%016llx", static_cast<unsigned long long>(Checksum(key)));
  return name.substr(0, kMaxPlainName) + hex;
}

Result<KeyLock> KeyLock::Take(const std::string& directory, const std::string& key) {
  const std::string path = directory + "/" + KeyFileName(key);
  while (true) {
    Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file.valid()) return Error::FromErrno(errno, "lock key " + path, Outcome::kNotApplied);
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno != EWOULDBLOCK) {
        return Error::FromErrno(errno, "lock key " + path, Outcome::kNotApplied);
      }
      return Error::NotApplied(Code::kAborted, "an earlier worker still holds key " + key);
    }
    // The holder before us may have removed the file between our open and our lock.
    struct stat stat = {};
    if (::fstat(file.get(), &stat) == 0 && stat.st_nlink > 0) {
      return KeyLock(path, std::move(file));
    }
  }
}

KeyLock::~KeyLock() {
  if (file_.valid()) ::unlink(path_.c_str());
}

Result<bool> IsKeyLocked(const std::string& directory, const std::string& key) {
  const std::string path = directory + "/" + KeyFileName(key);
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!file.valid()) {
    if (errno == ENOENT) return false;
    return Error::FromErrno(errno, "look at key " + path, Outcome::kNotApplied);
  }
  if (::flock(file.get(), LOCK_SH | LOCK_NB) == 0) return false;
  if (errno == EWOULDBLOCK) return true;
  return Error::FromErrno(errno, "look at key " + path, Outcome::kNotApplied);
}

}  // namespace volumed
