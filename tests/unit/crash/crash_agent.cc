#include "unit/crash/crash_agent.h"

#include <stdexcept>
#include <utility>

#include "csi/csi_driver_record.h"
#include "csi/csi_plugin.h"
#include "fakes/fake_flex_driver.h"
#include "kube/decode.h"
#include "mounter/node_root.h"
#include "plugins/flex_volume.h"
#include "plugins/in_tree_plugins.h"
#include "pool/pool_plugin.h"
#include "unit/crash/crash_devices.h"
#include "volume/driver_domain.h"
#include "volumemanager/claims/provisioning.h"

namespace volumed {
namespace {

constexpr auto kAskAgain = std::chrono::seconds(1);
// The second source answers later than the first: absence from the sources is no command yet.
constexpr auto kSourceDelay = std::chrono::seconds(5);
constexpr int64_t kMemoryBytes = int64_t{64} << 20;

LogOptions Silent() {
  LogOptions options;
  options.min_level = LogLevel::kError;
  options.target = LogOptions::Target::kCallback;
  options.callback = [](LogLevel, std::string_view) {};
  return options;
}

NodeFactsOptions Facts() {
  NodeFactsOptions facts;
  facts.name = NodeName("n1");
  facts.allocatable = {{"memory", Quantity::FromBytes(kMemoryBytes)}};
  facts.features = FakeKernelOptions().features;
  return facts;
}

void MustBeOk(const Status& status, const std::string& what) {
  if (!status.ok()) throw std::logic_error(what + ": " + status.error().ToString());
}

std::vector<ObjectWithOrigin> DecodeFile(const std::string& file, const std::string& manifest) {
  std::vector<ObjectWithOrigin> objects;
  const ManifestDecode decoded = DecodeManifest(file, manifest);
  for (const DecodeProblem& problem : decoded.problems) throw std::logic_error(problem.ToString());
  for (const DecodedObject& object : decoded.objects) {
    objects.push_back({std::make_shared<const Object>(object.object), file, object.document});
  }
  return objects;
}

std::string VolumeText(const VolumeView& volume) {
  std::string text = "  " + volume.spec.str() + " " + volume.plugin_name + " " + volume.state;
  if (volume.uncertain) text += " uncertain";
  if (volume.wanted) text += " wanted";
  if (volume.problem) text += " problem:" + volume.problem->step;
  for (const SubPathMount& sub_path : volume.sub_paths) text += " " + sub_path.host_path;
  return text + "\n";
}

}  // namespace

CrashAgent::CrashAgent(CrashWorld& world, const SeededBug& bug, uint64_t seed,
                       std::optional<OverlapSchedule> overlap)
    : world_(world),
      bug_(bug),
      scheduler_(seed, world.clock),
      overlapping_(scheduler_, std::move(overlap)),
      log_(Silent(), world.clock),
      checked_kernel_(world, [this] { overlapping_.SwitchPoint(); }),
      checked_store_(world, [this] { overlapping_.SwitchPoint(); }),
      buggy_kernel_(bug.kernel ? bug.kernel(checked_kernel_, world) : nullptr),
      buggy_store_(bug.store ? bug.store(checked_store_, world) : nullptr),
      kernel_(buggy_kernel_ ? *buggy_kernel_ : static_cast<Kernel&>(checked_kernel_), world, bug),
      store_(buggy_store_ ? *buggy_store_ : static_cast<RecordStore&>(checked_store_)),
      device_finder_(kernel_),
      catalog_(world.clock),
      tokens_(world),
      events_(world.clock),
      node_(Facts()),
      recovery_gate_(*world.store, world.clock),
      gate_(recovery_gate_, bug.steps_not_held),
      host_{world.paths, kernel_, world.clock, host_objects_, tokens_,
            events_,     node_,   families_,   gate_},
      kubelet_host_(world.clock),
      attach_detach_host_(host_objects_, kubelet_host_),
      csi_(world.csi ? MakeCsi() : nullptr),
      buggy_csi_(csi_ && bug.csi ? bug.csi(*csi_, world) : nullptr),
      recycler_pods_(kernel_, containers_, world.clock,
                     std::string(CrashWorld::kRoot) + "/recycler"),
      devices_(overlapping_, store_, world.clock, log_, observer_, ReadBootId()),
      pools_(world.pool_volumes.empty() ? nullptr : MakePools()),
      storage_(kernel_, store_, world.clock, log_, ReadBootId()),
      other_storage_(kernel_, store_, world.clock, log_, ReadBootId()),
      format_intents_(devices_, storage_, ReadBootId()),
      operations_(overlapping_,
                  {.plugins = plugins_,
                   .host = host_,
                   .logger = log_,
                   .store = store_,
                   .devices = devices_,
                   .storage = storage_,
                   .pod_directory_owner =
                       world.adopt_root ? PodDirectoryOwner::kKubelet : PodDirectoryOwner::kAgent},
                  observer_, ReadBootId(), csi_ ? &csi_->lanes() : nullptr),
      other_operations_(overlapping_, {plugins_, host_, log_, store_, devices_, other_storage_},
                        observer_, ReadBootId()),
      buggy_operations_(bug.operations ? bug.operations({operations_, other_operations_, storage_})
                                       : nullptr),
      consumer_watch_(world) {
  world.storage = &storage_;
  host_.content_key =
      std::make_shared<ContentKey>(Secret<std::string>(std::string(32, 'k')));  // in a file
  if (!bug.knows_no_own_directories) {
    storage_.AddOwnDirectory("the agent's root", CrashWorld::kRoot);
    for (const auto& [what, path] : world.own_directories) storage_.AddOwnDirectory(what, path);
  }
  catalog_.AddListener([this](const std::vector<ObjectChange>& changes) {
    host_objects_.Follow(changes);
    kubelet_host_.Follow(changes);
  });
  host_.kubelet = &kubelet_host_;
  host_.attach_detach = &attach_detach_host_;
  InTreePluginSettings plugins;
  plugins.local.format_intents = &format_intents_;
  plugins.iscsi.formats = plugins.local;
  plugins.iscsi.devices = &device_finder_;
  plugins.fc.device.format_intents = &format_intents_;
  plugins.fc.devices = &device_finder_;
  plugins.host_path.recycler_pods = &recycler_pods_;
  plugins.nfs.recycler_pods = &recycler_pods_;
  plugins.host_path.roots = {CrashWorld::kProvisionRoot};
  plugins.host_path.config.provisioning_enabled = true;
  std::vector<std::unique_ptr<VolumePlugin>> made = MakeInTreePlugins(std::move(plugins));
  made.push_back(std::make_unique<FakeArrayPlugin>(
      world.array, *world.kernel,
      FakeArrayPlugin::Watch{[&world](const std::string& volume) { CheckAttach(world, volume); },
                             [&world](const std::string& volume) { CheckDetach(world, volume); }}));
  made.push_back(std::make_unique<FlexVolumePlugin>(
      std::make_shared<FlexVolumeDriver>(kernel_, kFakeFlexDriver, kFakeFlexExecutable),
      FlexCapabilities{}, DeviceVolumeSettings{.format_intents = &format_intents_}));
  if (buggy_csi_) csi_->SetCalls(*buggy_csi_);
  if (csi_) {
    made.push_back(std::make_unique<CsiPlugin>(CsiPluginParts{.scheduler = overlapping_,
                                                              .drivers = csi_->drivers(),
                                                              .devices = devices_,
                                                              .settings = csi_->settings(),
                                                              .log = log_}));
  }
  if (pools_) made.push_back(pools_->MakePlugin({.format_intents = &format_intents_}));
  MustBeOk(plugins_.InitPlugins(std::move(made), host_), "plugins");
  if (world.object_files) applied_.emplace(world, overlapping_);
  VolumeOperations& used =
      buggy_operations_ ? *buggy_operations_ : static_cast<VolumeOperations&>(operations_);
  manager_ = std::make_unique<VolumeManager>(
      VolumeManagerParts{overlapping_, catalog_, plugins_, used, store_, kernel_, host_,
                         consumer_watch_, log_},
      ReadBootId(), ManagerSettings(), ManagerHooks());
}

VolumeManagerSettings CrashAgent::ManagerSettings() const {
  const CrashWorld& world = world_;
  VolumeManagerSettings settings;
  settings.adopt_root = world.adopt_root;
  settings.stats.period = Duration::zero();
  settings.health.period = Duration::zero();
  if (csi_) {
    settings.other_kinds = {{kCsiDriverRecordKind, [](const Record& row) -> Status {
                               RETURN_IF_ERROR(DecodeCsiDriverRecord(row));
                               return OkStatus();
                             }}};
  }
  if (pools_) settings.other_kinds = NodePools::RecordKinds();
  const bool removal_deletes = world.removal_deletes && !bug_.ignores_removals;
  if (removal_deletes || bug_.takes_absence_for_a_command) {
    for (const auto& [source, objects] : world.sources) settings.removal_deletes.insert(source);
  }
  return settings;
}

VolumeManagerHooks CrashAgent::ManagerHooks() {
  VolumeManagerHooks hooks;
  hooks.restore_other = [this](const std::string& kind, const LoadedRecords& rows) {
    if (pools_) return pools_->pools().Restore(kind, rows);
    if (csi_) csi_->Restore(rows);
  };
  hooks.restore_operations = [this](const std::vector<PodVolumeRecord>& volumes,
                                    const std::vector<DeviceRecord>& devices) {
    operations_.Restore(volumes, devices);
    other_operations_.Restore(volumes, {});
  };
  hooks.start_sources = [this](std::map<std::string, SourceMemory> memories) {
    if (pools_) pools_->pools().Open();
    StartSources(std::move(memories));
  };
  hooks.new_uid = [this](const ObjectKey& object) { return world_.NewUid(object); };
  if (applied_) {
    hooks.remove_object = [this](const ObjectKey& object, uint64_t number) {
      overlapping_.RunBlocking(
          [this, object, number] { applied_->objects().Remove(object, number); });
    };
  }
  return hooks;
}

std::unique_ptr<CrashAgentPools> CrashAgent::MakePools() {
  return std::make_unique<CrashAgentPools>(CrashAgentPools::Parts{
      overlapping_, kernel_, store_, log_, gate_, devices_, world_.paths, node_, [this] {
        manager_->events().PluginChanged(kPoolPluginName);
        manager_->events().MakersChanged();
      }});
}

std::unique_ptr<CrashCsiClient> CrashAgent::MakeCsi() {
  CrashCsiClient::Hooks hooks;
  hooks.drivers.has_attached = [this](const std::string& driver) {
    return operations_.HasAnyOf(DriverDomain(driver), /*attached=*/true);
  };
  hooks.drivers.what_is_here = [this](const std::string& driver) {
    const bool has_any = operations_.HasAnyOf(DriverDomain(driver), /*attached=*/false);
    return std::string(has_any ? "volumes of it are here" : "");
  };
  hooks.happened = [this](const std::string& driver, DriverEvent event) {
    DriverHappened(driver, event);
  };
  return std::make_unique<CrashCsiClient>(
      CrashCsiClient::Parts{world_, overlapping_, store_, log_,
                            [this] { overlapping_.SwitchPoint(); }},
      std::move(hooks));
}

// As Agent::DriverHappened.
void CrashAgent::DriverHappened(const std::string& driver, DriverEvent event) {
  overlapping_.Post([this, driver, event] {
    operations_.LanesChanged();
    NodeEvents& events = manager_->events();
    switch (event) {
      case DriverEvent::kRegistered:
      case DriverEvent::kFactsChanged:
        return events.DriverChanged(kCsiPluginName, DriverDomain(driver));
      case DriverEvent::kReady:
      case DriverEvent::kControllerReady:
        return events.DriverIsBack(kCsiPluginName, DriverDomain(driver));
      case DriverEvent::kControllerAway:
        return events.MakersChanged();
      case DriverEvent::kSilent:
      case DriverEvent::kAway:
        return;
    }
  });
}

CrashAgent::~CrashAgent() {
  applied_.reset();         // its files stay as they are
  overlapping_.EndTasks();  // what they use goes after this
  world_.storage = nullptr;
}

BootId CrashAgent::ReadBootId() const {
  return BootId(bug_.ignores_boot_id ? "boot-1" : world_.boot_id());
}

void CrashAgent::Start() {
  MustBeOk(PrepareRoot(kernel_, world_.paths, {}), "root");
  catalog_.AbsenceEnds(Provisioning::kSourceName);
  if (!bug_.waits_for_no_source) {
    for (const auto& [source, objects] : world_.sources) catalog_.ExpectSource(source);
    if (applied_) catalog_.ExpectSource(applied_->objects().name());
  }
  host_objects_.SetWaitsFor(catalog_.IncompleteSources());
  manager_->Start();
  for (size_t i = 0; i < world_.commands.size(); ++i) {
    const UserCommand& command = world_.commands[i];
    // A user asks again for what has not been answered, and never for what has.
    if (!command.acknowledged) scheduler_.Post([this, i] { Issue(i); });
  }
}

void CrashAgent::StartSources(std::map<std::string, SourceMemory> memories) {
  if (bug_.forgets_unconfigured_sources) {
    for (const SourceStatus& source : catalog_.Sources()) {
      if (source.unconfigured) catalog_.ForgetSource(source.name);
    }
  }
  if (applied_) {
    ObjectDirectory& objects = applied_->objects();
    objects.Remember(std::move(memories[objects.name()]));
    objects.Start([this](ObjectUpdate update) {
      Deliver(std::move(update), !std::exchange(has_applied_, true));
    });
  }
  memories_ = std::move(memories);
  sources_started_ = true;
  Duration delay = Duration::zero();
  for (const auto& [source, objects] : world_.sources) {
    started_.insert(source);
    scheduler_.PostAfter(delay, [this, name = source] { DeliverSource(name); });
    delay += kSourceDelay;
  }
  if (csi_) csi_->Start();
}

std::string CrashAgent::SourceText(const std::string& source) const {
  std::string text;
  for (const auto& [name, manifest] : world_.sources.at(source)) {
    text += manifest + (world_.broken.contains(name) ? "broken" : "");
  }
  return text;
}

// A file in disorder: what it had last, as far as that is known, is held back.
void CrashAgent::HoldBack(const std::string& source, const std::string& file, ObjectList& list) {
  constexpr const char* kReason = "cannot be decoded";
  if (const auto last = last_good_.find({source, file}); last != last_good_.end()) {
    for (ObjectWithOrigin held : last->second) {
      held.presence = ObjectPresence::kUnproven;
      held.reason = kReason;
      list.objects.push_back(std::move(held));
    }
    return;
  }
  for (const KnownObject& known : memories_[source].objects) {
    if (known.file != file) continue;
    if (known.object == nullptr) {
      list.unknown.push_back({known.key, file, kReason});
    } else {
      list.objects.push_back({known.object, file, 0, ObjectPresence::kUnproven, kReason, 0});
    }
  }
}

void CrashAgent::FinishOperations() {
  (void)scheduler_.RunUntil([this] { return overlapping_.IsIdle(); }, std::chrono::minutes(5));
  scheduler_.RunFor(Duration::zero());  // what it has led to is taken over
}

void CrashAgent::Hear() {
  for (const auto& [source, objects] : world_.sources) {
    if (!sources_started_) {
      catalog_.ExpectSource(source);
      continue;  // StartSources delivers what there is by then
    }
    if (started_.insert(source).second) {
      catalog_.ExpectSource(source);  // it was added to the world while the agent ran
      delivered_[source].clear();
    }
    if (!delivered_.contains(source)) continue;  // its first list is on the way
    if (delivered_.at(source) != SourceText(source)) {
      scheduler_.Post([this, name = source] { DeliverSource(name); });
    }
  }
  for (size_t i = 0; i < world_.commands.size(); ++i) {
    if (!world_.commands[i].acknowledged) scheduler_.Post([this, i] { Issue(i); });
  }
  scheduler_.Post([this] { consumer_watch_.LookAgain(bug_.ignores_consumers); });
  if (csi_) scheduler_.Post([this] { csi_->Hear(); });
}

void CrashAgent::Retry(const std::string& pod) {
  scheduler_.Post([this, pod] { (void)manager_->pod_commands().Retry(PodUid(pod)); });
}

void CrashAgent::DeliverSource(const std::string& source) {
  const std::map<std::string, std::string>& manifests = world_.sources.at(source);
  ObjectList list;
  list.source = source;
  list.complete = true;
  for (const auto& [name, manifest] : manifests) {
    const std::string file = name + ".yaml";
    if (world_.broken.contains(name)) {
      HoldBack(source, file, list);
      continue;
    }
    std::vector<ObjectWithOrigin> objects = DecodeFile(file, manifest);
    if (const auto replaces = world_.replaces.find(name); replaces != world_.replaces.end()) {
      for (ObjectWithOrigin& object : objects) object.replaces = replaces->second;
    }
    last_good_[{source, file}] = objects;
    list.objects.insert(list.objects.end(), objects.begin(), objects.end());
  }
  const bool first = !delivered_.contains(source);
  delivered_[source] = SourceText(source);
  Deliver(std::move(list), first);
}

// As Agent::Deliver.
void CrashAgent::Deliver(ObjectUpdate update, bool first) {
  if (bug_.list) {
    // What is wrong is wrong with the whole list.
    const std::string source =
        std::visit([](const auto& one) { return one.source; }, std::as_const(update));
    ObjectList list = mirrors_[source].Take(std::move(update));
    bug_.list(list, first);
    update = std::move(list);
  }
  const bool was_complete = catalog_.AllSourcesComplete();
  catalog_.Update(std::move(update));
  host_objects_.SetWaitsFor(catalog_.IncompleteSources());
  kubelet_host_.SetSynced(catalog_.AllSourcesComplete());
  if (was_complete != catalog_.AllSourcesComplete()) manager_->ObjectsChanged();
}

// Nothing of what waits for an answer still, or for that of another command.
void CrashAgent::Issue(size_t number) {
  const UserCommand command = world_.commands[number];
  const bool too_early = command.after && !world_.commands[*command.after].acknowledged;
  if (too_early || !given_.insert(number).second) return;
  switch (command.kind) {
    case UserCommand::Kind::kDelete:
      manager_->pod_commands().Delete(
          PodUid(command.pod), command.force,
          [this, number](const Status& status) { Answered(number, status); });
      return;
    case UserCommand::Kind::kDeleteObject:
      manager_->object_commands().Delete(
          command.object, [this, number](const Status& status) { Answered(number, status); });
      return;
    case UserCommand::Kind::kApply:
      applied_->Apply(command.manifest, catalog_, *manager_,
                      [this, number](const Status& status) { Answered(number, status); });
      return;
    case UserCommand::Kind::kHold:
      manager_->pod_commands().Hold(
          {PodUid(command.pod), command.pid, ""},
          [this, number](const Status& status) { Answered(number, status); });
      return;
  }
}

void CrashAgent::Answered(size_t number, const Status& status) {
  UserCommand& command = world_.commands[number];
  given_.erase(number);
  if (status.ok()) {
    command.acknowledged = true;
    GiveNext(number);
    const auto pod = world_.pods.find(command.pod);
    const bool is_known = command.kind == UserCommand::Kind::kDelete && pod != world_.pods.end();
    if (is_known && pod->second.commanded && !pod->second.command_durable) {
      world_.Violation("a deletion was answered before it was durable: " + command.pod);
    }
    if (command.kind == UserCommand::Kind::kHold && world_.processes.contains(command.pid)) {
      world_.pods.at(command.pod).held_by = command.pid;
    }
    return;
  }
  const Code code = status.error().code();
  // What is being deleted is applied again when it is gone.
  const bool too_early = command.kind == UserCommand::Kind::kApply && code == Code::kAlreadyExists;
  if (code == Code::kUnavailable || code == Code::kNotFound || too_early) {
    const bool over = command.kind != UserCommand::Kind::kHold && code == Code::kNotFound &&
                      catalog_.AllSourcesComplete();
    if (over) {
      command.acknowledged = true;
      GiveNext(number);
    } else {
      scheduler_.PostAfter(kAskAgain, [this, number] { Issue(number); });
    }
    return;
  }
  world_.Violation("a command was refused: " + status.error().ToString());
}

// Whatever its user wanted to do once this was answered.
void CrashAgent::GiveNext(size_t answered) {
  for (size_t i = 0; i < world_.commands.size(); ++i) {
    if (world_.commands[i].after == answered) scheduler_.Post([this, i] { Issue(i); });
  }
}

std::string CrashAgent::ViewText() const {
  std::string text = "views:\n";
  for (const PodView& pod : manager_->pods().All()) {
    text += pod.uid.str() + " " + pod.phase;
    for (const std::string& holder : pod.held_by) text += " held by " + holder;
    text += "\n";
    for (const VolumeView& volume : pod.volumes) text += VolumeText(volume);
  }
  return text;
}

}  // namespace volumed
