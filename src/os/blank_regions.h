// Where a device is read to prove that it is blank: every place where a filesystem, a partition
// table, a RAID, a volume manager or an encryption layer keeps what it is found again by, or a
// spare copy of that. One table, each row with its reason; docs/FORMATTING.md shows it.
//
// Pure. Threads: any.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace volumed {

struct BlankRegion {
  uint64_t offset = 0;
  uint64_t length = 0;
  std::string_view name;  // of the row that asked for it; of the first one where several did
};

struct BlankRegionRule {
  std::string_view name;
  std::string_view where;
  std::string_view reason;
  // The places for a device of this size. They may reach over its ends, and overlap.
  std::vector<BlankRegion> (*regions)(uint64_t size_bytes);
};

// The whole table; it is valid for ever.
std::span<const BlankRegionRule> BlankRegionRules();

// What to read, in rising order, without overlaps, on 4096-byte borders but for the device's end;
// all of it lies on the device. Devices of up to 32 MiB, and any with `whole`, are one region.
std::vector<BlankRegion> BlankRegions(uint64_t size_bytes, bool whole);

}  // namespace volumed
