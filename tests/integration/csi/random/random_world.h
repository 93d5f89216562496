// What random clients know together: which volumes and snapshots there are, what calls about them
// go on, and what was found that must not be. Clients name things by slots, so that several of them
// work on the same one; a slot has a plan, by whose name all make the same thing.
#pragma once

#include <grpcpp/support/status.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "csi.pb.h"
#include "integration/csi/random/random_content.h"
#include "integration/csi/random/random_facts.h"

namespace volumed::random_clients {

enum class VolumeKind { kExt4, kXfs, kBlock };

struct SnapshotTruth;
struct VolumeTruth;
using SharedVolume = std::shared_ptr<VolumeTruth>;
using SharedSnapshot = std::shared_ptr<SnapshotTruth>;

// What CreateVolume is asked for.
struct VolumePlan {
  std::string name;
  VolumeKind kind = VolumeKind::kExt4;
  int64_t bytes = 0;
  SharedSnapshot of_snapshot = nullptr;
  SharedVolume of_volume = nullptr;
  uint64_t least = 0;  // of of_volume: what it had before anybody asked for the clone

  bool has_source() const { return of_snapshot || of_volume; }
};
using SharedVolumePlan = std::shared_ptr<const VolumePlan>;

// A volume that CreateVolume has answered. What is not const, and no mutex, is read and changed
// under the world's lock (World::Under, CallNote).
struct VolumeTruth {
  const std::string id;
  const int slot;
  const SharedVolumePlan plan;
  const std::shared_ptr<WriteHistory> history;
  const std::shared_ptr<CutContent> origin;  // null: it began blank
  Mutex content;                             // of whoever reads or writes what is in it
  CsiFact exists{CsiState::kThere};
  CsiFact leased{CsiState::kGone};  // by ControllerPublishVolume
  std::map<std::string, CsiFact> staged = {};
  std::map<std::string, CsiFact> published = {};
  int64_t capacity = 0;  // that was answered
  uint64_t gone_at = 0;  // when its deletion was answered; 0: it was not
};

// What CreateSnapshot, or CreateVolumeGroupSnapshot, is asked for.
struct SnapshotPlan {
  std::string name;
  std::vector<SharedVolume> of = {};
  std::vector<uint64_t> least = {};  // what each had before anybody asked
  bool is_group = false;
};
using SharedSnapshotPlan = std::shared_ptr<const SnapshotPlan>;

// As VolumeTruth.
struct SnapshotTruth {
  const std::string id;
  const std::string group;  // its id; empty: it is in none
  const SharedVolume of;
  const std::shared_ptr<CutContent> content;
  CsiFact exists{CsiState::kThere};
  uint64_t gone_at = 0;
};

struct VolumeSlot {
  SharedVolumePlan plan = nullptr;
  SharedVolume volume = nullptr;
};
struct SnapshotSlot {
  SharedSnapshotPlan plan = nullptr;
  std::vector<SharedSnapshot> made = {};  // a group's in the plan's order
};
// A snapshot as it was answered.
struct ToldSnapshot {
  std::string id;
  std::string of;
  std::string group;
};

CsiEnd EndOf(const grpc::Status& status);

// Threads: any. Blocks: AwaitUp() alone.
class World {
 public:
  // A run is over after so many calls, if all of `must_happen` was counted by then; it lasts no
  // longer than so many seconds.
  struct Limits {
    uint64_t calls = 0;
    double seconds = 0;  // 0: as long as it takes
    std::vector<std::string> must_happen = {};
  };
  World(Limits limits, size_t volume_slots, size_t snapshot_slots, size_t group_slots);

  // The next moment; no two are the same.
  uint64_t Now() { return ++now_; }

  // ---- the run ----
  bool IsOver() const EXCLUDES(mu_);
  // What of Limits::must_happen has not.
  std::vector<std::string> NeverHappened() const EXCLUDES(mu_);
  void CountCall() { ++calls_; }
  uint64_t calls() const { return calls_; }
  void Count(const std::string& what) EXCLUDES(mu_);
  std::map<std::string, uint64_t> counts() const EXCLUDES(mu_);
  // Something that must not be.
  void Violate(const std::string& what) EXCLUDES(mu_);
  std::vector<std::string> violations() const EXCLUDES(mu_);
  // The daemon takes calls, or takes none; each time that it is up it is another one.
  void SetUp(bool is_up) EXCLUDES(mu_);
  void AwaitUp() EXCLUDES(mu_);
  uint64_t daemon() const { return daemon_; }

