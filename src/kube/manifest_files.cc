#include "kube/manifest_files.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <tuple>
#include <utility>

#include "base/printable_text.h"
#include "base/strings.h"

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

ManifestFiles::ManifestFiles(std::string_view directory) : directory_(PrintableText(directory)) {}

std::string ManifestFiles::PathOf(const std::string& file) const {
  const std::string shown = PrintableText(file);
  return file.starts_with('/') ? shown : directory_ + "/" + shown;
}

void ManifestFiles::Remember(std::vector<KnownObject> objects) {
  for (KnownObject& object : objects) {
    Known& known = known_[object.key];
    known.file = object.file;
    if (const auto name = StripPrefix(object.file, directory_ + "/")) known.file = *name;
    known.place.object = std::move(object.object);
    absent_of_[known.file].insert(object.key);
  }
}

// "" for a file that is right in all its parts.
std::string ManifestFiles::DisorderOf(const ManifestReading& reading) {
  if (reading.what == ManifestReading::What::kUnreadable) return reading.error;
  const std::vector<DecodeProblem>& problems = reading.decode.problems;
  const auto broken = std::find_if(problems.begin(), problems.end(),
                                   [](const DecodeProblem& p) { return !p.is_of_other_kind; });
  if (broken != problems.end()) return "is not right in all its parts";
  // An empty file may be one that somebody has just begun to write.
  return reading.decode.documents == 0 ? "holds no object" : "";
}

void ManifestFiles::ApplyState(File& file, ManifestReading& reading, const ManifestLook& look) {
  const std::string disorder = DisorderOf(reading);
  const bool is_new = disorder != file.disorder || !(file.stamp == reading.stamp) || look.by_event;
  if (is_new || disorder.empty()) {
    file.touched = look.scan;
    file.accepted = false;
  }
  file.disorder = disorder;
  file.stamp = reading.stamp;
  file.changing = false;
  file.problems = std::move(reading.decode.problems);
  file.warnings = std::move(reading.decode.warnings);
}

void ManifestFiles::Apply(ManifestReading reading, const ManifestLook& look) {
  if (reading.what == ManifestReading::What::kChanging) {
    files_[reading.file].changing = true;
    return;
  }
  if (reading.what == ManifestReading::What::kGone) {
    if (const auto found = files_.find(reading.file); found != files_.end()) {
      const std::set<ObjectKey> lost = std::move(found->second.objects);
      files_.erase(found);
      for (const ObjectKey& key : lost) Lose(reading.file, key, look.at);
    }
  } else {
    File& file = files_[reading.file];
    ApplyState(file, reading, look);
    ApplyObjects(reading.file, file, std::move(reading.decode.objects), look);
  }
  NoteLook(reading.file, look);
}

void ManifestFiles::ApplyObjects(const std::string& name, File& file,
                                 std::vector<DecodedObject> objects, const ManifestLook& look) {
  std::set<ObjectKey> now;
  size_t index = 0;
  for (DecodedObject& decoded : objects) {
    const ObjectKey key = KeyOf(decoded.object);
    if (!now.insert(key).second) {
      file.problems.push_back({PathOf(name), decoded.document, ToString(key), "metadata.name",
                               "is in this file twice; the first is used"});
      continue;
    }
    Known& known = known_[key];
    if (known.present.empty() && !known.file.empty()) {
      absent_of_[known.file].erase(key);
      const Known back;
      known = back;
    }
    const auto [place, is_new] = known.present.try_emplace(name);
    if (is_new) place->second.first_seen = look.scan;
    place->second.object = std::make_shared<const Object>(std::move(decoded.object));
    place->second.document = decoded.document;
    place->second.index = index++;
  }
  for (const ObjectKey& key : std::exchange(file.objects, now)) {
    if (now.count(key) == 0) Lose(name, key, look.at);
  }
}

void ManifestFiles::Lose(const std::string& file, const ObjectKey& key, TimePoint at) {
  Known& known = known_.at(key);
  known.lost_at = at;
  const auto place = known.present.find(file);
  known.place = std::move(place->second);
  known.file = file;
  known.present.erase(place);
  if (known.present.empty()) absent_of_[file].insert(key);
}

