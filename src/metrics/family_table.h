// What is known of each metric family that this program exports. family_list.h is the one place to
// read, and to change, a name.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/family_list.h"

namespace volumed {

// How Prometheus reads a family; "# TYPE" says it.
enum class FamilyType { kCounter, kGauge, kHistogram };

#define VOLUMED_FAMILY_ID(id, ...) id,
// One value for each entry of family_list.h, in its order, from zero on without a gap.
enum class Family : int { VOLUMED_FAMILIES(VOLUMED_FAMILY_ID) };
#undef VOLUMED_FAMILY_ID

#define VOLUMED_FAMILY_ONE(...) +1
inline constexpr size_t kFamilyCount = 0 VOLUMED_FAMILIES(VOLUMED_FAMILY_ONE);
#undef VOLUMED_FAMILY_ONE

// One entry of family_list.h. All texts are literals.
struct FamilySpec {
  Family family;
  std::string_view name;
  FamilyType type;
  std::string_view labels;  // names, with commas in between
  std::string_view help;
  std::string_view source;  // where the name comes from; empty: it is this program's own
};

// The reference is valid for ever. Threads: any. Blocks: never.
const FamilySpec& SpecOf(Family family);
// The upper bounds of a histogram's buckets, in seconds, rising, without +Inf; empty for other
// types. Threads: any. Blocks: never.
std::vector<double> BucketsOf(Family family);

}  // namespace volumed
