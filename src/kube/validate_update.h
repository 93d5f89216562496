// Refuses changes of what is immutable in an object, in the API server's words.
//
// Threads: any. Blocks: no. Errors: as problems; no value of a Secret is among them.
// Source: kubernetes pkg/apis/core/validation/validation.go@v1.36.2
// (ValidatePersistentVolumeUpdate, ValidatePersistentVolumeClaimUpdate, ValidateSecretUpdate,
// ValidateConfigMapUpdate, ValidateImmutableField), pkg/apis/storage/validation/validation.go
// (ValidateStorageClassUpdate).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "kube/objects.h"

namespace volumed {

struct UpdateProblem {
  std::string field_path;  // "spec.persistentvolumesource"
  std::string reason;      // "Forbidden: spec.persistentvolumesource is immutable after creation"
  friend bool operator==(const UpdateProblem&, const UpdateProblem&) = default;
};

// The result is empty if `now` may take the place of `before`. `bound` says that a claim or
// PersistentVolume is bound, whatever its status says. For a bound volume the node keeps what an
// API server leaves to its controllers: its size does not shrink, and its class stays. A claim's
// spec may be completed by a volume name and a class, and a bound claim may leave its volume name
// out. For pods under one uid only the volumes count.
// REQUIRES: both are of the same kind, namespace and name.
std::vector<UpdateProblem> ValidateUpdate(const Object& before, const Object& now, bool bound);

// "spec.volumes: Forbidden: ...; data: ...".
std::string ToString(const std::vector<UpdateProblem>& problems);

// The reason for an object that has this uid, and whose manifest names another one.
std::string UidIsImmutable(const std::string& uid);

// The error that `volumectl apply` answers: FailedPrecondition, not applied. For a pod it mentions
// --replace, and names the volumes whose data would go. `replace` says that the command had
// --replace; for an object of another kind the error then says that this works for pods only.
// REQUIRES: `problems` is not empty.
Error RefuseUpdate(const Object& before, const std::vector<UpdateProblem>& problems, bool replace);
// The same for a manifest that names another uid than the object has.
Error RefuseOtherUid(const ObjectKey& object, const std::string& uid);

}  // namespace volumed