void ManifestFiles::NoteLook(const std::string& file, const ManifestLook& look) {
  const auto absent = absent_of_.find(file);
  if (absent == absent_of_.end()) return;
  const auto state = files_.find(file);
  const bool hidden = state != files_.end() && state->second.may_hide();
  for (const ObjectKey& key : absent->second) {
    Known& known = known_.at(key);
    known.looked_at = look.at;
    if (hidden) {
      known.proven = false;
    } else if (look.unproven.empty()) {
      known.proven = known.unproven.empty() || look.by_event;
      if (known.proven) known.unproven.clear();
    } else if (!known.proven) {
      known.unproven = look.unproven;
    }
  }
}

void ManifestFiles::LoseFiles() {
  for (auto& [name, file] : std::exchange(files_, {})) {
    for (const ObjectKey& key : file.objects) Lose(name, key, TimePoint::min());
  }
}

void ManifestFiles::DoubtAbsences(const std::string& why) {
  for (auto& [key, known] : known_) {
    if (!known.present.empty()) continue;
    known.proven = false;
    known.unproven = why;
  }
}

void ManifestFiles::Accept(const std::set<ObjectKey>& objects) {
  for (const ObjectKey& key : objects) {
    const auto known = known_.find(key);
    if (known == known_.end() || !known->second.present.empty()) continue;
    absent_of_[known->second.file].erase(key);
    known_.erase(known);
  }
  for (auto& [name, file] : files_) file.accepted = !file.disorder.empty();
}

std::vector<std::string> ManifestFiles::AbsentFrom(const std::set<std::string>& listed) const {
  std::set<std::string> absent;
  for (const auto& [name, file] : files_) {
    if (listed.count(name) == 0) absent.insert(name);
  }
  for (const auto& [name, keys] : absent_of_) {
    if (!keys.empty() && listed.count(name) == 0) absent.insert(name);
  }
  return {absent.begin(), absent.end()};
}

std::set<ObjectKey> ManifestFiles::AbsentObjects() const {
  std::set<ObjectKey> absent;
  for (const auto& [file, keys] : absent_of_) absent.insert(keys.begin(), keys.end());
  return absent;
}

bool ManifestFiles::HasAbsentObjects() const {
  return std::any_of(absent_of_.begin(), absent_of_.end(),
                     [](const auto& of_file) { return !of_file.second.empty(); });
}

ManifestDoubts ManifestFiles::Doubts() const {
  ManifestDoubts doubts;
  if (const std::vector<Suspect> suspects = Suspects(); !suspects.empty()) {
    const Suspect& last = suspects.front();
    doubts.suspect = {"", PathOf(last.file), last.state->disorder, last.state->touched};
  }
  for (const auto& [name, file] : files_) {
    if (file.changing) doubts.busy.try_emplace(PathOf(name), "is being written");
  }
  return doubts;
}

// ---- judgement ----------------------------------------------------------------------------------

std::vector<ManifestFiles::Suspect> ManifestFiles::Suspects() const {
  std::vector<Suspect> suspects;
  for (const auto& [name, file] : files_) {
    if (file.may_hide()) suspects.push_back({name, &file});
  }
  std::stable_sort(suspects.begin(), suspects.end(), [](const Suspect& a, const Suspect& b) {
    return a.state->touched > b.state->touched;
  });
  return suspects;
}

std::optional<ManifestFiles::Hold> ManifestFiles::HoldOf(
    const Known& known, const ManifestMoment& moment, const std::vector<Suspect>& suspects) const {
  if (!moment.directory_error.empty()) return Hold{moment.directory_error};
  if (!moment.directory_doubt.empty()) return Hold{moment.directory_doubt};
  const auto own = files_.find(known.file);
  if (own != files_.end() && own->second.may_hide()) {
    return Hold{PathOf(known.file) + ": " + own->second.disorder};
  }
  if (!known.unproven.empty()) return Hold{known.unproven};
  if (!suspects.empty() && suspects.front().state->touched > known.place.first_seen) {
    const Suspect& suspect = suspects.front();
    return Hold{"may be in " + PathOf(suspect.file) + ", which " + suspect.state->disorder};
  }
  const std::optional<ManifestSuspect>& elsewhere = moment.elsewhere.suspect;
  if (elsewhere && elsewhere->touched > known.place.first_seen) {
    return Hold{"may be in " + elsewhere->path + ", which " + elsewhere->disorder,
                /*momentary=*/false, elsewhere->source};
  }
  // What is seen to go later than that did not go there: nobody would have missed it here.
  const std::optional<ManifestAbsentDirectory>& absent = moment.elsewhere.absent;
  if (absent && known.lost_at <= absent->since + moment.settle) {
    return Hold{"may be in " + absent->path + ": " + absent->why, /*momentary=*/false,
                absent->source};
  }
  for (const auto* all : {&moment.busy, &moment.elsewhere.busy}) {
    if (all->empty()) continue;
    const auto& [file, what] = *all->begin();
    return Hold{PathOf(file) + " " + what, /*momentary=*/true};
  }
  return std::nullopt;
}

