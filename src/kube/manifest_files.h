// ManifestFiles: what is known of the files of one directory, which objects they have, and whether
// the absence of an object is evidence that somebody removed it. This class is pure: its caller,
// kube/manifest_directory.h, says what was seen, and when.
//
// An object of a file that was read is present, even if other files are in disorder. An object that
// was known and is in no file is unproven or going; docs/OBJECTS.md ("Absence is judged per
// object"), which calls the first held, has the law. In short, its absence is unproven
//  - while the directory cannot be read, or is not the known one;
//  - if it is not known how it came to be absent (ManifestLook::unproven), until it is back, or an
//    event of its own file shows its absence once more, or Accept();
//  - while its own file is in disorder;
//  - while a file in disorder may have it: one that came or changed after the object was first seen
//    in its own file. An object that only the last agent knew may be in any file in disorder. Files
//    of the other directories count likewise (kube/manifest_peers.h).
// Otherwise its absence is evidence. The object goes when that has lasted for the settle time, and
// a look at its own file, made after that, has not found it. The time begins with the evidence and
// belongs to that object alone: no other file and no other object renews it. While a file is being
// written or read, no object goes, but time passes.
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

// If all of these are the same, the file's content is the same as before. The times are those of
// stat(2). Of a file on another filesystem only the size and a hash of the content are known: the
// hash stands in the place of modified_nanos.
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
  // With kUnreadable, for people: "is not a regular file".
  std::string error = {};
  // What was decoded, without the objects: Take() has moved these into `objects`.
  ManifestDecode decode = {};
  FileStamp stamp = {};
  // With kUnreadable: the disk's or the kernel's fault, whose end no event reports.
  bool try_again = false;
  struct ReadObject {
    ObjectKey key;
    ObjectPtr object;
    int document = 0;
  };
  std::vector<ReadObject> objects = {};  // filled by Take

  // Takes over what was decoded. REQUIRES: it is called on the thread that read the file, since a
  // file of thousands of objects would keep the control thread too long.
  void Take(ManifestDecode decoded);
};

// The circumstances of a look.
struct ManifestLook {
  TimePoint at;           // before the file was opened
  bool by_event = false;  // the file's own event brought it about, or it is the first of a start
  uint64_t scan = 0;      // looks of one number count as simultaneous, in all directories
  // Why an object that the look does not find may be absent for another reason than its removal; ""
  // if its absence is evidence.
  std::string unproven = {};
  // In a look at the known directory: why the absence stays unproven in all later looks, except a
  // look at a file that was seen to go.
  bool unproven_for_good = false;
  bool was_seen_to_go = false;
};

// What Judge() uses besides the files.
struct ManifestMoment {
  TimePoint now;
  int64_t now_unix_millis = 0;
  // How long the evidence of an absence must last.
  Duration settle{};
  std::string directory_error;              // "" while the directory can be read
  std::string directory_doubt;              // "" while the directory is the known one
  std::map<std::string, std::string> busy;  // file -> "is being written", "is being read"
  ManifestDoubts elsewhere = {};            // what the other directories say
};

// Everything that the directory has. Its fields become those of an ObjectList.
struct ManifestJudgement {
  std::vector<ObjectWithOrigin> objects;  // by file and place in it
  std::vector<UnknownObject> unknown;
  std::vector<DecodeProblem> problems;
  std::vector<DecodeProblem> warnings;  // of the files' present content
  // As in ObjectList; "" if the directory and all its files are in order.
  std::string incomplete_because;
  std::optional<TimePoint> next_due;  // when the next object may go
  // Files of objects whose settle time is over: each has to be looked at once more.
  std::set<std::string> due_files;
};

