// ObjectSource: a source of pods and the objects that they use. A source delivers a full list
// first, and then deltas: what has come, changed and gone since its last delivery. If a delta
// cannot express something, the source delivers a full list again, so a listener that missed a
// delta is right after the next full list. Deltas that are applied one after the other give the
// same result as full lists at these times.
//
// Only the source judges absence: an object leaves its list only if its absence is evidence that
// somebody removed it. Until then the list has the object, as unproven or going.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "kube/content_mark.h"
#include "kube/decode.h"
#include "kube/objects.h"

namespace volumed {

// How long an object's absence must last before the object goes (the setting removal-settle).
inline constexpr Duration kRemovalSettle = std::chrono::seconds(10);

// The source of this node's CSINode, which the agent makes of the CSI drivers that have registered.
// They are on record themselves, so that nothing is remembered of the source.
inline constexpr const char* kCsiNodeSource = "csi-node";
// The source of the VolumeSnapshotContents that the agent makes of its own snapshots, which are on
// record themselves: their absence is a command.
inline constexpr const char* kSnapshotSource = "snapshots";

// How an object came to be in a list.
enum class ObjectPresence {
  kPresent,  // its file has it now
  // Its file does not have it now, but that proves nothing: see `reason`. People are told that it
  // is held.
  kUnproven,
  kGoing,  // it was seen to leave, and is removed from the list at `goes_at_unix_millis`
};

// An object in a source's list, which has at most one of this kind, namespace and name per file.
struct ObjectWithOrigin {
  ObjectPtr object;  // never null
  std::string file;  // path of the file it was read from
  int document = 0;  // from 0
  ObjectPresence presence = ObjectPresence::kPresent;
  std::string reason = {};          // with kUnproven and kGoing, for people
  int64_t goes_at_unix_millis = 0;  // with kGoing
  uint64_t number = 0;              // of the command that gave it; 0: no command did
  // For a pod: the pods that it replaces by command. It comes once none of them is on the node.
  std::set<PodUid> replaces = {};
  // With kUnproven: another source that may have it; `reason` names the file.
  std::string may_be_in_source = {};
  // The place among the objects of its document; only the order counts.
  size_t index = 0;
};

// An object that the source had, and of which it is not known now whether it exists or what it
// holds: its file is in disorder, and its content is not on record (a Secret, a ConfigMap). Nothing
// may be taken away because of it, and nothing be left out.
struct UnknownObject {
  ObjectKey key;
  // The path of the file that had it.
  std::string file;
  // For people.
  std::string reason;
  std::string may_be_in_source = {};  // as in ObjectWithOrigin
};

// The facts by which a manifest directory is recognised over restarts. Device numbers are not among
// them, since they change with a boot.
struct KnownDirectory {
  // "ext4"; for a type that this program does not name, "magic " and the number of statfs(2).
  std::string filesystem_type;
  std::string filesystem_uuid;    // "" if the filesystem has none
  std::optional<uint64_t> inode;  // nullopt if the filesystem gives no lasting one
  // When the directory was made; nullopt if the filesystem does not tell. An inode's number is
  // given to another directory as soon as the first is removed; the time of birth is not.
  std::optional<int64_t> birth_unix_nanos = {};
  // When the directory's entries changed last, as its filesystem has it; nullopt if that time does
  // not last. It only grows, unless the disk is put back to an older state of itself. Then it is
  // kPutBack: whatever happens to the directory later, it is not what it was.
  std::optional<int64_t> changed_unix_nanos = {};
  static constexpr int64_t kPutBack = INT64_MAX;
  friend bool operator==(const KnownDirectory&, const KnownDirectory&) = default;
};

// An object that the source had delivered when the last agent ended.
struct KnownObject {
  ObjectKey key;
  // "" if none is on record.
  std::string uid;
  // The path of the file that had it.
  std::string file;
  ObjectPtr object;        // null for a Secret or ConfigMap, whose content is not on record
  bool is_ending = false;  // a command to end it is on record
  // For such an object: shows a change of immutable content; nullopt if it is not on record.
  std::optional<ContentMark> mark = {};
};

// Objects whose absence from the known directory proved nothing when it was noticed, with the
// reason. That holds until they are back, are accepted as gone, or their file is seen to go. No
// later listing changes it, not even one of the next start.
using UnprovenAbsences = std::map<ObjectKey, std::string>;

// What the records have of a source.
struct SourceMemory {
  std::vector<KnownObject> objects;
  std::optional<KnownDirectory> directory = {};  // nullopt: the source is new
  UnprovenAbsences unproven = {};
};

// ObjectList::unseen_because of a source with which nothing is wrong.
inline constexpr const char* kSourceIsBeingRead = "it is being read";

// All that a source has at one moment. If it is complete, it takes the place of everything that the
// source has delivered before.
struct ObjectList {
  std::string source;
  // False: the source could not be listed and has no earlier list; then `objects` and `unknown`
  // count for `complete_kinds` alone. True: `objects` has everything of the source, last good
  // objects included.
  bool complete = false;
  std::vector<ObjectWithOrigin> objects;
  std::vector<DecodeProblem> problems = {};  // all present problems, not only new ones
  std::vector<UnknownObject> unknown = {};
  // Why absence from this list proves nothing about some objects; "" for a source that is in order.
  std::string incomplete_because = {};
  std::optional<KnownDirectory> directory = {};  // to be put on record
  UnprovenAbsences unproven = {};                // to be put on record with the directory
  // Unknown fields of objects that were accepted all the same. They make no source unhealthy.
  std::vector<DecodeProblem> warnings = {};
  // If the list is not complete: the kinds of which it is, for a source that lists each kind by
  // itself.
  std::set<ObjectKind> complete_kinds = {};
  // Why this agent has not looked into the source yet, so that it may have objects of which nobody
  // knows, whatever is on record of it; "" from the first look on.
  std::string unseen_because = {};
};

// What has changed in a source since its last full list or delta. A source lists an object of one
// kind, namespace and name at most once per file, so key and file identify it. No object of one
// file is both in `objects` and in `removed`.
struct ObjectDelta {
  struct Removed {
    ObjectKey key;
    std::string file;
  };
  // All present problems of each file that changed; an empty vector says that the file is right.
  // Problems of the source as a whole are under the source's own path.
  using ByFile = std::map<std::string, std::vector<DecodeProblem>>;