bool ManifestFiles::JudgeAbsent(const ObjectKey& key, Known& known, const ManifestMoment& moment,
                                const std::optional<Hold>& hold, ManifestJudgement& judgement,
                                std::vector<Listed>& listed) const {
  if (hold && !hold->momentary) known.evident_since.reset();
  if (!hold && !known.evident_since) {
    known.evident_since = moment.now;
    known.evident_since_unix_millis = moment.now_unix_millis;
  }
  bool goes = false;
  if (known.evident_since) {
    const TimePoint due = *known.evident_since + moment.settle;
    const bool is_due = moment.now >= due;
    if (!hold && is_due && known.looked_at >= due) return false;
    goes = !hold || !is_due;
    if (!hold && is_due) judgement.due_files.insert(known.file);
    if (!is_due) judgement.next_due = std::min(judgement.next_due.value_or(due), due);
  }
  const std::string reason = goes ? "is not in " + PathOf(known.file) + " any more" : hold->reason;
  if (!goes && judgement.incomplete_because.empty()) judgement.incomplete_because = reason;
  const std::string may_be_in = goes ? "" : hold->may_be_in_source;
  if (known.place.object == nullptr) {
    judgement.unknown.push_back({key, PathOf(known.file), reason, may_be_in});
    return true;
  }
  const ObjectPresence presence = goes ? ObjectPresence::kGoing : ObjectPresence::kHeld;
  const int64_t goes_at = goes ? known.evident_since_unix_millis + Millis(moment.settle) : 0;
  const Place& place = known.place;
  ObjectWithOrigin told{place.object, PathOf(known.file), place.document, presence, reason,
                        goes_at};
  told.may_be_in_source = may_be_in;
  listed.push_back({known.file, place.document, place.index, std::move(told)});
  return true;
}

ManifestJudgement ManifestFiles::Judge(ManifestMoment moment) {
  ManifestJudgement judgement;
  for (const auto& [name, file] : files_) {
    if (file.changing) moment.busy.try_emplace(name, "is being written");
  }
  const std::vector<Suspect> suspects = Suspects();
  std::vector<Listed> listed;
  for (auto entry = known_.begin(); entry != known_.end();) {
    Known& known = entry->second;
    for (const auto& [file, place] : known.present) {
      listed.push_back(
          {file, place.document, place.index, {place.object, PathOf(file), place.document}});
    }
    const bool stays =
        !known.present.empty() || JudgeAbsent(entry->first, known, moment,
                                              HoldOf(known, moment, suspects), judgement, listed);
    if (!stays) absent_of_[known.file].erase(entry->first);
    entry = stays ? std::next(entry) : known_.erase(entry);
  }
  std::sort(listed.begin(), listed.end(), [](const Listed& a, const Listed& b) {
    return std::tie(a.file, a.document, a.index) < std::tie(b.file, b.document, b.index);
  });
  std::map<std::string, size_t> kept;
  for (Listed& one : listed) {
    if (one.object.presence != ObjectPresence::kPresent) ++kept[one.file];
    judgement.objects.push_back(std::move(one.object));
  }
  for (const std::string& why : {moment.directory_error, moment.directory_doubt}) {
    if (judgement.incomplete_because.empty()) judgement.incomplete_because = why;
  }
  TellProblems(kept, judgement);
  return judgement;
}

void ManifestFiles::TellProblems(const std::map<std::string, size_t>& kept,
                                 ManifestJudgement& judgement) const {
  for (const auto& [name, file] : files_) {
    judgement.problems.insert(judgement.problems.end(), file.problems.begin(), file.problems.end());
    judgement.warnings.insert(judgement.warnings.end(), file.warnings.begin(), file.warnings.end());
    if (file.disorder.empty()) continue;
    const auto count = kept.find(name);
    const std::string stay = count == kept.end() ? "" : KeptText(count->second);
    const std::string told = PathOf(name) + ": " + file.disorder;
    if (file.may_hide() && judgement.incomplete_because.empty()) {
      judgement.incomplete_because = told;
    }
    // A problem of a part is told already.
    if (!file.problems.empty() && stay.empty()) continue;
    judgement.problems.push_back({PathOf(name), -1, "", "", file.disorder + stay});
  }
}

}  // namespace volumed
