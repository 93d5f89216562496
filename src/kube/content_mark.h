// ContentMark: what is on record of a Secret or ConfigMap, whose content never is: as much as it
// takes to notice after a start that what is immutable was changed while no agent ran.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kube/objects.h"
#include "kube/validate_update.h"

namespace volumed {

struct ContentMark {
  std::string secret_type;  // of a Secret
  bool immutable = false;
  // Of what is immutable. HMAC-SHA256 with a random salt of this row as its key: equal contents of
  // two objects have different digests, and no table made beforehand fits. Who reads the database
  // could still guess a short secret; only root can, who can read the secret's file as well.
  std::string salt;           // 32 bytes; "" if nothing is digested
  std::string data_digest;    // 32 bytes
  std::string binary_digest;  // of a ConfigMap's binaryData
  friend bool operator==(const ContentMark&, const ContentMark&) = default;
};

// All functions: Threads: any. Blocks: never.

// nullopt for other kinds. `before` is the mark on record: its salt is kept.
std::optional<ContentMark> MarkOf(const Object& object, const std::optional<ContentMark>& before);

// As ValidateUpdate() of an object that is known, in the same words.
std::vector<UpdateProblem> ValidateUpdate(const ContentMark& before, const Object& now);

}  // namespace volumed
