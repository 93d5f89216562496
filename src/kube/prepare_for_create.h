// What an API server does with a new object before it stores it: what only the server and
// controllers say of an object is not taken from whoever gives it.
//
// Threads: any. Blocks: no. Errors: none.
#pragma once

#include "kube/objects.h"

namespace volumed {

// Resets creationTimestamp, which whoever stores the object gives (kube/object_directory.h),
// deletionTimestamp and deletionGracePeriodSeconds, the phase of a pod, and the status of a
// PersistentVolume or PersistentVolumeClaim. A manifest that somebody has saved from a cluster says
// them of another time: a pod that "has ended" would have no volumes, and one that "is being
// deleted" could not be deleted. The addresses in a pod's status stay, as a node without an API
// server has no other place for them. Source: kubernetes apiserver
// pkg/registry/rest/create.go@v1.36.2 (BeforeCreate), pkg/registry/core/pod/ strategy.go
// (PrepareForCreate), and those of the other kinds.
void PrepareForCreate(Object& object);

}  // namespace volumed
