// CsiCallByHandTest: calls by hand beside the agent's own parts: its executor, its records and its
// table of storage.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "csi/csi_call_by_hand.h"
#include "operation/node_volume_operations.h"
#include "unit/csi/plugin_fixture.h"
#include "volume/storage_name.h"

namespace volumed {

class CsiCallByHandTest : public CsiPluginFixture {
 protected:
  CsiCallByHandTest() {
    Start();
    ServeNode();
  }
  ~CsiCallByHandTest() override {
    operations_.reset();
    scheduler_.RunFor(milliseconds(1));
  }

  // The agent's own parts; the records stay.
  void Start() {
    plugin_.reset();
    commands_ = std::make_unique<CsiCommands>(store_, log_);
    commands_->Restore(*store_.Load(kCsiCommandRecordKind));
    CsiPluginParts parts = context_->parts;
    parts.commands = commands_.get();
    plugin_ = std::make_unique<CsiPlugin>(parts);
    EXPECT_TRUE(plugin_->Init({host_, wrappers_}).ok());
    storage_ = std::make_unique<StorageGuard>(kernel_, store_, clock_, log_, kBoot);
    storage_->AddDeletions(OpenDeletionsOf(*commands_));
    operations_ = std::make_unique<NodeVolumeOperations>(scheduler_,
                                                         OperationParts{.plugins = mgr_,
                                                                        .host = host_,
                                                                        .logger = log_,
                                                                        .store = store_,
                                                                        .devices = *devices_,
                                                                        .storage = *storage_,
                                                                        .unrecorded = unrecorded_},
                                                         observer_, kBoot);
  }
  void RestartAll() {
    operations_.reset();
    scheduler_.RunFor(milliseconds(1));
    RestartAgent();
    Start();
  }

  // Nullopt: it has not ended yet.
  using Outcome = std::optional<OperationOutcome<std::string>>;
  Outcome ByHand(const Message& request, Duration wait = seconds(1)) {
    const CsiMethod& method = *CsiMethodOf(request.GetDescriptor());
    const std::shared_ptr<Message> message(request.New());
    message->CopyFrom(request);
    const auto outcome = std::make_shared<Outcome>();
    CallByHand call(*commands_, drivers_->Find(kName),
                    CsiCommandOf(kName, method, request, clock_.WallUnixMillis()), message,
                    Deadline::After(clock_, minutes(1)));
    operations_->ResetBackoff(call.key());
    started_ = operations_->Start(
        call, [outcome](const OperationOutcome<std::string>& ended) { *outcome = ended; });
    meanwhile_();
    scheduler_.RunFor(wait);
    return *outcome;
  }
  Error RefusedByHand(const Message& request) {
    const Outcome outcome = ByHand(request);
    if (!outcome || !outcome->failure) {
      ADD_FAILURE() << "it was not refused";
      return Error::NotApplied(Code::kUnknown, "");
    }
    return outcome->failure->error;
  }
  ::csi::v1::NodeStageVolumeRequest StageRequest() {
    ::csi::v1::NodeStageVolumeRequest request;
    request.set_volume_id(kHandle);
    request.set_staging_target_path(Staging());
    (*request.mutable_secrets())["password"] = "hunter2-hand";
    return request;
  }
  ::csi::v1::NodeUnstageVolumeRequest UnstageRequest() {
    ::csi::v1::NodeUnstageVolumeRequest request;
    request.set_volume_id(kHandle);
    request.set_staging_target_path(Staging());
    return request;
  }
  // A pod has the volume by its record.
  void PutPod(bool is_inline) {
    PodVolumeRecord record;
    record.key = {PodUid(kPodUid), SpecName(is_inline ? "scratch" : "pv-1")};
    record.pod_namespace = "shop";
    record.pod_name = "web";
    record.plugin_name = kCsiPluginName;
    record.fault_domain = std::string("csi:") + kName;
    record.state = VolumeState::kSetUp;
    record.boot_id = kBoot;
    if (!is_inline) {
      record.unique_name = CsiUniqueName(kName, kHandle);
      record.has_device = true;
    }
    operations_->Restore({record}, {});
  }
  // What a start finds of a pod whose records were lost: its mount, which is there. By an empty
  // name nothing says of which volume it is.
  UnrecordedMount LeftByLostPod(UniqueVolumeName volume) {
    Mounts(LostTarget(), disk_);
    UnrecordedMount left;
    left.plugin = kCsiPluginName;
    left.volume = std::move(volume);
    left.spec = SpecName("pv-1");
    left.pod = PodUid("lost");
    left.places = {CsiPodVolumeDir(paths_, left.pod, left.spec).Display()};
    return left;
  }
  // The PersistentVolume is applied.
  void Name(const std::string& volume) {
    const StorageName name{.path = kHandle, .server = "", .driver = kName};
    storage_->NameStorage(volume, &name);
  }
  std::string LostTarget() {
    return CsiTargetPath(paths_, PodUid("lost"), SpecName("pv-1")).Display();
  }
  // Gives the root, with all that is mounted in it, a second name.
  std::string BindRoot() {
    kernel_.AddDirectory("/data/alias");
    const SafePath root{"/", paths_.root().substr(1)};
    Must(kernel_.Call(
        BindMount{.source = root, .target = HostPathOf("/data/alias"), .recursive = true}, {}));
    return "/data/alias";
  }
  static UniqueVolumeName TheVolume() { return CsiUniqueName(kName, kHandle); }
  size_t Rows() { return store_.Load(kCsiCommandRecordKind)->records.size(); }

  std::unique_ptr<CsiCommands> commands_;
  std::shared_ptr<UnrecordedMounts> unrecorded_ = std::make_shared<UnrecordedMounts>();
  std::function<void()> meanwhile_ = [] {};  // after the call was asked for, before it runs
  std::unique_ptr<StorageGuard> storage_;
  std::unique_ptr<NodeVolumeOperations> operations_;
  StartResult started_ = StartResult::kPending;
};

}  // namespace volumed
