// Snapshots and groups over CSI on a simulated node, for tests: beside the Controller and the Node
// service, with an engine that cuts what these have made. The files of the pool's filesystem can
// share their blocks, unless a test says otherwise.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "csidriver/group_rpcs.h"
#include "csidriver/snapshot_rpcs.h"
#include "snapshot/snapshot_contents.h"
#include "snapshot/snapshot_engine.h"
#include "unit/csidriver/node_fixture.h"

namespace volumed {

inline constexpr char kCutOfAnotherPool[] = "s-00000000-0123456789abcdef01234567";
inline constexpr char kGroupOfAnotherPool[] = "g-00000000-0123456789abcdef01234567";

class SnapshotFixture : public NodeFixture {
 protected:
  // Without a filesystem that shares blocks the bytes of a cut are copied.
  explicit SnapshotFixture(const std::string& pool_type = "xfs") : NodeFixture(pool_type) {
    RestartSnapshots();
  }
  ~SnapshotFixture() override { EndEngine(); }

  // A new agent on the same node and store, with handlers of this profile and level.
  void RestartSnapshots(CsiProfile profile = CsiProfile::kCentral,
                        CsiServeLevel level = CsiServeLevel::k1_12) {
    EndEngine();
    Restart();
    when_copied_ = [this](const std::string& volume, Duration at_most, std::function<void()> done) {
      engine_->WhenCopiedForClone(volume, at_most, std::move(done));
    };
    Serve(profile, level);
    AddNode();
    engine_ = std::make_unique<SnapshotEngine>(
        SnapshotEngine::Parts{scheduler_, *operations_, *volumes_, paths_, *devices_, store_,
                              kernel_, logger_, kDriver},
        SnapshotSettings{});
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
    engine_->Start();
    const CsiPlaces places = CsiPlacesOf(kDriver, kThisNode, {});
    const SnapshotRpcParts parts{
        *engine_, *volumes_, places, places, [this](const std::string& id) -> Status {
          if (id != had_by_object_) return OkStatus();
          return Error::NotApplied(Code::kFailedPrecondition, "it is a VolumeSnapshot's");
        }};
    AddSnapshotRpcs(*handlers_, parts);
    AddGroupRpcs(*handlers_, parts);
    EXPECT_TRUE(handlers_->Check().ok());
    scheduler_.RunFor(std::chrono::milliseconds(1));
  }

  // ---- snapshots --------------------------------------------------------------------------------

  static ::csi::v1::CreateSnapshotRequest CutRequestOf(const std::string& name,
                                                       const std::string& volume) {
    ::csi::v1::CreateSnapshotRequest request;
    request.set_name(name);
    request.set_source_volume_id(volume);
    return request;
  }
  grpc::StatusCode CutCode(const ::csi::v1::CreateSnapshotRequest& request) {
    cut_.Clear();
    return CodeOf(request, &cut_);
  }
  grpc::StatusCode CutCode(const std::string& name, const std::string& volume) {
    return CutCode(CutRequestOf(name, volume));
  }
  // The snapshot; one without an id if it was refused.
  ::csi::v1::Snapshot Cut(const std::string& name, const std::string& volume) {
    EXPECT_EQ(CutCode(name, volume), grpc::StatusCode::OK) << message_;
    return cut_.snapshot();
  }
  grpc::StatusCode DeleteCut(const std::string& id) {
    ::csi::v1::DeleteSnapshotRequest request;
    request.set_snapshot_id(id);
    ::csi::v1::DeleteSnapshotResponse response;
    return CodeOf(request, &response);
  }
  grpc::StatusCode GetCut(const std::string& id) {
    ::csi::v1::GetSnapshotRequest request;
    request.set_snapshot_id(id);
    got_.Clear();
    return CodeOf(request, &got_);
  }
  grpc::StatusCode ListCuts(const ::csi::v1::ListSnapshotsRequest& request = {}) {
    listed_.Clear();
    return CodeOf(request, &listed_);
  }
  // The ids of all, in the order of the answer.
  std::vector<std::string> ListedIds(const ::csi::v1::ListSnapshotsRequest& request = {}) {
    EXPECT_EQ(ListCuts(request), grpc::StatusCode::OK) << message_;
    std::vector<std::string> ids;
    for (const auto& entry : listed_.entries()) ids.push_back(entry.snapshot().snapshot_id());
    return ids;
  }

  // ---- what is made of them ---------------------------------------------------------------------

  static ::csi::v1::CreateVolumeRequest RestoreRequest(const std::string& name,
                                                       const std::string& snapshot,
                                                       int64_t bytes = 16 * kMiB) {
    ::csi::v1::CreateVolumeRequest request = CreateRequest(name, bytes);
    request.mutable_volume_content_source()->mutable_snapshot()->set_snapshot_id(snapshot);
    return request;
  }
  static ::csi::v1::CreateVolumeRequest CloneRequest(const std::string& name,
                                                     const std::string& volume,
                                                     int64_t bytes = 16 * kMiB) {
    ::csi::v1::CreateVolumeRequest request = CreateRequest(name, bytes);
    request.mutable_volume_content_source()->mutable_volume()->set_volume_id(volume);
    return request;
  }

  // ---- groups -----------------------------------------------------------------------------------

  static ::csi::v1::CreateVolumeGroupSnapshotRequest GroupRequest(
      const std::string& name, const std::vector<std::string>& volumes) {
    ::csi::v1::CreateVolumeGroupSnapshotRequest request;
    request.set_name(name);
    for (const std::string& volume : volumes) request.add_source_volume_ids(volume);
    return request;
  }
  grpc::StatusCode GroupCode(const ::csi::v1::CreateVolumeGroupSnapshotRequest& request) {
    group_.Clear();
    return CodeOf(request, &group_);
  }
  ::csi::v1::VolumeGroupSnapshot CutGroup(const std::string& name,
                                          const std::vector<std::string>& volumes) {
    EXPECT_EQ(GroupCode(GroupRequest(name, volumes)), grpc::StatusCode::OK) << message_;
    return group_.group_snapshot();
  }

  static std::string NewIdOf(const PoolVolumes& volumes, PoolObject object) {
    return NewPoolId(object, volumes.pools().front()->tag()).ToString();
  }

  std::string had_by_object_;  // the id of a snapshot that an object of the node has; "": none
  std::unique_ptr<SnapshotEngine> engine_;
  std::unique_ptr<SnapshotContents> contents_;
  ::csi::v1::CreateSnapshotResponse cut_;
  ::csi::v1::GetSnapshotResponse got_;
  ::csi::v1::ListSnapshotsResponse listed_;
  ::csi::v1::CreateVolumeGroupSnapshotResponse group_;

 private:
  // Before the volumes that it works on, and after what it has begun.
  void EndEngine() {
    scheduler_.RunFor(std::chrono::milliseconds(1));
    if (volumes_) volumes_->SetContentHolder(nullptr);
    if (volumes_) volumes_->SetChanged({});
    contents_.reset();
    engine_.reset();
  }
};

}  // namespace volumed
