#include "kube/migrated_sources.h"

#include "kube/field_problem.h"
#include "kube/field_rules.h"

namespace volumed {

// Source: kubernetes pkg/apis/core/validation/validation.go@v1.36.3 (validateAzureDisk).
void CheckSource(const AzureDiskVolumeSource& source, const std::string& path,
                 ProblemSink& problems) {
  const bool managed = source.kind == AzureDataDiskKind::kManaged;
  const std::string begin = managed ? "/subscriptions/" : "https://";
  if (source.disk_uri.starts_with(begin)) return;
  problems.Add(path + ".diskURI",
               Quoted(source.disk_uri) + " does not begin with \"" + begin + "\", as that of a " +
                   (managed ? "managed disk does"
                            : "blob does (a managed disk is asked for by kind: Managed)"));
}

void CheckSource(const AzureFilePersistentVolumeSource& source, const std::string& path,
                 ProblemSink& problems) {
  if (source.secret_namespace && source.secret_namespace->empty()) {
    problems.Add(path + ".secretNamespace", "must not be empty; left out, it is the claim's");
  }
}

}  // namespace volumed
