// KeyLock: an flock on the file of a volume's key, held by a worker while it works on that volume.
// The lock ends with the process, however that ends, and not before: a new agent that cannot have
// it knows that an old worker is still busy there. Source: flock(2).
#pragma once

#include <string>

#include "base/descriptor.h"
#include "base/result.h"

namespace volumed {

// The name of the file of `key` in the key directory: letters, digits, '-', '_' and '.' as they
// are, the rest as %XX, long keys cut and told apart by a checksum. Pure.
std::string KeyFileName(const std::string& key);

// Threads: one at a time. Blocks: never.
class KeyLock {
 public:
  // Errors: Aborted, not applied, when another process holds it; errno of the file, not applied.
  static Result<KeyLock> Take(const std::string& directory, const std::string& key);
  // Removes the file and lets go.
  ~KeyLock();
  KeyLock(KeyLock&&) = default;
  KeyLock& operator=(KeyLock&&) = delete;

  // A copy of it that another process inherits keeps the key locked.
  int fd() const { return file_.get(); }

 private:
  KeyLock(std::string path, Descriptor file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  Descriptor file_;
};

// Whether some process holds the key's lock. Errors: errno of the file, not applied.
Result<bool> IsKeyLocked(const std::string& directory, const std::string& key);

}  // namespace volumed
