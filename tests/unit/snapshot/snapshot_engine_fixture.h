// A node with a pool, whose agents have the operations on its volumes and the snapshot engine.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "pool/pool_operations.h"
#include "snapshot/snapshot_contents.h"
#include "snapshot/snapshot_engine.h"
#include "unit/pool/pool_operations_fixture.h"

namespace volumed {

inline constexpr Duration kAMoment = std::chrono::milliseconds(1);

template <typename T>
Error FailureOf(const Result<T>& result) {
  return result.ok() ? Error::NotApplied(Code::kUnknown, "it has not failed") : result.error();
}
template <typename T>
Code CodeOf(const Result<T>& result) {
  return FailureOf(result).code();
}

class SnapshotEngineTest : public PoolOperationsFixture {
 protected:
  // Without a filesystem that shares blocks the bytes of a cut are copied.
  explicit SnapshotEngineTest(const std::string& pool_type = "xfs")
      : PoolOperationsFixture(pool_type) {
    MakeEngine();
    StartEngine();
  }
  ~SnapshotEngineTest() override { EndEngine(); }

  void EndEngine() {
    contents_.reset();
    engine_.reset();
  }
  void MakeEngine() {
    engine_ = std::make_unique<SnapshotEngine>(
        SnapshotEngine::Parts{scheduler_, *operations_, *volumes_, paths_, *devices_, store_,
                              kernel_, logger_, kDriver},
        settings_);
    for (const char* kind : {kSnapshotRecordKind, kSnapshotGroupRecordKind}) {
      engine_->Restore(kind, Must(store_.Load(kind)));
    }
    contents_ = std::make_unique<SnapshotContents>(*engine_);
    volumes_->SetContentHolder(contents_.get());
    volumes_->SetChanged([this] {
      scheduler_.Post([this] {
        if (engine_) engine_->VolumesChanged();
      });
    });
  }
  void StartEngine() {
    engine_->FailDoubted();
    engine_->EndFreezes();
    engine_->Start();
    Run();
  }
  void RestartAgent() {
    EndEngine();
    Restart();
    MakeEngine();
    StartEngine();
  }
  void Run(Duration time = kAMoment) { scheduler_.RunFor(time); }

  PoolVolumeRecord Made(const std::string& name = "pvc-1") {
    return Must(volumes_->Create(Wish(name), {}));
  }
  // One that is mounted for writing; its id.
  std::string Mounted(const std::string& name = "pvc-1") {
    const PersistentVolume volume = Claim(VolumeMode::kFilesystem, name);
    EXPECT_EQ(Stage(volume), "");
    return std::get<CsiPersistentVolumeSource>(volume.spec.source).volume_handle;
  }

  // A wish for a clone of this volume.
  static PoolVolumeWish CloneOf(const std::string& volume, const std::string& name = "clone") {
    PoolVolumeWish wish = Wish(name);
    wish.content.emplace();
    wish.content->driver = kDriver;
    wish.content->handle = volume;
    return wish;
  }

  // An agent that ends may still tell what came of these, to nobody.
  Result<SnapshotRecord> Create(const std::string& name, const std::string& volume) {
    const auto answer = std::make_shared<std::optional<Result<SnapshotRecord>>>();
    engine_->Create({name, volume}, [answer](const auto& made) { answer->emplace(made); });
    Run();
    return answer->value_or(Error::NotApplied(Code::kUnknown, "there is no answer"));
  }
  // OK also means that the answer has come.
  Status Delete(const std::string& id) {
    return Asked([&](auto done) { engine_->Delete(id, done); });
  }
  Status Cancel(const std::string& id) {
    return Asked([&](auto done) { engine_->Cancel(id, done); });
  }
  Result<SnapshotGroupView> CreateGroup(const std::string& name, std::vector<std::string> volumes,
                                        StringMap parameters = {}) {
    const auto answer = std::make_shared<std::optional<Result<SnapshotGroupView>>>();
    engine_->CreateGroup({name, std::move(volumes), std::move(parameters)},
                         [answer](const auto& made) { answer->emplace(made); });
    Run();
    return answer->value_or(Error::NotApplied(Code::kUnknown, "there is no answer"));
  }
  Status DeleteGroup(const std::string& id, const std::vector<std::string>& snapshots = {}) {
    return Asked([&](auto done) { engine_->DeleteGroup(id, snapshots, done); });
  }

  // On the disk, as the next agent reads them.
  std::vector<SnapshotRecord> Rows() {
    std::vector<SnapshotRecord> rows;
    for (const Record& row : Must(store_.Load(kSnapshotRecordKind)).records) {
      rows.push_back(Must(DecodeSnapshotRecord(row)));
    }
    return rows;
  }
  std::vector<Record> GroupRows() { return Must(store_.Load(kSnapshotGroupRecordKind)).records; }
  // The device of a cut that somebody has attached, with its node bound at /elsewhere.
  std::string BindCut(const std::string& id) {
    const auto loop = std::get<AttachedLoop>(
        Must(node_.DoAside(AttachLoop{.path = {kPoolPath, "cuts/" + id + "/image"}})));
    if (!node_.Exists("/elsewhere")) node_.AddFile("/elsewhere", "");
    Must(node_.DoAside(BindMount{.source = {loop.device.path, ""}, .target = {"/elsewhere", ""}}));
    return loop.device.path;
  }
  // The files of cuts, by their ids.
  std::vector<std::string> Cuts() {
    std::vector<std::string> names;
    if (!node_.Exists(kPoolPath + "/cuts")) return names;
    const auto list = Must(node_.DoAside(ListDirectory{{kPoolPath, "cuts"}}));
    for (const DirectoryEntry& entry : std::get<DirectoryListing>(list).entries) {
      names.push_back(entry.name);
    }
    return names;
  }
  // Calls `hook` before each effect of this kind.
  void Before(const std::string& effect, std::function<void()> hook) {
    node_.SetCallHook([effect, hook = std::move(hook)](const AnyRequest& request) {
      const std::string name = std::visit([](const auto& one) { return one.kName; }, request);
      if (name == effect) hook();
    });
  }

  SnapshotSettings settings_;
  std::unique_ptr<SnapshotEngine> engine_;
  std::unique_ptr<SnapshotContents> contents_;

 private:
  Status Asked(const std::function<void(SnapshotEngine::Done)>& ask) {
    const auto answer = std::make_shared<std::optional<Status>>();
    ask([answer](const Status& status) { *answer = status; });
    Run();
    return answer->value_or(Error::NotApplied(Code::kUnknown, "there is no answer"));
  }
};

}  // namespace volumed