  std::string source;
  std::vector<ObjectWithOrigin> objects = {};  // new, or listed otherwise than before
  std::vector<Removed> removed = {};           // not listed any more
  std::vector<UnknownObject> unknown = {};     // new, or for another reason than before
  std::vector<ObjectKey> not_unknown = {};     // not unknown any more
  ByFile problems = {};                        // of these files
  ByFile warnings = {};                        // of these files
  std::string incomplete_because = {};         // as in a list
  std::optional<KnownDirectory> directory = {};
  UnprovenAbsences unproven = {};
  std::string unseen_because = {};  // as in a list
};

// What a source delivers. Its name is in it, so that one listener serves all sources.
using ObjectUpdate = std::variant<ObjectList, ObjectDelta>;
using ObjectListener = std::function<void(ObjectUpdate)>;

// Threads: the control thread, for every method; the listener is called there too. Blocks: never.
class ObjectSource {
 public:
  virtual ~ObjectSource() = default;

  // Unique among the sources of a process; stable over restarts.
  virtual const std::string& name() const = 0;

  // Says what the last agent knew of this source. REQUIRES: it is called before Start(), or not at
  // all.
  virtual void Remember(SourceMemory memory) = 0;

  // Begins to deliver. The first list comes soon, but not within this call; it comes also if it is
  // incomplete. REQUIRES: it is called once.
  virtual void Start(ObjectListener listener) = 0;

  // The administrator's word that what the source has now is right. An object that is absent
  // at this moment, and is not back when the source has been read again, goes at once; an unknown
  // object is certainly absent. What leaves later is judged as always.
  virtual void Accept() = 0;

  // Names the Secrets and ConfigMaps that pods of this node name: `more` from now on, `less` no
  // longer; before the first call there are none. A source that may read no others delivers only
  // these, and others are absent from it for that reason alone. Default: no effect, since the
  // source has all objects anyway.
  virtual void Want(const std::vector<ObjectKey>& more, const std::vector<ObjectKey>& less) {
    static_cast<void>(more);
    static_cast<void>(less);
  }

  // Mounts came or went at these places. Default: no effect, since the source lies below no mount.
  // The places are absolute paths.
  virtual void MountsChanged(const std::vector<std::string>& mount_points) {
    static_cast<void>(mount_points);
  }
  // Sets how long an absence must last from now on, also for objects that are absent already.
  // Default: no effect, since absence is a command in this source.
  virtual void SetSettle(Duration settle) { static_cast<void>(settle); }
  // Files of the source that it does not read because of their names. They are names without the
  // path, and may come and go without an update. Default: none.
  virtual std::set<std::string> UnreadFiles() const { return {}; }
};

}  // namespace volumed
