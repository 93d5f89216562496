// DomainHealth: notices that what many volumes hang with (an NFS server) does not answer, and that
// it answers again, by one statfs now and then of one of its volumes, however many there are.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "operation/volume_operations.h"
#include "os/kernel.h"

namespace volumed {

struct DomainState {
  std::string name;  // "NFS server nas-1"
  bool silent = false;
  int64_t since_unix_ms = 0;  // when the first look began that had no answer
  std::string last_error;     // of the last such look

  // "NFS server nas-1 does not answer since 2024-05-01T09:30:00.123Z"
  std::string Text() const;
};

struct DomainHealthSettings {
  // From the end of a look at a domain that answers to the next. Zero or less: never.
  Duration period = std::chrono::seconds(10);
  // After which a look is given up.
  Duration deadline = std::chrono::seconds(5);
  int max_running = 16;
  // Of these, at domains that do not answer: they cannot use up the others.
  int max_running_silent = 12;
  uint64_t jitter_seed = 1;
  // Told of each domain that fell silent or answers again, with the volumes tracked in it.
  // Optional.
  std::function<void(const DomainState& domain, const std::set<PodVolumeKey>& volumes)> changed;
};

// A domain is silent after two looks in a row, the second right after the first, had no answer: so
// a domain that dies shows as silent after one period and two deadlines at most. Any answer will
// do, an error (ESTALE) too; but what a soft mount says when it gives up (EIO, ETIMEDOUT) is none.
// Nothing follows from a look that found no worker free.
//
// Looks have a lane of their own, the domain's with " look" behind it: the domain's own may be full
// of what hangs.
//
// Threads: the control thread; looks run as blocking tasks. Blocks: never. Costs: per domain.
class DomainHealth {
 public:
  // Both outlive this.
  DomainHealth(Scheduler& scheduler, Kernel& kernel, Logger& log, DomainHealthSettings settings);
  ~DomainHealth();
  DomainHealth(const DomainHealth&) = delete;
  DomainHealth& operator=(const DomainHealth&) = delete;

  // Counts from the end of the looks that run now, and for what answers at once. Zero or less: none
  // is looked at any more, and none counts as silent.
  void SetPeriod(Duration period);

  // A volume of `domain` is mounted at `place`. Known volumes are as they were.
  void Track(const PodVolumeKey& key, const std::string& domain, const std::string& name,
             SafePath place);
  void Forget(const PodVolumeKey& key);

  // Null unless the volume's domain is silent. Valid until the next change.
  const DomainState* FindSilent(const PodVolumeKey& key) const;
  // Null where no volume of the domain is tracked, or none is looked at. Valid likewise.
  const DomainState* Find(const std::string& domain) const;
  // Of each domain that has volumes: whether it answers. Empty while none is looked at.
  std::map<std::string, bool> Answering() const;

 private:
  enum class Verdict { kAnswers, kNoAnswer, kNoNews };
  struct Look {
    Verdict verdict = Verdict::kNoNews;
    std::string error;
  };
  struct Domain {
    DomainState state;
    std::map<PodVolumeKey, SafePath> volumes;
    PodVolumeKey looked_at;  // the last one
    uint64_t incarnation = 0;
    bool missed = false;  // the last look had no answer
    bool looking = false;
    int64_t look_unix_ms = 0;
    TimePoint due;
  };

  bool IsOff() const { return period_ <= Duration::zero(); }
  void Schedule(const std::string& name, Domain& domain, Duration delay);
  // For one that answers, as far as is known. Not all at once.
  void ScheduleSoon(const std::string& name, Domain& domain);
  void ArmTimer();
  void StartDue();
  void Start(const std::string& name, Domain& domain);
  static Look LookAt(Kernel& kernel, const SafePath& place, const CallOptions& call);
  void Finished(const std::string& name, uint64_t incarnation, bool was_silent, const Look& look);
  void Missed(const std::string& name, Domain& domain, const std::string& error);
  void Answered(const std::string& name, Domain& domain);
  void Tell(const std::string& name, const Domain& domain);

  Scheduler& scheduler_;
  Kernel& kernel_;
  Logger& log_;
  const DomainHealthSettings settings_;  // its period is that of the start
  Duration period_;
  std::mt19937_64 random_;
  std::map<std::string, Domain> domains_;
  std::map<PodVolumeKey, std::string> domain_of_;
  std::set<std::pair<TimePoint, std::string>> queue_;
  TimerId timer_ = 0;
  TimePoint timer_due_;
  uint64_t next_incarnation_ = 1;
  int running_ = 0;
  int running_silent_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace volumed
