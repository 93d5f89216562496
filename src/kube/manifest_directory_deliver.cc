// ManifestDirectory: what its listener hears, and when it is looked at again without an event.
#include <algorithm>
#include <iterator>
#include <utility>

#include "kube/manifest_directory.h"

namespace volumed {
namespace {

constexpr char kUnlisted[] = "the directory has not been listed yet";

}  // namespace

ManifestMoment ManifestDirectory::Moment() const {
  ManifestMoment moment;
  moment.now = scheduler_.clock().Now();
  moment.now_unix_millis = scheduler_.clock().WallUnixMillis();
  moment.settle = settle_;
  moment.directory_error = directory_error_;
  if (listed_) moment.directory_doubt = WhyOther();
  moment.busy = BusyFiles();
  moment.elsewhere = peers_->DoubtsOfOthers(name_);
  return moment;
}

// Nothing is in a directory that never was: one that the records do not know, and that is not
// there.
std::optional<ManifestAbsentDirectory> ManifestDirectory::Absence() const {
  if (in_order_ || (!known_ && !files_.HasKnownObjects())) return std::nullopt;
  std::string why = directory_error_;
  if (why.empty()) why = listed_ ? WhyOther() : kUnlisted;
  return ManifestAbsentDirectory{name_, files_.PathOf(directory_), std::move(why), in_order_until_};
}

// Only the first counts for whoever judges by it, and there may be many.
std::map<std::string, std::string> ManifestDirectory::BusyFiles() const {
  std::map<std::string, std::string> busy;
  const auto add = [&busy](const auto& files, const char* what) {
    if (!files.empty()) busy.try_emplace(*files.begin(), what);
  };
  add(writing_, "is being written");
  for (const auto* files : {&dirty_, &created_, &reading_}) add(*files, "is being read");
  if (!large_file_.empty()) busy.try_emplace(large_file_, "is being read");
  if (!large_.empty()) busy.try_emplace(large_.begin()->first, "is being read");
  add(far_.Awaited(), "is being read");
  const bool is_unread = !listed_ && directory_error_.empty();
  if (need_open_ || need_scan_ || is_unread) busy.try_emplace(directory_, "is being read");
  if (busy.size() > 1) busy.erase(std::next(busy.begin()), busy.end());
  return busy;
}

// What is wrong with the directory as a whole.
std::vector<DecodeProblem> ManifestDirectory::OwnProblems() const {
  std::vector<DecodeProblem> problems;
  const auto add = [&](std::string why) {
    problems.push_back({files_.PathOf(directory_), -1, "", "", std::move(why)});
  };
  if (!directory_error_.empty()) {
    add(directory_error_ + (complete_ ? "; its last list stays" : "; never read so far"));
  }
  for (const std::string& error : {watch_error_, watches_.error()}) {
    if (!error.empty()) add(error);
  }
  return problems;
}

// What the records tell of it is all that is known; what they do not tell may be there as well.
std::string ManifestDirectory::IncompleteBecause(const std::string& judged) const {
  return judged.empty() && !listed_ ? kUnlisted : judged;
}

std::string ManifestDirectory::UnseenBecause() const {
  if (seen_) return "";
  if (!directory_error_.empty()) return directory_error_;
  if (std::string why = listed_ ? WhyOther() : ""; !why.empty()) return why;
  std::map<std::string, std::string> unread = not_read_;
  // Those that came since the directory was listed.
  for (const std::string& file : writing_) unread.try_emplace(file, "is being written");
  if (unread.empty()) return kSourceIsBeingRead;
  const auto& [file, why] = *unread.begin();
  const size_t others = unread.size() - 1;
  return files_.PathOf(file) + " " + why +
         (others == 0 ? "" : ", and " + std::to_string(others) + " more files were not read");
}

void ManifestDirectory::Deliver() {
  if (!complete_ || !has_list_) return DeliverList();
  if (std::optional<ManifestChanges> changes = files_.JudgeChanged(Moment())) {
    return DeliverChanges(*std::move(changes));
  }
  DeliverList();
}

void ManifestDirectory::DeliverChanges(ManifestChanges changes) {
  ObjectDelta delta;
  delta.source = name_;
  delta.objects = std::move(changes.objects);
  delta.removed = std::move(changes.removed);
  delta.unknown = std::move(changes.unknown);
  delta.not_unknown = std::move(changes.not_unknown);
  delta.problems = std::move(changes.problems);
  delta.problems[files_.PathOf(directory_)] = OwnProblems();
  delta.warnings = std::move(changes.warnings);
  delta.incomplete_because = IncompleteBecause(changes.incomplete_because);
  delta.unseen_because = UnseenBecause();
  delta.directory = known_;
  delta.unproven = files_.Unproven();
  dirty_.merge(changes.due_files);
  ArmSettle(changes.next_due);
  listener_(std::move(delta));
}

void ManifestDirectory::DeliverList() {
  ObjectList list;
  list.source = name_;
  list.complete = has_list_ = complete_;
  list.problems = OwnProblems();
  list.incomplete_because = directory_error_;
  list.unseen_because = UnseenBecause();
  if (complete_) {
    ManifestJudgement judgement = files_.Judge(Moment());
    list.objects = std::move(judgement.objects);
    list.unknown = std::move(judgement.unknown);
    list.problems.insert(list.problems.end(), judgement.problems.begin(), judgement.problems.end());
    list.warnings = std::move(judgement.warnings);
    list.incomplete_because = IncompleteBecause(judgement.incomplete_because);
    list.directory = known_;
    list.unproven = files_.Unproven();
    dirty_.merge(judgement.due_files);
    ArmSettle(judgement.next_due);
  }
  listener_(std::move(list));
}

void ManifestDirectory::ArmRetry() {
  const bool is_needed = !unreadable_.empty() || !directory_error_.empty();
  if (!is_needed) retry_backoff_.Reset("disk");
  if (!is_needed || retry_timer_ != 0) return;
  const Duration delay = retry_backoff_.RecordFailure("disk", "read", "");
  retry_timer_ = scheduler_.PostAfter(delay, [this] {
    retry_timer_ = 0;
    dirty_.insert(unreadable_.begin(), unreadable_.end());
    if (!directory_error_.empty()) need_open_ = true;
    Work();
  });
}

void ManifestDirectory::ArmSettle(std::optional<TimePoint> due) {
  if (settle_timer_ != 0) scheduler_.Cancel(settle_timer_);
  settle_timer_ = 0;
  if (!due) return;
  const Duration left = std::max(*due - scheduler_.clock().Now(), Duration::zero());
  settle_timer_ = scheduler_.PostAfter(left, [this] {
    settle_timer_ = 0;
    DrainEvents();  // it may be back this moment
    Deliver();
    Work();
  });
}

}  // namespace volumed
