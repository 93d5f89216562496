#include "unit/crash/crash_csi_client.h"

#include <chrono>
#include <utility>

#include "csi/csi_driver_record.h"
#include "csi/rpc/csi_methods.h"
#include "csi/rpc/csi_outcome.h"
#include "fakes/simulated_crash.h"
#include "unit/crash/crash_monitor.h"

namespace volumed {
namespace {

using google::protobuf::Message;

// Until somebody has started the driver again.
constexpr auto kRestart = std::chrono::milliseconds(700);
// How long the agent waits for an answer.
constexpr auto kPatience = std::chrono::minutes(2);

CsiDriversSettings Settings() {
  CsiDriversSettings settings;
  settings.endpoint_directories = {CrashWorld::kRoot};
  settings.driver.probe_period = Duration::zero();
  return settings;
}

Error NoConnection() {
  return Error::NotApplied(Code::kUnavailable, "no connection").About(kCsiNeverSent);
}

// A driver that knows no such volume has nothing of it.
CsiHeard HeardOf(const CsiChannel::AnyAnswer& answer) {
  if (answer.ok() || answer.error().code() == Code::kNotFound) return CsiHeard::kDone;
  return answer.error().maybe_applied() ? CsiHeard::kNothing : CsiHeard::kRefused;
}

}  // namespace

// A connection to the process that had the socket when it was dialled.
class CrashCsiCaller final : public CsiCaller {
 public:
  CrashCsiCaller(CrashCsiClient& client, uint64_t inode, CsiDialer::StateSeen state_seen)
      : client_(client), inode_(inode), state_seen_(std::move(state_seen)) {}

  // What is asked about the driver itself. It is answered on a thread, as by gRPC.
  void Start(const Message& request, const CsiCallOptions&, CsiChannel::Done done) override {
    auto answer = std::make_shared<CsiChannel::AnyAnswer>(AnswerTo(request));
    client_.parts_.scheduler.RunBlocking(
        [answer, done = std::move(done)] { done(std::move(*answer)); });
  }
  CsiChannel::AnyAnswer Perform(const Message& request, const CsiCallOptions&) override {
    if (!IsThere()) return NoConnection();
    return ChangesCsi(request) ? client_.Call(request) : AnswerTo(request);
  }
  void End() override { ended_ = true; }

  void Tell(CsiConnectionState state) {
    client_.parts_.scheduler.RunBlocking([seen = state_seen_, state] { seen(state); });
  }

 private:
  bool IsThere() const { return !ended_ && client_.IsAt(inode_); }
  CsiChannel::AnyAnswer AnswerTo(const Message& request) {
    if (!IsThere()) return NoConnection();
    return DoCsi(client_.parts_.world, request);
  }

