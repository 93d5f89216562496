// How a file or directory that was found by its handle lies to a directory, asked without names: a
// bind mount hides what lies outside of it, a file that nobody has looked up has no path, and
// whoever may rename a directory may give it any name.
#pragma once

#include "base/result.h"

namespace volumed {

enum class StorageRelation {
  kElsewhere,
  kInside,  // at it, or below
  kAround,
};

// Both are open (O_PATH is enough); of one filesystem. A directory is looked for among those above,
// anything else in the whole tree of `directory`, on its mount: that costs what the tree is.
// Threads: any. Blocks: as the filesystem does. Errors, not applied: errno of the calls.
Result<StorageRelation> RelationOf(int found, int directory);

}  // namespace volumed
