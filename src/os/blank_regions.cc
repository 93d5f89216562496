#include "os/blank_regions.h"

#include <algorithm>
#include <array>

namespace volumed {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;
constexpr uint64_t kGiB = 1024 * kMiB;
constexpr uint64_t kTiB = 1024 * kGiB;
constexpr uint64_t kBlock = 4096;
constexpr uint64_t kEdge = 16 * kMiB;
// Superblocks in the middle are found by a window, since where exactly depends on rounding.
constexpr uint64_t kWindow = 128 * kKiB;

BlankRegion Window(uint64_t middle) {
  return {middle > kWindow / 2 ? middle - kWindow / 2 : 0, kWindow, ""};
}

std::vector<BlankRegion> Start(uint64_t) { return {{0, kEdge, ""}}; }

std::vector<BlankRegion> End(uint64_t size) { return {{size - std::min(size, kEdge), kEdge, ""}}; }

// Source: btrfs on-disk format (btrfs_sb_offset).
std::vector<BlankRegion> BtrfsMirrors(uint64_t) {
  return {{64 * kMiB, 64 * kKiB, ""}, {256 * kGiB, 64 * kKiB, ""}, {1024 * kTiB, 64 * kKiB, ""}};
}

// Group 1 and the powers of 3, 5 and 7, for each block size. Source: ext4(5) sparse_super.
std::vector<BlankRegion> ExtBackups(uint64_t size) {
  std::vector<BlankRegion> regions;
  for (const uint64_t block : {1 * kKiB, 2 * kKiB, 4 * kKiB, 64 * kKiB}) {
    const uint64_t group = 8 * block * block;  // a bitmap of one block
    const uint64_t first = block == kKiB ? kKiB : 0;
    const auto add = [&](uint64_t number) {
      regions.push_back({number * group + first, kBlock, ""});
    };
    add(1);
    for (const uint64_t base : {3u, 5u, 7u}) {
      for (uint64_t number = base; number < size / group + 1; number *= base) add(number);
    }
  }
  return regions;
}

// Allocation groups begin with a copy of the superblock. mkfs.xfs makes 4 of them, on striped
// devices 16 or 32, none above 1 TiB. Source: mkfs.xfs(8), xfsprogs mkfs (calc_default_ag_geometry).
std::vector<BlankRegion> AllocationGroups(uint64_t size) {
  std::vector<BlankRegion> regions;
  for (uint64_t i = 1; i < 32; ++i) regions.push_back(Window(size / 32 * i));
  for (uint64_t i = 1; i < 64; ++i) regions.push_back(Window(i * kTiB));
  return regions;
}

// Source: Ceph BlueStore (bdev_label_positions).
std::vector<BlankRegion> BluestoreLabels(uint64_t) {
  return {{1 * kGiB, kBlock, ""},
          {10 * kGiB, kBlock, ""},
          {100 * kGiB, kBlock, ""},
          {1000 * kGiB, kBlock, ""}};
}

constexpr std::array<BlankRegionRule, 6> kRules = {{
    {"start of the device", "the first 16 MiB",
     "superblocks of nearly everything (ext, XFS, btrfs at 64 KiB, NTFS, FAT, F2FS, ISO 9660 and UDF "
     "at 32 KiB and 512 KiB, VMFS up to 2 MiB, swap, bcache, bcachefs), MBR and GPT, MD RAID 1.1 "
     "and 1.2, LVM labels and metadata, LUKS1 and LUKS2 with its second header (up to 4 MiB), ZFS "
     "labels 0 and 1, Ceph BlueStore, Stratis, VDO",
     &Start},
    {"end of the device", "the last 16 MiB",
     "GPT's backup, MD RAID 0.90 and 1.0, ZFS labels 2 and 3, DRBD, firmware RAIDs (Intel, DDF, "
     "Promise, Silicon Image, NVIDIA, VIA ...), LVM's second metadata area, copies of NTFS, nilfs2 "
     "and UDF",
     &End},
    {"btrfs superblock mirrors", "64 KiB at 64 MiB, 256 GiB and 1 PiB",
     "btrfs restores itself from them when the first superblock is lost", &BtrfsMirrors},
    {"ext backup superblocks",
     "4 KiB in block groups 1 and the powers of 3, 5 and 7, for blocks of 1, 2, 4 and 64 KiB",
     "e2fsck -b restores a filesystem whose start was overwritten", &ExtBackups},
    {"allocation groups", "128 KiB around each 32nd of the device and each TiB up to 64",
     "XFS keeps a copy of its superblock in each allocation group; NTFS keeps one in the middle; and "
     "data without a head shows in one of so many places",
     &AllocationGroups},
    {"BlueStore labels", "4 KiB at 1, 10, 100 and 1000 GiB", "copies of a Ceph OSD's label",
     &BluestoreLabels},
}};

}  // namespace

std::span<const BlankRegionRule> BlankRegionRules() { return kRules; }

std::vector<BlankRegion> BlankRegions(uint64_t size_bytes, bool whole) {
  if (whole || size_bytes <= 2 * kEdge) return {{0, size_bytes, "device"}};
  std::vector<BlankRegion> wanted;
  for (const BlankRegionRule& rule : kRules) {
    for (const BlankRegion& region : rule.regions(size_bytes)) {
      if (region.offset >= size_bytes) continue;
      const uint64_t begin = region.offset / kBlock * kBlock;
      const uint64_t end = (region.offset + region.length + kBlock - 1) / kBlock * kBlock;
      wanted.push_back({begin, std::min(end, size_bytes) - begin, rule.name});
    }
  }
  std::stable_sort(
      wanted.begin(), wanted.end(),
      [](const BlankRegion& a, const BlankRegion& b) { return a.offset < b.offset; });
  std::vector<BlankRegion> merged;
  for (const BlankRegion& region : wanted) {
    const uint64_t reached = merged.empty() ? 0 : merged.back().offset + merged.back().length;
    if (merged.empty() || region.offset > reached) {
      merged.push_back(region);
    } else if (region.offset + region.length > reached) {
      // Beside or over the last one: the rest keeps its own name.
      merged.push_back({reached, region.offset + region.length - reached, region.name});
    }
  }
  return merged;
}

}  // namespace volumed
