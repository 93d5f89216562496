// Checks over several fields that inline and persistent volumes share. `path` is the path of the
// checked object. For use in .cc files of kube/ only.
// Threads: any. Blocks: no. Errors: as problems.
#pragma once

#include <string>

#include "kube/claim_spec.h"
#include "kube/field_problem.h"
#include "kube/volume_sources.h"

namespace volumed {

// "list[2]".
std::string Indexed(const std::string& list, size_t index);

void CheckFcSource(const FcVolumeSource& source, const std::string& path, ProblemSink& problems);

template <typename SecretRef>
void CheckIscsiSource(const BasicIscsiVolumeSource<SecretRef>& source, const std::string& path,
                      ProblemSink& problems) {
  if ((source.chap_auth_discovery || source.chap_auth_session) && !source.secret_ref) {
    problems.Add(path + ".secretRef", "is required with CHAP authentication");
  }
}

void CheckClaimSpec(const PersistentVolumeClaimSpec& spec, const std::string& path,
                    ProblemSink& problems);

}  // namespace volumed
