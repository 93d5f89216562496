// The CSINode of this node: which drivers there are, what each calls the node, and how many volumes
// it can have attached, as an object that plugins and people find beside those of the sources.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "csi/csi_drivers.h"
#include "kube/object_source.h"
#include "kube/storage_objects.h"
#include "volumehost/volume_host.h"

namespace volumed {

// A driver that was unregistered is not in it; one that is gone, or has not registered since the
// agent was started, is. Pure. Source: kubernetes
// pkg/volume/csi/nodeinfomanager/nodeinfomanager.go@v1.36.2 (installDriverToCSINode,
// setMigrationAnnotation).
CsiNodeObject MakeCsiNodeObject(const NodeName& node, const std::vector<DriverView>& drivers);

// The source of that one object (kCsiNodeSource). It delivers the object when it starts, and then
// whenever the object is another one; on a node without drivers there is none, and no source.
//
// As long as nobody has looked into the directory in which drivers register, and as long as not all
// sources have delivered, the node is not ready, in kubelet's words. It does not wait for drivers:
// one that is away keeps no node from being ready.
// Source: kubernetes pkg/volume/csi/csi_plugin.go@v1.36.2 (initializeCSINode).
//
// Threads: control. Blocks: never.
class CsiNodeSource {
 public:
  // They outlive this object.
  struct Parts {
    const CsiDrivers& drivers;
    KubeletHost& kubelet;
    NodeName node;
  };
  using Deliver = std::function<void(ObjectList)>;
  CsiNodeSource(Parts parts, Deliver deliver);

  // REQUIRES: it is called once, when the records of drivers are restored.
  void Start();
  // Something of a driver may have changed.
  void DriversChanged();
  // The directory of registrations was looked into, or could not be.
  void Looked(const std::optional<Error>& error);
  // All sources have delivered, or not all any more.
  void SyncChanged();

 private:
  const Parts parts_;
  const Deliver deliver_;
  bool is_started_ = false;
  bool has_looked_ = false;
  bool is_initialized_ = false;
  std::optional<CsiNodeObject> delivered_;
};

}  // namespace volumed
