// What operations work with, on an executor thread.
#pragma once

#include <memory>

#include "base/log.h"
#include "blockmapper/device_holds.h"
#include "operation/operation_settings.h"
#include "operation/pod_directories.h"
#include "operation/storage_guard.h"
#include "operation/volume_record_keeper.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "records/record_store.h"
#include "volumehost/volume_host.h"

namespace volumed {

// A value: operations that run keep the one that they were started with. Everything that it refers
// to outlives them. Threads: any.
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
  std::shared_ptr<DeviceHolds> holds = std::make_shared<DeviceHolds>();
};

}  // namespace volumed
