// How an Error says which objects of Kubernetes it is about (Error::about): whoever shows the error
// names their owners, without a search of its message.
#pragma once

#include <string_view>

#include "base/result.h"
#include "kube/objects.h"

namespace volumed {

// Threads: any. Blocks: never.

// The same error, which is about this object as well: the object is missing, or is not as it is
// needed. The subject is the object's ToString(): "Secret default/db".
inline Error AboutObject(const Error& error, const ObjectKey& object) {
  return error.About(ToString(object));
}

// What MissingObject() says of a Secret before its name.
inline constexpr std::string_view kMissingSecret = "missing Secret ";

// The same, of an object that is certainly not there: whoever has it acts, also if the code of the
// error says that it may come.
inline Error MissingObject(const Error& error, const ObjectKey& object) {
  return AboutObject(error, object).About("missing " + ToString(object));
}

// True if AboutObject() has put this object into the error, or into an error that this one was made
// of by Error::With() or AboutAllOf(). Like all of Error::about, this does not cross a process
// border.
inline bool IsAboutObject(const Error& error, const ObjectKey& object) {
  return error.IsAbout(ToString(object));
}

// The same error, which is about everything that `other` is about: for an error that is made of
// others.
inline Error AboutAllOf(Error error, const Error& other) {
  for (const std::string& subject : other.about()) error = error.About(subject);
  return error;
}

}  // namespace volumed
