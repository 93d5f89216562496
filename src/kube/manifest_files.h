// ManifestFiles: what is known of the files of one directory, what objects they have, and whether
// the absence of an object is evidence that somebody removed it. It is pure: it is told what was
// seen, and when. kube/manifest_directory.h feeds it.
//
// An object of a file that is read is present, whatever disorder the rest is in. One that was known
// and is in no file is held or going; docs/ARCHITECTURE.md ("Absence is judged per object") has the
// law. In short, it is held
//  - while the directory cannot be read, or is not the known one;
//  - if nobody saw how it came to be absent (ManifestLook::unproven), until it is back, or an event
//    of its own file shows its absence once more, or Accept();
//  - while its own file is in disorder;
//  - while a file in disorder may have it: one that came or changed after the object was first seen
//    in its own file. Of what only the last agent knew, any file in disorder may have it. Files of
//    the other directories count likewise (kube/manifest_peers.h).
// Else its absence is evidence, and it goes when that has lasted for the settle time and a look at
// its own file, made after that, has not found it. The time begins with the evidence and is that
// object's own: no other file and no other object renews it. While a file is being written or read,
// nothing goes, but time passes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "kube/decode.h"
#include "kube/manifest_peers.h"
#include "kube/object_source.h"
#include "kube/work_counter.h"

namespace volumed {

// By what a file's content is known to be the same as before.
struct FileStamp {
  uint64_t inode = 0;
  int64_t size = 0;
  int64_t modified_nanos = 0;
  int64_t changed_nanos = 0;
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

// What one look at one file found.
struct ManifestReading {
  enum class What {
    kRead,
    kGone,        // the name is not in the directory
    kUnreadable,  // the name is there; `error` says why its content is not known
    kChanging,    // somebody is writing it: another event will follow
  };
  std::string file;  // name inside the directory
  What what = What::kRead;
  std::string error = {};
  ManifestDecode decode = {};  // without its objects
  FileStamp stamp = {};
  // Of kUnreadable: the disk's or the kernel's fault, which no event tells the end of.
  bool try_again = false;
  struct ReadObject {
    ObjectKey key;
    ObjectPtr object;
    int document = 0;
  };
  std::vector<ReadObject> objects = {};  // by Take

  // Takes what was decoded. To be called where the file was read: of a file of thousands of objects
  // it would keep the control thread.
  void Take(ManifestDecode decoded);
};

// The circumstances of a look.
struct ManifestLook {
  TimePoint at;           // before the file was opened
  bool by_event = false;  // the file's own event brought it about, or it is the first of a start
  uint64_t scan = 0;      // looks of one number count as simultaneous, in all directories
  // Why an object that the look misses may have been lost in another way than by a removal; "" if
  // its absence is evidence.
  std::string unproven = {};
  // Of a look at the known directory: why that stays so over any later look but one at a file that
  // was seen to go.
  bool unproven_for_good = false;
  bool was_seen_to_go = false;
};

// What Judge() goes by, beside the files.
struct ManifestMoment {
  TimePoint now;
  int64_t now_unix_millis = 0;
  Duration settle{};
  std::string directory_error;              // "" while the directory can be read
  std::string directory_doubt;              // "" while the directory is the known one
  std::map<std::string, std::string> busy;  // file -> "is being written", "is being read"
  ManifestDoubts elsewhere = {};            // what the other directories say
};

struct ManifestJudgement {
  std::vector<ObjectWithOrigin> objects;  // by file and place in it
  std::vector<UnknownObject> unknown;
  std::vector<DecodeProblem> problems;
  std::vector<DecodeProblem> warnings;  // of files as they are now
  std::string incomplete_because;
  std::optional<TimePoint> next_due;  // when the next object may go
  // Files of objects whose time is over: each has to be looked at once more.
  std::set<std::string> due_files;
};

// What has become different since the last judgement; the meanings are those of ObjectDelta.
struct ManifestChanges {
  std::vector<ObjectWithOrigin> objects;
  std::vector<ObjectDelta::Removed> removed;
  std::vector<UnknownObject> unknown;
  std::vector<ObjectKey> not_unknown;
  ObjectDelta::ByFile problems;
  ObjectDelta::ByFile warnings;
  std::string incomplete_because;
  std::optional<TimePoint> next_due;
  std::set<std::string> due_files;
};

// Threads: one. Blocks: no. Errors: none.
class ManifestFiles {
 public:
  // `directory` is put before file names.
  explicit ManifestFiles(std::string_view directory);

