// ProblemIndex: what is wrong, or perhaps not meant, in the files of one source. Problems are
// replaced file by file, and found by file and by object, since every look at a pod asks for the
// pod's own problems.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kube/decode.h"

namespace volumed {

// Threads: one. Blocks: never. Errors: none.
class ProblemIndex {
 public:
  // Sets all present problems of the file; an empty vector says that the file is right. `file` is
  // the path by which the problems are to be found again.
  void SetFile(const std::string& file, std::vector<DecodeProblem> problems);
  // Sets all problems of all files.
  void SetAll(std::vector<DecodeProblem> problems);

  // Sorted by file; problems of one file keep the order in which they were given.
  std::vector<DecodeProblem> All() const;
  // Appends the problems of this object ("Pod default/web") in all files.
  void AppendOfObject(const std::string& object, std::vector<DecodeProblem>& to) const;
  // Appends the problems of the object in this file. The object "" has the problems of the whole
  // file.
  void AppendOf(const std::string& object, const std::string& file,
                std::vector<DecodeProblem>& to) const;
  // How many files have a problem.
  size_t files() const { return by_file_.size(); }

 private:
  void ForgetFile(const std::string& file);

  std::map<std::string, std::vector<DecodeProblem>> by_file_;
  // Object -> file -> indexes of the file's problems.
  std::map<std::string, std::map<std::string, std::vector<size_t>>> by_object_;
};

}  // namespace volumed
