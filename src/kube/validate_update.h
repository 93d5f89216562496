// What may not change under one object, refused in the API server's words.
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

// Empty: `now` may take the place of `before`. `bound` says, of a claim or a PersistentVolume, that
// the two of them are bound, whatever their statuses say; the node keeps for a bound volume what an
// API server leaves to its controllers: its size does not shrink, and its class stays.
// A claim's spec may be completed by what it did not say. For pods under one uid the volumes count.
// REQUIRES: both are of the same kind, namespace and name.
std::vector<UpdateProblem> ValidateUpdate(const Object& before, const Object& now, bool bound);

// "spec.volumes: Forbidden: ...; data: ...".
std::string ToString(const std::vector<UpdateProblem>& problems);

// Of an object that has this uid, and whose manifest names another one.
std::string UidIsImmutable(const std::string& uid);

// What `volumectl apply` answers, FailedPrecondition, not applied. `replace`: it was given with
// --replace, which is for pods alone. For a pod without it the answer names it, and the volumes
// whose data would go. REQUIRES: `problems` is not empty.
Error RefuseUpdate(const Object& before, const std::vector<UpdateProblem>& problems, bool replace);
// The same for a manifest that names another uid than the object has.
Error RefuseOtherUid(const ObjectKey& object, const std::string& uid);

}  // namespace volumed
