// ContentMark: what the records hold about a Secret or ConfigMap, whose content they never hold. It
// is enough to notice after a start that immutable content was changed while no agent ran.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kube/objects.h"
#include "kube/validate_update.h"

namespace volumed {

// Of an object that is not immutable there are no digests: only a change of a Secret's type can be
// noticed then.
struct ContentMark {
  std::string secret_type;  // of a Secret
  bool immutable = false;
  // Digests of immutable content: HMAC-SHA256, keyed with this row's random salt. So equal contents
  // of two objects have different digests, and no table made beforehand fits. A reader of the
  // database could still guess a short secret; but only root can read it, and root can read the
  // secret's file as well.
  std::string salt;           // 32 bytes; "" if there are no digests
  std::string data_digest;    // 32 bytes
  std::string binary_digest;  // 32 bytes; of a ConfigMap's binaryData
  friend bool operator==(const ContentMark&, const ContentMark&) = default;
};

// All functions: Threads: any. Blocks: never.

// Returns the mark of a Secret or ConfigMap, and nullopt for an object of another kind. `before` is
// the mark on record, whose salt is used again, so that the same content gives the same digests.
std::optional<ContentMark> MarkOf(const Object& object, const std::optional<ContentMark>& before);

// Like ValidateUpdate() for an object whose content is known, with the same texts. The result is
// empty if `now` may be the object of which the mark was made, and for an object of another kind.
std::vector<UpdateProblem> ValidateUpdate(const ContentMark& before, const Object& now);

}  // namespace volumed
