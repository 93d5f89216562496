// The life of claims whose volumes a driver makes, deletes and makes larger, in a simulated world
// in which the agent is killed at any moment, the driver comes and goes, and calls end in any way:
// a claim never gets a second volume, no volume goes that anybody has, and in the end nothing is
// left over. What is real: the volume manager, the operations, and CsiStorage.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fakes/simulated_crash.h"
#include "operation/node_volume_operations.h"
#include "unit/csi/fake_csi_dialer.h"
#include "unit/csi/storage_fixture.h"
#include "unit/pluginmgr/plugin_without_mounts.h"
#include "unit/volumemanager/manager_fixture.h"
#include "volume/driver_domain.h"

namespace volumed {
namespace {

using ::csi::v1::CreateVolumeRequest;

constexpr const char* kDriver = "disk.example.com";
constexpr const char* kSocket = "/kubelet/plugins/disk/csi.sock";
constexpr int kKills = 1000;

std::string ClassText(const std::string& tier) {
  return "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: made}\n"
         "provisioner: disk.example.com\nallowVolumeExpansion: true\nparameters: {tier: " +
         tier + "}\n";
}

std::string ClaimText(const std::string& uid, int gibibytes) {
  return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: claim-" + uid +
         ", namespace: default, uid: " + uid +
         "}\nspec: {accessModes: [ReadWriteOnce], storageClassName: made, resources: {requests: "
         "{storage: " +
         std::to_string(gibibytes) + "Gi}}}\n";
}

// What is outside of the agent. The driver is as bad as the specification lets it be: the same name
// with another request makes another volume.
struct World {
  struct Volume {
    std::string name;
    int64_t bytes = 0;
  };
  enum class How { kWell, kRefuses, kLosesTheAnswer, kKillsBefore, kKillsAfter };

  explicit World(uint64_t seed) : random(seed) {}

  bool OneOf(int n) { return std::uniform_int_distribution<int>(1, n)(random) == 1; }
  How Draw() {
    if (calm || !OneOf(3)) return How::kWell;
    return static_cast<How>(std::uniform_int_distribution<int>(1, 4)(random));
  }
  // Ends a call in one of these ways; nullopt: well.
  std::optional<Error> End(How how, const char* rpc) {
    switch (how) {
      case How::kWell:
        return std::nullopt;
      case How::kRefuses:
        return CsiError(kDriver, *FindCsiMethod(rpc),
                        {.code = Code::kInvalidArgument, .message = {}, .never_sent = false},
                        CsiSecrets());
      case How::kLosesTheAnswer:
        return CsiError(kDriver, *FindCsiMethod(rpc),
                        {.code = Code::kDeadlineExceeded, .message = {}, .never_sent = false},
                        CsiSecrets());
      case How::kKillsBefore:
      case How::kKillsAfter:
        throw SimulatedCrash();
    }
    return std::nullopt;
  }
  static bool HasEffect(How how) {
    return how == How::kWell || how == How::kLosesTheAnswer || how == How::kKillsAfter;
  }

  CsiChannel::AnyAnswer Create(const CreateVolumeRequest& request);
  CsiChannel::AnyAnswer Delete(const ::csi::v1::DeleteVolumeRequest& request);
  CsiChannel::AnyAnswer Expand(const ::csi::v1::ControllerExpandVolumeRequest& request);
  std::shared_ptr<FakeCsiProcess> Driver();

