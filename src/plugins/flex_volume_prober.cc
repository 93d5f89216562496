#include "plugins/flex_volume_prober.h"

#include <sys/epoll.h>

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/backoff.h"
#include "base/event_loop.h"
#include "base/mutex.h"
#include "pluginmgr/driver_directory.h"
#include "plugins/flex_volume.h"

namespace volumed {
namespace {

constexpr char kInitOperation[] = "init";

}  // namespace

// Shared with the tasks that wait for drivers.
class FlexVolumeProber::State final : public std::enable_shared_from_this<State> {
 public:
  State(const Parts& parts, FlexVolumeProberSettings settings, Changed changed)
      : scheduler_(parts.scheduler),
        loop_(parts.loop),
        kernel_(parts.kernel),
        log_(parts.log),
        settings_(std::move(settings)),
        changed_(std::move(changed)),
        directory_(settings_.directory),
        silent_(settings_.silent),
        backoff_(parts.scheduler.clock()) {}

  Status Init() EXCLUDES(mu_);
  Status Open() EXCLUDES(mu_, directory_mu_);
  void Follow() EXCLUDES(mu_, directory_mu_);
  ProbeResult Probe() EXCLUDES(mu_);
  std::unique_ptr<VolumePlugin> MakeForTeardown(const std::string& plugin_name) const;
  std::string WhyMissing(const std::string& plugin_name) const EXCLUDES(mu_);
  // Looks on another thread; then the directory is watched again.
  void LookLater();
  void Abandon() EXCLUDES(mu_);

 private:
  struct Found {
    std::string executable;
    uint64_t version = 0;   // a change of the executable makes a new one
    bool answered = false;  // this version has, well or not
    std::optional<Error> failure;
  };

  Status Watch();
  void Look() EXCLUDES(mu_, directory_mu_);
  void Take(const DriverChange& change) EXCLUDES(mu_);
  // Asks the driver, and takes its answer if it is still the same one.
  void Ask(const std::string& name, const std::string& executable, uint64_t version) EXCLUDES(mu_);
  Result<std::unique_ptr<VolumePlugin>> MakePlugin(const std::string& name,
                                                   const std::string& executable) const;
  void AskLater(const std::string& name, const std::string& executable, uint64_t version)
      EXCLUDES(mu_);
  bool AllHaveAnswered() const REQUIRES(mu_);

  Scheduler& scheduler_;
  EventLoop* const loop_;
  Kernel& kernel_;
  Logger& log_;
  const FlexVolumeProberSettings settings_;
  const Changed changed_;
  int fd_ = -1;  // set by Follow

  Mutex directory_mu_;  // one look at a time; taken before mu_
  DriverDirectory directory_ GUARDED_BY(directory_mu_);

