// SnapshotMaker: the snapshots of this node as those need them who ask for some: objects of
// Kubernetes and people. EngineSnapshots is the SnapshotEngine as one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "snapshot/snapshot_engine.h"

namespace volumed {

// Threads, blocking and errors of each: as SnapshotEngine.
class SnapshotMaker {
 public:
  virtual ~SnapshotMaker() = default;
  // By which volumes name the pools of this node; empty: there are none.
  virtual const std::string& driver() const = 0;
  virtual void Create(const SnapshotWish& wish, SnapshotEngine::Made done) = 0;
  virtual void Cancel(const std::string& id, SnapshotEngine::Done done) = 0;
  virtual void Delete(const std::string& id, SnapshotEngine::Done done) = 0;
  virtual std::optional<SnapshotRecord> Find(const std::string& id) const = 0;
  virtual std::optional<SnapshotRecord> FindByName(const std::string& name) const = 0;
  virtual std::vector<SnapshotRecord> List(const SnapshotFilter& filter) const = 0;
  virtual void AddListener(SnapshotEngine::Listener listener) = 0;
};

class EngineSnapshots final : public SnapshotMaker {
 public:
  // The engine outlives this object.
  explicit EngineSnapshots(SnapshotEngine& engine) : engine_(engine) {}

  const std::string& driver() const override { return engine_.driver(); }
  void Create(const SnapshotWish& wish, SnapshotEngine::Made done) override {
    engine_.Create(wish, std::move(done));
  }
  void Cancel(const std::string& id, SnapshotEngine::Done done) override {
    engine_.Cancel(id, std::move(done));
  }
  void Delete(const std::string& id, SnapshotEngine::Done done) override {
    engine_.Delete(id, std::move(done));
  }
  std::optional<SnapshotRecord> Find(const std::string& id) const override {
    return engine_.Find(id);
  }
  std::optional<SnapshotRecord> FindByName(const std::string& name) const override {
    return engine_.FindByName(name);
  }
  std::vector<SnapshotRecord> List(const SnapshotFilter& filter) const override {
    return engine_.List(filter);
  }
  void AddListener(SnapshotEngine::Listener listener) override {
    engine_.AddListener(std::move(listener));
  }

 private:
  SnapshotEngine& engine_;
};

}  // namespace volumed
