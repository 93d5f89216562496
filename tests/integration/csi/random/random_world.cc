#include "integration/csi/random/random_world.h"

#include <algorithm>
#include <chrono>
#include <initializer_list>

namespace volumed::random_clients {
namespace {

constexpr size_t kMostViolations = 8;  // after these the rest says nothing new

double SecondsNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

// Of Aborted and ResourceExhausted the driver says itself if the call may have had its effect.
// Unavailable is also what the client's library says of a daemon that has died.
CsiEnd EndOf(const grpc::Status& status) {
  const grpc::StatusCode code = status.error_code();
  const auto is_one_of = [code](std::initializer_list<grpc::StatusCode> codes) {
    return std::find(codes.begin(), codes.end(), code) != codes.end();
  };
  if (status.ok()) return CsiEnd::kDone;
  if (is_one_of({grpc::StatusCode::CANCELLED, grpc::StatusCode::UNAVAILABLE,
                 grpc::StatusCode::DEADLINE_EXCEEDED, grpc::StatusCode::UNKNOWN})) {
    return CsiEnd::kMaybe;
  }
  const bool is_told = is_one_of({grpc::StatusCode::ABORTED, grpc::StatusCode::RESOURCE_EXHAUSTED});
  const bool may = status.error_message().find("may have had its effect") != std::string::npos;
  return is_told && may ? CsiEnd::kMaybe : CsiEnd::kRefused;
}

World::World(Limits limits, size_t volume_slots, size_t snapshot_slots, size_t group_slots)
    : limits_(limits),
      started_(SecondsNow()),
      volume_slots_count_(volume_slots),
      snapshot_slots_count_(snapshot_slots + group_slots),
      group_slots_count_(group_slots),
      volume_slots_(volume_slots),
      snapshot_slots_(snapshot_slots + group_slots) {}

// ---- the run ------------------------------------------------------------------------------------

bool World::IsOver() const {
  const bool is_late = limits_.seconds > 0 && SecondsNow() - started_ > limits_.seconds;
  if (is_late || has_enough_) return true;
  return calls_ >= limits_.calls && NeverHappened().empty();
}

std::vector<std::string> World::NeverHappened() const {
  const MutexLock lock(mu_);
  std::vector<std::string> never;
  for (const std::string& what : limits_.must_happen) {
    if (!counts_.contains(what)) never.push_back(what);
  }
  return never;
}

void World::Count(const std::string& what) {
  const MutexLock lock(mu_);
  ++counts_[what];
}

std::map<std::string, uint64_t> World::counts() const {
  const MutexLock lock(mu_);
  return counts_;
}

void World::NoteViolation(const std::string& what) {
  violations_.push_back("after " + std::to_string(calls_) + " calls: " + what);
  if (violations_.size() >= kMostViolations) has_enough_ = true;
}

void World::Violate(const std::string& what) {
  const MutexLock lock(mu_);
  NoteViolation(what);
}

std::vector<std::string> World::violations() const {
  const MutexLock lock(mu_);
  return violations_;
}

void World::SetUp(bool is_up) {
  const MutexLock lock(mu_);
  if (is_up && !is_up_) ++daemon_;
  is_up_ = is_up;
  changed_.NotifyAll();
}

void World::AwaitUp() {
  const MutexLock lock(mu_);
  while (!is_up_) changed_.Wait(mu_);
}

// ---- volumes ------------------------------------------------------------------------------------

VolumeSlot World::VolumeAt(size_t slot) const {
  const MutexLock lock(mu_);
  return volume_slots_[slot];
}

SharedVolumePlan World::PlanVolume(size_t slot, const SharedVolumePlan& fresh) {
  const MutexLock lock(mu_);
  VolumeSlot& there = volume_slots_[slot];
  if (!there.plan) there.plan = fresh;
  return there.plan;
}

void World::GiveUp(size_t slot, const SharedVolumePlan& plan) {
  const MutexLock lock(mu_);
  VolumeSlot& there = volume_slots_[slot];
  if (there.plan == plan && !there.volume) there.plan = nullptr;
}

SharedVolume World::NewVolume(size_t slot, const SharedVolumePlan& plan, const std::string& id) {
  const uint64_t tag = ++last_tag_;
  std::shared_ptr<CutContent> origin;
  if (plan->of_snapshot) origin = plan->of_snapshot->content;
  if (plan->of_volume) {
    const auto& source = plan->of_volume->history;
    origin = std::make_shared<CutContent>(source, plan->least, source->issued());
  }
  auto history = origin ? WriteHistory::OfContent(tag) : std::make_shared<WriteHistory>(tag);
  return SharedVolume(new VolumeTruth{.id = id,
                                      .slot = static_cast<int>(slot),
                                      .plan = plan,
                                      .history = std::move(history),
                                      .origin = std::move(origin),
                                      .content = {}});
}

SharedVolume World::Made(size_t slot, const SharedVolumePlan& plan, const std::string& id,
                         int64_t capacity, uint64_t begun) {
  const MutexLock lock(mu_);
  VolumeSlot& there = volume_slots_[slot];
  SharedVolume& volume = volumes_[id];
  if (!volume) {
    volume = NewVolume(slot, plan, id);
    if (there.plan == plan && !there.volume) there.volume = volume;
  }
  if (volume->plan->name != plan->name) {
    NoteViolation("CreateVolume of " + plan->name + " answered volume " + id + ", which is " +
                  volume->plan->name);
    return nullptr;
  }
  if (volume->gone_at != 0 && volume->gone_at < begun) {
    NoteViolation("CreateVolume of " + plan->name + " answered volume " + id +
                  ", which was deleted before");
    return nullptr;
  }
  volume->capacity = std::max(volume->capacity, capacity);
  return volume;
}

void World::Gone(const SharedVolume& volume, bool keeps_name) {
  const MutexLock lock(mu_);
  if (volume->gone_at == 0) volume->gone_at = Now();
  VolumeSlot& there = volume_slots_[static_cast<size_t>(volume->slot)];
  if (there.volume != volume) return;
  there.volume = nullptr;
  if (!keeps_name || volume->plan->has_source()) there.plan = nullptr;
}

void World::Grown(VolumeTruth& volume, int64_t capacity) {
  const MutexLock lock(mu_);
  volume.capacity = std::max(volume.capacity, capacity);
}

int64_t World::CapacityOf(const VolumeTruth& volume) const {
  const MutexLock lock(mu_);
  return volume.capacity;
}

CsiFact& World::Staged(VolumeTruth& volume, const std::string& path) {
  const MutexLock lock(mu_);
  return volume.staged.try_emplace(path, CsiState::kGone).first->second;
}

CsiFact& World::Published(VolumeTruth& volume, const std::string& path) {
  const MutexLock lock(mu_);
  return volume.published.try_emplace(path, CsiState::kGone).first->second;
}

std::optional<uint64_t> World::VersionIfThere(const CsiFact& fact) const {
  const MutexLock lock(mu_);
  if (fact.known() != CsiState::kThere) return std::nullopt;
  return fact.version();
}

bool World::IsKnownGone(const CsiFact& fact) const {
  const MutexLock lock(mu_);
  return fact.known() == CsiState::kGone;
}

World::Doubts World::doubts() const {
  const MutexLock lock(mu_);
  return doubts_;
}

std::vector<SharedVolume> World::volumes() const {
  const MutexLock lock(mu_);
  std::vector<SharedVolume> all;
  for (const auto& [id, volume] : volumes_) all.push_back(volume);
  return all;
}

// ---- snapshots ----------------------------------------------------------------------------------

SnapshotSlot World::SnapshotAt(size_t slot) const {
  const MutexLock lock(mu_);
  return snapshot_slots_[slot];
}

SharedSnapshotPlan World::PlanSnapshot(size_t slot, const SharedSnapshotPlan& fresh) {
  const MutexLock lock(mu_);
  SnapshotSlot& there = snapshot_slots_[slot];
  if (!there.plan) there.plan = fresh;
  return there.plan;
}

void World::GiveUp(size_t slot, const SharedSnapshotPlan& plan) {
  const MutexLock lock(mu_);
  SnapshotSlot& there = snapshot_slots_[slot];
  if (there.plan == plan && there.made.empty()) there.plan = nullptr;
}

SharedSnapshot World::FindOrMake(const SnapshotPlan& plan, const ToldSnapshot& told, uint64_t begun,
                                 size_t member) {
  const SharedVolume& of = plan.of[member];
  SharedSnapshot& snapshot = snapshots_[told.id];
  if (!snapshot) {
    snapshot = SharedSnapshot(new SnapshotTruth{
        .id = told.id,
        .group = told.group,
        .of = of,
        .content =
            std::make_shared<CutContent>(of->history, plan.least[member], of->history->issued())});
  }
  if (snapshot->of != of || snapshot->group != told.group) {
    NoteViolation("snapshot " + told.id + " is another one than it was");
  }
  if (snapshot->gone_at != 0 && snapshot->gone_at < begun) {
    NoteViolation("snapshot " + told.id + " of " + plan.name + " was deleted before");
  }
  return snapshot;
}

void World::MadeSnapshots(size_t slot, const SharedSnapshotPlan& plan,
                          const std::vector<ToldSnapshot>& told, uint64_t begun) {
  const MutexLock lock(mu_);
  std::vector<SharedSnapshot> made;
  for (size_t member = 0; member < plan->of.size(); ++member) {
    const std::string& of = plan->of[member]->id;
    const auto found = std::find_if(told.begin(), told.end(),
                                    [&of](const ToldSnapshot& one) { return one.of == of; });
    if (found == told.end()) continue;
    made.push_back(FindOrMake(*plan, *found, begun, member));
  }
  if (made.size() != plan->of.size() || told.size() != plan->of.size()) {
    return NoteViolation(plan->name + " has " + std::to_string(told.size()) + " snapshots, of " +
                         std::to_string(made.size()) + " of its volumes");
  }
  SnapshotSlot& there = snapshot_slots_[slot];
  const bool is_gone = std::any_of(made.begin(), made.end(), [](const SharedSnapshot& snapshot) {
    return snapshot->gone_at != 0;
  });
  if (there.plan == plan && there.made.empty() && !is_gone) there.made = made;
}

void World::Gone(size_t slot, const std::vector<SharedSnapshot>& snapshots) {
  const MutexLock lock(mu_);
  for (const SharedSnapshot& snapshot : snapshots) {
    if (snapshot->gone_at == 0) snapshot->gone_at = Now();
  }
  SnapshotSlot& there = snapshot_slots_[slot];
  if (there.made == snapshots) there = {};
}

std::vector<SharedSnapshot> World::snapshots() const {
  const MutexLock lock(mu_);
  std::vector<SharedSnapshot> all;
  for (const auto& [id, snapshot] : snapshots_) all.push_back(snapshot);
  return all;
}

// ---- CallNote -----------------------------------------------------------------------------------

size_t CallNote::Watch(const CsiFact& fact, const std::string& what) {
  watched_.push_back({.fact = &fact, .what = what});
  return watched_.size() - 1;
}

void CallNote::WatchPlaces(const VolumeTruth& volume, bool also_staging) {
  places_of_ = &volume;
  also_staging_ = also_staging;
}

void CallNote::Begin() {
  const MutexLock lock(world_.mu_);
  begun_ = world_.Now();
  if (places_of_ != nullptr) {
    for (const auto& [path, fact] : places_of_->published) (void)Watch(fact, path);
    if (also_staging_) {
      for (const auto& [path, fact] : places_of_->staged) (void)Watch(fact, path);
    }
  }
  for (Watched& watched : watched_) {
    watched.before = watched.fact->known();
    watched.version = watched.fact->version();
  }
  for (Change& change : changes_) {
    change.serial = world_.Now();
    change.fact->Begin(change.serial, change.wanted, world_.daemon());
  }
}

void CallNote::End(const grpc::Status& status) {
  const MutexLock lock(world_.mu_);
  for (Watched& watched : watched_) {
    watched.stayed =
        watched.fact->known() == watched.before && watched.fact->version() == watched.version;
  }
  for (const Change& change : changes_) {
    change.fact->End(change.serial, EndOf(status), world_.Now(), world_.daemon());
  }
}

std::string CallNote::PlaceThatStayed() const {
  for (const Watched& watched : watched_) {
    const bool stayed = watched.stayed && watched.before == CsiState::kThere;
    if (!watched.what.empty() && stayed) return watched.what;
  }
  return "";
}

}  // namespace volumed::random_clients
