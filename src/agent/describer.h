// Describer: puts everything that is known of one object, or of one volume of a pod, into one
// answer.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "agent.pb.h"
#include "agent/mount_facts.h"
#include "agent/object_summary.h"
#include "base/ids.h"
#include "base/result.h"
#include "csi/rpc/csi_secret_memory.h"
#include "kube/object_catalog.h"
#include "volumehost/event_log.h"
#include "volumemanager/volume_manager.h"

namespace volumed {

// What is asked about VolumeSnapshots and their contents. Each may be empty: nothing is known.
struct SnapshotQuestions {
  // The object with what is known of it beyond its manifest.
  std::function<Object(const Object& object)> with_state = {};
  // Why an object that was deleted is still there; "" if nothing is known to keep it.
  std::function<std::string(const ObjectKey& object)> held_by = {};
};

// Threads: the control thread. Blocks: never. All constructor arguments outlive it.
class Describer {
 public:
  // The secrets that a CSI driver was sent, which it may have put into what it says of a volume;
  // null for one that nobody knows.
  using SecretsOf = std::function<std::shared_ptr<CsiSecretMemory>(const std::string& driver)>;
  // The labels by which this node is chosen: its own, those of the configuration, and those that
  // CSI drivers say of where it is.
  using NodeLabels = std::function<std::map<std::string, std::string>()>;
  // `secrets_of` may be empty: there are no drivers. So may `node_labels`: the node has none but
  // those of its object. And `label_givers`, which says who has given a label: nobody is named.
  // So may what `snapshots` asks about VolumeSnapshots and their contents.
  Describer(const ObjectCatalog& catalog, const VolumeManager& manager, const EventLog& events,
            NodeName node, SecretsOf secrets_of = {}, NodeLabels node_labels = {},
            NodeLabels label_givers = {}, SnapshotQuestions snapshots = {})
      : catalog_(catalog),
        manager_(manager),
        events_(events),
        node_(std::move(node)),
        secrets_of_(std::move(secrets_of)),
        node_labels_(std::move(node_labels)),
        label_givers_(std::move(label_givers)),
        snapshots_(std::move(snapshots)) {}

  // Fills the answer except for the mounts; returns the questions whose answers are the mounts
  // (AddMountFacts), none for an object that has no mounts. A namespaced object without a namespace
  // is looked for in "default"; "volume" is a kind too. Long lists are cut, and `not_shown` says
  // so. Errors, not applied, with a response that may be half filled: InvalidArgument for an
  // unknown kind, or a volume without its name; NotFound.
  Result<MountQuestions> Describe(const v1::DescribeRequest& request,
                                  v1::DescribeResponse* response) const;
  // Lists the objects of one kind, of one namespace or, if none is given, of all: names for
  // completion, and lines for `get`, of which pods and volumes have none. 5000 objects at most;
  // `not_shown` counts the rest. Errors, not applied: InvalidArgument for an unknown kind.
  Status List(const v1::ListObjectsRequest& request, v1::ListObjectsResponse* response) const;

 private:
  Result<MountQuestions> DescribePod(const v1::ObjectRef& ref, v1::DescribeResponse* out) const;
  Result<MountQuestions> DescribeVolume(const v1::DescribeRequest& request,
                                        v1::DescribeResponse* out) const;
  Status DescribeObject(ObjectKind kind, const v1::ObjectRef& ref, v1::DescribeResponse* out) const;
  // Adds what was decided about a volume or a claim; false if nothing is known of it.
  bool AddStorageState(const ObjectKey& key, v1::DescribeResponse* out) const;
  // Adds the labels of this node. Where its object has another value, that decides nothing.
  void AddNodeLabels(v1::DescribeResponse* out) const;
  // Adds that a command has deleted the object and that its manifest still has it; false if that is
  // not so.
  bool AddRefusal(const ObjectKey& key, v1::DescribeResponse* out) const;
  Object WithState(const Object& object) const;
  // What is shown of the words of the driver that an object is of. Empty: all.
  ShownText WithoutSecrets(const Object& object) const;
  // Adds identity, summary and problems of the object of a source; false if no source has it.
  bool AddObject(const ObjectKey& key, v1::DescribeResponse* out) const;
  void AddUsers(const ObjectKey& key, v1::DescribeResponse* out) const;
  // Adds how many keys a Secret has, but never what it holds.
  void AddListedObject(const ObjectKey& key, v1::ListedObject* out) const;
  void ListPods(const std::string& name_space, v1::ListObjectsResponse* response) const;
  void ListVolumes(const std::string& name_space, v1::ListObjectsResponse* response) const;
  // This node is one, also if no source has an object of it.
  void ListThisNode(const std::string& name, v1::ListObjectsResponse* response) const;
  void ListRefused(ObjectKind kind, const std::string& name_space, const std::string& name,
                   v1::ListObjectsResponse* response) const;

  const ObjectCatalog& catalog_;
  const VolumeManager& manager_;
  const EventLog& events_;
  const NodeName node_;
  const SecretsOf secrets_of_;
  const NodeLabels node_labels_;
  const NodeLabels label_givers_;
  const SnapshotQuestions snapshots_;
};

// Whether the word means a pod's volume, which is no object of its own: "volume" in upper or lower
// case, or its plural.
bool IsVolumeKind(const std::string& kind);

}  // namespace volumed
