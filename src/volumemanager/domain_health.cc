#include "volumemanager/domain_health.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include "mounter/mount_refs.h"

namespace volumed {
namespace {

constexpr char kLookLane[] = " look";
// The pause between two looks at a silent domain; each look may take the whole deadline.
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

std::string DomainState::Text() const {
  return name + " does not answer since " + WallTimeText(since_unix_ms);
}

DomainHealth::DomainHealth(Scheduler& scheduler, Kernel& kernel, Logger& log,
                           DomainHealthSettings settings)
    : scheduler_(scheduler),
      kernel_(kernel),
      log_(log),
      settings_(std::move(settings)),
      period_(settings_.period),
      random_(settings_.jitter_seed) {}

DomainHealth::~DomainHealth() {
  if (timer_ != 0) scheduler_.Cancel(timer_);
}

void DomainHealth::SetPeriod(Duration period) {
  if (period == period_) return;
  period_ = period;
  for (auto& [name, domain] : domains_) {
    if (IsOff()) {
      queue_.erase({domain.due, name});
      domain.missed = false;
      domain.state.silent = false;
    } else if (!domain.looking && !domain.missed && !domain.state.silent) {
      ScheduleSoon(name, domain);
    }
  }
}

void DomainHealth::Track(const PodVolumeKey& key, const std::string& domain,
                         const std::string& name, SafePath place) {
  if (domain_of_.contains(key)) return;
  domain_of_[key] = domain;
  Domain& found = domains_[domain];
  found.volumes.emplace(key, std::move(place));
  if (found.incarnation != 0) return;
  found.incarnation = next_incarnation_++;
  found.state.name = name;
  ScheduleSoon(domain, found);  // it has just answered a mount
}

void DomainHealth::Forget(const PodVolumeKey& key) {
  const auto of = domain_of_.find(key);
  if (of == domain_of_.end()) return;
  const auto domain = domains_.find(of->second);
  domain_of_.erase(of);
  domain->second.volumes.erase(key);
  if (!domain->second.volumes.empty()) return;
  queue_.erase({domain->second.due, domain->first});
  domains_.erase(domain);
}

const DomainState* DomainHealth::FindSilent(const PodVolumeKey& key) const {
  const auto of = domain_of_.find(key);
  if (of == domain_of_.end()) return nullptr;
  const DomainState& state = domains_.at(of->second).state;
  return state.silent ? &state : nullptr;
}

const DomainState* DomainHealth::Find(const std::string& domain) const {
  const auto found = domains_.find(domain);
  return IsOff() || found == domains_.end() ? nullptr : &found->second.state;
}

std::map<std::string, bool> DomainHealth::Answering() const {
  std::map<std::string, bool> answering;
  if (IsOff()) return answering;
  for (const auto& [name, domain] : domains_) answering[name] = !domain.state.silent;
  return answering;
}

// ---- when ---------------------------------------------------------------------------------------

void DomainHealth::ScheduleSoon(const std::string& name, Domain& domain) {
  const double share = std::uniform_real_distribution<double>(0.5, 1)(random_);
  Schedule(name, domain, std::chrono::duration_cast<Duration>(period_ * share));
}

void DomainHealth::Schedule(const std::string& name, Domain& domain, Duration delay) {
  queue_.erase({domain.due, name});
  if (IsOff()) return;
  domain.due = scheduler_.clock().Now() + delay;
  queue_.emplace(domain.due, name);
  ArmTimer();
}

void DomainHealth::ArmTimer() {
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

void DomainHealth::StartDue() {
  const TimePoint now = scheduler_.clock().Now();
  std::vector<std::string> due;
  for (auto at = queue_.begin(); at != queue_.end() && at->first <= now; ++at) {
    due.push_back(at->second);
  }
  for (const std::string& name : due) {
    if (running_ >= settings_.max_running) break;  // the next look that ends goes on here
    Domain& domain = domains_.at(name);
    if (domain.state.silent && running_silent_ >= settings_.max_running_silent) {
      Schedule(name, domain, kNoNewsPause);
    } else {
      Start(name, domain);
    }
  }
  ArmTimer();
}

// ---- a look -------------------------------------------------------------------------------------

void DomainHealth::Start(const std::string& name, Domain& domain) {
  queue_.erase({domain.due, name});
  // Looks at another volume each time, but at the same one again until it answers.
  auto volume = domain.volumes.find(domain.looked_at);
  if (volume == domain.volumes.end() || !domain.missed) {
    volume = domain.volumes.upper_bound(domain.looked_at);
    if (volume == domain.volumes.end()) volume = domain.volumes.begin();
  }
  domain.looked_at = volume->first;
  domain.look_unix_ms = scheduler_.clock().WallUnixMillis();
  domain.looking = true;
  ++running_;
  if (domain.state.silent) ++running_silent_;
  scheduler_.RunBlocking([this, name, place = volume->second, incarnation = domain.incarnation,
                          silent = domain.state.silent, deadline = settings_.deadline,
                          &scheduler = scheduler_, &kernel = kernel_,
                          alive = std::weak_ptr<bool>(alive_)] {
    CallOptions call;
    call.deadline = Deadline::After(scheduler.clock(), deadline);
    call.domain = name + kLookLane;
    const Look look = LookAt(kernel, place, call);
    scheduler.Post([this, name, incarnation, silent, alive, look] {
      if (!alive.expired()) Finished(name, incarnation, silent, look);
    });
  });
}

DomainHealth::Look DomainHealth::LookAt(Kernel& kernel, const SafePath& place,
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

void DomainHealth::Finished(const std::string& name, uint64_t incarnation, bool was_silent,
                            const Look& look) {
  --running_;
  if (was_silent) --running_silent_;
  const auto found = domains_.find(name);
  if (found == domains_.end() || found->second.incarnation != incarnation) return ArmTimer();
  Domain& domain = found->second;
  domain.looking = false;
  if (IsOff()) return;  // looks are off
  switch (look.verdict) {
    case Verdict::kAnswers:
      return Answered(name, domain);
    case Verdict::kNoAnswer:
      return Missed(name, domain, look.error);
    case Verdict::kNoNews:
      // The next look takes another volume, since this one may be going.
      domain.missed = false;
      return Schedule(name, domain, kNoNewsPause);
  }
}

void DomainHealth::Missed(const std::string& name, Domain& domain, const std::string& error) {
  domain.state.last_error = error;
  const bool second = std::exchange(domain.missed, true);
  if (domain.state.silent) return Schedule(name, domain, kSilentPause);
  if (!second) {
    domain.state.since_unix_ms = domain.look_unix_ms;
    return Schedule(name, domain, Duration::zero());
  }
  domain.state.silent = true;
  Schedule(name, domain, kSilentPause);
  Tell(name, domain);
}

void DomainHealth::Answered(const std::string& name, Domain& domain) {
  domain.missed = false;
  Schedule(name, domain, period_);
  if (!std::exchange(domain.state.silent, false)) return;
  Tell(name, domain);
}

void DomainHealth::Tell(const std::string& name, const Domain& domain) {
  const DomainState state = domain.state;
  std::set<PodVolumeKey> volumes;
  for (const auto& [key, place] : domain.volumes) volumes.insert(key);
  if (state.silent) {
    log_.Warning("volumes are stuck: what they lie on does not answer",
                 {{"domain", name}, {"volumes", volumes.size()}, {"error", state.last_error}});
  } else {
    log_.Info("what stuck volumes lie on answers again",
              {{"domain", name}, {"volumes", volumes.size()}});
  }
  // These are copies: the callback may forget volumes.
  if (settings_.changed) settings_.changed(state, volumes);
}

}  // namespace volumed
