// Whether the file of a loop device has nothing in it, told by its filesystem instead of by
// reading.
//
// Threads: any. Blocks: as the device and the file's filesystem do.
#pragma once

namespace volumed {

// True if `device` is a loop device whose whole file is one hole, or was only allocated: then every
// byte of it reads as zero. What somebody has written to the device and the file does not have yet
// is written to it first. False if that cannot be told: for another device, a file of which a part
// alone is the device, one that is not at the path that the kernel shows, and a filesystem of which
// it is not known that it tells its holes as they are.
// Source: lseek(2) (SEEK_DATA), loop(4), sync_file_range(2).
bool IsOneHole(int device);

}  // namespace volumed
