// KnownObjects: what is on record of the objects of all sources: of each that a source delivered
// and that was accepted its kind, namespace, name, uid, source, file, and the object. With it a
// start tells what a source has lost from what it never had, and gives each object the uid that it
// had.
//
// Which row holds what:
//  - A pod's own row (operation/volume_record.h, PodRecord) is its record; there is no second one.
//  - An object that was applied or made here is on record elsewhere: its row has no content.
//  - Of a Secret or ConfigMap there is that it exists, and by what a change of what is immutable is
//    noticed (kube/content_mark.h).
//
// A uid belongs to kind, namespace and name. It lasts until the object is certainly absent; a pod's
// until the pod is wholly gone from the node. The uid of a claim or volume counts once it is on
// record: nothing may be decided about claims as long as Settled() is false, or a crash could make
// two claims of one, or one of two.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "kube/object_catalog.h"
#include "operation/object_record.h"
#include "operation/volume_record.h"
#include "volumemanager/lasting_rows.h"
#include "volumemanager/reconstructor.h"

namespace volumed {

// Threads: the control thread. Blocks: never. Errors: rows are written until that has succeeded.
class KnownObjects final : public ObjectIdentities {
 public:
  struct Hooks {
    // A uid that nobody has had before.
    std::function<std::string(const ObjectKey&)> new_uid;
    // Settled() has become true, or the row of an object that ended is gone.
    std::function<void()> settled;
    // What the node has of a pod.
    std::function<PodOnNode(const PodUid&)> find_on_node;
  };
  struct MissingObject {
    std::string source;
    KnownObject object;
    int64_t since_unix_millis = 0;
  };

  // `parts` outlive this; `node_name` tells which static pods were named on a node of another name.
  KnownObjects(LastingRows::Parts parts, NodeName node_name, Hooks hooks);

  // What the last agent left, also in the rows of the former release: these are replaced. An object
  // whose row cannot be read gets no uid.
  void Restore(const FoundAtStart& found);
  // What the last agent knew of each source. What was made here is not among it. Once: the pods are
  // not kept beside those that the sources deliver.
  std::map<std::string, SourceMemory> TakeMemories();
  std::vector<MissingObject> Missing() const;
  // Of an object of these memories: a pod's as it is on record, if the node was called otherwise
  // then.
  std::string NameOnRecord(const KnownObject& object) const;

  std::string KnownUidOf(const ObjectKey& object) const override;
  std::string UidOf(const ObjectKey& object) override;
  void Adopt(const ObjectKey& object, const std::string& uid) override;
  void Ended(const ObjectKey& object, const std::string& uid) override;
  std::string NameOf(const Pod& pod) const override;
  std::string OtherNameOf(const Pod& pod) const override;
  std::optional<ObjectKey> PodOfUid(const PodUid& uid) const override;
  PodOnNode FindOnNode(const PodUid& pod) const override { return hooks_.find_on_node(pod); }

  // Puts on record what the catalog says of these objects now.
  void Follow(const ObjectCatalog& catalog, const std::vector<ObjectChange>& changes);
  // The same of all objects of the catalog and of the records.
  void FollowAll(const ObjectCatalog& catalog);
  // The pod is wholly gone from the node, and no source has it. The next one of its name is
  // another.
  void PodGone(const ObjectKey& pod, const std::string& uid);

  void NoteDirectory(const std::string& source, const KnownDirectory& directory,
                     const UnprovenAbsences& unproven = {});
  // Its objects are told of by the catalog.
  void ForgetSource(const std::string& source);

  bool Settled() const { return unsettled_.empty(); }
  // The record store has what is known of the object, or nothing if it has ended.
  bool IsOnRecord(const ObjectKey& object) const { return rows_.IsDurable(RecordKey(object)); }

 private:
  void SetUid(const ObjectKey& object, const std::string& uid);
  bool IsOfStaticPod(const ObjectKey& pod) const;
  void RestoreUids(const FoundAtStart& found);
  void RestoreUidsOfVolumes(const FoundAtStart& found);
  void RestorePod(const PodRecord& record, const ObjectPtr& object);
  void FollowOne(const ObjectCatalog& catalog, const ObjectKey& object);
  void Put(const KnownObjectRecord& record);
  void Forget(const ObjectKey& object);
  void RowIsDurable(const std::string& key);

  const NodeName node_name_;
  const Hooks hooks_;
  LastingRows rows_;
  LastingRows uid_rows_;  // of the former release
  LastingRows source_rows_;
  std::map<ObjectKey, std::string> uids_;
  std::map<std::string, ObjectKey> pods_by_uid_;    // the pods of `uids_`
  std::map<ObjectKey, KnownObjectRecord> records_;  // as they are, or are to be
  std::map<std::string, ObjectSourceRecord> sources_;
  std::map<std::string, std::vector<KnownObject>> pods_;  // by source, until TakeMemories
  // Static pods that were named when the node was called otherwise: namespace and today's name ->
  // the name that they keep.
  std::map<std::pair<std::string, std::string>, std::string> former_names_;
  std::set<std::string> unsettled_;  // keys of rows with a uid of a claim or volume
  std::set<std::string> forgotten_;  // keys of rows that are being removed
  std::set<std::string> unreadable_;
  std::set<std::string> outdated_uids_;  // rows of the former release, until the new one is durable
};

}  // namespace volumed
