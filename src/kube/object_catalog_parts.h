// ObjectCatalog::Parts: takes an update over in short parts. This class is private to the catalog.
//
// First the sources' lists are changed, without a merge: all that the update has, then the removal
// of what it lacks. After that the source counts as having delivered, and what was changed is
// merged, some names at a time, each with all that is linked with it (object_catalog_merge.h). The
// result for these does not depend on the other names, so in the end the view is the same as after
// one merge. Last, others are told that the source has delivered (Source::Tell).
//
// An urgent merge may come in between. It sees those of the update's objects that are set by then:
// that is more than the source has, never less.
#pragma once

#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "kube/object_catalog.h"

namespace volumed {

// Threads: the control thread. It may outlive its source: if that is forgotten meanwhile, only what
// was marked already is merged.
class ObjectCatalog::Parts {
 public:
  // Takes over what the update says of the source's problems at once. The catalog outlives this
  // object.
  Parts(ObjectCatalog& catalog, ObjectUpdate update);

  // Does as many pieces as the limit allows, and calls the catalog's listeners. True if the update
  // is taken over.
  bool Continue(TaskLimit& limit);
  // Whether the update is a list of the same source that has not been merged yet, and covers no
  // kinds that the newer list does not cover.
  bool IsReplacedBy(const ObjectList& newer) const;
  const std::string& source() const { return source_; }

 private:
  enum class Stage {
    kSet,         // adds what the update has
    kDrop,        // removes what it lacks
    kSetUnknown,  // the same for unknown objects
    kDropUnknown,
    kNote,        // takes over what it says of the source as a whole
    kRemembered,  // collects remembered objects that this concerns
    kGroup,       // groups what is linked
    kMerge,
    kEndMemory,  // forgets what was remembered of objects that were shown
    kOver,
  };

  // Each of these functions goes on with its stage where it stopped, and returns true when the
  // stage is over.
  bool RunStage(TaskLimit& limit);
  bool Set(Source& source, TaskLimit& limit);
  bool Drop(Source& source, TaskLimit& limit);
  bool SetUnknowns(Source& source, TaskLimit& limit);
  bool DropUnknowns(Source& source, TaskLimit& limit);
  void Note(Source& source);
  bool AddRemembered(TaskLimit& limit);
  bool Group(TaskLimit& limit);
  // Adds what is linked with each other as one group, joined with all groups that have part of it.
  void AddGroup(Scope scope);
  bool MergeSome(TaskLimit& limit);
  // Pods come after what they use and leave before it, so that no volume is without its object for
  // a moment.
  bool IsDue(const ObjectKey& key) const;
  bool IsLeaving(const ObjectKey& key) const;
  // Tells that all sources have delivered what they have (Source::Tell), and what commands have
  // ended for good.
  void Finish();
  bool EndMemory(TaskLimit& limit);
  // Moves what was marked as changed to what is merged in parts.
  void TakeMarks();
  // Null if the source was forgotten meanwhile.
  Source* FindSource() const;

  ObjectCatalog& catalog_;
  ObjectUpdate update_;
  ObjectList* const list_;    // null for a delta
  ObjectDelta* const delta_;  // null for a list
  const std::string source_;
  uint64_t order_ = 0;  // tells the source from a later one of the same name
  uint64_t list_number_ = 0;
  std::set<ObjectKind> kinds_;  // those of which the list is complete
  Stage stage_ = Stage::kSet;
  // How far the present stage has come.
  size_t next_ = 0;
  FileAndKey last_place_;
  ObjectKey last_key_;
  std::string last_source_;
  std::set<ObjectKey> unknown_;
  // What is to be merged. A group is empty once it has been merged, or joined with another.
  std::vector<Scope> groups_;
  std::map<ObjectKey, size_t> group_of_;
  std::map<PodUid, size_t> group_of_uid_;
  int order_of_merge_ = 0;  // 0: what pods use, 1: pods, 2: what is used no more
};

}  // namespace volumed
