#include "csi/csi_link.h"

#include <algorithm>
#include <utility>

namespace volumed {

CsiLink::CsiLink(Parts parts, Settings settings, Hooks hooks)
    : parts_(parts),
      settings_(std::move(settings)),
      hooks_(std::move(hooks)),
      wait_(settings_.first_wait) {}

CsiLink::~CsiLink() {
  alive_.Renew();
  Abandon();
  if (caller_ != nullptr) caller_->End();
  parts_.scheduler.Cancel(wait_timer_);
}

void CsiLink::Dial(const SafePath& place) {
  place_ = place;
  wait_ = settings_.first_wait;
  Abandon();
  Begin(/*is_forced=*/true);
}

void CsiLink::LookAgain() {
  wait_ = settings_.first_wait;
  if (busy_) {
    again_ = true;
  } else if (redial_ != CsiRedial::kNever) {
    Begin(/*is_forced=*/false);
  }
}

void CsiLink::SetRedial(CsiRedial redial) {
  redial_ = redial;
  if (redial == CsiRedial::kNever && parts_.scheduler.Cancel(wait_timer_)) wait_timer_ = 0;
  if (caller_ == nullptr && !busy_ && wait_timer_ == 0) WaitAndDial();
}

std::optional<TimePoint> CsiLink::next_try() const {
  return wait_timer_ == 0 ? std::nullopt : std::optional(wait_until_);
}

void CsiLink::Begin(bool is_forced) {
  parts_.scheduler.Cancel(wait_timer_);
  wait_timer_ = 0;
  busy_ = true;
  again_ = false;
  const uint64_t attempt = ++attempt_;
  std::optional<SocketIdentity> but;
  if (caller_ != nullptr && !is_forced) but = identity_;
  const AliveGuard::Watch watch = alive_.watch();
  const auto seen = [this, watch, attempt,
                     &scheduler = parts_.scheduler](CsiConnectionState state) {
    scheduler.Post([this, watch, attempt, state] {
      if (watch.alive()) StateSeen(attempt, state);
    });
  };
  parts_.scheduler.RunBlocking(
      [this, watch, attempt, but, parts = parts_, settings = settings_, place = place_, seen] {
        auto opened = std::make_shared<Result<Opened>>(Open(parts, settings, place, but, seen));
        parts.scheduler.Post([this, watch, attempt, opened] {
          if (watch.alive()) TakeOpened(attempt, *opened);
        });
      });
}

Result<CsiLink::Opened> CsiLink::Open(Parts parts, const Settings& settings, const SafePath& place,
                                      std::optional<SocketIdentity> but,
                                      CsiDialer::StateSeen state_seen) {
  const Deadline deadline = Deadline::After(parts.scheduler.clock(), settings.dial);
  ASSIGN_OR_RETURN(const std::shared_ptr<const CsiSocket> socket,
                   parts.dialer.Open(place, deadline));
  Opened opened{.is_same = but == socket->identity(),
                .identity = socket->identity(),
                .owner = socket->owner(),
                .caller = {}};
  if (opened.is_same) return opened;
  ASSIGN_OR_RETURN(opened.caller,
                   parts.dialer.Dial(settings.driver, socket, std::move(state_seen)));
  return opened;
}

void CsiLink::TakeOpened(uint64_t attempt, const Result<Opened>& opened) {
  if (!busy_ || attempt != attempt_) return;
  owner_ = opened.ok() ? opened->owner : SocketOwnerOf(opened.error());
  if (!opened.ok()) return Fail(opened.error());
  if (opened->is_same) return EndAttempt();
  candidate_ = *opened;
  dial_timer_ = parts_.scheduler.PostAfter(settings_.dial, [this, watch = alive_.watch(), attempt] {
    if (!watch.alive() || attempt != attempt_ || greeting_) return;
    Fail(Error::NotApplied(Code::kDeadlineExceeded,
                           "the process at " + place_.Display() + " takes no gRPC connection"));
  });
  if (seen_early_) StateSeen(attempt, *std::exchange(seen_early_, std::nullopt));
}

void CsiLink::StateSeen(uint64_t attempt, CsiConnectionState state) {
  if (caller_ != nullptr && attempt == caller_attempt_) {
    if (state != CsiConnectionState::kReady) Lost();
    return;
  }
  if (!busy_ || attempt != attempt_) return;
  const bool is_ready = state == CsiConnectionState::kReady;
  if (greeting_) {
    is_broken_ = is_broken_ || !is_ready;
  } else if (is_ready || state == CsiConnectionState::kTransientFailure) {
    if (candidate_.caller == nullptr) {
      seen_early_ = state;
    } else {
      // Without a connection the first call fails at once, and says why.
      is_broken_ = !is_ready;
      Greet();
    }
  }
}

void CsiLink::Greet() {
  parts_.scheduler.Cancel(dial_timer_);
  greeting_ = true;
  hooks_.greet(candidate_.caller,
               [this, watch = alive_.watch(), attempt = attempt_](const Status& greeted) {
                 if (watch.alive()) TakeGreeted(attempt, greeted);
               });
}

void CsiLink::TakeGreeted(uint64_t attempt, const Status& greeted) {
  if (!busy_ || attempt != attempt_) return;
  if (!greeted.ok()) return Fail(greeted.error());
  if (is_broken_) {
    return Fail(Error::NotApplied(Code::kUnavailable,
                                  "the connection to " + place_.Display() + " was broken off"));
  }
  // Calls that are under way over the connection of before keep that.
  caller_ = candidate_.caller;
  identity_ = candidate_.identity;
  caller_attempt_ = attempt;
  up_since_ = parts_.scheduler.clock().Now();
  const AliveGuard::Watch watch = alive_.watch();
  hooks_.up();
  if (watch.alive() && attempt == attempt_) EndAttempt();
}

void CsiLink::Lost() {
  caller_.reset();
  const bool was_steady = parts_.scheduler.clock().Now() - up_since_ >= settings_.steady;
  if (was_steady) wait_ = Duration::zero();
  const AliveGuard::Watch watch = alive_.watch();
  hooks_.lost(Error::NotApplied(Code::kUnavailable,
                                "the connection to " + place_.Display() + " was broken off"));
  if (watch.alive() && !busy_ && caller_ == nullptr && wait_timer_ == 0) WaitAndDial();
}

void CsiLink::Fail(const Error& error) {
  const AliveGuard::Watch watch = alive_.watch();
  const uint64_t attempt = attempt_;
  const bool again = again_;
  Abandon();
  hooks_.failed(error);
  if (!watch.alive() || attempt != attempt_ || busy_) return;
  if (again && redial_ != CsiRedial::kNever) return Begin(/*is_forced=*/false);
  // The process that is to take the place of the one that is connected may listen a little later.
  if (caller_ == nullptr || wait_ < settings_.longest_wait) WaitAndDial();
}

void CsiLink::Abandon() {
  parts_.scheduler.Cancel(dial_timer_);
  dial_timer_ = 0;
  if (candidate_.caller != nullptr) candidate_.caller->End();
  candidate_ = {};
  seen_early_.reset();
  busy_ = again_ = greeting_ = is_broken_ = false;
}

void CsiLink::EndAttempt() {
  const bool again = again_;
  candidate_ = {};  // it is in use
  Abandon();
  if (again && redial_ != CsiRedial::kNever) return Begin(/*is_forced=*/false);
  if (caller_ == nullptr) WaitAndDial();
}

void CsiLink::WaitAndDial() {
  const bool waits = redial_ == CsiRedial::kAlways ||
                     (redial_ == CsiRedial::kOnceWaited && wait_ < settings_.longest_wait);
  if (!waits) return;
  const Duration wait = wait_;
  wait_ = std::clamp(wait_ * 2, settings_.first_wait, settings_.longest_wait);
  wait_until_ = parts_.scheduler.clock().Now() + wait;
  wait_timer_ = parts_.scheduler.PostAfter(wait, [this, watch = alive_.watch()] {
    if (!watch.alive()) return;
    wait_timer_ = 0;
    if (!busy_) Begin(/*is_forced=*/false);
  });
}

}  // namespace volumed