  // What the last agent knew: absent, until a file has it.
  void Remember(std::vector<KnownObject> objects, const UnprovenAbsences& unproven = {});

  void Apply(ManifestReading reading, const ManifestLook& look);
  // The directory cannot be read: no file has anything until it is read again.
  void LoseFiles();
  // Nobody knows any more how what is absent now came to be so.
  void DoubtAbsences(const std::string& why);
  // The administrator's word: of these objects those that are absent are gone, and files that are
  // in disorder now hide none.
  void Accept(const std::set<ObjectKey>& objects);

  // What is not there goes, if its time has come; the rest is told as it stands.
  ManifestJudgement Judge(ManifestMoment moment);
  // The same, told as what is different since the last judgement: it costs what the files do that
  // were looked at since then. Nothing, if all objects have to be judged anew: before the first
  // judgement, and when what it goes by has changed for all of them (the directory, the file in
  // disorder that was touched last, the other directories). The reason of an object that is held
  // only because some file is being read or written may name an earlier one of these.
  std::optional<ManifestChanges> JudgeChanged(ManifestMoment moment);

  // Files of known objects, and files in disorder, that are not in `listed`.
  std::vector<std::string> AbsentFrom(const std::set<std::string>& listed) const;
  UnprovenAbsences Unproven() const;
  // Objects that were known and that no file has now.
  std::set<ObjectKey> AbsentObjects() const;
  bool HasKnownObjects() const { return !known_.empty(); }
  bool HasAbsentObjects() const { return !absent_of_.empty(); }
  // Of a name inside the directory; a path stays what it is. It is for people: a name that is not
  // UTF-8, or has control characters, is escaped.
  std::string PathOf(const std::string& file) const;
  // What others have to know: the file in disorder that was touched last, and the first that is
  // being written.
  ManifestDoubts Doubts() const;

  // Objects and files that were judged so far.
  const WorkCounter& work() const { return work_; }

 private:
  struct File {
    std::set<ObjectKey> objects;
    std::vector<DecodeProblem> problems;
    std::vector<DecodeProblem> warnings;
    std::string disorder;  // "" if the file is right in all its parts
    FileStamp stamp;
    uint64_t touched = 0;   // the scan that first found the present disorder
    bool accepted = false;  // the disorder hides nothing, by the administrator's word
    bool changing = false;
    bool may_hide() const { return !disorder.empty() && !accepted; }
  };
  // An object in a file.
  struct Place {
    ObjectPtr object;  // null: its content is on no record
    int document = 0;
    size_t index = 0;         // among the objects of the file
    uint64_t first_seen = 0;  // the scan; 0: by the last agent
  };
  struct Known {
    std::map<std::string, Place> present;  // by file
    // Of an absent object:
    std::string file;  // the last that had it
    Place place;       // there
    bool proven = false;
    std::string unproven;
    std::string unproven_for_good;  // see UnprovenAbsences
    TimePoint looked_at{};
    TimePoint lost_at = TimePoint::min();  // by the look that missed it; min: nobody saw when
    std::optional<TimePoint> evident_since;
    int64_t evident_since_unix_millis = 0;
    // What the last judgement said of the object: in which files it is listed, and more of it if it
    // was absent.
    std::vector<std::string> told_files;
    bool told_unknown = false;
    std::optional<TimePoint> going_until;  // it is in going_
    bool is_kept = false;                  // it is in kept_, by `file`
  };
  struct Hold {
    std::string reason;
    bool momentary = false;             // time passes
    std::string may_be_in_source = {};  // "": in this one
  };
  // What the judgement of every absent object goes by.
  struct Circumstances {
    std::string directory_error;
    std::string directory_doubt;
    Duration settle{};
    std::optional<ManifestSuspect> suspect;  // the file in disorder that was touched last
    std::optional<ManifestSuspect> suspect_elsewhere;
    std::optional<ManifestAbsentDirectory> absent_elsewhere;
    friend bool operator==(const Circumstances&, const Circumstances&) = default;
  };
  // What becomes of an absent object.
  struct Verdict {
    bool is_gone = false;
    bool is_going = false;
    bool is_restless = false;           // as soon as no file is busy it is judged otherwise
    bool is_due = false;                // its file has to be looked at once more
    std::optional<TimePoint> due = {};  // of an object that is going
    std::string reason = {};
    std::string may_be_in_source = {};
    int64_t goes_at_unix_millis = 0;
  };

