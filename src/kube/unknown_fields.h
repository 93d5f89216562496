// Fields of a manifest that Kubernetes does not know: most are slips of the pen ("volume" for
// "volumes"), which would otherwise be ignored without a word, as an API server ignores them.
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

// At most kMaxUnknownFields of them. A name of a Secret is in the answer only if a known one is
// near it, for somebody may have put a value where a name belongs: its path ends in "?" otherwise.
// Source: the Go types of the kinds (scripts/known_fields).
inline constexpr size_t kMaxUnknownFields = 20;
std::vector<UnknownField> FindUnknownFields(ObjectKind kind, const nlohmann::json& object);

// "is not a field that Kubernetes knows, and is ignored; did you mean \"volumes\"?"
std::string ToReason(const UnknownField& field);

// The known name that somebody who wrote `name` may have meant; "" if none is near. Two letters may
// be wrong, missing, too many or swapped; case does not count.
std::string Nearest(std::string_view name, const std::vector<std::string_view>& known);

}  // namespace volumed
