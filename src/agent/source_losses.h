// SourceLosses: tells people what a source has lost, is about to lose, or would lose by a command.
// It keeps what the sources deliver of absent objects, and asks the catalog and the manager for
// everything else each time.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent.pb.h"
#include "base/result.h"
#include "kube/object_catalog.h"
#include "kube/object_source.h"
#include "volumemanager/volume_manager.h"

namespace volumed {

// Threads: the control thread. Blocks: never. REQUIRES: catalog and manager outlive it. All Encode
// methods add to `out`.
class SourceLosses {
 public:
  using AbsentObjects = google::protobuf::RepeatedPtrField<v1::AbsentObject>;

  // `removal_deletes` names the sources in which the removal of an object that outlives pods
  // deletes it.
  SourceLosses(const ObjectCatalog& catalog, const VolumeManager& manager,
               std::set<std::string> removal_deletes)
      : catalog_(catalog), manager_(manager), removal_deletes_(std::move(removal_deletes)) {}

  // Notes what a source has delivered. To be called with each update in order, before the catalog
  // takes it over. A list that is not complete changes only IncompleteBecause().
  void Note(const ObjectUpdate& update);
  // Drops what was noted of the source.
  void Forget(const std::string& source);
  // Whether the catalog has the source, be it configured or only on record.
  bool Knows(const std::string& source) const;

  // Why the source's newest list is incomplete; "" if it is complete.
  std::string IncompleteBecause(const std::string& source) const;
  // The objects that the source does not have now: unproven, going or unknown, and those that
  // another source has, or takes over next. Objects that a command has deleted are left out, pods
  // excepted. For the source of an adopted root: the pods that are held there.
  void EncodeAbsent(const std::string& source, AbsentObjects* out) const;
  // What `source accept` takes away: the absent objects of this source, and those that other
  // sources have lost and that may have moved to this one.
  void EncodeAccepted(const std::string& source, AbsentObjects* out) const;
  // The pods of the source that are to be replaced, since their manifests have other volumes by
  // now.
  void EncodeReplaced(const std::string& source, AbsentObjects* out) const;
  // The objects that have left the source and are Missing since: the first 200 of them, and how
  // many there are.
  void EncodeMissing(const std::string& source, v1::Source* out) const;
  // The objects that are Missing and whose source was forgotten, as a source of its own; none is
  // added if there are no such objects.
  void EncodeForgotten(v1::GetSourcesResponse* out) const;
  // The pods of an adopted root that are held, as a source of its own; none is added if there are
  // none.
  void EncodeAdoptedRoot(v1::GetSourcesResponse* out) const;
  // What `source forget` takes away: every object of the source that is in use and that no other
  // source has.
  void EncodeAll(const std::string& source, AbsentObjects* out) const;

  // Errors, not applied: FailedPrecondition if `yes` is false and one of the objects has mounted
  // volumes or data on disk; the message names five of them at most. Threads: any.
  static Status CheckConfirmed(const AbsentObjects& goes, bool yes);

 private:
  struct Absent {
    ObjectKey key;
    ObjectPtr object;  // null if the object is unknown
    std::string file;
    std::string_view presence;
    std::string reason;
    int64_t goes_at_unix_millis = 0;
    std::string may_be_in_source = {};
  };

  // What one source does not have now: listed objects by file and name, unknown objects by name.
  struct AbsentOfSource {
    std::map<std::pair<std::string, ObjectKey>, Absent> listed;
    std::map<ObjectKey, Absent> unknown;
  };

  static void NoteListed(const ObjectWithOrigin& object, AbsentOfSource& absent);
  static void NoteUnknown(const UnknownObject& object, AbsentOfSource& absent);
  void NoteList(const ObjectList& list);
  void NoteDelta(const ObjectDelta& delta);
  // All absent objects of the source, except those that the source has under another name, with or
  // without a uid.
  std::vector<Absent> AllAbsent(const std::string& source) const;
  void EncodeMissingOf(const std::function<bool(const std::string&)>& is_of, v1::Source* out) const;
  // AllAbsent() with a note on objects that another source has by now, and without objects that a
  // command has deleted.
  std::vector<Absent> AbsentOf(const std::string& source) const;
  // Whether the end of the object comes from a command and not from the source: a command has
  // deleted it, or is about to when nobody uses it any more.
  bool IsEndedByCommand(const std::string& source, const ObjectKey& object) const;
  void Encode(const std::string& source, const Absent& absent, v1::AbsentObject* out) const;
  void EncodeKeptPods(AbsentObjects* out) const;
  void EncodeDoomedData(const ObjectKey& claim, v1::AbsentObject* out) const;
  void EncodeMountedVolumes(const PodUid& pod, v1::AbsentObject* out) const;

  const ObjectCatalog& catalog_;
  const VolumeManager& manager_;
  const std::set<std::string> removal_deletes_;
  std::map<std::string, AbsentOfSource> absent_;
  std::map<std::string, std::string> incomplete_because_;
};

}  // namespace volumed
