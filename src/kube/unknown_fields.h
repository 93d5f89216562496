// Finds fields of a manifest that Kubernetes does not know. Most are typing errors ("volume" for
// "volumes"), which would otherwise be ignored silently, as an API server ignores them.
//
// Threads: any. Blocks: no. Errors: none. For use in .cc files of kube/ only.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "kube/objects.h"

namespace volumed {

// A field that neither Kubernetes nor this program knows.
struct UnknownField {
  std::string path;        // "spec.volumes[0].hostPath.readonly"
  std::string suggestion;  // "readOnly"; "" if no known name is near
};

// At most so many are found in one object.
inline constexpr size_t kMaxUnknownFields = 20;
// Finds at most kMaxUnknownFields of them. The name of a field in a Secret is shown only if a known
// name is near it, since somebody may have put a value where a name belongs; otherwise its path
// ends in "?". Below a field of the wrong type nothing is found.
// Source: the Go types of the kinds (scripts/known_fields); what this program reads is known too.
std::vector<UnknownField> FindUnknownFields(ObjectKind kind, const nlohmann::json& object);

// "is not a field that Kubernetes knows, and is ignored; did you mean \"volumes\"?"
std::string ToReason(const UnknownField& field);

// The known name that the writer of `name` may have meant, the first of several that are equally
// near; "" if none is near. One letter in three, and two at most, may be wrong, missing, too many
// or swapped with the next; case does not count. Where none is near, the shortest that begins with
// `name` is, if that has five letters. A name of more than 64 bytes has none.
std::string Nearest(std::string_view name, const std::vector<std::string_view>& known);

}  // namespace volumed