  std::mt19937_64 random;
  bool calm = false;  // nothing goes wrong any more
  ManualClock clock;
  MemoryRecordStore store;
  std::map<std::string, int> claims;             // uid -> Gi; those that a source has
  std::string tier = "gold";                     // "": there is no class
  std::map<std::string, Volume> volumes;         // by handle
  std::map<std::string, std::string> handle_of;  // by the whole request
  std::set<std::string> bound;                   // uids of claims that were seen bound
  int made = 0;
  int deleted = 0;
  int grown = 0;
};

CsiChannel::AnyAnswer World::Create(const CreateVolumeRequest& request) {
  How how = Draw();
  std::string& handle = handle_of[WholeOf(request)];
  // A driver that has the volume says so, and refuses nothing.
  if (how == How::kRefuses && volumes.contains(handle)) how = How::kWell;
  if (HasEffect(how)) {
    if (handle.empty() || !volumes.contains(handle)) {
      handle = "vol-" + std::to_string(++made);
      volumes[handle] = {request.name(), request.capacity_range().required_bytes()};
    }
    int of_this_claim = 0;
    for (const auto& [id, volume] : volumes) of_this_claim += volume.name == request.name();
    EXPECT_EQ(of_this_claim, 1) << request.name() << " has a second volume";
  }
  if (const auto error = End(how, "CreateVolume")) return *error;
  auto answer = std::make_unique<::csi::v1::CreateVolumeResponse>();
  answer->mutable_volume()->set_volume_id(handle);
  answer->mutable_volume()->set_capacity_bytes(volumes[handle].bytes);
  return CsiChannel::AnyAnswer(std::move(answer));
}

CsiChannel::AnyAnswer World::Delete(const ::csi::v1::DeleteVolumeRequest& request) {
  const How how = Draw();
  const auto volume = volumes.find(request.volume_id());
  if (volume != volumes.end()) {
    // One that nobody has yet goes if its claim's class is deleted.
    const std::string uid = volume->second.name.substr(std::string("pvc-").size());
    EXPECT_FALSE(claims.contains(uid) && bound.contains(uid))
        << "the volume of claim " << uid << ", which has it, is deleted";
  }
  if (HasEffect(how) && volume != volumes.end()) {
    volumes.erase(volume);
    ++deleted;
  }
  if (const auto error = End(how, "DeleteVolume")) return *error;
  return CsiChannel::AnyAnswer(std::make_unique<::csi::v1::DeleteVolumeResponse>());
}

CsiChannel::AnyAnswer World::Expand(const ::csi::v1::ControllerExpandVolumeRequest& request) {
  // A size that is called impossible is not asked for again, so that has tests of its own.
  How how = Draw();
  if (how == How::kRefuses) how = How::kWell;
  const auto volume = volumes.find(request.volume_id());
  if (volume == volumes.end()) {
    ADD_FAILURE() << request.volume_id() << " is not there and is to be made larger";
    return Error::NotApplied(Code::kNotFound, "no such volume");
  }
  if (HasEffect(how)) {
    const int64_t asked = request.capacity_range().required_bytes();
    volume->second.bytes = std::max(volume->second.bytes, asked);
    ++grown;
  }
  if (const auto error = End(how, "ControllerExpandVolume")) return *error;
  auto answer = std::make_unique<::csi::v1::ControllerExpandVolumeResponse>();
  answer->set_capacity_bytes(volume->second.bytes);
  return CsiChannel::AnyAnswer(std::move(answer));
}

template <typename Request, typename Handler>
FakeCsiProcess::Handler As(Handler handler) {
  return [handler](const google::protobuf::Message& request) -> CsiChannel::AnyAnswer {
    return handler(static_cast<const Request&>(request));
  };
}

std::shared_ptr<FakeCsiProcess> World::Driver() {
  auto process = std::make_shared<FakeCsiProcess>();
  ::csi::v1::GetPluginInfoResponse info;
  info.set_name(kDriver);
  process->Answer("GetPluginInfo", info);
  ::csi::v1::NodeGetInfoResponse node;
  node.set_node_id("node-a");
  process->Answer("NodeGetInfo", node);
  ::csi::v1::ControllerGetCapabilitiesResponse controller;
  for (const auto type :
       {ControllerCapability::CREATE_DELETE_VOLUME, ControllerCapability::EXPAND_VOLUME}) {
    controller.add_capabilities()->mutable_rpc()->set_type(type);
  }
  // It is another version each time, by which a volume would be asked for in other words.
  if (OneOf(2)) {
    controller.add_capabilities()->mutable_rpc()->set_type(
        ControllerCapability::SINGLE_NODE_MULTI_WRITER);
  }
  process->Answer("ControllerGetCapabilities", controller);
  process->Handle("CreateVolume",
                  As<CreateVolumeRequest>([this](const auto& asked) { return Create(asked); }));
  process->Handle("DeleteVolume", As<::csi::v1::DeleteVolumeRequest>(
                                      [this](const auto& asked) { return Delete(asked); }));
  process->Handle("ControllerExpandVolume",
                  As<::csi::v1::ControllerExpandVolumeRequest>(
                      [this](const auto& asked) { return Expand(asked); }));
  return process;
}

// The plugin as far as these lives go: nothing is mounted.
class StoragePlugin final : public PluginWithoutMounts {
 public:
  explicit StoragePlugin(const CsiContext& context) : storage_(context, *this) {}
  std::string GetPluginName() const override { return kCsiPluginName; }
  Result<std::string> GetVolumeName(const VolumeSpec& spec) const override {
    const auto* source = spec.SourceAs<CsiPersistentVolumeSource>();
    return CsiVolumeName(source->driver, source->volume_handle);
  }
  bool CanSupport(const VolumeSpec& spec) const override {
    return spec.SourceAs<CsiPersistentVolumeSource>() != nullptr;
  }
  bool SupportsMountOption() const override { return true; }
  std::string FaultDomain(const VolumeSpec&) const override { return DriverDomain(kDriver); }
  bool WorksInLane(const VolumeSpec&) const override { return true; }
  ProvisionableVolumePlugin* AsProvisionerOf(const std::string& provisioner) override {
    return storage_.ProvisionerOf(provisioner);
  }
  DeletableVolumePlugin* AsDeletable() override { return &storage_; }
  ExpandableVolumePlugin* AsExpandable() override { return &storage_; }

