// RefusalText: how an object that its manifest still has came to be refused there, in words.
#pragma once

#include "kube/objects.h"

namespace volumed {

// "deleted by command". A PersistentVolume ends with its storage too, as Kubernetes deletes it
// then. Threads: any. Blocks: never.
constexpr const char* HowDeletedText(ObjectKind kind) {
  return kind == ObjectKind::kPersistentVolume
             ? "deleted, by command or with its claim (reclaim policy Delete),"
             : "deleted by command";
}

}  // namespace volumed
