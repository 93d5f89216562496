// RefusalText: says in words why an object is refused although its manifest still has it.
#pragma once

#include "kube/objects.h"

namespace volumed {

// "deleted by command". A PersistentVolume also ends together with its storage, since Kubernetes
// deletes it then. Threads: any. Blocks: never.
constexpr const char* HowDeletedText(ObjectKind kind) {
  return kind == ObjectKind::kPersistentVolume
             ? "deleted, by command or with its claim (reclaim policy Delete),"
             : "deleted by command";
}

}  // namespace volumed
