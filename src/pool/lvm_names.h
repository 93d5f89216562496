// LvmNames: the volume group and the thin pool in which a pool's logical volumes are.
//
// Pure; threads: any. Blocks: never. Errors: none.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace volumed {

struct LvmNames {
  std::string volume_group;
  std::string thin_pool;
  // "vg0/thin"
  std::string ToString() const { return volume_group + "/" + thin_pool; }
  friend bool operator==(const LvmNames&, const LvmNames&) = default;
};

// Whether LVM takes the text as a name: it is an argument of lvm2's tools, and a part of what they
// are to select by. Source: lvm(8), "VALID NAMES".
inline bool IsLvmName(std::string_view name) {
  constexpr size_t kMostNameBytes = 127;
  constexpr std::string_view kSigns = "+_.-";
  if (name.empty() || name.size() > kMostNameBytes || name.front() == '-') return false;
  if (name == "." || name == "..") return false;
  // Not by std::isalnum: a locale has no say in it.
  return std::all_of(name.begin(), name.end(), [kSigns](char c) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return is_letter || (c >= '0' && c <= '9') || kSigns.find(c) != std::string_view::npos;
  });
}

}  // namespace volumed
