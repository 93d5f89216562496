// Describer: everything that is known of one object, or of one volume of a pod, in one answer.
#pragma once

#include <optional>
#include <string>

#include "agent.pb.h"
#include "agent/mount_facts.h"
#include "base/ids.h"
#include "base/result.h"
#include "kube/object_catalog.h"
#include "volumehost/event_log.h"
#include "volumemanager/volume_manager.h"

namespace volumed {

// Threads: the control thread. Blocks: never. Everything outlives it.
class Describer {
 public:
  Describer(const ObjectCatalog& catalog, const VolumeManager& manager, const EventLog& events,
            NodeName node)
      : catalog_(catalog), manager_(manager), events_(events), node_(std::move(node)) {}

  // Fills the answer but for the mounts, about which it returns what is to be asked.
  // Errors, not applied: InvalidArgument for a kind that is not known, NotFound.
  Result<MountQuestions> Describe(const v1::DescribeRequest& request,
                                  v1::DescribeResponse* response) const;
  // Errors, not applied: InvalidArgument for a kind that is not known.
  Status List(const v1::ListObjectsRequest& request, v1::ListObjectsResponse* response) const;

 private:
  Result<MountQuestions> DescribePod(const v1::ObjectRef& ref, v1::DescribeResponse* out) const;
  Result<MountQuestions> DescribeVolume(const v1::DescribeRequest& request,
                                        v1::DescribeResponse* out) const;
  Status DescribeObject(ObjectKind kind, const v1::ObjectRef& ref, v1::DescribeResponse* out) const;
  // What was decided about a volume or a claim; false if nothing is known of it.
  bool AddStorageState(const ObjectKey& key, v1::DescribeResponse* out) const;
  // That a command has deleted it and that its manifest still has it; false if that is not so.
  bool AddRefusal(const ObjectKey& key, v1::DescribeResponse* out) const;
  // Identity, summary and problems of what a source has; false if none has it.
  bool AddObject(const ObjectKey& key, v1::DescribeResponse* out) const;
  void AddUsers(const ObjectKey& key, v1::DescribeResponse* out) const;
  // Never what a Secret holds, only how many keys it has.
  void AddListedObject(const ObjectKey& key, v1::ListedObject* out) const;
  void ListRefused(ObjectKind kind, const std::string& name_space,
                   v1::ListObjectsResponse* response) const;

  const ObjectCatalog& catalog_;
  const VolumeManager& manager_;
  const EventLog& events_;
  const NodeName node_;
};

// The kind that stands for a pod's volume, which is no object: "volume" in any case, or plural.
bool IsVolumeKind(const std::string& kind);

}  // namespace volumed
