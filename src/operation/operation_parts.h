// The parts of the agent that operations use on an executor thread.
#pragma once

#include <memory>

#include "base/log.h"
#include "blockmapper/device_pins.h"
#include "operation/operation_settings.h"
#include "operation/pod_directories.h"
#include "operation/storage_guard.h"
#include "operation/unrecorded_mounts.h"
#include "operation/volume_record_keeper.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "records/record_store.h"
#include "volumehost/volume_host.h"

namespace volumed {

// This is a value: an operation that runs keeps the one with which it was started. Everything to
// which it refers outlives the operations. Threads: any.
struct OperationParts {
  VolumePluginMgr& plugins;
  VolumeHost& host;
  Logger& logger;
  RecordStore& store;
  // The records of devices.
  DeviceRecordKeeper& devices;
  // Who has which storage, and the records of whose it is.
  StorageGuard& storage;
  // The deadlines of the steps.
  OperationSettings settings = {};
  // Whether RemovePod may find a kubelet's own entries.
  PodDirectoryOwner pod_directory_owner = PodDirectoryOwner::kAgent;
  // The records of pods' volumes. NodeVolumeOperations makes the keeper, so no operation sees null.
  std::shared_ptr<VolumeRecordKeeper> volumes = nullptr;
  // The devices of block volumes that are kept open (blockmapper/device_pins.h).
  std::shared_ptr<DevicePins> pins = std::make_shared<DevicePins>();
  // What was mounted at the start and is on no record.
  std::shared_ptr<UnrecordedMounts> unrecorded = std::make_shared<UnrecordedMounts>();
};

}  // namespace volumed
