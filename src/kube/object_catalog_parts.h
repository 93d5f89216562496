// ObjectCatalog::Parts: how an update is taken over in parts, each short. Private to the catalog.
//
// First what the sources list is changed, all that the update has before anything that it lacks,
// and no merge is made of it. Then it counts that the source has delivered, and what was changed is
// merged, some names at a time, each with all that is linked with them (object_catalog_merge.h):
// what a merge finds of these does not depend on the others. So in the end the view is the same as
// after one merge. That the source has delivered is told to others last (Source::Tell).
//
// An urgent merge may come in between. It sees of the update's objects what is set by then: that is
// more than the source has, never less.
#pragma once

#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "kube/object_catalog.h"

namespace volumed {

// Threads: the control thread.
class ObjectCatalog::Parts {
 public:
  Parts(ObjectCatalog& catalog, ObjectUpdate update);

  // True: it is over.
  bool Continue(TaskLimit& limit);
  // A list of this source that has not been merged yet, and says no more than the newer one does.
  bool IsReplacedBy(const ObjectList& newer) const;
  const std::string& source() const { return source_; }

 private:
  enum class Stage {
    kSet,         // what the update has
    kDrop,        // what it lacks
    kSetUnknown,  // the same of what is unknown
    kDropUnknown,
    kNote,        // what it says of the source as a whole
    kRemembered,  // what is to be merged for that
    kGroup,       // by who is linked
    kMerge,
    kEndMemory,  // of what was shown
    kOver,
  };

  bool RunStage(TaskLimit& limit);
  bool Set(Source& source, TaskLimit& limit);
  bool Drop(Source& source, TaskLimit& limit);
  bool SetUnknowns(Source& source, TaskLimit& limit);
  bool DropUnknowns(Source& source, TaskLimit& limit);
  void Note(Source& source);
  bool AddRemembered(TaskLimit& limit);
  bool Group(TaskLimit& limit);
  void AddGroup(Scope scope);
  bool MergeSome(TaskLimit& limit);
  bool IsDue(const ObjectKey& key) const;
  bool IsLeaving(const ObjectKey& key) const;
  void Finish();
  bool EndMemory(TaskLimit& limit);
  // What was marked is merged by and by.
  void TakeMarks();
  // Null if it was forgotten meanwhile.
  Source* FindSource() const;

  ObjectCatalog& catalog_;
  ObjectUpdate update_;
  ObjectList* const list_;    // null for a delta
  ObjectDelta* const delta_;  // null for a list
  const std::string source_;
  uint64_t order_ = 0;  // of the source, by which it is told from the next of its name
  uint64_t list_number_ = 0;
  std::set<ObjectKind> kinds_;  // of which the list is complete
  Stage stage_ = Stage::kSet;
  // How far the stage has come.
  size_t next_ = 0;
  FileAndKey last_place_;
  ObjectKey last_key_;
  std::string last_source_;
  std::set<ObjectKey> unknown_;
  // What is to be merged; some are empty: they were joined with others, or are merged.
  std::vector<Scope> groups_;
  std::map<ObjectKey, size_t> group_of_;
  std::map<PodUid, size_t> group_of_uid_;
  int order_of_merge_ = 0;  // 0: what pods use, 1: pods, 2: what is used no more
};

}  // namespace volumed