  mutable Mutex mu_;
  CondVar answered_;
  std::optional<Error> silent_ GUARDED_BY(mu_);  // the directory does not answer
  bool abandoned_ GUARDED_BY(mu_) = false;
  uint64_t last_version_ GUARDED_BY(mu_) = 0;
  std::map<std::string, Found> found_ GUARDED_BY(mu_);
  std::set<std::string> announced_ GUARDED_BY(mu_);
  std::vector<ProbeEvent> events_ GUARDED_BY(mu_);
  Backoff backoff_ GUARDED_BY(mu_);
};

FlexVolumeProber::FlexVolumeProber(Parts parts, FlexVolumeProberSettings settings, Changed changed)
    : state_(std::make_shared<State>(parts, std::move(settings), std::move(changed))) {}

FlexVolumeProber::~FlexVolumeProber() { state_->Abandon(); }

Status FlexVolumeProber::Init() { return state_->Init(); }
Status FlexVolumeProber::Open() { return state_->Open(); }
void FlexVolumeProber::Follow() { state_->Follow(); }
ProbeResult FlexVolumeProber::Probe() { return state_->Probe(); }
std::unique_ptr<VolumePlugin> FlexVolumeProber::MakeForTeardown(
    const std::string& plugin_name) const {
  return state_->MakeForTeardown(plugin_name);
}
std::string FlexVolumeProber::WhyMissing(const std::string& plugin_name) const {
  return state_->WhyMissing(plugin_name);
}
void FlexVolumeProber::LookAgain() { state_->LookLater(); }

Status FlexVolumeProber::State::Open() {
  MutexLock lock(directory_mu_);
  return directory_.Init();
}

void FlexVolumeProber::State::Follow() {
  {
    MutexLock lock(directory_mu_);
    fd_ = directory_.fd();
  }
  {
    MutexLock lock(mu_);
    silent_.reset();
  }
  LookLater();  // and then the directory is watched
}

Status FlexVolumeProber::State::Init() {
  if (settings_.silent) return OkStatus();
  RETURN_IF_ERROR(Open());
  {
    MutexLock lock(directory_mu_);
    fd_ = directory_.fd();
  }
  RETURN_IF_ERROR(Watch());
  Look();
  const Deadline deadline = Deadline::After(scheduler_.clock(), settings_.first_wait);
  MutexLock lock(mu_);
  while (!AllHaveAnswered() && !deadline.Passed(scheduler_.clock())) {
    answered_.WaitFor(mu_, deadline.Remaining(scheduler_.clock()));
  }
  return OkStatus();
}

// Until something can be read; who reads it watches again.
Status FlexVolumeProber::State::Watch() {
  if (loop_ == nullptr) return OkStatus();
  return loop_->WatchFd(fd_, EPOLLIN, [this](uint32_t) {
    loop_->UnwatchFd(fd_);
    LookLater();
  });
}

void FlexVolumeProber::State::LookLater() {
  scheduler_.RunBlocking([self = shared_from_this()] {
    self->Look();
    if (self->loop_ == nullptr) return;
    self->scheduler_.Post([self] {
      {
        MutexLock lock(self->mu_);
        if (self->abandoned_) return;
      }
      if (const Status watched = self->Watch(); !watched.ok()) {
        self->log_.Error("flexVolume drivers are not watched any more",
                         {{"error", watched.error()}});
      }
    });
  });
}

bool FlexVolumeProber::State::AllHaveAnswered() const {
  for (const auto& [name, driver] : found_) {
    if (!driver.answered) return false;
  }
  return true;
}

void FlexVolumeProber::State::Abandon() {
  if (loop_ != nullptr && fd_ >= 0) loop_->UnwatchFd(fd_);
  MutexLock lock(mu_);
  abandoned_ = true;
}

ProbeResult FlexVolumeProber::State::Probe() {
  MutexLock lock(mu_);
  ProbeResult result;
  result.events = std::exchange(events_, {});
  return result;
}

std::unique_ptr<VolumePlugin> FlexVolumeProber::State::MakeForTeardown(
    const std::string& plugin_name) const {
  if (plugin_name.starts_with("kubernetes.io/")) return nullptr;
  return std::make_unique<FlexVolumePlugin>(
      std::make_shared<FlexVolumeDriver>(kernel_, plugin_name,
                                         DriverExecutable(settings_.directory, plugin_name)),
      FlexCapabilities{}, settings_.devices, settings_.limits);
}

std::string FlexVolumeProber::State::WhyMissing(const std::string& plugin_name) const {
  const std::string driver = "flexVolume driver \"" + plugin_name + "\"";
  MutexLock lock(mu_);
  const auto found = found_.find(plugin_name);
  if (found == found_.end()) {
    if (silent_) return driver + " is not known: " + silent_->message();
    return driver + " is not installed: there is no executable " +
           DriverExecutable(settings_.directory, plugin_name);
  }
  if (found->second.failure) return found->second.failure->message();
  return driver + " has not answered to init yet";
}

void FlexVolumeProber::State::Look() {
  Result<std::vector<DriverChange>> changes = [this] {
    MutexLock lock(directory_mu_);
    return directory_.TakeChanges();
  }();
  if (!changes.ok()) {
    log_.LogLimited("flexVolume drivers", LogLevel::kError,
                    "changes of flexVolume drivers could not be read",
                    {{"directory", settings_.directory}, {"error", changes.error()}});
    return;
  }
  for (const DriverChange& change : *changes) Take(change);
}

void FlexVolumeProber::State::Take(const DriverChange& change) {
  const std::string& name = change.plugin_name;
  uint64_t version = 0;
  {
    MutexLock lock(mu_);
    if (abandoned_) return;
    backoff_.Reset(name);
    if (change.installed) {
      version = ++last_version_;
      found_[name] = {change.executable, version, false, std::nullopt};
    } else {
      found_.erase(name);
      answered_.NotifyAll();
      if (announced_.erase(name) == 0) return;
      ProbeEvent event;
      event.op = ProbeOperation::kRemove;
      event.plugin_name = name;
      events_.push_back(std::move(event));
    }
  }
  if (change.installed) {
    scheduler_.RunBlocking([self = shared_from_this(), name, change, version] {
      self->Ask(name, change.executable, version);
    });
    return;
  }
  log_.Info("flexVolume driver removed", {{"driver", name}});
  changed_(name);
}

Result<std::unique_ptr<VolumePlugin>> FlexVolumeProber::State::MakePlugin(
    const std::string& name, const std::string& executable) const {
  auto driver = std::make_shared<FlexVolumeDriver>(kernel_, name, executable);
  CallOptions call;
  call.deadline = Deadline::After(scheduler_.clock(), settings_.init_deadline);
  call.domain = FlexFaultDomain(name);
  ASSIGN_OR_RETURN(const std::optional<FlexStatus> status,
                   driver->Call(FlexCommand::kInit, {}, call));
  if (!status) {
    return Error::NotApplied(Code::kInternal,
                             "flexVolume driver " + name + " says that it does not support init");
  }
  if (status->capabilities.attach && name.find('/') == std::string::npos) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "flexVolume driver " + name +
                                 " attaches volumes, and needs a vendor for their names: install "
                                 "it as <vendor>~" +
                                 name);
  }
  return std::unique_ptr<VolumePlugin>(std::make_unique<FlexVolumePlugin>(
      std::move(driver), status->capabilities, settings_.devices, settings_.limits));
}

