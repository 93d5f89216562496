#include "kube/problem_index.h"

#include <utility>

namespace volumed {

void ProblemIndex::ForgetFile(const std::string& file) {
  const auto found = by_file_.find(file);
  if (found == by_file_.end()) return;
  for (const DecodeProblem& problem : found->second) {
    const auto object = by_object_.find(problem.object);
    if (object == by_object_.end()) continue;  // by another problem of it
    object->second.erase(file);
    if (object->second.empty()) by_object_.erase(object);
  }
  by_file_.erase(found);
}

void ProblemIndex::SetFile(const std::string& file, std::vector<DecodeProblem> problems) {
  ForgetFile(file);
  if (problems.empty()) return;
  for (size_t i = 0; i < problems.size(); ++i) by_object_[problems[i].object][file].push_back(i);
  by_file_.emplace(file, std::move(problems));
}

void ProblemIndex::SetAll(std::vector<DecodeProblem> problems) {
  by_file_.clear();
  by_object_.clear();
  std::map<std::string, std::vector<DecodeProblem>> by_file;
  for (DecodeProblem& problem : problems) {
    std::vector<DecodeProblem>& of_file = by_file[problem.file];
    of_file.push_back(std::move(problem));
  }
  for (auto& [file, of_file] : by_file) SetFile(file, std::move(of_file));
}

std::vector<DecodeProblem> ProblemIndex::All() const {
  std::vector<DecodeProblem> all;
  for (const auto& [file, problems] : by_file_) {
    all.insert(all.end(), problems.begin(), problems.end());
  }
  return all;
}

void ProblemIndex::AppendOfObject(const std::string& object, std::vector<DecodeProblem>& to) const {
  const auto found = by_object_.find(object);
  if (found == by_object_.end()) return;
  for (const auto& [file, places] : found->second) AppendOf(object, file, to);
}

void ProblemIndex::AppendOf(const std::string& object, const std::string& file,
                            std::vector<DecodeProblem>& to) const {
  const auto found = by_object_.find(object);
  if (found == by_object_.end()) return;
  const auto places = found->second.find(file);
  if (places == found->second.end()) return;
  const std::vector<DecodeProblem>& problems = by_file_.at(file);
  for (const size_t place : places->second) to.push_back(problems[place]);
}

}  // namespace volumed
