// Checks that concern several fields of an object. Checks of single fields are in the fields'
// declarations (kube/object_fields.h).
#pragma once

#include <string>

#include "kube/field_problem.h"
#include "kube/objects.h"

namespace volumed {

// `prefix` is "" or ends with "." ("items[2]."). REQUIRES: the object's single fields are right.
// Threads: any. Blocks: no. Errors: as problems.
// Source: kubernetes pkg/apis/core/validation/validation.go@v1.36.2 (ValidateVolumes,
// ValidateVolumeMounts, ValidateVolumeDevices, validateProjectionSources).
void ValidatePod(const Pod& pod, const std::string& prefix, ProblemSink& problems);
void ValidateConfigMap(const ConfigMapObject& config_map, const std::string& prefix,
                       ProblemSink& problems);

// Source: as above (ValidatePersistentVolume, ValidatePersistentVolumeClaim) and
// pkg/apis/storage/validation (ValidateStorageClass, ValidateCSIDriver).
void ValidatePersistentVolume(const PersistentVolume& volume, const std::string& prefix,
                              ProblemSink& problems);
void ValidatePersistentVolumeClaim(const PersistentVolumeClaim& claim, const std::string& prefix,
                                   ProblemSink& problems);
void ValidateStorageClass(const StorageClass& storage_class, const std::string& prefix,
                          ProblemSink& problems);
void ValidateCsiDriver(const CsiDriverObject& driver, const std::string& prefix,
                       ProblemSink& problems);

}  // namespace volumed
