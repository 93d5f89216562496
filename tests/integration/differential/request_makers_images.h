// The makers of RequestGenerator of what is about images, their loop devices and their copies,
// about trees with an account, and about the limits of cgroups. Part of request_generator.cc.
#pragma once

#include <string>

#include "integration/differential/request_generator.h"

namespace volumed {

// Never of a file that is there: a loop device would outlive the world. device_differential_test
// has some.
template <>
struct RequestGenerator::Maker<AttachLoop> {
  static constexpr uint32_t kWeight = 1;
  static AttachLoop Make(RequestGenerator& g) {
    constexpr uint32_t kBlocks[] = {4096, 4096, 512, 0, 1000, 8192};
    AttachLoop attach{g.Path(), {"ext4", "", 1, ""}};
    attach.read_only = g.OneIn(2);
    attach.block_size = Pick(g, kBlocks);
    return attach;
  }
};
template <>
struct RequestGenerator::Maker<ListLoops> {
  static constexpr uint32_t kWeight = 1;
  static ListLoops Make(RequestGenerator& g) { return {g.Path()}; }
};
template <>
struct RequestGenerator::Maker<ConfigureLoop> {
  static constexpr uint32_t kWeight = 1;
  static ConfigureLoop Make(RequestGenerator& g) {
    ConfigureLoop configure{g.NoDevice(), {}, g.OneIn(2)};
    if (g.OneIn(2)) configure.direct_io = g.OneIn(2);
    if (g.OneIn(2)) configure.read_ahead_kib = g.OneIn(2) ? 4096 : -1;
    return configure;
  }
};
template <>
struct RequestGenerator::Maker<SetFileSize> {
  static constexpr uint32_t kWeight = 5;
  static SetFileSize Make(RequestGenerator& g) {
    constexpr int64_t kSizes[] = {1, 4096, 5000, 70000, 100000, 300000, 8 << 20, 0, -1};
    constexpr const char* kFiles[] = {"f", "a/f", "hard", "i", "d/i", "m/i", "a/b/g"};
    SetFileSize set{g.OneIn(2) ? g.Path() : SafePath{g.world_, Pick(g, kFiles)}};
    set.make = g.OneIn(2);
    if (g.OneIn(20)) set.expected = {"ext4", "", 1, ""};
    set.bytes = Pick(g, kSizes);
    set.allocate = g.OneIn(2);
    if (g.OneIn(3)) set.mode = g.Mode();
    return set;
  }
};
template <>
struct RequestGenerator::Maker<TakeFileLock> {
  static constexpr uint32_t kWeight = 3;
  static TakeFileLock Make(RequestGenerator& g) {
    constexpr const char* kContents[] = {"", "node one", "node two, process 7"};
    return {g.Path(), g.OneIn(30) ? std::string(5000, 'l') : Pick(g, kContents)};
  }
};

// ---- cuts. cut_frozen_test and image_differential_test have those that can succeed only on a
// disk.
template <>
struct RequestGenerator::Maker<CloneFile> {
  static constexpr uint32_t kWeight = 2;
  static CloneFile Make(RequestGenerator& g) {
    CloneFile clone{g.Path(), {}, g.Path()};
    if (g.OneIn(20)) clone.expected = {"ext4", "", 1, ""};
    return clone;
  }
};
template <>
struct RequestGenerator::Maker<CopyFile> {
  static constexpr uint32_t kWeight = 6;
  static CopyFile Make(RequestGenerator& g) {
    constexpr const char* kFiles[] = {"f", "a/f", "hard", "i", "a/b/g"};
    constexpr const char* kCopies[] = {"c1", "a/c2", "d/c3", "m/c4"};
    constexpr int64_t kOffsets[] = {0, 0, 0, 1, 4096, 100000, -1};
    CopyFile copy{g.OneIn(3) ? g.Path() : SafePath{g.world_, Pick(g, kFiles)},
                  {},
                  g.OneIn(3) ? g.Path() : SafePath{g.world_, Pick(g, kCopies)}};
    copy.from_offset = Pick(g, kOffsets);
    if (g.OneIn(20)) copy.bytes_per_second = -1;
    return copy;
  }
};
template <>
struct RequestGenerator::Maker<CopyDevice> {
  static constexpr uint32_t kWeight = 2;
  static CopyDevice Make(RequestGenerator& g) {
    CopyDevice copy{g.NoDevice(), {}, g.Path()};
    copy.expected.size_bytes = g.OneIn(5) ? 0 : 1 << 20;
    copy.bytes = g.OneIn(5) ? 100 : 8192;
    copy.from_offset = g.OneIn(5) ? -1 : 0;
    if (g.OneIn(20)) copy.bytes_per_second = -1;
    copy.only_look = g.OneIn(2);
    return copy;
  }
};
template <>
struct RequestGenerator::Maker<SetReadAhead> {
  static constexpr uint32_t kWeight = 1;
  static SetReadAhead Make(RequestGenerator& g) {
    return {g.NoDevice(), {}, g.OneIn(2) ? 4096 : -1};
  }
};
template <>
struct RequestGenerator::Maker<ListExtents> {
  static constexpr uint32_t kWeight = 1;
  static ListExtents Make(RequestGenerator& g) {
    return {g.Path(), {}, g.OneIn(5) ? -1 : 0, g.OneIn(5) ? 0u : 16u};
  }
};
// Never a filesystem that is there: its number is none that a world could have.
template <>
struct RequestGenerator::Maker<CutFrozen> {
  static constexpr uint32_t kWeight = 1;
  static CutFrozen Make(RequestGenerator& g) {
    CutFrozen cut;
    if (!g.OneIn(5)) cut.freeze = {{g.Path(), 4095, 1048575}};
    if (!g.OneIn(5)) cut.cuts = {{g.Path(), {}, g.Path()}};
    if (g.OneIn(5)) cut.cuts.resize(2, {g.Path(), {}, g.Path()});
    if (g.OneIn(5)) cut.longest_us = 0;
    return cut;
  }
};
template <>
struct RequestGenerator::Maker<ThawFilesystem> {
  static constexpr uint32_t kWeight = 1;
  static ThawFilesystem Make(RequestGenerator& g) { return {{g.Path(), 4095, 1048575}}; }
};
template <>
struct RequestGenerator::Maker<ChangeFilesystemUuid> {
  static constexpr uint32_t kWeight = 1;
  static ChangeFilesystemUuid Make(RequestGenerator& g) {
    constexpr const char* kTypes[] = {"ext4", "xfs", "btrfs", "tmpfs", ""};
    return {g.Path(), {}, Pick(g, kTypes), "old", g.OneIn(5) ? "" : "new"};
  }
};

// ---- trees with an account. tree_differential_test has those that can succeed only on a disk.
template <>
struct RequestGenerator::Maker<MakeSubvolume> {
  static constexpr uint32_t kWeight = 1;
  static MakeSubvolume Make(RequestGenerator& g) {
    MakeSubvolume make{g.Path()};
    if (g.OneIn(2)) make.of = g.Path();
    make.read_only = g.OneIn(3);
    return make;
  }
};
template <>
struct RequestGenerator::Maker<RemoveSubvolume> {
  static constexpr uint32_t kWeight = 1;
  static RemoveSubvolume Make(RequestGenerator& g) { return {g.Path()}; }
};
template <>
struct RequestGenerator::Maker<SetTreeQuota> {
  static constexpr uint32_t kWeight = 1;
  static SetTreeQuota Make(RequestGenerator& g) {
    SetTreeQuota set{g.Path()};
    set.project_id = g.OneIn(3) ? 0 : 7;
    set.bytes = g.OneIn(5) ? -1 : 4096;
    if (g.OneIn(20)) set.expected = {"ext4", "", 1, ""};
    return set;
  }
};
template <>
struct RequestGenerator::Maker<ReadTreeQuota> {
  static constexpr uint32_t kWeight = 1;
  static ReadTreeQuota Make(RequestGenerator& g) { return {g.Path()}; }
};

// Neither is ever done: which directory is meant can be said of one kernel alone, and what a copy
// leaves in a filesystem that gets full depends on the order of its names.
template <>
struct RequestGenerator::Maker<MoveDirectory> {
  static constexpr uint32_t kWeight = 2;
  static MoveDirectory Make(RequestGenerator& g) {
    MoveDirectory move{g.Path(), g.Path()};
    if (!g.OneIn(5)) move.expected = {"ext4", "", 1, ""};
    return move;
  }
};
template <>
struct RequestGenerator::Maker<CopyTree> {
  static constexpr uint32_t kWeight = 2;
  static CopyTree Make(RequestGenerator& g) {
    CopyTree copy{g.Path(), g.Path(), {"ext4", "", 1, ""}};
    if (g.OneIn(5)) copy.bytes_per_second = -1;
    if (g.OneIn(5)) copy.most_bytes = -1;
    return copy;
  }
};

// Never of a device that is there: the cgroups are those of the machine.
template <>
struct RequestGenerator::Maker<SetIoLimits> {
  static constexpr uint32_t kWeight = 1;
  static SetIoLimits Make(RequestGenerator& g) {
    SetIoLimits set{g.NoDevice(), {}, {"none/of/these"}, {}};
    if (g.OneIn(4)) set.cgroups.clear();
    set.limits.read_bps = g.OneIn(4) ? 1 : 4096;
    if (g.OneIn(4)) set.limits.write_iops = -1;
    return set;
  }
};

}  // namespace volumed
