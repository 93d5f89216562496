// ManifestFiles: what becomes of the objects that no file has now.
#include <algorithm>
#include <chrono>
#include <memory>
#include <tuple>
#include <utility>

#include "kube/manifest_files.h"

namespace volumed {
namespace {

std::string KeptText(size_t count) {
  if (count == 0) return "";
  return "; " + std::to_string(count) + " object" + (count == 1 ? "" : "s") +
         " of its last good state stay";
}

int64_t Millis(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

}  // namespace

void ManifestFiles::AddChanging(ManifestMoment& moment) const {
  if (!changing_.empty()) moment.busy.try_emplace(*changing_.begin(), "is being written");
}

ManifestFiles::Circumstances ManifestFiles::CircumstancesOf(const ManifestMoment& moment) const {
  return {moment.directory_error, moment.directory_doubt,   moment.settle,
          LastSuspect(),          moment.elsewhere.suspect, moment.elsewhere.absent};
}

std::optional<ManifestFiles::Doubt> ManifestFiles::DoubtOf(const Known& known,
                                                           const ManifestMoment& moment) const {
  if (!moment.directory_error.empty()) return Doubt{moment.directory_error};
  if (!moment.directory_doubt.empty()) return Doubt{moment.directory_doubt};
  const auto own = files_.find(known.file);
  if (own != files_.end() && own->second.may_hide()) {
    return Doubt{PathOf(known.file) + ": " + own->second.disorder};
  }
  if (!known.unproven.empty()) return Doubt{known.unproven};
  if (!known.unproven_for_good.empty()) return Doubt{known.unproven_for_good};
  const std::optional<ManifestSuspect> here = LastSuspect();
  if (here && here->touched > known.place.first_seen) {
    return Doubt{"may be in " + here->path + ", which " + here->disorder};
  }
  const std::optional<ManifestSuspect>& elsewhere = moment.elsewhere.suspect;
  if (elsewhere && elsewhere->touched > known.place.first_seen) {
    return Doubt{"may be in " + elsewhere->path + ", which " + elsewhere->disorder,
                 /*momentary=*/false, elsewhere->source};
  }
  // What is seen to go later than that did not go there: nobody would have missed it here.
  const std::optional<ManifestAbsentDirectory>& absent = moment.elsewhere.absent;
  if (absent && known.lost_at <= absent->since + moment.settle) {
    return Doubt{"may be in " + absent->path + ": " + absent->why, /*momentary=*/false,
                 absent->source};
  }
  for (const auto* all : {&moment.busy, &moment.elsewhere.busy}) {
    if (all->empty()) continue;
    const auto& [file, what] = *all->begin();
    return Doubt{PathOf(file) + " " + what, /*momentary=*/true};
  }
  return std::nullopt;
}

ManifestFiles::Verdict ManifestFiles::Decide(Known& known, const ManifestMoment& moment,
                                             const std::optional<Doubt>& doubt) {
  Verdict verdict;
  if (doubt && !doubt->momentary) known.evident_since.reset();
  if (!doubt && !known.evident_since) {
    known.evident_since = moment.now;
    known.evident_since_unix_millis = moment.now_unix_millis;
  }
  if (known.evident_since) {
    const TimePoint due = *known.evident_since + moment.settle;
    const bool is_due = moment.now >= due;
    verdict.is_gone = !doubt && is_due && known.looked_at >= due;
    verdict.is_going = !doubt || !is_due;
    verdict.is_due = !doubt && is_due;
    if (!is_due) verdict.due = due;
  }
  verdict.is_restless = !verdict.due && (!doubt || doubt->momentary);
  if (verdict.is_going) {
    verdict.goes_at_unix_millis = known.evident_since_unix_millis + Millis(moment.settle);
  } else {
    verdict.reason = doubt->reason;
    verdict.may_be_in_source = doubt->may_be_in_source;
  }
  return verdict;
}

void ManifestFiles::Unjudge(const ObjectKey& key, Known& known) {
  if (known.going_until) going_.erase({*std::exchange(known.going_until, std::nullopt), key});
  restless_.erase(key);
  unproven_.erase(key);
  if (!std::exchange(known.is_kept, false)) return;
  const auto kept = kept_.find(known.file);
  if (--kept->second == 0) kept_.erase(kept);
  changed_files_.insert(known.file);
}

void ManifestFiles::TellAbsent(const ObjectKey& key, Known& known, const ManifestMoment& moment,
                               Told& told) {
  Verdict verdict = Decide(known, moment, DoubtOf(known, moment));
  told.is_gone = verdict.is_gone;
  if (told.is_gone) return;
  if (verdict.is_going) verdict.reason = "is not in " + PathOf(known.file) + " any more";
  if (verdict.is_due) told.due_file = known.file;
  if (verdict.is_restless) restless_.insert(key);
  if (!verdict.is_going) unproven_[key] = verdict.reason;
  known.going_until = verdict.due;
  if (verdict.due) going_.emplace(*verdict.due, key);
  const Place& place = known.place;
  if (place.object == nullptr) {
    told.unknown = {key, PathOf(known.file), verdict.reason, verdict.may_be_in_source};
    return;
  }
  known.is_kept = true;
  ++kept_[known.file];
  changed_files_.insert(known.file);
  const ObjectPresence presence =
      verdict.is_going ? ObjectPresence::kGoing : ObjectPresence::kUnproven;
  ObjectWithOrigin one{place.object, PathOf(known.file), place.document,
                       presence,     verdict.reason,     verdict.goes_at_unix_millis};
  one.may_be_in_source = verdict.may_be_in_source;
  one.index = place.index;
  told.listed.push_back({known.file, place.document, place.index, std::move(one)});
}

ManifestFiles::Told ManifestFiles::TellObject(const ObjectKey& key, Known& known,
                                              const ManifestMoment& moment) {
  work_.Add();
  Told told;
  Unjudge(key, known);
  for (const auto& [file, place] : known.present) {
    ObjectWithOrigin one{place.object, PathOf(file), place.document};
    one.index = place.index;
    told.listed.push_back({file, place.document, place.index, std::move(one)});
  }
  if (known.present.empty()) TellAbsent(key, known, moment, told);
  known.told_files.clear();
  for (const Listed& one : told.listed) known.told_files.push_back(one.object.file);
  known.told_unknown = told.unknown.has_value();
  return told;
}

ManifestJudgement ManifestFiles::Judge(ManifestMoment moment) {
  ManifestJudgement judgement;
  AddChanging(moment);
  std::vector<Listed> listed;
  for (auto entry = known_.begin(); entry != known_.end();) {
    Told told = TellObject(entry->first, entry->second, moment);
    if (told.is_gone) {
      ForgetAbsent(entry->first, entry->second.file);
      entry = known_.erase(entry);
      continue;
    }
    std::move(told.listed.begin(), told.listed.end(), std::back_inserter(listed));
    if (told.unknown) judgement.unknown.push_back(*std::move(told.unknown));
    if (!told.due_file.empty()) judgement.due_files.insert(told.due_file);
    ++entry;
  }
  std::sort(listed.begin(), listed.end(), [](const Listed& a, const Listed& b) {
    return std::tie(a.file, a.document, a.index) < std::tie(b.file, b.document, b.index);
  });
  for (Listed& one : listed) judgement.objects.push_back(std::move(one.object));
  for (const auto& [name, file] : files_) {
    work_.Add();
    const std::vector<DecodeProblem> problems = ProblemsOf(name, file);
    judgement.problems.insert(judgement.problems.end(), problems.begin(), problems.end());
    judgement.warnings.insert(judgement.warnings.end(), file.warnings.begin(), file.warnings.end());
  }
  judgement.incomplete_because = IncompleteBecause(moment);
  if (!going_.empty()) judgement.next_due = going_.begin()->first;
  circumstances_ = CircumstancesOf(moment);
  was_quiet_ = moment.busy.empty() && moment.elsewhere.busy.empty();
  changed_objects_.clear();
  changed_files_.clear();
  return judgement;
}

std::optional<ManifestChanges> ManifestFiles::JudgeChanged(ManifestMoment moment) {
  AddChanging(moment);
  if (!circumstances_ || *circumstances_ != CircumstancesOf(moment)) return std::nullopt;
  ManifestChanges changes;
  std::set<ObjectKey> keys = std::exchange(changed_objects_, {});
  for (const auto& [due, key] : going_) {
    if (due > moment.now) break;
    keys.insert(key);
  }
  // As long as some file is busy they wait, whichever file it is.
  const bool is_quiet = moment.busy.empty() && moment.elsewhere.busy.empty();
  if (std::exchange(was_quiet_, is_quiet) || is_quiet) {
    keys.insert(restless_.begin(), restless_.end());
  }
  for (const ObjectKey& key : keys) TellChange(key, moment, changes);
  for (const std::string& name : std::exchange(changed_files_, {})) {
    work_.Add();
    const auto file = files_.find(name);
    const bool is_there = file != files_.end();
    changes.problems[PathOf(name)] =
        is_there ? ProblemsOf(name, file->second) : std::vector<DecodeProblem>();
    changes.warnings[PathOf(name)] =
        is_there ? file->second.warnings : std::vector<DecodeProblem>();
  }
  changes.incomplete_because = IncompleteBecause(moment);
  if (!going_.empty()) changes.next_due = going_.begin()->first;
  return changes;
}

void ManifestFiles::TellChange(const ObjectKey& key, const ManifestMoment& moment,
                               ManifestChanges& changes) {
  const auto found = known_.find(key);
  if (found == known_.end()) return;
  Known& known = found->second;
  const std::vector<std::string> told_before = known.told_files;
  const bool was_unknown = known.told_unknown;
  Told told = TellObject(key, known, moment);
  for (const std::string& file : told_before) {
    const bool stays = std::any_of(told.listed.begin(), told.listed.end(),
                                   [&](const Listed& one) { return one.object.file == file; });
    if (!stays) changes.removed.push_back({key, file});
  }
  if (was_unknown && !told.unknown) changes.not_unknown.push_back(key);
  if (told.unknown) changes.unknown.push_back(*std::move(told.unknown));
  for (Listed& one : told.listed) changes.objects.push_back(std::move(one.object));
  if (!told.due_file.empty()) changes.due_files.insert(told.due_file);
  if (!told.is_gone) return;
  ForgetAbsent(key, known.file);
  known_.erase(found);
}

std::vector<DecodeProblem> ManifestFiles::ProblemsOf(const std::string& name,
                                                     const File& file) const {
  std::vector<DecodeProblem> problems = file.problems;
  if (file.disorder.empty()) return problems;
  const auto kept = kept_.find(name);
  const std::string stay = kept == kept_.end() ? "" : KeptText(kept->second);
  // A problem of a part is told already.
  if (!problems.empty() && stay.empty()) return problems;
  problems.push_back({PathOf(name), -1, "", "", file.disorder + stay});
  return problems;
}

std::string ManifestFiles::IncompleteBecause(const ManifestMoment& moment) const {
  if (!unproven_.empty()) return unproven_.begin()->second;
  if (!moment.directory_error.empty()) return moment.directory_error;
  if (!moment.directory_doubt.empty() || hiding_.empty()) return moment.directory_doubt;
  const std::string& name = *hiding_.begin();
  return PathOf(name) + ": " + files_.at(name).disorder;
}

}  // namespace volumed
