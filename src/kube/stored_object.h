// What a file of the directory of applied objects holds: an object, the number of the command that
// gave it, the version of the program that wrote it, and, of a pod that was put in the place of
// others, which ones these were.
//
// The object is the file's document; what is said about it stands in one reserved field, "volumed".
// A file that has none is of a program before such numbers: its number is 0.
// Threads: any. Blocks: no.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "kube/objects.h"

namespace volumed {

struct StoredObject {
  Object object;
  uint64_t number = 0;
  std::string written_by;  // "0.4.0"; "" if the file does not say
  std::set<PodUid> replaces = {};
};

// With the values of a Secret: for the agent's own directory (0700) alone.
std::string EncodeStoredObject(const StoredObject& stored);

// What was accepted once is taken as it is: that a rule of this program would refuse a value, or
// several values together, is no reason to have the object no more.
// Errors: DataLoss (not applied): the bytes are no such object; FailedPrecondition (not applied): a
// later program wrote them in a form that this one does not know.
Result<StoredObject> DecodeStoredObject(std::string_view file, std::string_view bytes);

}  // namespace volumed