  static std::string DisorderOf(const ManifestReading& reading);
  // Takes over what the reading says of the file itself.
  void ApplyState(File& file, ManifestReading& reading, const ManifestLook& look);
  void ApplyObjects(const std::string& name, File& file,
                    std::vector<ManifestReading::ReadObject> objects, const ManifestLook& look);
  void Lose(const std::string& file, const ObjectKey& key, TimePoint at);
  void NoteLook(const std::string& file, const ManifestLook& look);
  // A file has changed: whether it is among those in disorder, and those that are being written.
  void IndexFile(const std::string& name, const File& file);
  void UnindexFile(const std::string& name, const File& file);
  std::optional<ManifestSuspect> LastSuspect() const;
  void AddChanging(ManifestMoment& moment) const;
  Circumstances CircumstancesOf(const ManifestMoment& moment) const;
  std::optional<Hold> HoldOf(const Known& known, const ManifestMoment& moment) const;
  // An object of the list, with what it is sorted by.
  struct Listed {
    std::string file;
    int document = 0;
    size_t index = 0;
    ObjectWithOrigin object;
  };
  static Verdict Decide(Known& known, const ManifestMoment& moment,
                        const std::optional<Hold>& hold);
  // What is said of an object now: all of it, and the verdict if it is absent.
  struct Told {
    bool is_gone = false;
    std::vector<Listed> listed;
    std::optional<UnknownObject> unknown;
    std::string due_file;  // "" if none has to be looked at
  };
  Told TellObject(const ObjectKey& key, Known& known, const ManifestMoment& moment);
  void TellAbsent(const ObjectKey& key, Known& known, const ManifestMoment& moment, Told& told);
  void TellChange(const ObjectKey& key, const ManifestMoment& moment, ManifestChanges& changes);
  // The last judgement of the object counts no more.
  void Unjudge(const ObjectKey& key, Known& known);
  void ForgetAbsent(const ObjectKey& key, const std::string& file);
  std::vector<DecodeProblem> ProblemsOf(const std::string& name, const File& file) const;
  std::string IncompleteBecause(const ManifestMoment& moment) const;

  const std::string directory_;  // as it is shown
  std::map<std::string, File> files_;
  std::map<ObjectKey, Known> known_;
  std::map<std::string, std::set<ObjectKey>> absent_of_;  // by the last file that had them
  std::set<std::pair<uint64_t, std::string>> suspects_;   // the last touched first
  std::set<std::string> hiding_;                          // the same, by name
  std::set<std::string> changing_;

  // Of the last judgement: objects by when they go, those that wait until no file is busy, those
  // that are held with the reason, and how many that are absent each file has.
  std::set<std::pair<TimePoint, ObjectKey>> going_;
  std::set<ObjectKey> restless_;
  std::map<ObjectKey, std::string> held_;
  std::map<std::string, size_t> kept_;
  std::optional<Circumstances> circumstances_;  // nullopt: all objects are to be judged
  bool was_quiet_ = false;                      // no file was busy
  // Since then.
  std::set<ObjectKey> changed_objects_;
  std::set<std::string> changed_files_;
  WorkCounter work_;
};

}  // namespace volumed
