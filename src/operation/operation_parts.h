// The parts of the agent that operations use on an executor thread.
#pragma once

#include <memory>

#include "base/log.h"
#include "blockmapper/device_pins.h"
#include "operation/operation_settings.h"
#include "operation/pod_directories.h"
#include "operation/storage_guard.h"
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
  DeviceRecordKeeper& devices;
  StorageGuard& storage;
  OperationSettings settings = {};
  PodDirectoryOwner pod_directory_owner = PodDirectoryOwner::kAgent;
  std::shared_ptr<VolumeRecordKeeper> volumes = nullptr;
  std::shared_ptr<DevicePins> pins = std::make_shared<DevicePins>();
};

}  // namespace volumed
