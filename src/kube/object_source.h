// ObjectSource: where pods and the objects they use come from. A source delivers a full list first,
// and after that deltas: what has come, changed and gone since what it delivered last. Whatever a
// delta cannot express it delivers as a full list again, so that a listener which missed a delta is
// right after the next full list. Applied one after the other they say the same as full lists would
// have said at these times.
//
// A source alone judges absence: an object leaves its list only when that is evidence that somebody
// removed it. Until then the list has it, held or going.
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

// How an object of a list comes to be in it.
enum class ObjectPresence {
  kPresent,  // its file has it now
  kHeld,     // its file does not have it now, but that proves nothing: see `reason`
  kGoing,    // it was seen to leave, and is removed from the list at `goes_at_unix_millis`
};

struct ObjectWithOrigin {
  ObjectPtr object;  // never null
  std::string file;  // path of the file it was read from
  int document = 0;  // from 0
  ObjectPresence presence = ObjectPresence::kPresent;
  std::string reason = {};          // of kHeld and kGoing, for people
  int64_t goes_at_unix_millis = 0;  // of kGoing
  uint64_t number = 0;              // of the command that has given it; 0: none has
  // Of a pod: by command it takes the place of these, and comes once none of them is on the node.
  std::set<PodUid> replaces = {};
  std::string may_be_in_source = {};  // of kHeld: another source, of which `reason` names a file
  size_t index = 0;  // the place among the objects of its document; only the order counts
};

// An object that the source had, and of which nobody can say now whether it is still there or what
// it holds: its file is in disorder, and its content is not on record (a Secret, a ConfigMap).
struct UnknownObject {
  ObjectKey key;
  std::string file;
  std::string reason;
  std::string may_be_in_source = {};  // as above
};

// What a manifest directory is recognised by over restarts. Device numbers are not among it: they
// change with a boot.
struct KnownDirectory {
  std::string filesystem_type;    // "ext4"
  std::string filesystem_uuid;    // "" if the filesystem has none
  std::optional<uint64_t> inode;  // nullopt if the filesystem gives no lasting one
  // When the directory was made; nullopt if the filesystem does not tell. An inode's number is
  // given to another directory as soon as the first is removed; its birth is not.
  std::optional<int64_t> birth_unix_nanos = {};
  // When its entries changed last, as its filesystem has it; nullopt if that does not last. It only
  // grows, unless the disk is put back to an older state of itself: then kPutBack, for whatever
  // happens to it later, it is not what it was.
  std::optional<int64_t> changed_unix_nanos = {};
  static constexpr int64_t kPutBack = INT64_MAX;
  friend bool operator==(const KnownDirectory&, const KnownDirectory&) = default;
};

// An object that the source had delivered when the last agent ended.
struct KnownObject {
  ObjectKey key;
  std::string uid;
  std::string file;
  ObjectPtr object;        // null for a Secret or ConfigMap: its content is not on record
  bool is_ending = false;  // a command to end it is on record
  // Of such an object: by what a change of what is immutable is noticed; nullopt: not on record.
  std::optional<ContentMark> mark = {};
};

// Objects whose absence from the known directory proved nothing when it was noticed, with why: that
// holds until they are back, are accepted as gone, or their file is seen to go. No later listing
// changes it, nor one of the next start.
using UnprovenAbsences = std::map<ObjectKey, std::string>;

struct SourceMemory {
  std::vector<KnownObject> objects;
  std::optional<KnownDirectory> directory = {};  // nullopt: the source is new
  UnprovenAbsences unproven = {};
};

struct ObjectList {
  std::string source;
  // False: the source could not be listed and has no earlier list; `objects` is empty then and
  // means nothing. True: `objects` is everything of the source, last good objects included.
  bool complete = false;
  std::vector<ObjectWithOrigin> objects;
  std::vector<DecodeProblem> problems = {};  // all that stand now, not only new ones
  std::vector<UnknownObject> unknown = {};
  // Why absence from this list proves nothing about some objects; "" for a source that is in order.
  std::string incomplete_because = {};
  std::optional<KnownDirectory> directory = {};  // to be put on record
  UnprovenAbsences unproven = {};                // likewise, with the directory
  // Of what was taken all the same: fields that nobody knows. They make no source unhealthy.
  std::vector<DecodeProblem> warnings = {};
  // Of a list that is not complete: kinds of which it is, for a source that lists each by itself.
  // Objects of other kinds in such a list mean nothing.
  std::set<ObjectKind> complete_kinds = {};
};

// What has changed in a source since its last full list or delta. A source lists an object of one
// kind, namespace and name at most once in one file, so these name it.
struct ObjectDelta {
  struct Removed {
    ObjectKey key;
    std::string file;
  };
  // By file, all that stand now; none: the file is right. Problems of the source as a whole have
  // its own path.
  using ByFile = std::map<std::string, std::vector<DecodeProblem>>;

  std::string source;
  std::vector<ObjectWithOrigin> objects = {};  // that came, or are listed otherwise than before
  std::vector<Removed> removed = {};           // the list has them no more
  std::vector<UnknownObject> unknown = {};     // that came, or for another reason than before
  std::vector<ObjectKey> not_unknown = {};     // no more
  ByFile problems = {};                        // of these files
  ByFile warnings = {};                        // of these files
  std::string incomplete_because = {};         // as in a list
  std::optional<KnownDirectory> directory = {};
  UnprovenAbsences unproven = {};
};

using ObjectUpdate = std::variant<ObjectList, ObjectDelta>;
using ObjectListener = std::function<void(ObjectUpdate)>;

// Threads: control thread, for every method; the listener is called there too. Blocks: never.
class ObjectSource {
 public:
  virtual ~ObjectSource() = default;

  // Unique among the sources of a process; stable over restarts.
  virtual const std::string& name() const = 0;

  // What the last agent knew of this source. REQUIRES: called before Start(), or not at all.
  virtual void Remember(SourceMemory memory) = 0;

  // Begins to deliver. The first list comes soon and asynchronously, also when it is incomplete.
  // REQUIRES: called once.
  virtual void Start(ObjectListener listener) = 0;

  // The administrator's word that what the source has now is right: what is held or going at this
  // moment, and is not back when the source has been read anew, goes at once; what is unknown is
  // certainly absent. What leaves later is judged as ever.
  virtual void Accept() = 0;

  // Which Secrets and ConfigMaps are of interest: those that pods of this node name. `more` are so
  // from now on, `less` no longer; before the first call none is. A source that may read no others
  // delivers these, and what is not wanted is absent from it for no other reason. Default: the
  // source has all that it has anyway.
  virtual void Want(const std::vector<ObjectKey>& more, const std::vector<ObjectKey>& less) {
    static_cast<void>(more);
    static_cast<void>(less);
  }

  // Mounts came or went at these places. Default: the source does not lie below any.
  virtual void MountsChanged(const std::vector<std::string>& mount_points) {
    static_cast<void>(mount_points);
  }
  // How long an absence must last from now on; counts for what is absent already, too. Default: in
  // this source absence is a command.
  virtual void SetSettle(Duration settle) { static_cast<void>(settle); }
  // Files of the source that it does not read because of their names.
  virtual std::set<std::string> UnreadFiles() const { return {}; }
};

}  // namespace volumed
