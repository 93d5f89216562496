// ObjectSummary: an object's spec in a few lines for people. Never the content of a secret, and of
// a config map the sizes alone.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kube/objects.h"

namespace volumed {

using SummaryLines = std::vector<std::pair<std::string, std::string>>;

// Lines and values are cut at these.
inline constexpr size_t kMaxSummaryLines = 200;
inline constexpr size_t kMaxSummaryValue = 256;

// By the kind's row in the table of object_summary.cc; a kind without one is shown field by field.
// More than kMaxSummaryLines lines say that the rest was cut. Threads: any. Blocks: never.
SummaryLines SummariseObject(const Object& object);

}  // namespace volumed
