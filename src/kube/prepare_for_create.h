// Does what an API server does with a new object before it stores it: fields that only the server
// and controllers set are not taken from the manifest.
//
// Threads: any. Blocks: no. Errors: none.
#pragma once

#include "kube/objects.h"

namespace volumed {

// Resets creationTimestamp (whoever stores the object sets it, see kube/object_directory.h),
// deletionTimestamp, deletionGracePeriodSeconds, the phase of a pod, and the status of a
// PersistentVolume, its claim, a VolumeSnapshot or its content. A manifest of a cluster has old
// values of these: a pod that "has ended" would have no volumes, and one that "is being deleted"
// could not be deleted. The addresses in a pod's status stay, since a node without an API server
// has no other place for them. So does the status of a VolumeAttachment: whoever gives it is
// the one who attaches; and of a claim that was growing, its capacity with what says that it was:
// a cluster has made the storage larger, and left the node's part. Source: kubernetes apiserver
// pkg/registry/rest/create.go@v1.36.2 (BeforeCreate), pkg/registry/core/pod/ strategy.go
// (PrepareForCreate), and those of the other kinds.
void PrepareForCreate(Object& object);

}  // namespace volumed
