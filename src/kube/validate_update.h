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

}  // namespace volumed
