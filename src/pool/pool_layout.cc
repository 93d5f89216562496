#include "pool/pool_layout.h"

namespace volumed {

SafePath PoolLayout::Directory() const { return {root_, "", Resolve::kNoSymlinks}; }

SafePath PoolLayout::Marker() const { return Directory().Below(kPoolMarkerFile); }

SafePath PoolLayout::Lock() const { return Directory().Below(kPoolLockFile); }

SafePath PoolLayout::Volumes() const { return Directory().Below("volumes"); }

SafePath PoolLayout::Cuts() const { return Directory().Below("cuts"); }

SafePath PoolLayout::ArtefactDir(const PoolId& id) const {
  return (id.object == PoolObject::kCut ? Cuts() : Volumes()).Below(id.ToString());
}

SafePath PoolLayout::Image(const PoolId& id) const { return ArtefactDir(id).Below(kPoolImageFile); }

SafePath PoolLayout::Data(const PoolId& id) const {
  return ArtefactDir(id).Below(kPoolDataDirectory);
}

SafePath PoolLayout::Description(const PoolId& id) const {
  return ArtefactDir(id).Below(PoolDescriptionFile(id.object));
}

const char* PoolDescriptionFile(PoolObject object) {
  return object == PoolObject::kCut ? kPoolCutDescriptionFile : kPoolDescriptionFile;
}

std::string UnfinishedName(const std::string& name) { return "." + name + ".new"; }

}  // namespace volumed
