// UpdateChecks: what the checks of one kind's updates (CheckUpdate() in kube/object_fields.h and
// kube/storage_fields.h) need: a place for problems, and the API server's words. For use in .cc
// files of kube/ only. Threads: one. Blocks: no.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/validate_update.h"

namespace volumed {

inline constexpr char kFieldIsImmutable[] = "field is immutable";

// Collects what is wrong with one update. It knows no objects: CheckUpdate() of a kind compares
// them.
class UpdateChecks {
 public:
  explicit UpdateChecks(bool bound) : bound_(bound) {}

  // Whether the claim or PersistentVolume is bound, whatever its status says.
  bool bound() const { return bound_; }
  std::vector<UpdateProblem> Take() { return std::move(problems_); }

  // `field` is the path in the API server's words, which are not always those of a manifest.
  void Add(std::string field, std::string reason) {
    problems_.push_back({std::move(field), std::move(reason)});
  }
  // Adds a problem if the two differ.
  void Compare(const char* field, std::string_view before, std::string_view now);
  // "Invalid value: \"now\": field is immutable".
  static std::string Invalid(std::string_view value);

 private:
  const bool bound_;
  std::vector<UpdateProblem> problems_;
};

}  // namespace volumed
