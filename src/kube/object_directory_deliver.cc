// ObjectDirectory: what its listener hears.
#include <utility>
#include <variant>

#include "base/printable_text.h"
#include "kube/object_directory.h"
#include "kube/object_files.h"

namespace volumed {
namespace {

constexpr char kLost[] = "its file is gone, and no command has ended it";

}  // namespace

ObjectWithOrigin ObjectDirectory::ListedLocked(const Stored& stored) const {
  ObjectWithOrigin one{stored.object, directory_ + "/" + stored.file, 0};
  one.number = stored.number;
  one.replaces = stored.replaces;
  if (const auto damaged = damaged_.find(stored.file); damaged != damaged_.end()) {
    one.presence = ObjectPresence::kUnproven;
    one.reason = "its file cannot be read any more: " + damaged->second.why;
  }
  return one;
}

std::string ObjectDirectory::IncompleteBecauseLocked() const {
  if (!damaged_.empty()) {
    const auto& [file, damaged] = *damaged_.begin();
    return PrintableText(directory_ + "/" + file) + ": " + damaged.why;
  }
  return !loaded_ || lost_.empty() ? "" : ToString(lost_.begin()->first) + ": " + kLost;
}

DecodeProblem ObjectDirectory::UnremovedLocked(const std::string& file) const {
  return {PrintableText(directory_ + "/" + file), -1, "", "", unremoved_.at(file).told};
}

const ObjectDirectory::Stored* ObjectDirectory::FindUnremovedLocked(const ObjectKey& key) const {
  const auto found = unremoved_.find(ObjectFileName(key));
  const bool is_listed = found != unremoved_.end() && found->second.listed.has_value();
  return is_listed ? &*found->second.listed : nullptr;
}

ObjectList ObjectDirectory::ListLocked() {
  told_.clear();
  ObjectList list;
  list.source = name_;
  list.complete = loaded_;
  const auto tell = [&](const ObjectKey& key, ObjectWithOrigin one) REQUIRES(mu_) {
    told_[key].file = one.file;
    list.objects.push_back(std::move(one));
  };
  const auto tell_unknown = [&](UnknownObject one) REQUIRES(mu_) {
    told_[one.key].is_unknown = true;
    list.unknown.push_back(std::move(one));
  };
  for (const auto& [key, stored] : stored_) tell(key, ListedLocked(stored));
  for (const auto& [file, unremoved] : unremoved_) {
    if (!unremoved.listed) continue;
    tell(KeyOf(*unremoved.listed->object), ListedLocked(*unremoved.listed));
  }
  for (const auto& [file, damaged] : damaged_) {
    if (!damaged.key || stored_.contains(*damaged.key)) continue;
    tell_unknown({*damaged.key, PrintableText(directory_ + "/" + file), damaged.why});
  }
  for (const auto& [key, lost] : lost_) {
    if (!loaded_) break;
    if (lost.object == nullptr) {
      tell_unknown({key, lost.file, kLost});
    } else {
      tell(key, {lost.object, lost.file, 0, ObjectPresence::kUnproven, kLost, 0});
    }
  }
  list.incomplete_because = IncompleteBecauseLocked();
  list.problems = problems_;
  for (const auto& [file, unremoved] : unremoved_) list.problems.push_back(UnremovedLocked(file));
  return list;
}

// What is lost, and whose file is damaged, does not come by a change: that is found by reading.
void ObjectDirectory::AddChangeLocked(const ObjectKey& key, ObjectDelta& delta) {
  const Told before = std::exchange(told_[key], {});
  Told& now = told_[key];
  if (const auto stored = stored_.find(key); stored != stored_.end()) {
    delta.objects.push_back(ListedLocked(stored->second));
    now.file = delta.objects.back().file;
  } else if (const Stored* unremoved = FindUnremovedLocked(key)) {
    delta.objects.push_back(ListedLocked(*unremoved));
    now.file = delta.objects.back().file;
  } else if (const auto lost = lost_.find(key); lost != lost_.end()) {
    now = before;
  }
  if (!before.file.empty() && now.file != before.file) delta.removed.push_back({key, before.file});
  if (before.is_unknown && !now.is_unknown) delta.not_unknown.push_back(key);
  if (now.file.empty() && !now.is_unknown) told_.erase(key);
}

ObjectDelta ObjectDirectory::DeltaLocked() {
  ObjectDelta delta;
  delta.source = name_;
  for (const ObjectKey& key : changed_) AddChangeLocked(key, delta);
  for (const std::string& file : changed_files_) {
    const std::string path = PrintableText(directory_ + "/" + file);
    std::vector<DecodeProblem>& problems = delta.problems[path];
    for (const DecodeProblem& problem : problems_) {
      if (problem.file == path) problems.push_back(problem);
    }
    if (unremoved_.contains(file)) problems.push_back(UnremovedLocked(file));
  }
  delta.incomplete_because = IncompleteBecauseLocked();
  return delta;
}

void ObjectDirectory::DeliverLocked() {
  // Shared, as a posted task is copied.
  const auto update = std::make_shared<ObjectUpdate>();
  if (has_list_) {
    *update = DeltaLocked();
  } else {
    *update = ListLocked();
    has_list_ = loaded_;
  }
  changed_.clear();
  changed_files_.clear();
  // In the order of the changes, since each is posted under the lock.
  scheduler_.Post([listener = listener_, update] { (*listener)(std::move(*update)); });
}

}  // namespace volumed
