// CsiDriver's connection: how it registers, is asked, is lost and comes back.
#include <algorithm>
#include <utility>

#include "csi/csi_driver.h"

namespace volumed {

CsiLink::Hooks CsiDriver::NodeHooks() {
  return {.greet = [this](const std::shared_ptr<CsiCaller>& caller,
                          std::function<void(Status)> done) { GreetNode(caller, std::move(done)); },
          .up = [this] { NodeUp(); },
          .lost = [this](const Error& why) { NodeLost(why); },
          .failed = [this](const Error& why) { NodeFailed(why); }};
}

CsiLink::Hooks CsiDriver::ControllerHooks() {
  return {.greet =
              [this](const std::shared_ptr<CsiCaller>& caller, std::function<void(Status)> done) {
                GreetController(caller, std::move(done));
              },
          .up = [this] { ControllerUp(); },
          .lost = [this](const Error& why) { ControllerAway(why); },
          .failed = [this](const Error& why) { ControllerAway(why); }};
}

void CsiDriver::ControllerUp() {
  {
    MutexLock lock(mu_);
    const bool was_away = state_.controller == nullptr || state_.controller_is_silent;
    state_.controller = controller_link_->caller();
    state_.controller_is_silent = false;
    state_.controller_doubted_since.reset();
    state_.controller_last_answer = parts_.scheduler.clock().Now();
    std::erase_if(state_.all_callers, [](const auto& weak) { return weak.expired(); });
    state_.all_callers.push_back(state_.controller);
    state_.controller_error.clear();
    if (was_away) state_.controller_since_unix_ms = parts_.scheduler.clock().WallUnixMillis();
  }
  controller_probing_.missed = 0;
  ProbeLater(controller_probing_, Settings().probe_period);
  Tell(DriverEvent::kControllerReady);
}

void CsiDriver::ControllerAway(const Error& why) {
  // An attempt to dial anew may fail while the connection of before is there still.
  if (controller_link_->caller() != nullptr) return;
  parts_.scheduler.Cancel(controller_probing_.timer);
  {
    MutexLock lock(mu_);
    const bool was_there = std::exchange(state_.controller, nullptr) != nullptr;
    if (!was_there && state_.controller_error == why.message()) return;
    if (was_there) state_.controller_since_unix_ms = parts_.scheduler.clock().WallUnixMillis();
    state_.controller_is_silent = false;
    state_.controller_doubted_since.reset();
    state_.controller_error = why.message();
  }
  Tell(DriverEvent::kControllerAway);
}

void CsiDriver::ControllerAnswered() {
  {
    MutexLock lock(mu_);
    state_.controller_last_answer = parts_.scheduler.clock().Now();
    state_.controller_doubted_since.reset();
    if (!std::exchange(state_.controller_is_silent, false)) return;
    state_.controller_since_unix_ms = parts_.scheduler.clock().WallUnixMillis();
    state_.controller_error.clear();
  }
  Tell(DriverEvent::kControllerReady);
}

void CsiDriver::ControllerNotAnswered(TimePoint since) {
  {
    MutexLock lock(mu_);
    state_.controller_doubted_since.reset();
    if (state_.controller == nullptr || state_.controller_last_answer > since) return;
    if (std::exchange(state_.controller_is_silent, true)) return;
    state_.controller_since_unix_ms = parts_.scheduler.clock().WallUnixMillis();
    state_.controller_error = "a call was not answered in time";
  }
  Tell(DriverEvent::kControllerAway);
}

void CsiDriver::Register(const CsiRegister& registration, std::function<void(Status)> done) {
  parts_.scheduler.Cancel(grace_timer_);
  registering_ = {registration, std::move(done)};
  ++inquiry_;
  // Whoever registers it tries again.
  link_->SetRedial(CsiRedial::kNever);
  link_->Dial(registration.place);
}

void CsiDriver::Unregister() {
  registering_.reset();
  Update([](State& state) {
    // One that did not come to be registered in this run is what it was.
    if (state.facets.presence == Presence::kRegistered) {
      state.facets.presence = Presence::kUnregistered;
    }
  });
  link_->SetRedial(CsiRedial::kOnceWaited);
}

void CsiDriver::EndpointChanged(const std::string& display) {
  if (link_->place().Display() == display) link_->LookAgain();
  if (controller_link_ != nullptr && controller_link_->place().Display() == display) {
    controller_link_->LookAgain();
  }
}

std::vector<SafePath> CsiDriver::Endpoints() const {
  std::vector<SafePath> places;
  if (!link_->place().root.empty()) places.push_back(link_->place());
  if (controller_place_) places.push_back(*controller_place_);
  return places;
}

void CsiDriver::DialWithoutRegistration(const SafePath& place) {
  link_->SetPlace(place);
  const Duration grace = Settings().restored_grace;
  grace_timer_ = parts_.scheduler.PostAfter(grace, [this, watch = alive_.watch()] {
    if (watch.alive()) link_->SetRedial(CsiRedial::kOnceWaited);
  });
}

CsiInquirySettings CsiDriver::Inquiry(bool node) const {
  const CsiDriverSettings of = Settings();
  CsiInquirySettings settings;
  settings.driver = name_;
  settings.node = node;
  settings.controller = !node || !controller_place_;
  settings.call = of.call;
  settings.ready_every = of.ready_every;
  settings.secrets = secrets_;
  return settings;
}

void CsiDriver::GreetNode(const std::shared_ptr<CsiCaller>& caller,
                          std::function<void(Status)> done) {
  const uint64_t inquiry = ++inquiry_;
  refreshing_ = false;
  CsiInquiry::Begin(parts_.scheduler, caller, Inquiry(/*node=*/true),
                    {.wanted = [this, watch = alive_.watch(),
                                inquiry] { return watch.alive() && inquiry == inquiry_; },
                     .not_ready =
                         [this] {
                           MutexLock lock(mu_);
                           SetError(state_, "it says that it is not ready");
                         },
                     .done =
                         [this, done = std::move(done)](Result<CsiDriverFacts> facts) {
                           if (!facts.ok()) return done(facts.error());
                           Accept(*std::move(facts), done);
                         }});
}

void CsiDriver::GreetController(const std::shared_ptr<CsiCaller>& caller,
                                std::function<void(Status)> done) {
  CsiInquiry::Begin(parts_.scheduler, caller, Inquiry(/*node=*/false),
                    {.wanted = [watch = alive_.watch()] { return watch.alive(); },
                     .not_ready = [] {},
                     .done =
                         [this, done = std::move(done)](const Result<CsiDriverFacts>& facts) {
                           if (!facts.ok()) return done(facts.error());
                           CsiDriverRecord fresh = record();
                           fresh.facts.controller_capabilities = facts->controller_capabilities;
                           fresh.facts.controller_endpoint = controller_place_->Display();
                           Put(
                               fresh, [] { return true; }, done);
                         }});
}

void CsiDriver::Accept(CsiDriverFacts fresh, std::function<void(Status)> done) {
  CsiDriverRecord accepted = record();
  const CsiDriverFacts& before = accepted.facts;
  const bool is_other_node = !before.node_id.empty() && before.node_id != fresh.node_id;
  if (is_other_node && hooks_.has_attached()) {
    // What was put on record stays there: by it the volumes are detached.
    Update([&](State& state) { state.facets.other_node = fresh.node_id; });
    return done(OkStatus());
  }
  Update([](State& state) { state.facets.other_node.clear(); });
  fresh.endpoint = registering_ ? registering_->registration.endpoint : before.endpoint;
  fresh.version = registering_ ? registering_->registration.version : before.version;
  const bool is_withheld = !secrets_->withheld_until().empty();
  withheld_version_ = is_withheld ? std::optional(fresh.vendor_version) : std::nullopt;
  fresh.vendor_version = ShownCsiVersion(fresh.vendor_version, CsiSecrets(secrets_));
  if (controller_place_) {
    fresh.controller_endpoint = controller_place_->Display();
    fresh.controller_capabilities = before.controller_capabilities;
  }
  if (registering_) accepted.socket = registering_->registration.socket;
  accepted.facts = std::move(fresh);
  accepted.last_ready_unix_ms = parts_.scheduler.clock().WallUnixMillis();
  Put(
      accepted, [this, inquiry = inquiry_] { return inquiry == inquiry_; }, std::move(done));
}

void CsiDriver::Put(const CsiDriverRecord& record, std::function<bool()> wanted,
                    std::function<void(Status)> done) {
  ++puts_;
  hooks_.accept(record, [this, watch = alive_.watch(), record, wanted = std::move(wanted),
                         done = std::move(done)](const Status& accepted) {
    if (!watch.alive()) return;
    --puts_;
    if (!wanted()) return;
    if (accepted.ok()) Adopt(record);
    done(accepted);
    if (watch.alive() && accepted.ok()) PutVersion();
  });
}

void CsiDriver::PutVersion() {
  if (!withheld_version_ || puts_ > 0 || !secrets_->withheld_until().empty()) return;
  CsiDriverRecord known = record();
  known.facts.vendor_version =
      ShownCsiVersion(*std::exchange(withheld_version_, std::nullopt), CsiSecrets(secrets_));
  Put(
      known, [this, inquiry = inquiry_] { return inquiry == inquiry_; }, [](const Status&) {});
}

void CsiDriver::Adopt(const CsiDriverRecord& accepted) {
  bool is_new = false;
  {
    MutexLock lock(mu_);
    is_new = !state_.known || state_.record.facts != accepted.facts;
    state_.record = accepted;
    state_.known = true;
  }
  if (is_new) Tell(DriverEvent::kFactsChanged);
}

void CsiDriver::NodeUp() {
  const bool is_registered = registering_.has_value();
  Update([this, is_registered](State& state) {
    state.node = link_->caller();
    std::erase_if(state.all_callers, [](const auto& weak) { return weak.expired(); });
    state.all_callers.push_back(state.node);
    if (is_registered) state.facets.presence = Presence::kRegistered;
    state.facets.connected = true;
    state.facets.starting = state.facets.unhealthy = false;
    state.facets.silent_since.reset();
    state.doubted_since.reset();
    state.last_error.clear();  // it was about the time before
    state.has_answered = true;
    state.last_answer = parts_.scheduler.clock().Now();
    state.window =
        std::clamp(state.settings.first_calls, 1, std::max(1, state.settings.most_calls));
  });
  node_probing_.missed = 0;
  ProbeLater(node_probing_, Settings().probe_period);
  if (controller_link_ != nullptr && controller_link_->caller() == nullptr &&
      !controller_link_->busy()) {
    controller_link_->SetRedial(CsiRedial::kAlways);
    controller_link_->Dial(*controller_place_);
  }
  if (is_registered) EndRegistering(OkStatus());
}

void CsiDriver::NodeLost(const Error& why) {
  parts_.scheduler.Cancel(node_probing_.timer);
  refreshing_ = false;
  Update([this, &why](State& state) {
    state.node.reset();
    state.facets.connected = state.facets.starting = state.facets.unhealthy = false;
    state.facets.silent_since.reset();
    state.doubted_since.reset();
    SetError(state, why.message());
  });
}

void CsiDriver::NodeFailed(const Error& why) {
  {
    MutexLock lock(mu_);
    if (!state_.facets.connected) SetError(state_, why.message());
  }
  EndRegistering(why);
}

void CsiDriver::EndRegistering(const Status& status) {
  if (!registering_) return;
  const std::function<void(Status)> done = std::move(registering_->done);
  registering_.reset();
  if (status.ok()) {
    link_->SetRedial(CsiRedial::kAlways);
    Tell(DriverEvent::kRegistered);
  }
  done(status);
}

void CsiDriver::Refresh() {
  const std::shared_ptr<CsiCaller> caller = link_->caller();
  if (caller == nullptr || link_->busy() || refreshing_) return;
  refreshing_ = true;
  const uint64_t inquiry = ++inquiry_;
  CsiInquiry::Begin(parts_.scheduler, caller, Inquiry(/*node=*/true),
                    {.wanted = [this, watch = alive_.watch(),
                                inquiry] { return watch.alive() && inquiry == inquiry_; },
                     .not_ready = [] {},
                     .done =
                         [this](Result<CsiDriverFacts> facts) {
                           refreshing_ = false;
                           if (facts.ok()) Accept(*std::move(facts), [](const Status&) {});
                         }});
}

void CsiDriver::RefreshNowAndThen() {
  constexpr Duration kPause = std::chrono::seconds(30);
  const TimePoint now = parts_.scheduler.clock().Now();
  if (refreshed_ && now - *refreshed_ < kPause) return;
  refreshed_ = now;
  Refresh();
}

void CsiDriver::RegistrarFailed(const std::string& why, bool is_refusal) {
  MutexLock lock(mu_);
  state_.registrar_error = why;
  state_.registrar_refused = is_refusal;
  if (why.empty()) state_.refusal.clear();
  if (!is_refusal) return;
  state_.refusal = why;
  state_.refusal_unix_ms = parts_.scheduler.clock().WallUnixMillis();
}

void CsiDriver::RecheckNode() {
  bool is_other = false;
  {
    MutexLock lock(mu_);
    is_other = !state_.facets.other_node.empty();
  }
  if (is_other && !hooks_.has_attached()) Refresh();
}

// ---- Probe ----

void CsiDriver::ProbeLater(Probing& probing, Duration delay) {
  parts_.scheduler.Cancel(probing.timer);
  probing.timer = 0;
  if (delay <= Duration::zero()) return;
  probing.asked = parts_.scheduler.clock().Now();
  probing.timer = parts_.scheduler.PostAfter(delay, [this, watch = alive_.watch(), &probing] {
    if (watch.alive()) Probe(probing);
  });
}

bool CsiDriver::AnswersAnyway(const Probing& probing) const {
  MutexLock lock(mu_);
  if (probing.missed > 0 || DoubtedSince(probing)) return false;
  if (!probing.is_node) {
    return !state_.controller_is_silent && state_.controller_last_answer > probing.asked;
  }
  const bool is_well =
      !state_.facets.starting && !state_.facets.unhealthy && !state_.facets.silent_since;
  return is_well && state_.last_answer > probing.asked;
}

void CsiDriver::Probe(Probing& probing) {
  const std::shared_ptr<CsiCaller> caller = LinkOf(probing).caller();
  if (caller == nullptr) return;
  const CsiDriverSettings settings = Settings();
  if (AnswersAnyway(probing)) return ProbeLater(probing, settings.probe_period);
  const TimePoint begun = parts_.scheduler.clock().Now();
  AskOnControl<::csi::v1::ProbeResponse>(
      parts_.scheduler, caller, ::csi::v1::ProbeRequest(),
      WithMemory({Deadline::After(parts_.scheduler.clock(), settings.probe)}),
      [this, watch = alive_.watch(), caller, begun, &probing](const auto& answer) {
        if (!watch.alive() || caller != LinkOf(probing).caller()) return;
        TakeProbe(probing, begun, answer);
      });
}

std::optional<TimePoint> CsiDriver::DoubtedSince(const Probing& probing) const {
  return probing.is_node ? state_.doubted_since : state_.controller_doubted_since;
}

// One missed probe says as little as one missed call; the two together are silence.
void CsiDriver::NotProbed(const Probing& probing) {
  std::optional<TimePoint> doubted;
  {
    MutexLock lock(mu_);
    doubted = DoubtedSince(probing);
  }
  if (doubted) return NotAnswered(probing.is_node, *doubted);
  if (probing.missed > 1) NotAnswered(probing.is_node, probing.first_missed);
}

void CsiDriver::TakeProbe(Probing& probing, TimePoint begun,
                          const Result<::csi::v1::ProbeResponse>& answer) {
  // A controller that says that it is not ready, or not well, has answered: its calls say the rest.
  const bool is_ready =
      !probing.is_node || !answer.ok() || !answer->has_ready() || answer->ready().value();
  switch (AnsweringOf(answer.ok() ? nullptr : &answer.error())) {
    case Answering::kYes: {
      probing.missed = 0;
      const bool is_well = answer.ok() || answer.error().code() == Code::kUnimplemented;
      if (probing.is_node) {
        Update([&](State& state) {
          state.facets.starting = !is_ready;
          state.facets.unhealthy = !is_well;
          if (!is_well) SetError(state, answer.error().message());
        });
      }
      Answered(probing.is_node);
      break;
    }
    case Answering::kNo:
      if (probing.missed++ == 0) probing.first_missed = begun;
      NotProbed(probing);
      break;
    case Answering::kUnknown:
      break;
  }
  const CsiDriverSettings settings = Settings();
  const bool hurries = !is_ready && settings.probe_period > Duration::zero();
  ProbeLater(probing, hurries ? settings.ready_every : settings.probe_period);
}

}  // namespace volumed
