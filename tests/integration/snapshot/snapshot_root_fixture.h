// A node with a pool on a real filesystem, and an agent's operations and snapshot engine on it,
// with real workers. Time stands still for its timers, and goes on for its deadlines.
#pragma once

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/simulated_scheduler.h"
#include "fakes/memory_record_store.h"
#include "fakes/must.h"
#include "integration/mounter/block_mount_fixture.h"
#include "metrics/exported_families.h"
#include "operation/device_operations.h"
#include "operation/node_volume_operations.h"
#include "operation/record_format_intents.h"
#include "os/worker_kernel.h"
#include "places.h"
#include "pool/pool_operations.h"
#include "pool/pool_plugin.h"
#include "snapshot/snapshot_contents.h"
#include "unit/operation/load_records.h"
#include "unit/operation/recording_parts.h"
#include "unit/operation/stub_host.h"

namespace volumed {

inline constexpr char kOwnDriver[] = "pool.volumed.io";

class SnapshotRootTest : public BlockMountTest {
 protected:
  static constexpr int kRecoverTries = 5;
  static constexpr int64_t kPoolBytes = int64_t{3} << 30;
  static constexpr int64_t kVolumeBytes = int64_t{384} << 20;

  // Of the pool. It can share blocks.
  virtual std::string pool_type() const { return "xfs"; }

  void SetUp() override {
    BlockMountTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    disk_.emplace(BlockMountTest::Image("pool", kPoolBytes));
    ASSERT_TRUE(disk_->valid());
    Mkfs(pool_type(), disk_->path());
    ASSERT_EQ(::mount(disk_->path().c_str(), Path("mnt").c_str(), pool_type().c_str(), 0, nullptr),
              0);
    for (const char* name : {"keys", "root", "root/pods", "root/plugins"}) {
      ASSERT_EQ(::mkdir(Path(name).c_str(), 0755), 0) << name;
    }
    parts_.node_labels = {{PoolTopologyLabel(kOwnDriver), "node"}};
    paths_ = std::make_unique<KubeletPaths>(Path("root"));
    WorkerKernelOptions options;
    options.worker_path = VolumedWorkerPath();
    options.key_directory = Path("keys");
    workers_ = Must(WorkerKernel::Create(options, clock_));
    host_.reset(new VolumeHost{*paths_, *workers_, clock_, parts_, parts_, parts_, parts_,
                               families_, irreversible_});
    StartAgent();
  }
  void TearDown() override {
    if (disk_) {
      EndAgent();
      host_.reset();
      workers_.reset();
      (void)Shell("umount " + Path("root/plugins/volumed.io/pool/mounts/*"));
      for (const char* kind : {"volumes", "cuts"}) {
        (void)Shell("for f in " + Path("mnt/") + kind +
                    "/*/image; do losetup -j $f -O NAME -n | xargs -r losetup -d; done");
      }
    }
    BlockMountTest::TearDown();
  }

  // The node's next agent, on what the one before it has left.
  void StartAgent() {
    const BootId boot("boot-a");
    devices_ = std::make_unique<DeviceRecordKeeper>(store_, clock_, logger_, observer_, boot);
    guard_ = std::make_unique<StorageGuard>(*workers_, store_, clock_, logger_, boot);
    guard_->AddOwnDirectory("the directory of pool fast,", Path("mnt"));
    formats_ = std::make_unique<RecordFormatIntents>(*devices_, *guard_, boot);
    PoolSettings settings;
    settings.name = "fast";
    settings.path = Path("mnt");
    settings.holder = "the agent of a test";
    std::vector<std::unique_ptr<Pool>> pools;
    pools.push_back(
        std::make_unique<Pool>(std::move(settings), *workers_, store_, clock_, logger_));
    volumes_ = std::make_unique<PoolVolumes>(
        PoolVolumes::Parts{store_, *workers_, clock_, logger_, irreversible_}, std::move(pools));
    for (const char* kind : {kPoolRecordKind, kPoolVolumeRecordKind, kPoolCutRecordKind}) {
      volumes_->Restore(kind, Must(store_.Load(kind)));
    }
    plugins_ = std::make_unique<VolumePluginMgr>();
    std::vector<std::unique_ptr<VolumePlugin>> plugins;
    plugins.push_back(std::make_unique<PoolPlugin>(
        PoolPluginParts{*volumes_, kOwnDriver, {.format_intents = formats_.get()}}));
    ASSERT_TRUE(plugins_->InitPlugins(std::move(plugins), *host_).ok());
    operations_ = std::make_unique<NodeVolumeOperations>(
        scheduler_, OperationParts{*plugins_, *host_, logger_, store_, *devices_, *guard_},
        observer_, boot);
    operations_->Restore(LoadPodVolumeRecords(store_), LoadDeviceRecords(store_));
    engine_ = std::make_unique<SnapshotEngine>(
        SnapshotEngine::Parts{scheduler_, *operations_, *volumes_, *paths_, *devices_, store_,
                              *workers_, logger_, kOwnDriver},
        SnapshotSettings{.limits = {.never_frozen = {{Path("root"), ""}}}});
    for (const char* kind : {kSnapshotRecordKind, kSnapshotGroupRecordKind}) {
      engine_->Restore(kind, Must(store_.Load(kind)));
    }
    contents_ = std::make_unique<SnapshotContents>(*engine_);
    volumes_->SetContentHolder(contents_.get());
    const auto is_used = [this](const std::string& id) {
      const auto device = devices_->Find(PoolDeviceName(id));
      return device && !IsGone(*device);
    };
    // The agent tries again, too: a worker may have been killed by the test, and nobody has seen
    // it.
    Status opened = volumes_->Recover(is_used, {});
    for (int i = 0; i < kRecoverTries && !opened.ok(); ++i) opened = volumes_->Recover(is_used, {});
    ASSERT_TRUE(opened.ok()) << opened.error().ToString();
    engine_->Start();
    Run();
  }
  void EndAgent() {
    contents_.reset();
    engine_.reset();
    operations_.reset();
    plugins_.reset();
    volumes_.reset();
    formats_.reset();
    guard_.reset();
    devices_.reset();
  }
  void RestartAgent() {
    EndAgent();
    StartAgent();
  }
  void Run(Duration time = std::chrono::milliseconds(1)) { scheduler_.RunFor(time); }

