#include "kube/far_manifests.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

namespace volumed {
namespace {

// No setting: a reader that keeps its deadline is never given up, whatever that deadline is.
constexpr Duration kPastDeadline = std::chrono::seconds(1);

std::string NoThread(size_t hung) {
  return "cannot be read while " + std::to_string(hung) +
         " other links of the directory lead to what does not answer";
}

}  // namespace

FarManifests::FarManifests(Scheduler& scheduler, Duration deadline, Hooks hooks)
    : scheduler_(scheduler), given_up_after_(deadline + kPastDeadline), hooks_(std::move(hooks)) {}

FarManifests::~FarManifests() {
  for (const auto& [number, read] : reads_) {
    if (read.deadline != 0) scheduler_.Cancel(read.deadline);
  }
}

std::optional<std::string> FarManifests::Want(const std::string& file, const std::string& target,
                                              const ManifestLook& look) {
  std::optional<std::string> why;
  bool under_way = false;
  for (auto& [number, read] : reads_) {
    if (read.file != file) continue;
    read.counts = read.wanted.target == target && !under_way;
    if (!read.counts) continue;
    under_way = true;
    // What hangs has read nothing yet: its answer will be as new as another one's.
    if (read.wanted.told) {
      read.wanted.look = look;
      why = DoesNotAnswer();
    } else {
      read.anew = look;
    }
  }
  if (under_way) return why;
  waiting_[file] = {target, look};
  StartNext();
  const auto waits = waiting_.find(file);
  if (waits == waiting_.end() || !AllHang()) return std::nullopt;
  waits->second.told = true;
  return NoThread(reads_.size());
}

void FarManifests::Drop(const std::string& file) {
  waiting_.erase(file);
  for (auto& [number, read] : reads_) {
    if (read.file == file) read.counts = false;
  }
}

void FarManifests::DropAll() {
  waiting_.clear();
  for (auto& [number, read] : reads_) read.counts = false;
}

std::set<std::string> FarManifests::Awaited() const {
  std::set<std::string> files;
  for (const auto& [number, read] : reads_) {
    if (read.counts && !read.wanted.told) files.insert(read.file);
  }
  for (const auto& [file, wanted] : waiting_) {
    if (!wanted.told) files.insert(file);
  }
  return files;
}

void FarManifests::StartNext() {
  while (!waiting_.empty() && reads_.size() < kMost) {
    auto next = waiting_.extract(waiting_.begin());
    Start(next.key(), std::move(next.mapped()));
  }
}

std::string FarManifests::DoesNotAnswer() const {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(given_up_after_);
  return "does not answer: what its link leads to could not be read within " +
         std::to_string(seconds.count()) + " s";
}

bool FarManifests::AllHang() const {
  return reads_.size() >= kMost && std::all_of(reads_.begin(), reads_.end(), [](const auto& read) {
           return read.second.wanted.told;
         });
}

void FarManifests::Start(const std::string& file, Wanted wanted) {
  const uint64_t number = ++last_number_;
  wanted.told = false;
  Read& read = reads_[number];
  read.file = file;
  read.wanted = std::move(wanted);
  read.deadline = scheduler_.PostAfter(given_up_after_, [this, number] { OnDeadline(number); });
  scheduler_.RunBlocking(
      [this, number, &scheduler = scheduler_, watch = alive_.watch(), work = hooks_.reader(file)] {
        // shared_ptr because a posted task must be copyable and descriptors are not.
        auto answer = std::make_shared<FarAnswer>(work());
        scheduler.Post([this, number, watch, answer] {
          if (watch.alive()) OnAnswer(number, std::move(*answer));
        });
      });
}

void FarManifests::OnDeadline(uint64_t number) {
  Read& read = reads_.at(number);
  read.deadline = 0;
  read.wanted.told = true;
  const ManifestLook look = read.anew.value_or(read.wanted.look);
  read.wanted.look = look;
  read.anew.reset();
  if (read.counts) hooks_.unanswered(read.file, look, DoesNotAnswer());
  TellWaiting();
}

void FarManifests::OnAnswer(uint64_t number, FarAnswer answer) {
  auto ended = reads_.extract(number);
  Read& read = ended.mapped();
  if (read.deadline != 0) scheduler_.Cancel(read.deadline);
  if (read.counts && read.anew) {
    waiting_[read.file] = {read.wanted.target, *read.anew};
  } else if (read.counts) {
    hooks_.answered(read.file, read.wanted.look, std::move(answer));
  }
  StartNext();
}

void FarManifests::TellWaiting() {
  if (!AllHang()) return;
  std::map<std::string, ManifestLook> untold;
  for (auto& [file, wanted] : waiting_) {
    if (!std::exchange(wanted.told, true)) untold.emplace(file, wanted.look);
  }
  for (const auto& [file, look] : untold) hooks_.unanswered(file, look, NoThread(reads_.size()));
}

}  // namespace volumed
