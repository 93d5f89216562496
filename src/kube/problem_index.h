// ProblemIndex: what is wrong, or perhaps not meant, in the files of one source. It is replaced
// file by file, and found by file and by object, for every look at a pod asks for its own.
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
  // All problems of the file that stand now; none: the file is right.
  void SetFile(const std::string& file, std::vector<DecodeProblem> problems);
  // All problems of all files.
  void SetAll(std::vector<DecodeProblem> problems);

  // By file, and in each in the order in which they were given.
  std::vector<DecodeProblem> All() const;
  // Appends those of this object ("Pod default/web"), whichever file they are of.
  void AppendOfObject(const std::string& object, std::vector<DecodeProblem>& to) const;
  // Appends those of the object that are of this file. The object "" has those of the whole file.
  void AppendOf(const std::string& object, const std::string& file,
                std::vector<DecodeProblem>& to) const;
  size_t files() const { return by_file_.size(); }

 private:
  void ForgetFile(const std::string& file);

  std::map<std::string, std::vector<DecodeProblem>> by_file_;
  // Object -> file -> which of the file's problems.
  std::map<std::string, std::map<std::string, std::vector<size_t>>> by_object_;
};

}  // namespace volumed
