// ObjectUids: the uids of PersistentVolumes and PersistentVolumeClaims whose manifests name none.
// Each has one as long as a source has it: over restarts of the agent, and over changes of its
// manifest. One that was removed and is made again is another one, as at an API server.
//
// A uid counts once it is on record, and is forgotten once that is: nothing may be decided about
// claims as long as Settled() is false, or a crash could make two claims of one, or one of two.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kube/object_catalog.h"
#include "operation/volume_record.h"
#include "volumemanager/lasting_rows.h"

namespace volumed {

// Threads: the control thread. Blocks: never.
class ObjectUids {
 public:
  struct Hooks {
    // A uid that nobody has had before.
    std::function<std::string(const ObjectKey&)> new_uid;
    // Settled() has become true.
    std::function<void()> settled;
  };

  // `parts` outlive this.
  ObjectUids(LastingRows::Parts parts, Hooks hooks);

  // What the last agent left. An object whose record cannot be read gets no uid.
  void Restore(const std::vector<ObjectUidRecord>& records,
               const std::vector<QuarantinedRecord>& unreadable);

  // What the object has, or gets now; "" for one whose record cannot be read.
  std::string UidOf(const ObjectKey& object);
  // What the object has; "" if none is on record.
  std::string FindUid(const ObjectKey& object) const {
    const auto found = uids_.find(object);
    return found == uids_.end() ? "" : found->second;
  }
  // No source has the object, and that means something.
  void Forget(const ObjectKey& object);
  void ForgetThoseNotIn(const ObjectCatalog& catalog);

  bool Settled() const { return rows_.AllDurable(); }

 private:
  const Hooks hooks_;
  LastingRows rows_;
  std::map<ObjectKey, std::string> uids_;
  std::set<std::string> unreadable_;  // keys of records
};

}  // namespace volumed