 private:
  CsiStorage storage_;
};

// What a manager asks a kernel at its start; and no worker is at anything.
class IdleKernel final : public Kernel {
 public:
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    if (std::holds_alternative<Stat>(request)) return AnyAnswer(FileInfo{});
    return start_.Do(request, options);
  }

 private:
  StubKernel start_;
};

// What a process has, and loses with its end.
class ModelAgent {
 public:
  ModelAgent(World& world, uint64_t seed) : world_(world), scheduler_(seed, world.clock) {
    std::vector<CsiDriverRecord> known;
    const auto rows = store_.Load(kCsiDriverRecordKind);
    for (const Record& row : rows->records) {
      known.push_back(*DecodeCsiDriverRecord(row));
    }
    drivers_.Restore(known);
    std::vector<std::unique_ptr<VolumePlugin>> plugins;
    plugins.push_back(std::make_unique<StoragePlugin>(context_));
    EXPECT_TRUE(plugins_.InitPlugins(std::move(plugins), host_).ok());
    catalog_.ExpectSource("manifests");
    catalog_.AbsenceEnds(Provisioning::kSourceName);
    VolumeManagerSettings settings;
    settings.stats.period = Duration::zero();
    settings.health.period = Duration::zero();
    settings.removal_deletes = {"manifests"};
    VolumeManagerHooks hooks;
    hooks.restore_operations = [this](const std::vector<PodVolumeRecord>& volumes,
                                      const std::vector<DeviceRecord>& devices) {
      operations_.Restore(volumes, devices);
    };
    hooks.start_sources = [this](const std::map<std::string, SourceMemory>&) {
      started_ = true;
      Deliver();
    };
    manager_ = std::make_unique<VolumeManager>(
        VolumeManagerParts{scheduler_, catalog_, plugins_, operations_, store_, kernel_, host_,
                           watch_, log_},
        BootId("boot-a"), settings, hooks);
  }
  // Nothing is written by what goes.
  ~ModelAgent() { store_.Die(); }

  void Start() {
    manager_->Start();
    DriverComes();
  }
  void Deliver() {
    if (!started_) return;
    std::string text = world_.tier.empty() ? "" : ClassText(world_.tier);
    for (const auto& [uid, size] : world_.claims) text += ClaimText(uid, size);
    scheduler_.Post([this, text] {
      catalog_.Update(ObjectList{"manifests", true, Objects(text), {}});
      manager_->ObjectsChanged();
    });
  }
  void DriverComes() {
    if (process_ != nullptr) return;
    process_ = world_.Driver();
    dialer_.Listen(kSocket, process_);
    drivers_.Register({kDriver, "/kubelet/plugins_registry/reg.sock", kSocket,
                       *drivers_.PlaceOf(kSocket), "1.0.0"},
                      [this](const Status&) {
                        if (manager_ != nullptr) manager_->ObjectsChanged();
                      });
  }
  void DriverDies() {
    if (process_ == nullptr) return;
    dialer_.Kill(process_);
    process_ = nullptr;
  }
  bool RunOne() { return scheduler_.RunOne(); }
  void RunFor(Duration time) { scheduler_.RunFor(time); }
  std::string VolumeOf(const std::string& uid) const {
    const auto status = manager_->storage().StatusOf(
        {ObjectKind::kPersistentVolumeClaim, "default", "claim-" + uid});
    return status ? status->phase + " " + status->other + " " + status->reason : "unknown";
  }

 private:
  static std::vector<ObjectWithOrigin> Objects(const std::string& manifest) {
    std::vector<ObjectWithOrigin> objects;
    const ManifestDecode decoded = DecodeManifest("test.yaml", manifest);
    for (const DecodeProblem& problem : decoded.problems) ADD_FAILURE() << problem.ToString();
    for (const DecodedObject& object : decoded.objects) {
      objects.push_back(
          {std::make_shared<const Object>(object.object), "test.yaml", object.document});
    }
    return objects;
  }

