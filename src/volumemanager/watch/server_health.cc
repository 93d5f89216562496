#include "volumemanager/watch/server_health.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include "mounter/mount_refs.h"

namespace volumed {
namespace {

constexpr char kLookLane[] = " look";
// The pause between two looks at a silent server; each look may take the whole deadline.
constexpr auto kSilentPause = std::chrono::seconds(2);
// The pause after a look that decided nothing.
constexpr auto kNoNewsPause = std::chrono::seconds(1);

// Whether the errno is what a soft mount, or a network without a route, answers instead of the
// server.
bool IsNoAnswer(int sys_errno) {
  switch (sys_errno) {
    case EIO:
    case ETIMEDOUT:
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ENETDOWN:
    case ENOTCONN:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string ServerState::Text() const {
  return name + " does not answer since " + WallTimeText(since_unix_ms);
}

ServerHealth::ServerHealth(Scheduler& scheduler, Kernel& kernel, Logger& log,
                           ServerHealthSettings settings, Hooks hooks)
    : scheduler_(scheduler),
      kernel_(kernel),
      log_(log),
      settings_(settings),
      hooks_(std::move(hooks)),
      period_(settings_.period),
      random_(settings_.jitter_seed) {}

ServerHealth::~ServerHealth() {
  if (timer_ != 0) scheduler_.Cancel(timer_);
}

void ServerHealth::SetPeriod(Duration period) {
  if (period == period_) return;
  period_ = period;
  for (auto& [name, server] : servers_) {
    if (IsOff()) {
      queue_.erase({server.due, name});
      server.missed = false;
      server.state.silent = false;
    } else if (!server.looking && !server.missed && !server.state.silent) {
      ScheduleSoon(name, server);
    }
  }
}

void ServerHealth::Track(const PodVolumeKey& key, const std::string& server,
                         const std::string& name, SafePath place) {
  if (server_of_.contains(key)) return;
  server_of_[key] = server;
  Server& found = servers_[server];
  found.volumes.emplace(key, std::move(place));
  if (found.incarnation != 0) return;
  found.incarnation = next_incarnation_++;
  found.state.name = name;
  ScheduleSoon(server, found);  // it has just answered a mount
}

void ServerHealth::Forget(const PodVolumeKey& key) {
  const auto of = server_of_.find(key);
  if (of == server_of_.end()) return;
  const auto server = servers_.find(of->second);
  server_of_.erase(of);
  server->second.volumes.erase(key);
  if (!server->second.volumes.empty()) return;
  queue_.erase({server->second.due, server->first});
  servers_.erase(server);
}

const ServerState* ServerHealth::FindSilent(const PodVolumeKey& key) const {
  const auto of = server_of_.find(key);
  if (of == server_of_.end()) return nullptr;
  const ServerState& state = servers_.at(of->second).state;
  return state.silent ? &state : nullptr;
}

const ServerState* ServerHealth::Find(const std::string& server) const {
  const auto found = servers_.find(server);
  return IsOff() || found == servers_.end() ? nullptr : &found->second.state;
}

std::map<std::string, bool> ServerHealth::Answering() const {
  std::map<std::string, bool> answering;
  if (IsOff()) return answering;
  for (const auto& [name, server] : servers_) answering[name] = !server.state.silent;
  return answering;
}

// ---- when ---------------------------------------------------------------------------------------

void ServerHealth::ScheduleSoon(const std::string& name, Server& server) {
  const double share = std::uniform_real_distribution<double>(0.5, 1)(random_);
  Schedule(name, server, std::chrono::duration_cast<Duration>(period_ * share));
}

void ServerHealth::Schedule(const std::string& name, Server& server, Duration delay) {
  queue_.erase({server.due, name});
  if (IsOff()) return;
  server.due = scheduler_.clock().Now() + delay;
  queue_.emplace(server.due, name);
  ArmTimer();
}

void ServerHealth::ArmTimer() {
  if (queue_.empty() || running_ >= settings_.max_running) return;
  const TimePoint now = scheduler_.clock().Now();
  const TimePoint due = std::max(queue_.begin()->first, now);
  if (timer_ != 0) {
    if (timer_due_ <= due) return;
    scheduler_.Cancel(timer_);
  }
  timer_due_ = due;
  timer_ = scheduler_.PostAfter(due - now, [this] {
    timer_ = 0;
    StartDue();
  });
}

void ServerHealth::StartDue() {
  const TimePoint now = scheduler_.clock().Now();
  std::vector<std::string> due;
  for (auto at = queue_.begin(); at != queue_.end() && at->first <= now; ++at) {
    due.push_back(at->second);
  }
  for (const std::string& name : due) {
    if (running_ >= settings_.max_running) break;  // the next look that ends goes on here
    Server& server = servers_.at(name);
    if (server.state.silent && running_silent_ >= settings_.max_running_silent) {
      Schedule(name, server, kNoNewsPause);
    } else {
      Start(name, server);
    }
  }
  ArmTimer();
}

// ---- a look -------------------------------------------------------------------------------------

void ServerHealth::Start(const std::string& name, Server& server) {
  queue_.erase({server.due, name});
  // Looks at another volume each time, but at the same one again until it answers.
  auto volume = server.volumes.find(server.looked_at);
  if (volume == server.volumes.end() || !server.missed) {
    volume = server.volumes.upper_bound(server.looked_at);
    if (volume == server.volumes.end()) volume = server.volumes.begin();
  }
  server.looked_at = volume->first;
  server.look_unix_ms = scheduler_.clock().WallUnixMillis();
  server.looking = true;
  ++running_;
  if (server.state.silent) ++running_silent_;
  scheduler_.RunBlocking([this, name, place = volume->second, incarnation = server.incarnation,
                          silent = server.state.silent, deadline = settings_.deadline,
                          &scheduler = scheduler_, &kernel = kernel_, owner = alive_.watch()] {
    CallOptions call;
    call.deadline = Deadline::After(scheduler.clock(), deadline);
    call.domain = name + kLookLane;
    const Look look = LookAt(kernel, place, call);
    scheduler.Post([this, name, incarnation, silent, owner, look] {
      if (owner.alive()) Finished(name, incarnation, silent, look);
    });
  });
}

ServerHealth::Look ServerHealth::LookAt(Kernel& kernel, const SafePath& place,
                                        const CallOptions& call) {
  const Result<FsInfo> answer = kernel.Call(StatFs{place}, call);
  if (!answer.ok()) {
    const Error& error = answer.error();
    // If it was not applied, the look only waited for a worker.
    const bool hung = error.code() == Code::kDeadlineExceeded && error.maybe_applied();
    if (hung || IsNoAnswer(error.sys_errno())) return {Verdict::kNoAnswer, error.message()};
    if (error.sys_errno() == 0) return {};
  }
  // A volume that is being removed may have left its directory, which is on the node's disk and
  // answers.
  const auto mount = FindMountAt(kernel, place.Display(), CallOptions());
  if (!mount.ok() || !*mount) return {};
  return {Verdict::kAnswers, ""};
}

void ServerHealth::Finished(const std::string& name, uint64_t incarnation, bool was_silent,
                            const Look& look) {
  --running_;
  if (was_silent) --running_silent_;
  const auto found = servers_.find(name);
  if (found == servers_.end() || found->second.incarnation != incarnation) return ArmTimer();
  Server& server = found->second;
  server.looking = false;
  if (IsOff()) return;  // looks are off
  switch (look.verdict) {
    case Verdict::kAnswers:
      return Answered(name, server);
    case Verdict::kNoAnswer:
      return Missed(name, server, look.error);
    case Verdict::kNoNews:
      // The next look takes another volume, since this one may be going.
      server.missed = false;
      return Schedule(name, server, kNoNewsPause);
  }
}

void ServerHealth::Missed(const std::string& name, Server& server, const std::string& error) {
  server.state.last_error = error;
  const bool second = std::exchange(server.missed, true);
  if (server.state.silent) return Schedule(name, server, kSilentPause);
  if (!second) {
    server.state.since_unix_ms = server.look_unix_ms;
    return Schedule(name, server, Duration::zero());
  }
  server.state.silent = true;
  Schedule(name, server, kSilentPause);
  Tell(name, server);
}

void ServerHealth::Answered(const std::string& name, Server& server) {
  server.missed = false;
  Schedule(name, server, period_);
  if (!std::exchange(server.state.silent, false)) return;
  Tell(name, server);
}

void ServerHealth::Tell(const std::string& name, const Server& server) {
  const ServerState state = server.state;
  std::set<PodVolumeKey> volumes;
  for (const auto& [key, place] : server.volumes) volumes.insert(key);
  if (state.silent) {
    log_.Warning("volumes are stuck: what they lie on does not answer",
                 {{"domain", name}, {"volumes", volumes.size()}, {"error", state.last_error}});
  } else {
    log_.Info("what stuck volumes lie on answers again",
              {{"domain", name}, {"volumes", volumes.size()}});
  }
  // These are copies: the callback may forget volumes.
  if (hooks_.changed) hooks_.changed(state, volumes);
}

}  // namespace volumed
