// ObjectSummary: an object's spec in a few lines for people. It never holds the content of a
// Secret, and of a ConfigMap only the sizes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kube/objects.h"

namespace volumed {

using SummaryLines = std::vector<std::pair<std::string, std::string>>;

// Longer lists of lines, and longer values, are cut.
inline constexpr size_t kMaxSummaryLines = 200;
inline constexpr size_t kMaxSummaryValue = 256;

// Made by the kind's row in the table of object_summary.cc; a kind without a row is shown field by
// field. If there are more than kMaxSummaryLines lines, the last one says that the rest was cut.
// Threads: any. Blocks: never.
SummaryLines SummariseObject(const Object& object);

}  // namespace volumed
