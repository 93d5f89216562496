// Partitions of a real disk, for tests: the kernel is told of them, and no table is written.
#pragma once

#include <fcntl.h>
#include <linux/blkpg.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "base/descriptor.h"

namespace volumed {

inline std::string PartitionOf(const std::string& disk, int number) {
  return disk + "p" + std::to_string(number);
}

// The result of ioctl(2). `start` and `length` are in bytes.
inline int AskOfPartition(int disk, int op, int number, int64_t start = 0, int64_t length = 0) {
  blkpg_partition part = {};
  part.start = start;
  part.length = length;
  part.pno = number;
  blkpg_ioctl_arg request = {};
  request.op = op;
  request.datalen = sizeof(part);
  request.data = &part;
  return ::ioctl(disk, BLKPG, &request);
}

inline bool DropPartition(const std::string& disk, int number) {
  const Descriptor device(::open(disk.c_str(), O_RDWR | O_CLOEXEC));
  return device.valid() && AskOfPartition(device.get(), BLKPG_DEL_PARTITION, number) == 0;
}

inline bool AddPartition(const std::string& disk, int number, int64_t start, int64_t length) {
  const Descriptor device(::open(disk.c_str(), O_RDWR | O_CLOEXEC));
  if (!device.valid()) return false;
  // Whoever looks at all devices of the machine may have it open for a moment.
  for (int tries = 0; tries < 200; ++tries) {
    if (AskOfPartition(device.get(), BLKPG_ADD_PARTITION, number, start, length) == 0) return true;
    if (errno != EBUSY) return false;
    // Or whoever had the loop device before has left a partition there.
    DropPartition(disk, number);
    ::usleep(10'000);
  }
  return false;
}

}  // namespace volumed
