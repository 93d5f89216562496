#include "csi/csi_driver.h"

#include <algorithm>

#include "base/log.h"
#include "csi/rpc/csi_outcome.h"
#include "volume/driver_domain.h"

namespace volumed {
namespace {

bool IsOfController(const CsiMethod& method) {
  return method.service == "csi.v1.Controller" || method.service == "csi.v1.GroupController" ||
         method.service == "csi.v1.SnapshotMetadata";
}

std::string SinceWall(int64_t unix_ms) {
  return "since " + WallTimeText(std::max<int64_t>(0, unix_ms));
}

Error NeverSent(const CsiMethod& method, const std::string& why) {
  return Error::NotApplied(Code::kUnavailable, method.name + ": " + why)
      .About(kCsiNeverSent)
      .About(kDriverAway);
}

}  // namespace

CsiDriver::Answering CsiDriver::AnsweringOf(const Error* error) {
  if (error == nullptr) return Answering::kYes;
  if (error->IsAbout(kCsiNeverSent)) return Answering::kUnknown;
  const Code code = error->code();
  if (code == Code::kDeadlineExceeded) return Answering::kNo;
  const bool may_be_ours = code == Code::kCancelled || code == Code::kUnavailable;
  return may_be_ours ? Answering::kUnknown : Answering::kYes;
}

std::string_view CsiDriverStateName(CsiDriverState state) {
  switch (state) {
    case CsiDriverState::kGone:
      return "gone";
    case CsiDriverState::kUnregistered:
      return "unregistered";
    case CsiDriverState::kOtherNode:
      return "other node";
    case CsiDriverState::kStarting:
      return "starting";
    case CsiDriverState::kSilent:
      return "silent";
    case CsiDriverState::kUnhealthy:
      return "unhealthy";
    case CsiDriverState::kReady:
      return "ready";
  }
  return "gone";
}

std::shared_ptr<CsiDriver> CsiDriver::Make(Parts parts, CsiDriverSettings settings, Hooks hooks,
                                           CsiDriverRecord record,
                                           std::optional<SafePath> controller) {
  // Whoever makes a call may be the last to know it.
  const auto destroy = [&scheduler = parts.scheduler](CsiDriver* driver) {
    auto owned = std::make_shared<std::unique_ptr<CsiDriver>>(driver);
    if (scheduler.OnControlThread()) return;
    scheduler.Post([owned] { owned->reset(); });
  };
  return {
      new CsiDriver(parts, settings, std::move(hooks), std::move(record), std::move(controller)),
      destroy};
}

CsiDriver::CsiDriver(Parts parts, CsiDriverSettings settings, Hooks hooks, CsiDriverRecord record,
                     std::optional<SafePath> controller)
    : parts_(parts),
      hooks_(std::move(hooks)),
      name_(record.facts.name),
      controller_place_(std::move(controller)) {
  {
    MutexLock lock(mu_);
    state_.settings = settings;
    state_.record = std::move(record);
    state_.known = !state_.record.facts.node_id.empty();
    state_.since = state_.absent_since = parts_.scheduler.clock().Now();
    state_.since_unix_ms = state_.controller_since_unix_ms =
        parts_.scheduler.clock().WallUnixMillis();
    state_.controller_error = "it is dialled once the driver is connected";
    if (state_.known) SetError(state_, "it has not registered since the agent started");
    state_.window = settings.first_calls;
  }
  const CsiLink::Parts link_parts{parts_.scheduler, parts_.dialer};
  CsiLink::Settings link_settings;
  link_settings.driver = name_;
  link_ = std::make_unique<CsiLink>(link_parts, link_settings, NodeHooks());
  if (controller_place_) {
    controller_link_ = std::make_unique<CsiLink>(link_parts, link_settings, ControllerHooks());
  }
}

CsiDriver::~CsiDriver() {
  alive_.Renew();
  parts_.scheduler.Cancel(node_probing_.timer);
  parts_.scheduler.Cancel(controller_probing_.timer);
  parts_.scheduler.Cancel(grace_timer_);
  link_.reset();
  controller_link_.reset();
  std::vector<std::weak_ptr<CsiCaller>> callers;
  {
    MutexLock lock(mu_);
    callers.swap(state_.all_callers);
  }
  for (const std::weak_ptr<CsiCaller>& weak : callers) {
    if (const std::shared_ptr<CsiCaller> caller = weak.lock()) caller->End();
  }
}

// ---- What operations use ----

Status CsiDriver::CheckAnswer(const google::protobuf::Message& request,
                              const google::protobuf::Descriptor* response) {
  const CsiMethod* method = CsiMethodOf(request.GetDescriptor());
  if (method != nullptr && method->response == response) return OkStatus();
  return Error::NotApplied(
      Code::kInvalidArgument,
      request.GetDescriptor()->full_name() + " is not answered by " + response->full_name());
}

Result<CsiDriver::Way> CsiDriver::Take(const google::protobuf::Message& request) {
  const CsiMethod* method = CsiMethodOf(request.GetDescriptor());
  if (method == nullptr) {
    return Error::NotApplied(Code::kInvalidArgument,
                             request.GetDescriptor()->full_name() + " is no request of an RPC");
  }
  const bool is_node = !controller_place_ || !IsOfController(*method);
  MutexLock lock(mu_);
  const std::shared_ptr<CsiCaller>& caller = is_node ? state_.node : state_.controller;
  if (caller == nullptr) {
    return NeverSent(*method, is_node ? WhyAway(state_) : WhyNoController(state_));
  }
  if (!is_node) {
    const bool is_taken = state_.controller_is_silent && state_.controller_calls > 0;
    if (is_taken) return NeverSent(*method, WhyControllerSilent(state_));
    ++state_.controller_calls;
  }
  ++state_.in_flight;
  return Way{caller, is_node, parts_.scheduler.clock().Now()};
}

CsiCallOptions CsiDriver::WithMemory(CsiCallOptions options) const {
  options.secrets = secrets_;
  return options;
}

CsiChannel::AnyAnswer CsiDriver::Perform(const google::protobuf::Message& request,
                                         const CsiCallOptions& options) {
  const std::shared_ptr<CsiDriver> keep = shared_from_this();
  ASSIGN_OR_RETURN(const Way way, Take(request));
  CsiChannel::AnyAnswer answer = way.caller->Perform(request, WithMemory(options));
  Ended(way, answer.ok() ? nullptr : &answer.error());
  if (!answer.ok()) return WithSilence(way, answer.error());
  return answer;
}

// Whoever runs the driver has to look at it, also if it answers others.
Error CsiDriver::WithSilence(const Way& way, const Error& error) const {
  if (error.code() != Code::kDeadlineExceeded || error.IsAbout(kCsiNeverSent)) return error;
  const std::string since = SilentSince(way);
  if (since.empty()) return error.About(kDriverAway);
  const std::string who = way.is_node ? "CSI driver " + name_ : ControllerName();
  return error.With(who + " is silent " + since).About(kDriverAway);
}

std::string CsiDriver::SilentSince(const Way& way) const {
  MutexLock lock(mu_);
  const bool is_silent =
      way.is_node ? StateOf(state_.facets) == CsiDriverState::kSilent : state_.controller_is_silent;
  return is_silent ? SinceWall(way.is_node ? state_.since_unix_ms : state_.controller_since_unix_ms)
                   : "";
}

void CsiDriver::Ended(const Way& way, const Error* error) {
  {
    MutexLock lock(mu_);
    --state_.in_flight;
    if (!way.is_node) --state_.controller_calls;
  }
  if (error != nullptr && error->code() == Code::kUnimplemented && !error->IsAbout(kCsiNeverSent)) {
    // It has said that it can do this, and cannot. Source: CSI spec v1.13.0, "Error Scheme".
    parts_.scheduler.Post([weak = weak_from_this()] {
      if (const auto driver = weak.lock()) driver->RefreshNowAndThen();
    });
  }
  switch (AnsweringOf(error)) {
    case Answering::kYes:
      return Answered(way.is_node);
    case Answering::kNo:
      return Doubt(way.is_node, way.begun);
    case Answering::kUnknown:
      return;
  }
}

void CsiDriver::Answered(bool is_node) {
  if (!is_node) return ControllerAnswered();
  Update([this](State& state) {
    state.last_answer = parts_.scheduler.clock().Now();
    state.has_answered = true;
    const bool was_silent = state.facets.silent_since.has_value();
    state.facets.silent_since.reset();
    // The calls that were not answered in time have places still, or will have them again.
    const int wider = state.doubted_since ? 2 * state.window : state.window + 1;
    state.doubted_since.reset();
    state.window = was_silent ? state.settings.calls_after_silence
                              : std::min(wider, std::max(1, state.settings.most_calls));
  });
}

// A call may wait for its volume's storage alone: a driver that answers a probe meanwhile is there
// for all others.
void CsiDriver::Doubt(bool is_node, TimePoint since) {
  if (Settings().probe_period <= Duration::zero()) return NotAnswered(is_node, since);
  {
    MutexLock lock(mu_);
    std::optional<TimePoint>& doubted =
        is_node ? state_.doubted_since : state_.controller_doubted_since;
    const bool is_silent =
        is_node ? state_.facets.silent_since.has_value() : state_.controller_is_silent;
    const TimePoint answered = is_node ? state_.last_answer : state_.controller_last_answer;
    if (is_silent || doubted || answered > since) return;
    doubted = since;
  }
  parts_.scheduler.Post([weak = weak_from_this(), is_node] {
    const auto driver = weak.lock();
    if (driver == nullptr) return;
    driver->Probe(is_node ? driver->node_probing_ : driver->controller_probing_);
  });
}

void CsiDriver::NotAnswered(bool is_node, TimePoint since) {
  if (!is_node) return ControllerNotAnswered(since);
  Update([this, since](State& state) {
    state.doubted_since.reset();
    // One call that takes long is no silence as long as others are answered.
    if (state.facets.silent_since || state.last_answer > since) return;
    state.facets.silent_since = since;
    state.window = state.settings.calls_after_silence;
    SetError(state, "a call was not answered in time");
  });
}

CsiDriverFacts CsiDriver::facts() const {
  MutexLock lock(mu_);
  return state_.record.facts;
}

CsiDriverRecord CsiDriver::record() const {
  MutexLock lock(mu_);
  return state_.record;
}

bool CsiDriver::known() const {
  MutexLock lock(mu_);
  return state_.known;
}

bool CsiDriver::registered() const {
  MutexLock lock(mu_);
  return state_.facets.presence == Presence::kRegistered;
}

bool CsiDriver::was_unregistered() const {
  MutexLock lock(mu_);
  return state_.facets.presence == Presence::kUnregistered;
}

bool CsiDriver::connected() const {
  MutexLock lock(mu_);
  return state_.facets.connected;
}

CsiDriverHealth CsiDriver::health() const {
  MutexLock lock(mu_);
  return {.state = StateOf(state_.facets),
          .since = state_.since,
          .since_unix_ms = state_.since_unix_ms,
          .connected = state_.facets.connected,
          .absent_since = state_.facets.connected ? std::nullopt
                                                  : std::optional<TimePoint>(state_.absent_since),
          .last_error = state_.last_error,
          .last_error_unix_ms = state_.last_error_unix_ms,
          .in_flight = state_.in_flight};
}

CsiLane CsiDriver::lane() const {
  MutexLock lock(mu_);
  CsiLane lane;
  lane.health = {.silent_since = state_.facets.silent_since, .has_answered = state_.has_answered};
  lane.width = state_.facets.silent_since ? 1 : state_.window;
  lane.closed = !IsUsable(StateOf(state_.facets));
  // What is mounted is taken away by a driver that is there, whatever it is called by; but not
  // before it says that it is ready.
  lane.closed_to_teardown = !state_.facets.connected || state_.facets.starting;
  return lane;
}

std::string CsiDriver::WhyAway() const {
  MutexLock lock(mu_);
  return WhyAway(state_);
}

std::string CsiDriver::WhyAway(const State& state) const {
  const CsiDriverState is = StateOf(state.facets);
  const std::string driver = "CSI driver " + name_;
  const std::string since = " since " + WallTimeText(std::max<int64_t>(0, state.since_unix_ms));
  const std::string why = state.last_error.empty() ? "" : ": " + state.last_error;
  const std::string refusal = RefusalText(state);
  const std::string refused = refusal.empty() ? "" : "; " + refusal;
  switch (is) {
    case CsiDriverState::kGone:
      return driver + " is gone" + since + why + refused;
    case CsiDriverState::kUnregistered:
      return driver +
             (state.facets.presence == Presence::kRestored
                  ? std::string(" has not registered since the agent started")
                  : " is not registered any more" + since) +
             (state.facets.connected
                  ? HowToRegister(state)
                  : why + refused +
                        (state.registrar_refused ? "; the driver has to be started"
                                                 : "; the driver and its registrar have to be "
                                                   "started"));
    case CsiDriverState::kOtherNode:
      return driver + " calls this node \"" + state.facets.other_node +
             "\"; volumes were attached as \"" + state.record.facts.node_id +
             "\": detach them, or give the node its name back";
    case CsiDriverState::kStarting:
      return driver + " is starting" + since + ": it says that it is not ready";
    case CsiDriverState::kSilent:
      return driver + " does not answer" + since + why;
    case CsiDriverState::kUnhealthy:
      return driver + " is not well" + since + why;
    case CsiDriverState::kReady:
      return "";
  }
  return "";
}

std::string CsiDriver::RefusalText(const State& state) {
  if (state.refusal.empty()) return "";
  return "its registration was refused at " + WallTimeText(state.refusal_unix_ms) + ": " +
         state.refusal;
}

// It is there, but nobody has said that it may be used.
std::string CsiDriver::HowToRegister(const State& state) {
  const std::string refusal = RefusalText(state);
  const std::string until = "; until then it only takes volumes away";
  // Its registrar runs: to start it changes nothing.
  if (state.registrar_refused) return ": " + refusal + "; it has to be registered" + until;
  const std::string& place = state.record.socket;
  std::string socket = state.registrar_error;
  if (socket.find(place) == std::string::npos) {
    socket = "registration socket " + place + (socket.empty() ? "" : ": " + socket);
  }
  return ": its registrar has to be started" + (place.empty() ? "" : " (" + socket + ")") +
         (refusal.empty() ? "" : "; " + refusal) + until;
}

std::string CsiDriver::WhyNoController() const {
  MutexLock lock(mu_);
  return WhyNoController(state_);
}

std::string CsiDriver::WhyNoController(const State& state) const {
  if (!controller_place_ || state.controller != nullptr) return "";
  return "CSI driver " + name_ + ": there is no connection to its controller at " +
         controller_place_->Display() + " " + SinceWall(state.controller_since_unix_ms) + ": " +
         state.controller_error;
}

std::string CsiDriver::ControllerName() const {
  return "the controller of CSI driver " + name_ + " at " + controller_place_->Display();
}

std::string CsiDriver::WhyControllerSilent(const State& state) const {
  if (!state.controller_is_silent) return "";
  return ControllerName() + " does not answer " + SinceWall(state.controller_since_unix_ms) + ": " +
         state.controller_error;
}

std::string CsiDriver::WhyControllerAway() const {
  MutexLock lock(mu_);
  const std::string why = WhyNoController(state_);
  return why.empty() ? WhyControllerSilent(state_) : why;
}

std::optional<CsiControllerLink> CsiDriver::controller_link() const {
  if (!controller_place_) return std::nullopt;
  MutexLock lock(mu_);
  return CsiControllerLink{.place = controller_place_->Display(),
                           .connected = state_.controller != nullptr,
                           .silent = state_.controller_is_silent,
                           .since_unix_ms = state_.controller_since_unix_ms,
                           .last_error = state_.controller_error};
}

// ---- State ----

void CsiDriver::SetError(State& state, const std::string& why) const {
  state.last_error = why;
  state.last_error_unix_ms = parts_.scheduler.clock().WallUnixMillis();
}

CsiDriverState CsiDriver::StateOf(const Facets& facets) {
  if (facets.presence == Presence::kUnregistered) return CsiDriverState::kUnregistered;
  if (!facets.connected) return CsiDriverState::kGone;
  // It was never registered in this run; what it is used for is the same.
  if (facets.presence == Presence::kRestored) return CsiDriverState::kUnregistered;
  if (facets.starting) return CsiDriverState::kStarting;
  if (!facets.other_node.empty()) return CsiDriverState::kOtherNode;
  if (facets.silent_since) return CsiDriverState::kSilent;
  return facets.unhealthy ? CsiDriverState::kUnhealthy : CsiDriverState::kReady;
}

bool CsiDriver::IsUsable(CsiDriverState state) {
  return state == CsiDriverState::kReady || state == CsiDriverState::kUnhealthy ||
         state == CsiDriverState::kSilent;
}

void CsiDriver::Update(const std::function<void(State&)>& change) {
  std::optional<DriverEvent> event;
  {
    MutexLock lock(mu_);
    const CsiDriverState before = StateOf(state_.facets);
    const bool was_connected = state_.facets.connected;
    change(state_);
    const CsiDriverState after = StateOf(state_.facets);
    if (before == after && was_connected == state_.facets.connected) return;
    if (was_connected && !state_.facets.connected) {
      state_.absent_since = parts_.scheduler.clock().Now();
    }
    if (before != after) {
      state_.since = parts_.scheduler.clock().Now();
      state_.since_unix_ms = parts_.scheduler.clock().WallUnixMillis();
    }
    if (after == CsiDriverState::kSilent) {
      event = DriverEvent::kSilent;
    } else if (IsUsable(after)) {
      event = DriverEvent::kReady;
    } else {
      event = DriverEvent::kAway;
    }
  }
  Tell(*event);
}

void CsiDriver::Tell(DriverEvent event) {
  parts_.scheduler.Post([weak = weak_from_this(), event] {
    if (const auto driver = weak.lock()) driver->hooks_.event(event);
  });
}

CsiDriverSettings CsiDriver::Settings() const {
  MutexLock lock(mu_);
  return state_.settings;
}

void CsiDriver::SetSettings(const CsiDriverSettings& settings) {
  {
    MutexLock lock(mu_);
    state_.settings = settings;
    state_.window = std::min(state_.window, std::max(1, settings.most_calls));
  }
  if (connected()) ProbeLater(node_probing_, settings.probe_period);
  const bool has_controller = controller_link_ != nullptr && controller_link_->caller() != nullptr;
  if (has_controller) ProbeLater(controller_probing_, settings.probe_period);
}

}  // namespace volumed
