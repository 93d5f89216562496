// ServerHealth: notices that what many volumes depend on (an NFS server) does not answer, and that
// it answers again. It makes one statfs now and then of one of the volumes, however many there are.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "base/alive_guard.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "operation/volume_operations.h"
#include "os/kernel.h"

namespace volumed {

// What is known of a server by the looks at it.
struct ServerState {
  std::string name;  // "NFS server nas-1"
  // Two looks in a row had no answer, and none has had one since.
  bool silent = false;
  int64_t since_unix_ms = 0;  // when the first look without an answer began
  std::string last_error;     // of the last look without an answer

  // "NFS server nas-1 does not answer since 2024-05-01T09:30:00.123Z"
  std::string Text() const;
};

struct ServerHealthSettings {
  // The time from the end of a look at a server that answers to the next look. Zero or less: no
  // looks.
  Duration period = std::chrono::seconds(10);
  // A look without an answer is given up after this.
  Duration deadline = std::chrono::seconds(5);
  // How many looks may run at a time; each takes a worker.
  int max_running = 16;
  // How many of these may look at servers that do not answer, so that they cannot use up all.
  int max_running_silent = 12;
  uint64_t jitter_seed = 1;
};

// A server is silent if two looks in a row had no answer; the second follows at once. So a server
// that dies is noticed after one period and two deadlines at most. Any answer counts, also an error
// (ESTALE), except those by which a soft mount gives up (EIO, ETIMEDOUT). A look that found no free
// worker decides nothing.
//
// Looks have a lane of their own, named like the server with " look" appended, since the server's
// lane may be full of hanging calls.
//
// Threads: the control thread; looks run as blocking tasks. Blocks: never. Costs: per server.
class ServerHealth {
 public:
  struct Hooks {
    // Called for each server that fell silent or answers again, with the volumes that are tracked
    // in it. May be empty.
    std::function<void(const ServerState& server, const std::set<PodVolumeKey>& volumes)> changed;
  };

  // Scheduler, kernel and log outlive this object.
  ServerHealth(Scheduler& scheduler, Kernel& kernel, Logger& log, ServerHealthSettings settings,
               Hooks hooks);
  ~ServerHealth();
  ServerHealth(const ServerHealth&) = delete;
  ServerHealth& operator=(const ServerHealth&) = delete;

  // Holds for looks that run now from their end on, and at once for servers that answer. Zero or
  // less: there are no more looks, and no server counts as silent.
  void SetPeriod(Duration period);

  // A volume of `server` is mounted at `place`. Has no effect for a volume that is already tracked.
  // `server` is the plugin's FaultDomain and tells servers apart; `name` is for people. The server
  // counts as one that answers: it has just answered a mount.
  void Track(const PodVolumeKey& key, const std::string& server, const std::string& name,
             SafePath place);
  // With its last volume a server is forgotten: it is not known any more whether it answers. Has no
  // effect for a volume that is not tracked.
  void Forget(const PodVolumeKey& key);

  // Null unless the volume's server is silent. The pointer is valid until the next change.
  const ServerState* FindSilent(const PodVolumeKey& key) const;
  // Null if no volume of the server is tracked, or if looks are off. The pointer is valid until the
  // next change.
  const ServerState* Find(const std::string& server) const;
  // For each server that has volumes: whether it answers. Empty while looks are off.
  std::map<std::string, bool> Answering() const;

 private:
  enum class Verdict { kAnswers, kNoAnswer, kNoNews };
  struct Look {
    Verdict verdict = Verdict::kNoNews;
    std::string error;
  };
  struct Server {
    ServerState state;
    std::map<PodVolumeKey, SafePath> volumes;
    PodVolumeKey looked_at;  // the volume of the last look
    uint64_t incarnation = 0;
    bool missed = false;  // the last look had no answer
    bool looking = false;
    int64_t look_unix_ms = 0;
    TimePoint due;
  };

  bool IsOff() const { return period_ <= Duration::zero(); }
  void Schedule(const std::string& name, Server& server, Duration delay);
  // For a server that answers as far as is known; the times differ, so that not all looks come at
  // once.
  void ScheduleSoon(const std::string& name, Server& server);
  void ArmTimer();
  void StartDue();
  void Start(const std::string& name, Server& server);
  static Look LookAt(Kernel& kernel, const SafePath& place, const CallOptions& call);
  void Finished(const std::string& name, uint64_t incarnation, bool was_silent, const Look& look);
  void Missed(const std::string& name, Server& server, const std::string& error);
  void Answered(const std::string& name, Server& server);
  void Tell(const std::string& name, const Server& server);

  Scheduler& scheduler_;
  Kernel& kernel_;
  Logger& log_;
  const ServerHealthSettings settings_;  // its period is that of the start
  const Hooks hooks_;
  Duration period_;
  std::mt19937_64 random_;
  std::map<std::string, Server> servers_;
  std::map<PodVolumeKey, std::string> server_of_;
  std::set<std::pair<TimePoint, std::string>> queue_;
  TimerId timer_ = 0;
  TimePoint timer_due_;
  uint64_t next_incarnation_ = 1;
  int running_ = 0;
  int running_silent_ = 0;
  AliveGuard alive_;
};

}  // namespace volumed
