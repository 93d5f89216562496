// The directory of applied objects of a CrashAgent: the real one, on real files, which the world
// keeps over the agents.
#pragma once

#include <functional>
#include <string>

#include "base/scheduler.h"
#include "kube/object_catalog.h"
#include "kube/object_directory.h"
#include "unit/crash/crash_world.h"
#include "volumemanager/volume_manager.h"

namespace volumed {

// Threads: one. At most one at a time in a process: each agent's files have the same paths, as they
// have on a node.
class CrashObjectDirectory {
 public:
  // Both outlive this. REQUIRES: the world has object files.
  CrashObjectDirectory(CrashWorld& world, Scheduler& scheduler);
  // From here on nothing that the agent does reaches its files.
  ~CrashObjectDirectory();
  CrashObjectDirectory(const CrashObjectDirectory&) = delete;
  CrashObjectDirectory& operator=(const CrashObjectDirectory&) = delete;

  ObjectDirectory& objects() { return objects_; }

  // As `volumectl apply`. `answered` comes when everything that the command has delivered was
  // heard.
  void Apply(const std::string& manifest, const ObjectCatalog& catalog, VolumeManager& manager,
             std::function<void(Status)> answered);

 private:
  Status Store(ApplyCommand command);

  CrashWorld& world_;
  Scheduler& scheduler_;
  ObjectDirectory objects_;
};

}  // namespace volumed
