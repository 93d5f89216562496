// Questions about a part of the mount table (ListMounts): what they ask for, and an index that
// answers them without looking at the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "os/kernel_requests.h"
#include "os/mount_entry.h"
#include "os/mount_index.h"

namespace volumed {

// Whether the question can be answered. InvalidArgument, not applied, for a path that is not
// absolute and clean, and for more than one of below, around and showing. Pure.
Status CheckMountQuestion(const ListMounts& question);

// Whether a mount belongs to the answer. Pure.
bool Concerns(const MountEntry& mount, const ListMounts& question);

// The answer out of the whole table, in the same order. Pure.
std::vector<MountEntry> SelectMounts(std::vector<MountEntry> mounts, const ListMounts& question);

// Where a mount is, and what it shows there.
struct MountPlace {
  std::string mount_point;
  FilesystemPart part;
  friend bool operator==(const MountPlace&, const MountPlace&) = default;
};
MountPlace PlaceOf(const MountEntry& mount);

// Numbers of mounts with their places. What the numbers are is the owner's choice; answers are in
// their order. Threads: external lock. Blocks: never.
class MountPlaces {
 public:
  // Replaces an older place of the same number. O(log n).
  void Put(uint64_t id, MountPlace place);
  // Whether it was there. O(log n).
  bool Erase(uint64_t id);
  // Null: not there. Valid until the number is put or erased. O(1).
  const MountPlace* Get(uint64_t id) const;
  // The mounts at exactly this path. O(log n + answers).
  std::vector<uint64_t> At(const std::string& mount_point) const {
    return by_point_.At(mount_point);
  }
  // The mounts that a question is about. O(log n + answers), and for `around` that many for each
  // directory of the path. REQUIRES: CheckMountQuestion() has let it pass.
  std::vector<uint64_t> Find(const ListMounts& question) const;
  size_t size() const { return places_.size(); }
  // All of them by their ids, in no order.
  const std::unordered_map<uint64_t, MountPlace>& all() const { return places_; }

 private:
  std::unordered_map<uint64_t, MountPlace> places_;
  MountIndex by_point_;
  MountIndex by_part_;  // under "<major>:<minor>/<root>"
};

}  // namespace volumed
