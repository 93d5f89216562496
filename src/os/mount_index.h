// MountIndex: where mounts are, for look-ups that do not grow with the table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace volumed {

// Whether the clean, absolute `path` is `ancestor` or lies below it, name by name.
bool IsAtOrBelow(std::string_view path, std::string_view ancestor);

// Numbers of mounts and their mount points. What the numbers are is the owner's choice; answers are
// in their order. Paths are absolute and clean, and compared as text.
// Threads: external lock. Blocks: never.
class MountIndex {
 public:
  MountIndex() = default;
  // The sorted half points into the other.
  MountIndex(const MountIndex&) = delete;
  MountIndex& operator=(const MountIndex&) = delete;
  MountIndex(MountIndex&&) = default;
  MountIndex& operator=(MountIndex&&) = default;

  // Replaces an older point of the same number. Any number but the highest. O(log n).
  void Put(uint64_t id, std::string mount_point);
  // Whether it was there. O(log n).
  bool Erase(uint64_t id);
  // Null: not there. Valid until the number is put or erased. O(1).
  const std::string* Find(uint64_t id) const;
  // The mounts at exactly this path. O(log n + answers).
  std::vector<uint64_t> At(std::string_view mount_point) const;
  // The mounts at this path and below it. O(log n + answers * log answers).
  std::vector<uint64_t> Below(std::string_view path) const;
  std::vector<uint64_t> Ids() const;  // all, O(n log n)
  size_t size() const { return points_.size(); }

 private:
  using Place = std::pair<std::string_view, uint64_t>;
  // From the first place up to, and not including, the second.
  void AppendRange(const Place& from, const Place& to, std::vector<uint64_t>& ids) const;

  std::unordered_map<uint64_t, std::string> points_;  // its nodes stay where they are
  std::set<Place> sorted_;                            // views of the texts in points_
};

}  // namespace volumed