// What has changed since the last judgement; the fields mean the same as in ObjectDelta.
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
  // `directory` is put before file names in messages, with what is unprintable escaped.
  explicit ManifestFiles(std::string_view directory);

  // What the last agent knew. These objects are absent until a file has them. Their files are
  // paths, as on record. REQUIRES: nothing was applied yet.
  void Remember(std::vector<KnownObject> objects, const UnprovenAbsences& unproven = {});

  // Takes over what one look found. The objects of the file become those of the reading; those that
  // it lacks are absent from now on, also if the file could not be read. kChanging changes nothing
  // but that the file is busy until its next reading.
  void Apply(ManifestReading reading, const ManifestLook& look);
  // The directory cannot be read: no file has objects until it is read again.
  void LoseFiles();
  // From now on it is not known how the absent objects came to be absent. `why` is for people.
  void DoubtAbsences(const std::string& why);
  // The administrator's word: those of these objects that are absent are gone, and files that are
  // in disorder now hide no object. After that JudgeChanged() is nullopt until Judge() has been
  // called.
  void Accept(const std::set<ObjectKey>& objects);

  // Removes the absent objects whose time has come, and describes all others as they stand.
  ManifestJudgement Judge(ManifestMoment moment);
  // The same, described as the changes since the last judgement; the cost depends only on the files
  // that were looked at since then. nullopt if all objects have to be judged again: before the
  // first judgement, and if something has changed on which all judgements depend (the directory,
  // the file in disorder that was touched last, the other directories). If an object is unproven
  // only because some file is being read or written, its reason may name a file that was so
  // earlier.
  std::optional<ManifestChanges> JudgeChanged(ManifestMoment moment);

  // Files of known objects, and files in disorder, that are not in `listed`.
  std::vector<std::string> AbsentFrom(const std::set<std::string>& listed) const;
  // Returns the absences that later looks do not prove; they are to be put on record.
  UnprovenAbsences Unproven() const;
  // Objects that were known and that no file has now.
  std::set<ObjectKey> AbsentObjects() const;
  bool HasKnownObjects() const { return !known_.empty(); }
  bool HasAbsentObjects() const { return !absent_of_.empty(); }
  // The path of a file, by its name inside the directory; a path is returned unchanged. It is for
  // people: a name that is not UTF-8, or has control characters, is escaped.
  std::string PathOf(const std::string& file) const;
  // What the other directories have to know: the file in disorder that was touched last, and one
  // file that is being written.
  ManifestDoubts Doubts() const;

  // How many objects and files were judged so far.
  const WorkCounter& work() const { return work_; }

 private:
  struct File {
    std::set<ObjectKey> objects;
    std::vector<DecodeProblem> problems;
    std::vector<DecodeProblem> warnings;
    std::string disorder;  // "" if all parts of the file are right
    FileStamp stamp;
    uint64_t touched = 0;   // the scan that first found the present disorder
    bool accepted = false;  // by the administrator's word the disorder hides no object
    bool changing = false;
    bool may_hide() const { return !disorder.empty() && !accepted; }
  };
  // An object in a file.
  struct Place {
    ObjectPtr object;  // null: its content is not on record
    int document = 0;
    size_t index = 0;         // among the objects of the file
    uint64_t first_seen = 0;  // the scan that first saw it; 0: the last agent did
  };
  struct Known {
    std::map<std::string, Place> present;  // by file
    // The following are about an absent object.
    std::string file;  // the last file that had it
    Place place;       // its place in that file
    bool proven = false;
    std::string unproven;
    std::string unproven_for_good;  // see UnprovenAbsences
    TimePoint looked_at{};
    // When the look was made that missed the object; min if no look did.
    TimePoint lost_at = TimePoint::min();
    std::optional<TimePoint> evident_since;
    int64_t evident_since_unix_millis = 0;
    // What the last judgement said of the object: the files in which it is listed, and more if it
    // is absent.
    std::vector<std::string> told_files;
    bool told_unknown = false;
    std::optional<TimePoint> going_until;  // set if it is in going_
    bool is_kept = false;                  // it is counted in kept_, under `file`
  };
  // Why an absence proves nothing.
  struct Doubt {
    std::string reason;
    bool momentary = false;             // lasts while a file is busy: time passes
    std::string may_be_in_source = {};  // "": this source
  };
  // The facts on which the judgement of every absent object depends.
  struct Circumstances {
    std::string directory_error;
    std::string directory_doubt;
    Duration settle{};
    std::optional<ManifestSuspect> suspect;  // the file in disorder that was touched last
    std::optional<ManifestSuspect> suspect_elsewhere;
    std::optional<ManifestAbsentDirectory> absent_elsewhere;
    friend bool operator==(const Circumstances&, const Circumstances&) = default;
  };
  // The result of judging an absent object.
  struct Verdict {
    bool is_gone = false;
    bool is_going = false;
    bool is_restless = false;           // must be judged again as soon as no file is busy
    bool is_due = false;                // its file has to be looked at once more
    std::optional<TimePoint> due = {};  // when an object that is going will be gone
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
  // Updates the indexes of files in disorder and of files that are being written, after the file
  // has changed.
  void IndexFile(const std::string& name, const File& file);
  void UnindexFile(const std::string& name, const File& file);
  std::optional<ManifestSuspect> LastSuspect() const;
  void AddChanging(ManifestMoment& moment) const;
  Circumstances CircumstancesOf(const ManifestMoment& moment) const;
  std::optional<Doubt> DoubtOf(const Known& known, const ManifestMoment& moment) const;
  // An object of the list, with its sort key.
  struct Listed {
    std::string file;
    int document = 0;
    size_t index = 0;
    ObjectWithOrigin object;
  };
  static Verdict Decide(Known& known, const ManifestMoment& moment,
                        const std::optional<Doubt>& doubt);
  // What is delivered of an object now; with the verdict if it is absent.
  struct Told {
    bool is_gone = false;
    std::vector<Listed> listed;
    std::optional<UnknownObject> unknown;
    std::string due_file;  // "" if no file has to be looked at
  };
  Told TellObject(const ObjectKey& key, Known& known, const ManifestMoment& moment);
  void TellAbsent(const ObjectKey& key, Known& known, const ManifestMoment& moment, Told& told);
  void TellChange(const ObjectKey& key, const ManifestMoment& moment, ManifestChanges& changes);
  // Discards the last judgement of the object.
  void Unjudge(const ObjectKey& key, Known& known);
  void ForgetAbsent(const ObjectKey& key, const std::string& file);
  std::vector<DecodeProblem> ProblemsOf(const std::string& name, const File& file) const;
  std::string IncompleteBecause(const ManifestMoment& moment) const;

  const std::string directory_;  // as shown in messages
  std::map<std::string, File> files_;
  std::map<ObjectKey, Known> known_;
  std::map<std::string, std::set<ObjectKey>> absent_of_;  // by the last file that had them
  std::set<std::pair<uint64_t, std::string>> suspects_;   // the file touched last comes first
  std::set<std::string> hiding_;                          // the same files by name
  std::set<std::string> changing_;

  // Results of the last judgement: when objects go, which objects wait until no file is busy, why
  // absences are unproven, and how many absent objects each file has.
  std::set<std::pair<TimePoint, ObjectKey>> going_;
  std::set<ObjectKey> restless_;
  std::map<ObjectKey, std::string> unproven_;
  std::map<std::string, size_t> kept_;
  std::optional<Circumstances> circumstances_;  // nullopt: judge all objects
  bool was_quiet_ = false;                      // no file was busy in the last judgement
  // What has changed since the last judgement.
  std::set<ObjectKey> changed_objects_;
  std::set<std::string> changed_files_;
  WorkCounter work_;
};

}  // namespace volumed
