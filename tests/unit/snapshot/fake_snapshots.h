// FakeSnapshots: a SnapshotMaker without an engine.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "snapshot/snapshot_maker.h"

namespace volumed {

inline constexpr char kTestDriver[] = "pool.volumed.io";

// Keeps rows as an engine does. A snapshot is cut when it is asked for, and ready when the test
// says so.
class FakeSnapshots final : public SnapshotMaker {
 public:
  const std::string& driver() const override { return driver_; }
  void Create(const SnapshotWish& wish, SnapshotEngine::Made done) override {
    ++creations;
    if (const std::optional<Error> error = std::exchange(fail_next, std::nullopt)) {
      return done(*error);
    }
    if (holds_back) {
      waiting = [this, wish, done] { Make(wish, done); };
      return;
    }
    Make(wish, done);
  }
  void Cancel(const std::string& id, SnapshotEngine::Done done) override {
    SetPhase(id, SnapshotPhase::kCancelled);
    done(OkStatus());
  }
  void Delete(const std::string& id, SnapshotEngine::Done done) override {
    ++deletions;
    if (const std::optional<Error> error = std::exchange(fail_next, std::nullopt)) {
      return done(Status(*error));
    }
    const auto found = rows.find(id);
    if (found != rows.end()) {
      SnapshotRecord gone = found->second;
      rows.erase(found);
      gone.phase = SnapshotPhase::kDeleting;
      Tell(gone);
    }
    done(OkStatus());
  }
  std::optional<SnapshotRecord> Find(const std::string& id) const override {
    ++finds;
    const auto found = rows.find(id);
    return found == rows.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<SnapshotRecord> FindByName(const std::string& name) const override {
    for (const auto& [id, row] : rows) {
      if (row.name == name) return row;
    }
    return std::nullopt;
  }
  std::vector<SnapshotRecord> List(const SnapshotFilter&) const override {
    std::vector<SnapshotRecord> all;
    for (const auto& [id, row] : rows) {
      if (IsCut(row.phase)) all.push_back(row);
    }
    return all;
  }
  void AddListener(SnapshotEngine::Listener listener) override {
    listeners_.push_back(std::move(listener));
  }

  SnapshotRecord Add(const std::string& id, const std::string& name, SnapshotPhase phase) {
    SnapshotRecord row;
    row.id = id;
    row.name = name;
    row.volume = "vol-1";
    row.phase = phase;
    row.size_bytes = int64_t{1} << 30;
    row.cut_unix_ms = 1'767'323'045'678;
    rows[id] = row;
    return row;
  }
  void SetPhase(const std::string& id, SnapshotPhase phase) {
    rows.at(id).phase = phase;
    Tell(rows.at(id));
  }

  std::map<std::string, SnapshotRecord> rows;
  std::optional<Error> fail_next;
  bool holds_back = false;
  std::function<void()> waiting;
  int creations = 0;
  int deletions = 0;
  mutable int finds = 0;

 private:
  void Make(const SnapshotWish& wish, const SnapshotEngine::Made& done) {
    if (const auto there = FindByName(wish.name)) rows.erase(there->id);
    SnapshotRecord row = Add("snap-" + std::to_string(++last_), wish.name, SnapshotPhase::kCut);
    row.volume = wish.volume;
    row.tags = wish.tags;
    rows[row.id] = row;
    Tell(row);
    done(row);
  }
  void Tell(const SnapshotRecord& row) {
    for (const SnapshotEngine::Listener& listener : listeners_) listener(row);
  }

  const std::string driver_ = kTestDriver;
  int last_ = 0;
  std::vector<SnapshotEngine::Listener> listeners_;
};

}  // namespace volumed
