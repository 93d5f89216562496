// SourceLosses: what a source has lost, is about to lose, or would lose by a command, for people.
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

// Threads: control thread. Blocks: never. REQUIRES: catalog and manager outlive it.
class SourceLosses {
 public:
  using AbsentObjects = google::protobuf::RepeatedPtrField<v1::AbsentObject>;

  // `removal_deletes`: sources of which an object that outlives a pod ends by leaving them.
  SourceLosses(const ObjectCatalog& catalog, const VolumeManager& manager,
               std::set<std::string> removal_deletes)
      : catalog_(catalog), manager_(manager), removal_deletes_(std::move(removal_deletes)) {}

  // What a source has delivered.
  void Note(const ObjectUpdate& update);
  void Forget(const std::string& source);
  // Whether anything of the source is known.
  bool Knows(const std::string& source) const;

  // Of its newest list.
  std::string IncompleteBecause(const std::string& source) const;
  // What the source does not have now, held, going and unknown.
  void EncodeAbsent(const std::string& source, AbsentObjects* out) const;
  // What `source accept` takes away: the same, and what others have lost and may be in this one.
  void EncodeAccepted(const std::string& source, AbsentObjects* out) const;
  // Its pods that are to be replaced, as its manifests have other volumes by now.
  void EncodeReplaced(const std::string& source, AbsentObjects* out) const;
  // What has left the source and is Missing since.
  void EncodeMissing(const std::string& source, v1::Source* out) const;
  // What is Missing since its source was forgotten, as a source of its own; nothing if there is
  // none.
  void EncodeForgotten(v1::GetSourcesResponse* out) const;
  // The pods of an adopted root that are held, as a source of their own; nothing if there are none.
  void EncodeAdoptedRoot(v1::GetSourcesResponse* out) const;
  // All that it ever delivered and that is used, and that no other source has: what `source forget`
  // takes away.
  void EncodeAll(const std::string& source, AbsentObjects* out) const;

  // Errors (not applied): FailedPrecondition if volumes of these are mounted and nobody said yes.
  static Status CheckConfirmed(const AbsentObjects& goes, bool yes);

 private:
  struct Absent {
    ObjectKey key;
    ObjectPtr object;  // null if unknown
    std::string file;
    std::string_view presence;
    std::string reason;
    int64_t goes_at_unix_millis = 0;
    std::string may_be_in_source = {};
  };

  // What one source does not have now: by file and name as listed, and what is unknown by its name.
  struct AbsentOfSource {
    std::map<std::pair<std::string, ObjectKey>, Absent> listed;
    std::map<ObjectKey, Absent> unknown;
  };

  static void NoteListed(const ObjectWithOrigin& object, AbsentOfSource& absent);
  static void NoteUnknown(const UnknownObject& object, AbsentOfSource& absent);
  void NoteList(const ObjectList& list);
  void NoteDelta(const ObjectDelta& delta);
  // Whom the source has under another name, with a uid or without one, has not left it.
  std::vector<Absent> AllAbsent(const std::string& source) const;
  void EncodeMissingOf(const std::function<bool(const std::string&)>& is_of, v1::Source* out) const;
  // With what another source has by now; without what a command has deleted.
  std::vector<Absent> AbsentOf(const std::string& source) const;
  // What is used of its name, if anything is, is not the source's: a command has ended that, or
  // will as soon as nobody has it.
  bool IsEndedByCommand(const std::string& source, const ObjectKey& object) const;
  void Encode(const std::string& source, const Absent& absent, v1::AbsentObject* out) const;
  void EncodeHeldPods(AbsentObjects* out) const;
  void EncodeDoomedData(const ObjectKey& claim, v1::AbsentObject* out) const;
  void EncodeMountedVolumes(const PodUid& pod, v1::AbsentObject* out) const;

  const ObjectCatalog& catalog_;
  const VolumeManager& manager_;
  const std::set<std::string> removal_deletes_;
  std::map<std::string, AbsentOfSource> absent_;
  std::map<std::string, std::string> incomplete_because_;
};

}  // namespace volumed
