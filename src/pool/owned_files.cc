#include "pool/owned_files.h"

namespace volumed {

std::string OwnerOfObject(const PoolVolumes& volumes, const StorageObject& object) {
  for (const PoolVolumeRecord& volume : volumes.All()) {
    if (IsSameObject(volume.object, object)) return "volume " + volume.id;
  }
  for (const std::string& id : volumes.Cuts()) {
    const Result<PoolCutRecord> cut = volumes.FindCut(id);
    if (cut.ok() && IsSameObject(cut->object, object)) return "snapshot " + id;
  }
  return "";
}

}  // namespace volumed