  World& world_;
  MemoryRecordStore& store_ = world_.store;
  SimulatedScheduler scheduler_;
  Logger log_{LogOptions{.target = LogOptions::Target::kCallback, .callback = {}}, world_.clock};
  IdleKernel kernel_;
  FakeConsumerWatch watch_;
  StubHostParts parts_;
  KubeletPaths paths_{"/kubelet"};
  ExportedFamilies families_;
  FakeIrreversibleSteps irreversible_;
  VolumeHost host_{paths_, kernel_, world_.clock, parts_,       parts_,
                   parts_, parts_,  families_,    irreversible_};
  RecordingObserver observer_;
  DeviceRecordKeeper devices_{store_, world_.clock, log_, observer_, BootId("boot-a")};
  StorageGuard guard_{kernel_, store_, world_.clock, log_, BootId("boot-a")};
  FakeCsiDialer dialer_{scheduler_};
  CsiDrivers drivers_{CsiDrivers::Parts{scheduler_, dialer_, store_, log_},
                      CsiDriversSettings{.endpoint_directories = {"/kubelet"}}, CsiDriversHooks{}};
  SharedCsiPluginSettings plugin_settings_;
  const CsiContext context_{.parts = {.scheduler = scheduler_,
                                      .drivers = drivers_,
                                      .devices = devices_,
                                      .settings = plugin_settings_,
                                      .log = log_},
                            .host = host_};
  VolumePluginMgr plugins_;
  ObjectCatalog catalog_{world_.clock};
  NodeVolumeOperations operations_{scheduler_,
                                   {.plugins = plugins_,
                                    .host = host_,
                                    .logger = log_,
                                    .store = store_,
                                    .devices = devices_,
                                    .storage = guard_},
                                   observer_,
                                   BootId("boot-a")};
  std::shared_ptr<FakeCsiProcess> process_;
  bool started_ = false;
  std::unique_ptr<VolumeManager> manager_;
};

class Life {
 public:
  explicit Life(uint64_t seed) : world_(seed), seed_(seed) { StartAgent(); }

  // Something happens outside, and the agent goes on for a while, or is killed.
  void Step() {
    try {
      Happen();
      const int steps = std::uniform_int_distribution<int>(0, 60)(world_.random);
      for (int i = 0; i < steps; ++i) agent_->RunOne();
      for (const auto& [uid, size] : world_.claims) {
        if (agent_->VolumeOf(uid).starts_with("Bound")) world_.bound.insert(uid);
      }
      if (world_.OneOf(3)) Kill();
    } catch (const SimulatedCrash&) {
      Kill();
    }
  }
  int kills() const { return kills_; }

  // Nothing goes wrong any more: every claim gets its volume, and there are no others.
  void End() {
    world_.calm = true;
    if (world_.tier.empty()) world_.tier = "gold";
    StartAgent();
    agent_->RunFor(std::chrono::hours(2));
    std::set<std::string> wanted;
    for (const auto& [uid, size] : world_.claims) {
      const std::string name = "pvc-" + uid;
      wanted.insert(name);
      EXPECT_EQ(agent_->VolumeOf(uid).find("Bound " + name), 0u)
          << uid << ": " << agent_->VolumeOf(uid);
    }
    for (const auto& [handle, volume] : world_.volumes) {
      EXPECT_EQ(wanted.erase(volume.name), 1u)
          << handle << " of " << volume.name << " is left over";
      const std::string uid = volume.name.substr(std::string("pvc-").size());
      EXPECT_GE(volume.bytes, int64_t{world_.claims[uid]} << 30) << volume.name;
    }
    EXPECT_TRUE(wanted.empty());
    EXPECT_GT(world_.made, 100);
    EXPECT_GT(world_.deleted, 50);
    EXPECT_GT(world_.grown, 50);
  }

 private:
  void StartAgent() {
    agent_.reset();
    world_.store.Revive();
    agent_ = std::make_unique<ModelAgent>(world_, ++seed_);
    agent_->Start();
  }
  void Kill() {
    ++kills_;
    StartAgent();
  }
  void Happen() {
    switch (std::uniform_int_distribution<int>(0, 7)(world_.random)) {
      case 0:
      case 1:
        if (world_.claims.size() < 6) world_.claims["c" + std::to_string(++claims_)] = 1;
        break;
      case 2:
        if (!world_.claims.empty() && world_.OneOf(2)) world_.claims.erase(world_.claims.begin());
        break;
      case 3:
        if (!world_.claims.empty()) ++world_.claims.rbegin()->second;
        break;
      case 4:
        if (!world_.OneOf(3)) break;
        world_.tier = "";
        break;
      case 5:
        agent_->DriverDies();
        break;
      case 6:
        agent_->DriverComes();
        break;
      case 7:
        agent_->RunFor(std::chrono::minutes(3));  // what waits for its next try
        break;
    }
    agent_->Deliver();
    // The class is made anew, with other parameters.
    if (!world_.tier.empty()) return;
    agent_->RunFor(std::chrono::milliseconds(100));
    world_.tier = world_.OneOf(2) ? "gold" : "bronze";
    agent_->Deliver();
  }

  World world_;
  uint64_t seed_;
  int kills_ = 0;
  int claims_ = 0;
  std::unique_ptr<ModelAgent> agent_;
};

TEST(CsiClaimsModel, AThousandKillsMakeNoSecondVolumeAndLeaveNothingOver) {
  Life life(20261127);
  while (life.kills() < kKills && !testing::Test::HasFailure()) life.Step();
  life.End();
}

}  // namespace
}  // namespace volumed
