// MountTableStats: what the kept mount table did, as values; the agent turns them into metrics.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace volumed {

// How the table hears of changes. See os/kept_mount_table.h.
enum class MountTableSource { kEvents, kPoll };
// The value of the metrics' label: "events" or "poll".
constexpr std::string_view MountTableSourceName(MountTableSource source) {
  switch (source) {
    case MountTableSource::kEvents:
      return "events";
    case MountTableSource::kPoll:
      return "poll";
  }
  return "unknown";
}

// Totals since the table was opened, and what is known now. By poll `mounts` is as of the last
// reading.
struct MountTableStats {
  MountTableSource source = MountTableSource::kPoll;
  std::string why_poll;     // empty by events
  uint64_t mounts = 0;      // known now
  uint64_t updates = 0;     // mounts that came, went or changed since the first reading
  uint64_t full_reads = 0;  // of the whole table: the first, after a lost event, each by poll
};

}  // namespace volumed
