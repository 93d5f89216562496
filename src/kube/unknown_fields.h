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

struct UnknownField {
  std::string path;        // "spec.volumes[0].hostPath.readonly"
  std::string suggestion;  // "readOnly"; "" if no known name is near
};

// Finds at most kMaxUnknownFields of them. A name in a Secret is reported only if a known name is
// near it, since somebody may have put a value where a name belongs; otherwise the path ends in
// "?".
// Source: the Go types of the kinds (scripts/known_fields); what this program reads is known too.
inline constexpr size_t kMaxUnknownFields = 20;
std::vector<UnknownField> FindUnknownFields(ObjectKind kind, const nlohmann::json& object);

// "is not a field that Kubernetes knows, and is ignored; did you mean \"volumes\"?"
std::string ToReason(const UnknownField& field);

// The known name that the writer of `name` may have meant; "" if none is near. Two letters may be
// wrong, missing, too many or swapped; case does not count.
std::string Nearest(std::string_view name, const std::vector<std::string_view>& known);

}  // namespace volumed
