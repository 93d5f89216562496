#include "csi/csi_controller.h"

#include <algorithm>
#include <memory>

#include "csi.pb.h"
#include "csi/csi_controller_requests.h"

namespace volumed {
namespace {

using ControllerRpc = ::csi::v1::ControllerServiceCapability_RPC;

// A driver that repeats its token would be asked for ever.
constexpr int kMostPages = 100;
// Each holds a thread for 5 s if its driver hangs.
constexpr size_t kMostBeside = 8;

Result<CsiSecretValues> SecretOf(const CsiContext& context, const CsiVolume& volume) {
  return ReadSecret(context, volume.controller_publish_secret, "controller publish secret");
}

Error TooLarge(const std::string& driver, size_t bytes) {
  return Error::MaybeApplied(Code::kInternal,
                             driver + ": ControllerPublishVolume: the publish context has " +
                                 std::to_string(bytes) + " bytes; at most " +
                                 std::to_string(kMostCsiContextBytes) + " are kept");
}

CallOptions NotLongerThan(const CsiContext& context, const CallOptions& call, Duration longest) {
  CallOptions options = call;
  const Deadline end = Deadline::After(context.host.clock, longest);
  if (end.when() < options.deadline.when()) options.deadline = end;
  return options;
}

}  // namespace

Result<StringMap> ControllerPublish(const CsiContext& context, const CsiDriverFacts& facts,
                                    const CsiVolume& volume, const CallOptions& call) {
  ASSIGN_OR_RETURN(const CsiSecretValues secrets, SecretOf(context, volume));
  ASSIGN_OR_RETURN(const ::csi::v1::ControllerPublishVolumeRequest request,
                   ControllerPublishRequest(facts, volume, facts.node_id, secrets));
  ASSIGN_OR_RETURN(const auto answer, CallDriver<::csi::v1::ControllerPublishVolumeResponse>(
                                          context, volume.driver, request, call, volume.migrated));
  StringMap published;
  size_t bytes = 0;
  for (const auto& [key, value] : answer.publish_context()) {
    bytes += key.size() + value.size();
    published.emplace(key, value);
  }
  if (bytes > kMostCsiContextBytes) return TooLarge(volume.driver, bytes);
  return published;
}

Status ControllerUnpublish(const CsiContext& context, const CsiVolumeId& id,
                           const std::string& node_id, const CsiVolume* with_secrets,
                           const CallOptions& call) {
  CsiSecretValues secrets;
  if (with_secrets != nullptr) {
    ASSIGN_OR_RETURN(secrets, SecretOf(context, *with_secrets));
  }
  const auto answer = CallDriver<::csi::v1::ControllerUnpublishVolumeResponse>(
      context, id.driver, ControllerUnpublishRequest(id.handle, node_id, secrets), call);
  if (answer.ok() || answer.error().code() == Code::kNotFound) return OkStatus();
  return answer.error();
}

// ---- What a driver lists ----

bool CsiPublishedNodes::CanList(const std::string& driver) const {
  const Result<CsiDriverFacts> facts = FactsOf(context_, driver);
  return facts.ok() && facts->HasController(ControllerRpc::LIST_VOLUMES_PUBLISHED_NODES);
}

CsiPublishedNodes::Turn CsiPublishedNodes::TakeTurn(const std::string& driver,
                                                    const Question& question) {
  const TimePoint now = context_.host.clock.Now();
  MutexLock lock(mu_);
  Last& last = drivers_[driver];
  const bool is_suspect =
      std::any_of(last.suspects.begin(), last.suspects.end(),
                  [&](const std::string& handle) { return question.contains(handle); });
  Turn turn;
  turn.changes = last.changes;
  turn.asks = is_suspect || !last.asked || now - *last.asked >= kPause;
  if (turn.asks) {
    last.asked = now;
  } else {
    turn.known = last.listed;
  }
  return turn;
}

Result<CsiPublishedNodes::Listed> CsiPublishedNodes::List(const std::string& driver,
                                                          const Question& question,
                                                          const CallOptions& call) const {
  const CallOptions bounded = NotLongerThan(context_, call, kLongest);
  Listed listed;
  ::csi::v1::ListVolumesRequest request;
  for (int page = 0; page < kMostPages; ++page) {
    ASSIGN_OR_RETURN(const auto answer, CallDriver<::csi::v1::ListVolumesResponse>(
                                            context_, driver, request, bounded));
    for (const auto& entry : answer.entries()) {
      const auto asked = question.find(entry.volume().volume_id());
      if (asked == question.end() || !entry.has_status()) continue;
      const auto& nodes = entry.status().published_node_ids();
      listed[asked->first] = std::find(nodes.begin(), nodes.end(), asked->second) != nodes.end();
    }
    if (answer.next_token().empty() || listed.size() == question.size()) return listed;
    request.set_starting_token(answer.next_token());
  }
  return Error::NotApplied(Code::kOutOfRange, driver + ": ListVolumes: it does not end after " +
                                                  std::to_string(kMostPages) + " pages");
}

void CsiPublishedNodes::Remember(const std::string& driver, const Turn& turn,
                                 const Listed& listed) {
  MutexLock lock(mu_);
  Last& last = drivers_[driver];
  last.listed = last.changes == turn.changes ? listed : Listed();
}

bool CsiPublishedNodes::Changed(const CsiVolumeId& id) {
  MutexLock lock(mu_);
  Last& last = drivers_[id.driver];
  ++last.changes;
  last.listed.erase(id.handle);
  return last.suspects.contains(id.handle);
}

void CsiPublishedNodes::SetSuspect(const CsiVolumeId& id, bool suspect) {
  MutexLock lock(mu_);
  std::set<std::string>& suspects = drivers_[id.driver].suspects;
  if (suspect) {
    suspects.insert(id.handle);
  } else {
    suspects.erase(id.handle);
  }
}

CsiPublishedNodes::Listed CsiPublishedNodes::Ask(const std::string& driver,
                                                 const Question& question,
                                                 const CallOptions& call) {
  if (!CanList(driver)) return {};
  const CsiLane lane = context_.parts.drivers.LaneOf(driver);
  if (lane.closed || lane.health.silent_since) return {};
  const std::shared_ptr<CsiDriver> asked = context_.parts.drivers.Find(driver);
  if (asked != nullptr && !asked->WhyControllerAway().empty()) return {};
  const Turn turn = TakeTurn(driver, question);
  if (!turn.asks) return turn.known;
  const Result<Listed> listed = List(driver, question, call);
  if (!listed.ok()) return {};
  Remember(driver, turn, *listed);
  return *listed;
}

Status CsiPublishedNodes::Prove(const CsiVolumeId& id, const std::string& node_id, bool attached,
                                const CallOptions& call) {
  const bool was_suspect = Changed(id);
  if (!CanList(id.driver)) {
    SetSuspect(id, false);
    return OkStatus();
  }
  const Question question{{id.handle, node_id}};
  const Turn turn = TakeTurn(id.driver, question);
  if (!turn.asks) return OkStatus();
  const Result<Listed> listed = List(id.driver, question, call);
  if (!listed.ok()) {
    // The call itself succeeded. Only who has lied before is not believed without a proof.
    if (!was_suspect) return OkStatus();
    return Error::MaybeApplied(Code::kUnavailable,
                               "CSI driver " + id.driver + " has listed volume " + id.handle +
                                   " otherwise than it said, and now: " + listed.error().message());
  }
  const auto found = listed->find(id.handle);
  const bool lied = found != listed->end() && found->second != attached;
  SetSuspect(id, lied);
  if (!lied) return OkStatus();
  const std::string where = " node " + node_id;
  return DriverLied(
      context_,
      {id.driver, attached ? "ControllerPublishVolume" : "ControllerUnpublishVolume", id.handle},
      "volume " + id.handle + (attached ? " is attached to" : " is detached from") + where,
      attached ? "lists it without that node" : "lists it with that node");
}

// ---- Side by side ----

namespace {

struct SideBySide {
  Mutex mu;
  CondVar ended;
  std::vector<std::function<void()>> tasks GUARDED_BY(mu);
  size_t next GUARDED_BY(mu) = 0;
  size_t running GUARDED_BY(mu) = 0;

  // Empty: none is left.
  std::function<void()> Take() EXCLUDES(mu) {
    MutexLock lock(mu);
    if (next == tasks.size()) return {};
    ++running;
    return std::move(tasks[next++]);
  }
  void Ended() EXCLUDES(mu) {
    MutexLock lock(mu);
    --running;
    ended.NotifyAll();
  }
  void Work() EXCLUDES(mu) {
    while (const std::function<void()> task = Take()) {
      task();
      Ended();
    }
  }
  void WaitForOthers() EXCLUDES(mu) {
    MutexLock lock(mu);
    while (running > 0) ended.Wait(mu);
  }
};

}  // namespace

void RunSideBySide(Scheduler& scheduler, std::vector<std::function<void()>> tasks) {
  const size_t helpers = std::min(tasks.size(), kMostBeside);
  const auto shared = std::make_shared<SideBySide>();
  {
    MutexLock lock(shared->mu);
    shared->tasks = std::move(tasks);
  }
  for (size_t i = 1; i < helpers; ++i) scheduler.RunBlocking([shared] { shared->Work(); });
  shared->Work();
  shared->WaitForOthers();
}

}  // namespace volumed
