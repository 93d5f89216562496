// SnapshotBackend: the pools of this node and their snapshots, as the handlers of the control API
// work on them. SnapshotObservers: who wants to know of changes of snapshots, for a while. And the
// snapshot that a person means, who names it by its id.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "operation/volume_operations.h"
#include "pool/pool_operations.h"
#include "snapshot/snapshot_maker.h"
#include "snapshot/snapshot_objects.h"

namespace volumed {

// Threads: the control thread. Blocks: never.
class SnapshotObservers {
 public:
  // Told with the id of a snapshot whose row has changed.
  using Observer = std::function<void(const std::string& id)>;
  // The maker outlives this object, which lives as long as the maker tells anything.
  explicit SnapshotObservers(SnapshotMaker& maker) {
    maker.AddListener([this](const SnapshotRecord& record) { Tell(record.id); });
  }
  SnapshotObservers(const SnapshotObservers&) = delete;
  SnapshotObservers& operator=(const SnapshotObservers&) = delete;

  // The number takes it away again; never 0.
  uint64_t Add(Observer observer) {
    observers_.emplace(++last_, std::move(observer));
    return last_;
  }
  void Remove(uint64_t number) { observers_.erase(number); }

 private:
  void Tell(const std::string& id) {
    // An observer may go meanwhile.
    const std::map<uint64_t, Observer> all = observers_;
    for (const auto& [number, observer] : all) {
      if (observers_.contains(number)) observer(id);
    }
  }

  uint64_t last_ = 0;
  std::map<uint64_t, Observer> observers_;
};

// All parts outlive the handlers. Used on the control thread, but for the volumes of the pools.
struct SnapshotBackend {
  PoolServed pools;
  SnapshotMaker& maker;
  const SnapshotObjects& objects;
  SnapshotObservers& observers;
  VolumeOperations& operations;
};

// Before the names of what is made by hand. No name of an object has a colon, so that neither a
// claim's volume nor another's snapshot is ever taken for it.
inline constexpr char kByHand[] = "hand:";

// NotFound, not applied: there is no snapshot of this id. It says the id of the one that has this
// name, as `snapshot create --name` was given it or as it is shown. Threads: any. Blocks: never.
Error NoSuchSnapshot(const SnapshotMaker& maker, const std::string& id);

// FailedPrecondition, not applied: an orchestrator has made this `what` ("volume", "snapshot"), and
// it alone knows whether anybody wants it.
Error MayBeWanted(const std::string& what, const std::string& id);

// Deletes one for a person, who wants to know when there is none. Threads: the control thread,
// where `done` is called. Blocks: never. Errors: NotFound, not applied; MayBeWanted(), unless it is
// `abandoned`; those of SnapshotObjects::CheckNotHad and of SnapshotEngine::Delete.
void DeleteSnapshotByHand(const SnapshotBackend& snapshots, const std::string& id, bool abandoned,
                          const SnapshotEngine::Done& done);

}  // namespace volumed