  // ---- volumes ----
  size_t volume_slots() const { return volume_slots_count_; }
  VolumeSlot VolumeAt(size_t slot) const EXCLUDES(mu_);
  // The slot's plan, which is `fresh` if it has none.
  SharedVolumePlan PlanVolume(size_t slot, const SharedVolumePlan& fresh) EXCLUDES(mu_);
  // Calls that make something by its name and of which nobody knows whether they have: a CO repeats
  // them until it is told. The last ones of their names; one that was done is none of them.
  struct Doubts {
    std::map<std::string, ::csi::v1::CreateVolumeRequest> volumes;
    std::map<std::string, ::csi::v1::CreateSnapshotRequest> snapshots;
    std::map<std::string, ::csi::v1::CreateVolumeGroupSnapshotRequest> groups;
  };
  template <typename Request>
  void NoteMaking(std::map<std::string, Request> Doubts::*which, const Request& request,
                  const grpc::Status& status) EXCLUDES(mu_) {
    const MutexLock lock(mu_);
    if (status.ok()) {
      (doubts_.*which).erase(request.name());
    } else {
      (doubts_.*which)[request.name()] = request;
    }
  }
  Doubts doubts() const EXCLUDES(mu_);
  // Nothing came of the plan.
  void GiveUp(size_t slot, const SharedVolumePlan& plan) EXCLUDES(mu_);
  // CreateVolume, which began at `begun`, was answered. Null if that is a violation.
  SharedVolume Made(size_t slot, const SharedVolumePlan& plan, const std::string& id,
                    int64_t capacity, uint64_t begun) EXCLUDES(mu_);
  // Its deletion was answered. `keeps_name`: the slot's next volume has the same plan.
  void Gone(const SharedVolume& volume, bool keeps_name) EXCLUDES(mu_);
  void Grown(VolumeTruth& volume, int64_t capacity) EXCLUDES(mu_);
  int64_t CapacityOf(const VolumeTruth& volume) const EXCLUDES(mu_);
  CsiFact& Staged(VolumeTruth& volume, const std::string& path) EXCLUDES(mu_);
  CsiFact& Published(VolumeTruth& volume, const std::string& path) EXCLUDES(mu_);
  // Nullopt unless it is known that it is there.
  std::optional<uint64_t> VersionIfThere(const CsiFact& fact) const EXCLUDES(mu_);
  bool IsKnownGone(const CsiFact& fact) const EXCLUDES(mu_);
  std::vector<SharedVolume> volumes() const EXCLUDES(mu_);  // also those that are gone

  // ---- snapshots ----
  size_t snapshot_slots() const { return snapshot_slots_count_; }
  bool IsGroupSlot(size_t slot) const { return slot >= snapshot_slots_count_ - group_slots_count_; }
  SnapshotSlot SnapshotAt(size_t slot) const EXCLUDES(mu_);
  SharedSnapshotPlan PlanSnapshot(size_t slot, const SharedSnapshotPlan& fresh) EXCLUDES(mu_);
  void GiveUp(size_t slot, const SharedSnapshotPlan& plan) EXCLUDES(mu_);
  // As Made(); of each member of the plan one.
  void MadeSnapshots(size_t slot, const SharedSnapshotPlan& plan,
                     const std::vector<ToldSnapshot>& told, uint64_t begun) EXCLUDES(mu_);
  void Gone(size_t slot, const std::vector<SharedSnapshot>& snapshots) EXCLUDES(mu_);
  std::vector<SharedSnapshot> snapshots() const EXCLUDES(mu_);

 private:
  friend class CallNote;
  SharedVolume NewVolume(size_t slot, const SharedVolumePlan& plan, const std::string& id)
      REQUIRES(mu_);
  SharedSnapshot FindOrMake(const SnapshotPlan& plan, const ToldSnapshot& told, uint64_t begun,
                            size_t member) REQUIRES(mu_);
  void NoteViolation(const std::string& what) REQUIRES(mu_);

  const Limits limits_;
  const double started_;
  const size_t volume_slots_count_;
  const size_t snapshot_slots_count_;
  const size_t group_slots_count_;
  std::atomic<uint64_t> now_{0};
  std::atomic<uint64_t> calls_{0};
  std::atomic<uint64_t> daemon_{0};
  std::atomic<bool> has_enough_{false};  // violations
  mutable Mutex mu_;
  CondVar changed_;
  bool is_up_ GUARDED_BY(mu_) = false;
  uint64_t last_tag_ GUARDED_BY(mu_) = 0;
  Doubts doubts_ GUARDED_BY(mu_);
  std::vector<VolumeSlot> volume_slots_ GUARDED_BY(mu_);
  std::vector<SnapshotSlot> snapshot_slots_ GUARDED_BY(mu_);
  std::map<std::string, SharedVolume> volumes_ GUARDED_BY(mu_);      // by id
  std::map<std::string, SharedSnapshot> snapshots_ GUARDED_BY(mu_);  // by id
  std::map<std::string, uint64_t> counts_ GUARDED_BY(mu_);
  std::vector<std::string> violations_ GUARDED_BY(mu_);
};

// One call and the facts that it is about: what it changes, and what was so from its beginning to
// its end. Threads: one. All facts outlive it.
class CallNote {
 public:
  explicit CallNote(World& world) : world_(world) {}

  // Before Begin().
  void Makes(CsiFact& fact) { changes_.push_back({&fact, CsiState::kThere, 0}); }
  void Ends(CsiFact& fact) { changes_.push_back({&fact, CsiState::kGone, 0}); }
  // The number of what is watched.
  size_t Watch(const CsiFact& fact, const std::string& what = "");
  // All places of the volume that are on record when it begins.
  void WatchPlaces(const VolumeTruth& volume, bool also_staging);

  void Begin();
  void End(const grpc::Status& status);

  uint64_t begun() const { return begun_; }
  CsiState Before(size_t watched) const { return watched_[watched].before; }
  bool Stayed(size_t watched, CsiState state) const {
    return watched_[watched].stayed && watched_[watched].before == state;
  }
  // One of the watched places, at which the volume was all the time; empty: at none.
  std::string PlaceThatStayed() const;

 private:
  struct Change {
    CsiFact* fact;
    CsiState wanted;
    uint64_t serial;
  };
  struct Watched {
    const CsiFact* fact;
    std::string what;
    CsiState before = CsiState::kUnknown;
    uint64_t version = 0;
    bool stayed = false;
  };

  World& world_;
  const VolumeTruth* places_of_ = nullptr;
  bool also_staging_ = false;
  uint64_t begun_ = 0;
  std::vector<Change> changes_;
  std::vector<Watched> watched_;
};

}  // namespace volumed::random_clients
