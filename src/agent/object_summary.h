// ObjectSummary: an object's spec in a few lines for people. It never holds the content of a
// Secret, and of a ConfigMap only the sizes.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kube/objects.h"

namespace volumed {

// Name and value of each line, in the order in which they are shown. A name that begins with two
// blanks belongs to the line above it.
using SummaryLines = std::vector<std::pair<std::string, std::string>>;

// How many lines are shown: whoever shows them cuts longer lists. A longer value is cut here to so
// many bytes, with "..." behind it.
inline constexpr size_t kMaxSummaryLines = 200;
inline constexpr size_t kMaxSummaryValue = 256;

// A driver may have said what a field of its volume or attachment holds: its context of the volume,
// or why it failed. All else is the words of whoever made the object.
enum class WordsOf { kOwner, kDriver };

// What is shown of a name or a value, without what nobody may see. It is asked before a value is
// cut, and may leave out what is behind its first kMaxSummaryValue bytes.
using ShownText = std::function<std::string(const std::string& text, WordsOf whose)>;

// Made by the kind's row in the table of object_summary.cc; a kind without a row is shown field by
// field ("spec.claimRef.name"), and has one line more than kMaxSummaryLines at most, by which one
// sees that there are more. The object's identity (metadata, kind) is not in it. `shown` may be
// empty: all is shown. Threads: any. Blocks: never.
SummaryLines SummariseObject(const Object& object, const ShownText& shown = {});

}  // namespace volumed
