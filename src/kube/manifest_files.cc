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

constexpr const char* kBeingWritten = "is being written";

}  // namespace

void ManifestReading::Take(ManifestDecode decoded) {
  objects.reserve(decoded.objects.size());
  for (DecodedObject& one : decoded.objects) {
    ObjectKey key = KeyOf(one.object);
    objects.push_back(
        {std::move(key), std::make_shared<const Object>(std::move(one.object)), one.document});
  }
  decoded.objects.clear();
  decode = std::move(decoded);
}

ManifestFiles::ManifestFiles(std::string_view directory) : directory_(PrintableText(directory)) {}

std::string ManifestFiles::PathOf(const std::string& file) const {
  const std::string shown = PrintableText(file);
  return file.starts_with('/') ? shown : directory_ + "/" + shown;
}

void ManifestFiles::Remember(std::vector<KnownObject> objects, const UnprovenAbsences& unproven) {
  for (KnownObject& object : objects) {
    Known& known = known_[object.key];
    known.file = object.file;
    if (const auto name = StripPrefix(object.file, directory_ + "/")) known.file = *name;
    known.place.object = std::move(object.object);
    absent_of_[known.file].insert(object.key);
    const auto held = unproven.find(object.key);
    if (held != unproven.end()) known.unproven_for_good = held->second;
  }
  circumstances_.reset();
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
    changing_.insert(reading.file);
    return;
  }
  changed_files_.insert(reading.file);
  if (reading.what == ManifestReading::What::kGone) {
    if (const auto found = files_.find(reading.file); found != files_.end()) {
      const std::set<ObjectKey> lost = std::move(found->second.objects);
      UnindexFile(reading.file, found->second);
      files_.erase(found);
      for (const ObjectKey& key : lost) Lose(reading.file, key, look.at);
    }
  } else {
    File& file = files_[reading.file];
    UnindexFile(reading.file, file);
    ApplyState(file, reading, look);
    IndexFile(reading.file, file);
    ApplyObjects(reading.file, file, std::move(reading.objects), look);
  }
  NoteLook(reading.file, look);
}

void ManifestFiles::ApplyObjects(const std::string& name, File& file,
                                 std::vector<ManifestReading::ReadObject> objects,
                                 const ManifestLook& look) {
  std::set<ObjectKey> now;
  size_t index = 0;
  for (ManifestReading::ReadObject& read : objects) {
    const ObjectKey& key = read.key;
    if (!now.insert(key).second) {
      file.problems.push_back({PathOf(name), read.document, ToString(key), "metadata.name",
                               "is in this file twice; the first is used"});
      continue;
    }
    Known& known = known_[key];
    changed_objects_.insert(key);
    if (known.present.empty()) Unjudge(key, known);
    if (known.present.empty() && !known.file.empty()) {
      ForgetAbsent(key, known.file);
      Known back;
      back.told_files = std::move(known.told_files);
      back.told_unknown = known.told_unknown;
      known = std::move(back);
    }
    const auto [place, is_new] = known.present.try_emplace(name);
    if (is_new) place->second.first_seen = look.scan;
    place->second.object = std::move(read.object);
    place->second.document = read.document;
    place->second.index = index++;
  }
  for (const ObjectKey& key : std::exchange(file.objects, now)) {
    if (now.count(key) == 0) Lose(name, key, look.at);
  }
}

void ManifestFiles::Lose(const std::string& file, const ObjectKey& key, TimePoint at) {
  Known& known = known_.at(key);
  changed_objects_.insert(key);
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
    changed_objects_.insert(key);
    known.looked_at = look.at;
    if (look.was_seen_to_go && look.unproven.empty()) known.unproven_for_good.clear();
    if (hidden) {
      known.proven = false;
    } else if (look.unproven.empty()) {
      known.proven = known.unproven.empty() || look.by_event;
      if (known.proven) known.unproven.clear();
    } else if (!known.proven) {
      known.unproven = look.unproven;
      if (look.unproven_for_good) known.unproven_for_good = look.unproven;
    }
  }
}

UnprovenAbsences ManifestFiles::Unproven() const {
  UnprovenAbsences unproven;
  for (const auto& [file, keys] : absent_of_) {
    for (const ObjectKey& key : keys) {
      const std::string& why = known_.at(key).unproven_for_good;
      if (!why.empty()) unproven.emplace(key, why);
    }
  }
  return unproven;
}

void ManifestFiles::LoseFiles() {
  for (auto& [name, file] : std::exchange(files_, {})) {
    UnindexFile(name, file);
    for (const ObjectKey& key : file.objects) Lose(name, key, TimePoint::min());
  }
  circumstances_.reset();
}

void ManifestFiles::DoubtAbsences(const std::string& why) {
  for (auto& [key, known] : known_) {
    if (!known.present.empty()) continue;
    known.proven = false;
    known.unproven = why;
  }
  circumstances_.reset();
}

void ManifestFiles::Accept(const std::set<ObjectKey>& objects) {
  for (const ObjectKey& key : objects) {
    const auto known = known_.find(key);
    if (known == known_.end() || !known->second.present.empty()) continue;
    Unjudge(key, known->second);
    ForgetAbsent(key, known->second.file);
    known_.erase(known);
  }
  for (auto& [name, file] : files_) {
    UnindexFile(name, file);
    file.accepted = !file.disorder.empty();
    IndexFile(name, file);
  }
  circumstances_.reset();
}

std::vector<std::string> ManifestFiles::AbsentFrom(const std::set<std::string>& listed) const {
  std::set<std::string> absent;
  for (const auto& [name, file] : files_) {
    if (listed.count(name) == 0) absent.insert(name);
  }
  for (const auto& [name, keys] : absent_of_) {
    if (listed.count(name) == 0) absent.insert(name);
  }
  return {absent.begin(), absent.end()};
}

std::set<ObjectKey> ManifestFiles::AbsentObjects() const {
  std::set<ObjectKey> absent;
  for (const auto& [file, keys] : absent_of_) absent.insert(keys.begin(), keys.end());
  return absent;
}

void ManifestFiles::ForgetAbsent(const ObjectKey& key, const std::string& file) {
  const auto absent = absent_of_.find(file);
  if (absent == absent_of_.end()) return;
  absent->second.erase(key);
  if (absent->second.empty()) absent_of_.erase(absent);
}

// ---- files in disorder --------------------------------------------------------------------------

void ManifestFiles::IndexFile(const std::string& name, const File& file) {
  if (file.changing) changing_.insert(name);
  if (!file.may_hide()) return;
  suspects_.emplace(~file.touched, name);
  hiding_.insert(name);
}

void ManifestFiles::UnindexFile(const std::string& name, const File& file) {
  changing_.erase(name);
  suspects_.erase({~file.touched, name});
  hiding_.erase(name);
}

// Of two that were touched by one scan, the first by name.
std::optional<ManifestSuspect> ManifestFiles::LastSuspect() const {
  if (suspects_.empty()) return std::nullopt;
  const std::string& name = suspects_.begin()->second;
  const File& file = files_.at(name);
  return ManifestSuspect{"", PathOf(name), file.disorder, file.touched};
}

ManifestDoubts ManifestFiles::Doubts() const {
  ManifestDoubts doubts;
  doubts.suspect = LastSuspect();
  if (!changing_.empty()) doubts.busy.emplace(PathOf(*changing_.begin()), kBeingWritten);
  return doubts;
}

}  // namespace volumed