  PoolVolumeWish WishFor(const std::string& name) const {
    PoolVolumeWish wish;
    wish.name = name;
    wish.size.required_bytes = kVolumeBytes;
    return wish;
  }
  PoolVolumeWish WishOf(const std::string& name, bool is_snapshot, const std::string& id) const {
    PoolVolumeWish wish = WishFor(name);
    wish.content.emplace();
    wish.content->is_snapshot = is_snapshot;
    wish.content->driver = kOwnDriver;
    wish.content->handle = id;
    return wish;
  }
  std::string Made(const PoolVolumeWish& wish) { return Must(volumes_->Create(wish, {})).id; }

  // The place where it is mounted then.
  std::string Stage(const std::string& id) {
    const PersistentVolume volume = PoolPvOf(Must(volumes_->Find(id)), kOwnDriver, "node");
    MountDeviceRequest request{
        PoolDeviceName(id), VolumeSpec::FromPersistentVolume(volume, false), {PodUid("a")}};
    auto pod = std::make_shared<Pod>();
    pod->metadata.uid = "a";
    pod->metadata.name = "a";
    request.first_pod = pod;
    const std::optional<Error> failed = ErrorOf(MountDevice(std::move(request)));
    EXPECT_FALSE(failed) << failed->ToString();
    return devices_->Find(PoolDeviceName(id)).value().device_mount_path;
  }
  // A loop device goes when whoever looks at all devices of the machine has closed it. The agent
  // tries again until then.
  void Unstage(const std::string& id) {
    const DeviceRecord device = devices_->Find(PoolDeviceName(id)).value();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    std::optional<Error> failed;
    do {
      if (failed) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      failed = ErrorOf(UnmountDevice(
          {PoolDeviceName(id), kPoolPluginName, device.spec, device.device_mount_path, false}));
    } while (failed && failed->maybe_applied() && failed->code() == Code::kFailedPrecondition &&
             std::chrono::steady_clock::now() < end);
    EXPECT_FALSE(failed) << failed->ToString();
  }
  void Remove(const std::string& id) {
    const Status deleted = volumes_->Delete(id, false, {});
    if (!deleted.ok()) throw std::runtime_error(deleted.error().ToString());
    Run();
  }
  Result<SnapshotRecord> Create(const std::string& name, const std::string& volume) {
    const auto answer = std::make_shared<std::optional<Result<SnapshotRecord>>>();
    engine_->Create({name, volume}, [answer](const auto& made) { answer->emplace(made); });
    Run();
    return answer->value_or(Error::NotApplied(Code::kUnknown, "there is no answer"));
  }
  Status Delete(const std::string& id) {
    const auto answer = std::make_shared<std::optional<Status>>();
    engine_->Delete(id, [answer](const Status& status) { *answer = status; });
    Run();
    return answer->value_or(Error::NotApplied(Code::kUnknown, "there is no answer"));
  }

  RealClock clock_;
  SimulatedScheduler scheduler_{1};
  MemoryRecordStore store_;
  LogLines log_;
  Logger logger_{log_.Options(), clock_};
  RecordingObserver observer_;
  StubHostParts parts_;
  ExportedFamilies families_;
  FakeIrreversibleSteps irreversible_;
  std::optional<LoopDevice> disk_;
  std::unique_ptr<KubeletPaths> paths_;
  std::unique_ptr<WorkerKernel> workers_;
  std::unique_ptr<VolumeHost> host_;
  std::unique_ptr<DeviceRecordKeeper> devices_;
  std::unique_ptr<StorageGuard> guard_;
  std::unique_ptr<RecordFormatIntents> formats_;
  std::unique_ptr<PoolVolumes> volumes_;
  std::unique_ptr<VolumePluginMgr> plugins_;
  std::unique_ptr<NodeVolumeOperations> operations_;
  std::unique_ptr<SnapshotEngine> engine_;
  std::unique_ptr<SnapshotContents> contents_;

 private:
  // With the step; nullopt if it has succeeded.
  template <typename Op>
  std::optional<Error> ErrorOf(Op operation) {
    std::optional<Error> failed = Error::NotApplied(Code::kUnknown, "it has not ended");
    operations_->ResetBackoff(operation.key());
    const StartResult started = operations_->Start(
        std::move(operation), [&failed](const OperationOutcome<typename Op::Value>& got) {
          failed.reset();
          if (got.failure) failed = got.failure->error.With(got.failure->step);
        });
    EXPECT_EQ(started, StartResult::kStarted);
    Run();
    return failed;
  }
};

}  // namespace volumed
