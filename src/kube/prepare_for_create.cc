#include "kube/prepare_for_create.h"

#include <variant>

namespace volumed {

void PrepareForCreate(Object& object) {
  ObjectMeta& metadata = MetaOf(object);
  metadata.creation_unix_millis.reset();
  metadata.deletion_unix_millis.reset();
  metadata.deletion_grace_period_seconds.reset();
  if (Pod* pod = std::get_if<Pod>(&object)) pod->status.phase = PodStatus().phase;
  if (auto* volume = std::get_if<PersistentVolume>(&object)) volume->status = {};
  if (auto* claim = std::get_if<PersistentVolumeClaim>(&object)) claim->status = {};
}

}  // namespace volumed
