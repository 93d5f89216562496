// RestingStorage: the rows that the operations keep of devices and storage that nobody has mounted
// now, and when each is forgotten: the row of a device says that a filesystem is there, and stays
// until its PersistentVolume is gone.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/alive_guard.h"
#include "base/ids.h"
#include "kube/object_catalog.h"
#include "operation/volume_operations.h"
#include "operation/volume_record.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "volumemanager/actual_state_of_world.h"
#include "volumemanager/claims/claims.h"
#include "volumemanager/readiness.h"

namespace volumed {

// Threads: the control thread. Blocks: never; rows are removed by operations, which tell nobody of
// their end: what could not be removed is found again by the next start. Errors: none.
class RestingStorage {
 public:
  // All members outlive this object.
  struct Parts {
    const ObjectCatalog& catalog;
    const VolumePluginMgr& plugins;
    VolumeOperations& operations;
    const ActualStateOfWorld& actual;
    const Claims& claims;
    const Readiness& readiness;
  };

  // `retry` is called with the name of a volume, or its unique name, whose storage was held back
  // because of a volume that is known by name only, and is not any more; or whose reclaim has
  // ended.
  RestingStorage(Parts parts, std::function<void(const std::string&)> retry)
      : parts_(parts), retry_(std::move(retry)) {}

  // Takes over what the last agent left.
  void Restore(const std::vector<DeviceRecord>& devices);

  // The name by which the volume is one and the same to all its pods; empty if no plugin supports
  // it.
  UniqueVolumeName UniqueNameOf(const PersistentVolume& volume) const;
  // Nothing of the device of this volume is on the node any more; its row stays until the volume
  // has ended.
  void DeviceRests(const UniqueVolumeName& device, const SpecName& volume);
  // Nothing has to be known of the volume any more. If its device is still on the node, the row
  // goes after the unmount.
  void ForgetVolume(const PersistentVolume& volume);
  // The volume is to be retained from now on: its reclaim is not tried again.
  void EndReclaim(const std::string& volume);
  // Removes rows of devices whose volume has ended. Has no effect before every source has
  // delivered.
  void ForgetDevices();
  // Forgets the records of storage that the last agent did not come to forget, and ends what it had
  // begun to delete for volumes that are no more; then calls `done`. REQUIRES: every source has
  // delivered.
  void ForgetStorage(std::function<void()> done);
  // Tells the operations which PersistentVolumes are known by name only, and lets what was refused
  // because of others be tried again.
  void NoteUnknownVolumes();

 private:
  void ForgetDevice(const UniqueVolumeName& device);
  // REQUIRES: every source has delivered.
  void ForgetUnlessKnown(const UniqueVolumeName& device, const std::string& volume);
  void ForgetStorageOf(const std::string& volume);

  const Parts parts_;
  const std::function<void(const std::string&)> retry_;
  // Devices at rest whose rows stay because they tell of a filesystem -> the volume's name.
  std::map<UniqueVolumeName, std::string> devices_;
  std::vector<UnknownVolume> unknown_;  // as the operations were told last
  AliveGuard alive_;
};

}  // namespace volumed
