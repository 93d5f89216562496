// ManifestFiles: what is known of the files of one directory, and the rule by which a file's new
// state changes that. Pure; kube/manifest_directory.h feeds it.
//
// Absence is not a command: a file that turns bad, empty or unreadable keeps its last good objects.
// Only an unlink that lasts, or a file that is right from its first to its last document and lacks
// the object, takes an object away.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "kube/decode.h"
#include "kube/object_source.h"

namespace volumed {

// One look at one file.
struct ManifestReading {
  enum class What {
    kRead,
    kGone,        // the name is not in the directory
    kUnreadable,  // the name is there; `error` says why its content is not known
    kChanging,    // it changed while it was read: another event will follow
  };
  std::string file;  // name inside the directory
  What what = What::kRead;
  std::string error;
  ManifestDecode decode;
};

// Threads: one. Blocks: no. Errors: none.
class ManifestFiles {
 public:
  // `directory` is put before file names.
  explicit ManifestFiles(std::string directory) : directory_(std::move(directory)) {}

  void Apply(ManifestReading reading);
  // The file was unlinked, and may be back in a moment: its objects stay, but yield to those that
  // another file has now (it may have been renamed). A later reading decides.
  void Vanish(const std::string& file);
  // The file is absent, but nobody unlinked it: the directory is another one than before (it was
  // replaced, or a filesystem came or went). Its objects are kept, and that is said.
  void KeepUnseen(const std::string& file);

  bool HasObjects(const std::string& file) const;
  // The known files that are not in `present`.
  std::vector<std::string> AbsentFrom(const std::set<std::string>& present) const;
  // Forgets everything; what is still there has to be read again.
  void Clear() { files_.clear(); }

  // Objects and problems of all files, by file name.
  void AppendTo(ObjectList& list) const;
  bool empty() const { return files_.empty(); }

 private:
  struct File {
    std::vector<ObjectWithOrigin> objects;  // last good
    std::vector<DecodeProblem> problems;
    bool vanished = false;
  };

  std::string PathOf(const std::string& file) const { return directory_ + "/" + file; }
  void Keep(const std::string& file, const std::string& reason);

  const std::string directory_;
  std::map<std::string, File> files_;
};

}  // namespace volumed
