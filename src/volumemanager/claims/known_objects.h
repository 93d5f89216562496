// KnownObjects: the records about the objects of all sources. For each object that a source
// delivered and that was accepted they hold kind, namespace, name, uid, source, file, and the
// object itself. From them a start tells what a source has lost from what it never had, and gives
// each object its former uid.
//
// Which row holds what:
//  - The record of a pod is its own row (operation/volume_record.h, PodRecord); there is no second
//    one.
//  - An object that was applied or made here is recorded elsewhere: its row has no content.
//  - The row of a Secret or ConfigMap says that the object exists, and has what shows a change of
//    immutable content (kube/content_mark.h).
//
// A uid belongs to kind, namespace and name. It lasts until the object is certainly absent; a pod's
// lasts until the pod is wholly gone from the node. The uid of a claim or volume counts once it is
// on record. As long as Settled() is false, no decision about claims is allowed: a crash could
// otherwise make two claims of one, or one of two.
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

// Threads: the control thread. Blocks: never. Errors: none; a row is written again until that
// succeeds.
class KnownObjects final : public ObjectIdentities {
 public:
  struct Hooks {
    // Makes a uid that no object has had before.
    std::function<std::string(const ObjectKey&)> new_uid;
    // Settled() has become true, or the row of an object that ended is gone.
    std::function<void()> settled;
    // What the node has of a pod.
    std::function<PodOnNode(const PodUid&)> find_on_node;
  };
  // An object that has left its source, and that no command has ended: it is kept.
  struct MissingObject {
    std::string source;
    KnownObject object;
    int64_t since_unix_millis = 0;
  };

  // `parts` outlive this object. `node_name` shows which static pods got their names when the node
  // had another name.
  KnownObjects(LastingRows::Parts parts, NodeName node_name, Hooks hooks);

  // Takes over what the last agent left, also rows of the former release, which are replaced. An
  // object whose row cannot be read gets no uid.
  void Restore(const FoundAtStart& found);
  // What the last agent knew of each source, without objects that were made here. To be called
  // once, since the pods are not kept beside those that the sources deliver.
  std::map<std::string, SourceMemory> TakeMemories();
  // An object whose content is not on record, or cannot be read, is left out.
  std::vector<MissingObject> Missing() const;
  // The name of an object of these memories; for a pod the one that is on record, if the node had
  // another name then.
  std::string NameOnRecord(const KnownObject& object) const;

  // The following are explained at ObjectIdentities. UidOf() makes a uid for an object that has
  // none, unless the object's row cannot be read: then it answers "".
  std::string KnownUidOf(const ObjectKey& object) const override;
  std::string UidOf(const ObjectKey& object) override;
  void Adopt(const ObjectKey& object, const std::string& uid) override;
  void Ended(const ObjectKey& object, const std::string& uid) override;
  std::string NameOf(const Pod& pod) const override;
  std::string OtherNameOf(const Pod& pod) const override;
  std::optional<ObjectKey> PodOfUid(const PodUid& uid) const override;
  PodOnNode FindOnNode(const PodUid& pod) const override { return hooks_.find_on_node(pod); }

  // Records what the catalog says of these objects now.
  void Follow(const ObjectCatalog& catalog, const std::vector<ObjectChange>& changes);
  // The same for all objects of the catalog and of the records.
  void FollowAll(const ObjectCatalog& catalog);
  // The pod is wholly gone from the node, and no source has it. The next pod of its name is another
  // one.
  void PodGone(const ObjectKey& pod, const std::string& uid);

  // Records how the directory of the source is recognised at the next start, and which absences are
  // unproven. Has no effect if that is on record already.
  void NoteDirectory(const std::string& source, const KnownDirectory& directory,
                     const UnprovenAbsences& unproven = {});
  // Forgets the directory of the source; the catalog reports its objects.
  void ForgetSource(const std::string& source);

  bool Settled() const { return unsettled_.empty(); }
  // Whether the record store has what is known of the object; if the object has ended, whether its
  // row is gone.
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
  LastingRows uid_rows_;  // rows of the former release
  LastingRows source_rows_;
  std::map<ObjectKey, std::string> uids_;
  std::map<std::string, ObjectKey> pods_by_uid_;    // the pods of `uids_`
  std::map<ObjectKey, KnownObjectRecord> records_;  // as they are, or shall be, on record
  std::map<std::string, ObjectSourceRecord> sources_;
  std::map<std::string, std::vector<KnownObject>> pods_;  // by source, until TakeMemories
  // Static pods that got their names when the node had another name: namespace and present name ->
  // the name that they keep.
  std::map<std::pair<std::string, std::string>, std::string> former_names_;
  // Keys of rows with a uid of a claim or volume that is not on record yet.
  std::set<std::string> unsettled_;
  std::set<std::string> forgotten_;  // keys of rows that are being removed
  std::set<std::string> unreadable_;
  // Rows of the former release, kept until the new row is durable.
  std::set<std::string> outdated_uids_;
};

}  // namespace volumed