  CrashCsiClient& client_;
  const uint64_t inode_;
  const CsiDialer::StateSeen state_seen_;
  bool ended_ = false;
};

CrashCsiClient::CrashCsiClient(Parts parts, Hooks hooks)
    : parts_(std::move(parts)),
      drivers_({parts_.scheduler, *this, parts_.records, parts_.log}, Settings(),
               std::move(hooks.drivers)),
      lanes_(domains_, drivers_) {
  if (hooks.happened) drivers_.AddListener(std::move(hooks.happened));
}

CrashCsiClient::~CrashCsiClient() = default;

void CrashCsiClient::Restore(const LoadedRecords& rows) {
  std::vector<CsiDriverRecord> records;
  for (const Record& row : rows.records) {
    Result<CsiDriverRecord> record = DecodeCsiDriverRecord(row);
    if (record.ok()) records.push_back(*std::move(record));
  }
  drivers_.Restore(records);
}

void CrashCsiClient::Start() {
  is_started_ = true;
  CsiTruth& csi = *parts_.world.csi;
  told_release_ = csi.release;
  is_told_away_ = csi.away;
  csi.alive = !csi.away;
  if (!csi.away) Comes();
}

void CrashCsiClient::Hear() {
  CsiTruth& csi = *parts_.world.csi;
  const bool is_same = told_release_ == csi.release && is_told_away_ == csi.away;
  if (!is_started_ || is_same) return;
  told_release_ = csi.release;
  is_told_away_ = csi.away;
  Goes();
  if (!csi.away) Comes();
}

bool CrashCsiClient::IsAt(uint64_t inode) const {
  const CsiTruth& csi = *parts_.world.csi;
  return csi.alive && !csi.agent_is_dead && csi.inode == inode;
}

void CrashCsiClient::Goes() {
  parts_.world.csi->alive = false;
  for (const auto& weak : std::exchange(callers_, {})) {
    if (const auto caller = weak.lock()) caller->Tell(CsiConnectionState::kTransientFailure);
  }
}

void CrashCsiClient::Comes() {
  CsiTruth& csi = *parts_.world.csi;
  csi.alive = true;
  ++csi.inode;
  const Result<SafePath> place = drivers_.PlaceOf(kCrashCsiSocket);
  drivers_.Register({kCrashCsiDriver, "/var/lib/volumed/plugins_registry/disk-reg.sock",
                     kCrashCsiSocket, place.value(), "1.0.0"},
                    [](const Status&) {});
}

Result<std::shared_ptr<const CsiSocket>> CrashCsiClient::Open(const SafePath& place, Deadline) {
  const CsiTruth& csi = *parts_.world.csi;
  if (!csi.alive) {
    return Error::NotApplied(Code::kUnavailable, "nobody listens at " + place.Display());
  }
  return std::make_shared<const CsiSocket>(place.Display(), 0, SocketIdentity{1, csi.inode},
                                           Descriptor());
}

Result<std::shared_ptr<CsiCaller>> CrashCsiClient::Dial(const std::string& /*driver*/,
                                                        std::shared_ptr<const CsiSocket> socket,
                                                        StateSeen state_seen) {
  const uint64_t inode = socket->identity().inode;
  auto caller = std::make_shared<CrashCsiCaller>(*this, inode, std::move(state_seen));
  callers_.push_back(caller);
  caller->Tell(IsAt(inode) ? CsiConnectionState::kReady : CsiConnectionState::kTransientFailure);
  return std::shared_ptr<CsiCaller>(caller);
}

// From here on nothing that the agent does reaches its world.
void CrashCsiClient::EndAgent() {
  CrashWorld& world = parts_.world;
  world.csi->agent_is_dead = true;
  world.kernel->Die();
  world.store->Die();
  throw SimulatedCrash{};
}

CsiChannel::AnyAnswer CrashCsiClient::DriverDied(const Message& request) {
  ++parts_.world.csi->deaths;
  Goes();
  parts_.scheduler.PostAfter(kRestart, alive_.Guarded([this] {
    if (!parts_.world.csi->away && !parts_.world.csi->alive) Comes();
  }));
  return CsiError(kCrashCsiDriver, *CsiMethodOf(request.GetDescriptor()),
                  {.code = Code::kUnavailable, .message = "Socket closed"}, CsiSecrets());
}

// A planned end of the driver counts as any other.
CsiHow CrashCsiClient::HowOf(const CsiAbout& about) {
  const CsiTruth& csi = *parts_.world.csi;
  const bool dies = csi.end && csi.end->number == csi.calls && csi.end->driver_alone;
  if (dies) return csi.end->after ? CsiHow::kDiesAfter : CsiHow::kDiesBefore;
  return csi.how ? csi.how(about) : CsiHow::kWell;
}

CsiChannel::AnyAnswer CrashCsiClient::Make(const Message& request, const CsiAbout& about,
                                           CsiHow how) {
  CrashWorld& world = parts_.world;
  const auto failure = [&](Code code, const std::string& text) -> CsiChannel::AnyAnswer {
    return CsiError(kCrashCsiDriver, *CsiMethodOf(request.GetDescriptor()),
                    {.code = code, .message = text}, CsiSecrets());
  };
  switch (how) {
    case CsiHow::kRefused:
      return failure(Code::kInvalidArgument, "not so");
    case CsiHow::kHangs:
      world.clock.AdvanceTo(world.clock.Now() + kPatience);
      return failure(Code::kDeadlineExceeded, "Deadline Exceeded");
    case CsiHow::kDiesBefore:
      return DriverDied(request);
    case CsiHow::kLies:
      return std::unique_ptr<Message>(
          google::protobuf::MessageFactory::generated_factory()
              ->GetPrototype(CsiMethodOf(request.GetDescriptor())->response)
              ->New());
    case CsiHow::kWell:
    case CsiHow::kAnswerLost:
    case CsiHow::kDiesAfter:
      break;
  }
  CsiChannel::AnyAnswer answer = DoCsi(world, request);
  world.CheckState("after " + about.call.first + " of " + about.handle);
  if (how == CsiHow::kAnswerLost) return failure(Code::kDeadlineExceeded, "Deadline Exceeded");
  if (how == CsiHow::kDiesAfter) return DriverDied(request);
  return answer;
}

CsiChannel::AnyAnswer CrashCsiClient::Do(const Message& request) {
  parts_.switch_point();
  CrashWorld& world = parts_.world;
  CsiTruth& csi = *world.csi;
  if (!csi.alive || csi.agent_is_dead) return NoConnection();
  const uint64_t number = ++csi.calls;
  if (number > CrashWorld::kMaxCallsOfAnAgent) {
    world.Loss("the agent calls the driver without end");
    throw RunawayAgent{};
  }
  const bool agent_ends = csi.end && csi.end->number == number && !csi.end->driver_alone;
  if (agent_ends && !csi.end->after) EndAgent();
  CheckCsiCall(world, request);
  const CsiAbout about = AboutOf(request);
  const CsiHow how = HowOf(about);
  const std::string text = about.call.first + " " + about.call.second;
  NoteCsi(world, about.handle, text + " is made");
  const bool was_open = BeginCsiCall(world, about);
  parts_.switch_point();
  CsiChannel::AnyAnswer answer = Make(request, about, how);
  if (agent_ends) EndAgent();
  parts_.switch_point();
  NoteCsi(world, about.handle,
          text + (answer.ok() ? ": done" : ": " + answer.error().ToString()) +
              (how == CsiHow::kLies ? ", which is a lie" : ""));
  EndCsiCall(world, about, was_open, how == CsiHow::kLies ? CsiHeard::kNothing : HeardOf(answer));
  return answer;
}

}  // namespace volumed
