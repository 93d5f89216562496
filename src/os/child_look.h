// ChildLook: a look at a place that may never answer, by a child process, for a program that has no
// workers (yet). A thread could not be left behind: a process ends only with its last one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace volumed {

// Runs all `looks` beside one another, each in a child process of its own, and returns what each
// answered, in their order; nothing for one that did not within `patience`, or whose process died
// again and again.
// Such a child is killed and not waited for; it keeps nothing open, and ends when the place
// answers.
//
// REQUIRES: the process has one thread, so that a child may allocate.
// Blocks: for `patience` at most. Errors (not applied): errno's of fork and pipe.
Result<std::vector<std::optional<std::string>>> LookInChildren(
    const std::vector<std::function<std::string()>>& looks, Duration patience);

}  // namespace volumed
