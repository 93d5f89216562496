// The content of a file in the directory of applied objects: an object, the number of the command
// that gave it, the version of the program that wrote it, and, for a pod that has replaced others,
// which ones.
//
// The object is the file's document; the other facts are in one reserved field, "volumed". A file
// without that field was written by a program from before there were such numbers: its number is 0.
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
  // Of the command that gave the object; 0 if no command with a number did.
  uint64_t number = 0;
  std::string written_by;  // "0.4.0"; "" if the file does not say
  std::set<PodUid> replaces = {};
};

// One line of JSON. It has the values of a Secret: it is for the agent's own directory (0700)
// alone.
std::string EncodeStoredObject(const StoredObject& stored);

// What was accepted once is taken as it is, with DecodeRules::kStored: the object is not lost
// because a rule of this program for a text would refuse it, or one for several values together.
// `file` is not part of the errors.
// Errors: DataLoss (not applied) if the bytes are no such object, or break a rule that kStored does
// not leave out; FailedPrecondition (not applied) if a later program wrote them in a form that this
// one does not know.
Result<StoredObject> DecodeStoredObject(std::string_view file, std::string_view bytes);

}  // namespace volumed
