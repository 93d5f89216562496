// Rights of published payloads, and whether a directory holds exactly a payload.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "os/kernel_requests.h"

namespace volumed {

// What the request's `gid` asks for besides the files' own modes.
struct PayloadRights {
  std::optional<uint32_t> gid;

  uint32_t FileMode(uint32_t mode) const { return (mode | (gid ? 0440u : 0u)) & 07777u; }
  uint32_t DirectoryMode() const { return gid ? 02755u : 0755u; }
  // Without a group it is the worker's own, also below a setgid directory.
  uint32_t Group() const;
};

// Give an open directory or file its owner, group and mode, each touching only what is wrong. They
// return false, with errno, on failure.
bool SetDirectoryRights(int directory, const PayloadRights& rights);
bool SetFileRights(int fd, const PayloadFile& file, const PayloadRights& rights);

// Whether `directory` holds these files with these contents and rights, and nothing else. What
// cannot be read is not the same. Threads: any. Blocks: as the filesystem does.
bool IsSamePayload(int directory, const std::vector<PayloadFile>& files,
                   const PayloadRights& rights);

}  // namespace volumed