void FlexVolumeProber::State::Ask(const std::string& name, const std::string& executable,
                                  uint64_t version) {
  Result<std::unique_ptr<VolumePlugin>> plugin = MakePlugin(name, executable);
  bool is_news = true;
  {
    MutexLock lock(mu_);
    const auto found = found_.find(name);
    if (abandoned_ || found == found_.end() || found->second.version != version) return;
    found->second.answered = true;
    answered_.NotifyAll();
    if (plugin.ok()) {
      found->second.failure.reset();
      backoff_.Reset(name);
      announced_.insert(name);
      ProbeEvent event;
      event.plugin_name = name;
      event.plugin = std::move(*plugin);
      events_.push_back(std::move(event));
    } else {
      is_news = found->second.failure != plugin.error();
      found->second.failure = plugin.error();
    }
  }
  if (is_news) changed_(name);  // what waits for it waits for something else now
  if (!plugin.ok()) {
    log_.LogLimited("flexVolume driver " + name, LogLevel::kError,
                    "flexVolume driver cannot be used",
                    {{"driver", name}, {"error", plugin.error()}});
    AskLater(name, executable, version);
    return;
  }
  log_.Info("flexVolume driver found", {{"driver", name}, {"executable", executable}});
}

void FlexVolumeProber::State::AskLater(const std::string& name, const std::string& executable,
                                       uint64_t version) {
  MutexLock lock(mu_);
  const Duration delay = backoff_.RecordFailure(name, kInitOperation, "");
  scheduler_.PostAfter(delay, [weak = weak_from_this(), name, executable, version] {
    const std::shared_ptr<State> self = weak.lock();
    if (self == nullptr) return;
    self->scheduler_.RunBlocking(
        [self, name, executable, version] { self->Ask(name, executable, version); });
  });
}

}  // namespace volumed
