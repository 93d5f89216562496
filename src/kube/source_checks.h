// Checks over several fields that inline and persistent volumes share. `path` is the path of the
// checked object. For use in .cc files of kube/ only.
// Threads: any. Blocks: no. Errors: as problems.
#pragma once

#include <string>
#include <type_traits>
#include <variant>

#include "kube/claim_spec.h"
#include "kube/field_problem.h"
#include "kube/volume_sources.h"

namespace volumed {

// "list[2]".
std::string Indexed(const std::string& list, size_t index);

// Calls CheckSource() of the source that the union holds, if its kind has one.
template <typename Variant>
void CheckSourceOf(const Variant& source, const std::string& path, ProblemSink& problems) {
  std::visit(
      [&](const auto& one) {
        using Source = std::decay_t<decltype(one)>;
        if constexpr (Source::kFacts.rules == SourceRules::kOverFields) {
          CheckSource(one, path + "." + Source::kKind, problems);
        }
      },
      source);
}

// What a claim and a claim template keep together: the request is more than zero and not more than
// the limit, ReadWriteOncePod stands alone, and the selector has values where its operators need
// them.
void CheckClaimSpec(const PersistentVolumeClaimSpec& spec, const std::string& path,
                    ProblemSink& problems);

}  // namespace volumed
