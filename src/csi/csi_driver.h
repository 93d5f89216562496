// CsiDriver: one driver, from its first registration on, whether or not it is there: what it can
// do, the connection to it, how it is, and how much it is asked at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/alive_guard.h"
#include "base/clock.h"
#include "base/lanes.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "csi.pb.h"
#include "csi/csi_caller.h"
#include "csi/csi_driver_record.h"
#include "csi/csi_inquiry.h"
#include "csi/csi_link.h"
#include "csi/rpc/csi_call.h"
#include "csi/rpc/csi_methods.h"
#include "csi/rpc/csi_secret_memory.h"

namespace volumed {

enum class CsiDriverState {
  kGone,          // there is no connection to it
  kUnregistered,  // its registration was taken away; it may be connected all the same
  kOtherNode,     // it calls this node otherwise than when volumes were attached
  kStarting,      // it says that it is not ready
  kSilent,        // it did not answer in time
  kUnhealthy,     // it says that it is not well
  kReady,
};
// "gone", "other node", ...
std::string_view CsiDriverStateName(CsiDriverState state);

struct CsiDriverHealth {
  CsiDriverState state = CsiDriverState::kGone;
  TimePoint since;
  int64_t since_unix_ms = 0;
  bool connected = false;
  // Since when there is no connection; nullopt: there is one.
  std::optional<TimePoint> absent_since;
  // Why it is so, or was; empty if nothing has been wrong since it was connected.
  std::string last_error;
  int64_t last_error_unix_ms = 0;
  int in_flight = 0;  // calls of operations
};

// The connection to the controller of a driver, if that has a socket of its own.
struct CsiControllerLink {
  std::string place;  // for display
  bool connected = false;
  bool silent = false;        // it is connected, and did not answer in time
  int64_t since_unix_ms = 0;  // of these two
  std::string last_error;     // why it is away or silent; empty if it is neither
};

// What operations that need the driver may do.
struct CsiLane {
  LaneHealth health;
  int width = 0;        // how many at a time
  bool closed = false;  // to those that set something up
  bool closed_to_teardown = false;
};

enum class DriverEvent {
  kRegistered,    // anew: what it said that it cannot do may be asked again
  kReady,         // operations go on
  kSilent,        // they go on one at a time
  kAway,          // they wait
  kFactsChanged,  // what FactsOf() answers
  // Of a controller with a socket of its own; a silent one is away too. It is told anew if another
  // error keeps it away.
  kControllerReady,
  kControllerAway,
};

struct CsiDriverSettings {
  int most_calls = 64;
  // After it has come, or was silent, calls are few until it has answered as many.
  int first_calls = 4;
  int calls_after_silence = 1;
  Duration call = std::chrono::minutes(2);           // of what it is asked about itself
  Duration probe_period = std::chrono::seconds(30);  // zero: never
  Duration probe = std::chrono::seconds(10);
  Duration ready_every = std::chrono::seconds(1);
  // A driver of an earlier run has so long to register, before it is dialled without that.
  Duration restored_grace = std::chrono::seconds(10);
};

// By which a driver comes, or comes back.
struct CsiRegister {
  std::string driver;
  std::string socket;    // by which it registers; for texts and the record
  std::string endpoint;  // as it gave it
  SafePath place;        // of the endpoint
  std::string version;
};

// State changes happen on the control thread, but for silence and its end, that of a controller
// too, which a call finds on any. Those are told on the control thread too, later.
class CsiDriver : public std::enable_shared_from_this<CsiDriver> {
 public:
  struct Parts {
    Scheduler& scheduler;
    CsiDialer& dialer;
  };
  // Called on the control thread.
  struct Hooks {
    // The driver has said this of itself. It counts once `done` is told OK, on the control thread;
    // else the connection is not used.
    std::function<void(const CsiDriverRecord& record, std::function<void(Status)> done)> accept;
    std::function<void(DriverEvent)> event;
    // Whether a volume is attached to this node by it.
    std::function<bool()> has_attached;
  };
  // The record is of an earlier run, or has but the driver's name. The controller's place is set if
  // it has a socket of its own.
  static std::shared_ptr<CsiDriver> Make(Parts parts, CsiDriverSettings settings, Hooks hooks,
                                         CsiDriverRecord record,
                                         std::optional<SafePath> controller);
  // Its calls end. Whoever lets go of it last, it is destroyed on the control thread.
  ~CsiDriver();

  const std::string& name() const { return name_; }
  // What it was sent as long as this lives, over all its connections.
  const std::shared_ptr<CsiSecretMemory>& secrets() const { return secrets_; }

  // Makes a call, as CsiChannel::Call() does. Those of the controller's service go to its own
  // socket if it has one. Threads: any but control. Blocks: until the answer, the deadline or the
  // cancel. Errors: those of CsiChannel; Unavailable, not applied, about kCsiNeverSent and
  // kDriverAway, if there is no connection, or if a controller with a socket of its own is silent
  // and has a call already: the lane is for those whom the node's part answers. About kDriverAway
  // too if the call was not answered in time; that it is silent, or its controller, is said then.
  template <typename Response>
  Result<Response> Call(const google::protobuf::Message& request, const CsiCallOptions& options) {
    RETURN_IF_ERROR(CheckAnswer(request, Response::descriptor()));
    ASSIGN_OR_RETURN(const std::unique_ptr<google::protobuf::Message> answer,
                     Perform(request, options));
    return std::move(static_cast<Response&>(*answer));
  }
  CsiChannel::AnyAnswer Perform(const google::protobuf::Message& request,
                                const CsiCallOptions& options) EXCLUDES(mu_);
  // The same without a thread that waits. `done` is called once, on the control thread. Threads:
  // any. Blocks: never.
  template <typename Response>
  void Start(const google::protobuf::Message& request, const CsiCallOptions& options,
             std::function<void(Result<Response>)> done);

  // Threads: any. Blocks: never.
  CsiDriverFacts facts() const EXCLUDES(mu_);
  // Whether it has ever said what it can do.
  bool known() const EXCLUDES(mu_);
  CsiDriverHealth health() const EXCLUDES(mu_);
  CsiLane lane() const EXCLUDES(mu_);
  bool connected() const EXCLUDES(mu_);
  bool registered() const EXCLUDES(mu_);
  // A registration has begun, and has not ended. Threads: control.
  bool registering() const { return registering_.has_value(); }
  // In this run, and it has not registered since.
  bool was_unregistered() const EXCLUDES(mu_);
  // "CSI driver x is gone since 2026-05-01T09:30:00Z: nobody listens at ..."; empty if it is ready.
  std::string WhyAway() const EXCLUDES(mu_);
  // nullopt: it has no socket of its own.
  std::optional<CsiControllerLink> controller_link() const EXCLUDES(mu_);
  // "CSI driver x: there is no connection to its controller at ..."; empty if there is one, or if
  // it has no socket of its own.
  std::string WhyNoController() const EXCLUDES(mu_);
  // The same, or that it "does not answer since 2026-05-01T09:30:00Z"; empty if it is neither.
  std::string WhyControllerAway() const EXCLUDES(mu_);
  CsiDriverRecord record() const EXCLUDES(mu_);

  // The rest is for CsiDrivers. Threads: control. Blocks: never.
  //
  // Dials, asks, and is used if all is well; `done` is told on the control thread. A registration
  // before that has not ended is told nothing more.
  void Register(const CsiRegister& registration, std::function<void(Status)> done);
  void Unregister();
  // For a driver of an earlier run: if nobody registers it for a while, it is dialled all the same,
  // to take volumes away.
  void DialWithoutRegistration(const SafePath& place) EXCLUDES(mu_);
  void EndpointChanged(const std::string& display);
  std::vector<SafePath> Endpoints() const;
  // Asks anew what it can do and what it calls this node. Nothing happens if it is not connected.
  void Refresh();
  // Refresh(), but only once in a while: what a failed call is a reason for may fail for ever.
  void RefreshNowAndThen();
  // Volumes were detached: another name of the node may be taken now.
  void RecheckNode();
  // Why the socket by which it registered last does not register it now; for WhyAway(). A refusal
  // is kept until the driver is registered, whatever becomes of its registrar meanwhile.
  void RegistrarFailed(const std::string& why, bool is_refusal) EXCLUDES(mu_);
  void SetSettings(const CsiDriverSettings& settings) EXCLUDES(mu_);
  // Its words are not withheld any more.
  void TextsShown() EXCLUDES(mu_) { PutVersion(); }

 private:
  enum class Presence { kRestored, kRegistered, kUnregistered };
  // What a driver's state is made of.
  struct Facets {
    Presence presence = Presence::kRestored;
    bool connected = false;
    bool starting = false;
    std::string other_node;  // how it calls this node now; empty: as before
    std::optional<TimePoint> silent_since;
    bool unhealthy = false;
  };
  struct State {
    CsiDriverSettings settings;
    CsiDriverRecord record;
    Facets facets;
    TimePoint since;  // of what StateOf() says
    int64_t since_unix_ms = 0;
    TimePoint absent_since;  // while there is no connection
    std::string last_error;
    int64_t last_error_unix_ms = 0;
    std::string registrar_error;  // of the socket by which it registered last
    std::string refusal;          // the last one since it was registered
    int64_t refusal_unix_ms = 0;
    std::shared_ptr<CsiCaller> node;
    std::shared_ptr<CsiCaller> controller;
    int64_t controller_since_unix_ms = 0;  // of there being one, or none
    std::string controller_error;          // why there is none, or it is silent
    TimePoint controller_last_answer;
    // When the call began that was not answered in time, whose end has them probed.
    std::optional<TimePoint> doubted_since;
    std::optional<TimePoint> controller_doubted_since;
    std::vector<std::weak_ptr<CsiCaller>> all_callers;  // older ones may have calls under way
    TimePoint last_answer;
    int controller_calls = 0;  // under way
    int in_flight = 0;
    int window = 0;
    bool known = false;
    bool registrar_refused = false;  // registrar_error is a refusal: the registrar runs
    bool controller_is_silent = false;
    bool has_answered = false;
  };
  struct Registering {
    CsiRegister registration;
    std::function<void(Status)> done;
  };
  // How a link is asked whether the driver's process answers.
  struct Probing {
    bool is_node = true;
    TimerId timer = 0;
    TimePoint asked{};  // when it was last known to have been asked
    int missed = 0;
    TimePoint first_missed{};
  };

  CsiDriver(Parts parts, CsiDriverSettings settings, Hooks hooks, CsiDriverRecord record,
            std::optional<SafePath> controller);
  static Status CheckAnswer(const google::protobuf::Message& request,
                            const google::protobuf::Descriptor* response);
  static CsiDriverState StateOf(const Facets& facets);
  static bool IsUsable(CsiDriverState state);

  CsiLink::Hooks NodeHooks();
  CsiLink::Hooks ControllerHooks();
  void GreetNode(const std::shared_ptr<CsiCaller>& caller, std::function<void(Status)> done);
  void GreetController(const std::shared_ptr<CsiCaller>& caller, std::function<void(Status)> done);
  void ControllerUp() EXCLUDES(mu_);
  // Also if there was no connection; nobody is told if nothing is new.
  void ControllerAway(const Error& why) EXCLUDES(mu_);
  void NodeUp() EXCLUDES(mu_);
  void NodeLost(const Error& why) EXCLUDES(mu_);
  void NodeFailed(const Error& why) EXCLUDES(mu_);
  CsiInquirySettings Inquiry(bool node) const;
  // What the driver has just said, with what it did not say itself, is put on record and used.
  void Accept(CsiDriverFacts fresh, std::function<void(Status)> done) EXCLUDES(mu_);
  // `wanted` is asked once the record is written.
  void Put(const CsiDriverRecord& record, std::function<bool()> wanted,
           std::function<void(Status)> done);
  void Adopt(const CsiDriverRecord& accepted) EXCLUDES(mu_);
  // The version that it said while its words were withheld is put on record, if they may be shown
  // now and nothing else of it is being written.
  void PutVersion() EXCLUDES(mu_);
  void EndRegistering(const Status& status);
  // Whether a call's end shows that the driver answers; null: it was OK. Unavailable may as well be
  // the connection's.
  enum class Answering { kYes, kNo, kUnknown };
  static Answering AnsweringOf(const Error* error);

  // What a call needs, or why it cannot be made.
  struct Way {
    std::shared_ptr<CsiCaller> caller;
    bool is_node = true;
    TimePoint begun;
  };
  Result<Way> Take(const google::protobuf::Message& request) EXCLUDES(mu_);
  CsiCallOptions WithMemory(CsiCallOptions options) const;
  void Ended(const Way& way, const Error* error) EXCLUDES(mu_);
  // The error of a call: about kDriverAway if it was sent and not answered in time, and with words
  // before it if the driver, or its controller, is silent.
  Error WithSilence(const Way& way, const Error& error) const EXCLUDES(mu_);
  // "since 2026-05-01T09:30:00Z" of the silence of whom the way leads to; empty if it is not
  // silent.
  std::string SilentSince(const Way& way) const EXCLUDES(mu_);
  std::string ControllerName() const;
  void Answered(bool is_node) EXCLUDES(mu_);
  // A call that began then was not answered in time.
  void Doubt(bool is_node, TimePoint since) EXCLUDES(mu_);
  void NotAnswered(bool is_node, TimePoint since) EXCLUDES(mu_);
  void ControllerAnswered() EXCLUDES(mu_);
  void ControllerNotAnswered(TimePoint since) EXCLUDES(mu_);

  void ProbeLater(Probing& probing, Duration delay);
  void Probe(Probing& probing) EXCLUDES(mu_);
  bool AnswersAnyway(const Probing& probing) const EXCLUDES(mu_);
  std::optional<TimePoint> DoubtedSince(const Probing& probing) const REQUIRES(mu_);
  void NotProbed(const Probing& probing) EXCLUDES(mu_);
  void TakeProbe(Probing& probing, TimePoint begun, const Result<::csi::v1::ProbeResponse>& answer)
      EXCLUDES(mu_);
  const CsiLink& LinkOf(const Probing& probing) const {
    return probing.is_node ? *link_ : *controller_link_;
  }

  CsiDriverSettings Settings() const EXCLUDES(mu_);
  // The one place where the state changes: tells who listens.
  void Update(const std::function<void(State&)>& change) EXCLUDES(mu_);
  void Tell(DriverEvent event);
  void SetError(State& state, const std::string& why) const;
  std::string WhyAway(const State& state) const;
  static std::string HowToRegister(const State& state);
  // "its registration was refused at ..: .."; "" if it was not.
  static std::string RefusalText(const State& state);
  std::string WhyNoController(const State& state) const;
  std::string WhyControllerSilent(const State& state) const;

  const Parts parts_;
  const Hooks hooks_;
  const std::string name_;
  const std::optional<SafePath> controller_place_;
  const std::shared_ptr<CsiSecretMemory> secrets_ = std::make_shared<CsiSecretMemory>();

  mutable Mutex mu_;
  State state_ GUARDED_BY(mu_);

  // Control thread.
  std::optional<Registering> registering_;
  uint64_t inquiry_ = 0;                         // counts them; an older one is of no interest
  int puts_ = 0;                                 // what of it is being written
  std::optional<std::string> withheld_version_;  // as it came
  bool refreshing_ = false;
  std::optional<TimePoint> refreshed_;
  Probing node_probing_{.is_node = true};
  Probing controller_probing_{.is_node = false};
  TimerId grace_timer_ = 0;
  std::unique_ptr<CsiLink> link_;
  std::unique_ptr<CsiLink> controller_link_;
  AliveGuard alive_;
};

template <typename Response>
void CsiDriver::Start(const google::protobuf::Message& request, const CsiCallOptions& options,
                      std::function<void(Result<Response>)> done) {
  const Status fits = CheckAnswer(request, Response::descriptor());
  Result<Way> way = fits.ok() ? Take(request) : Result<Way>(fits.error());
  if (!way.ok()) {
    parts_.scheduler.Post([done = std::move(done), error = way.error()] { done(error); });
    return;
  }
  AskOnControl<Response>(
      parts_.scheduler, way->caller, request, WithMemory(options),
      [self = weak_from_this(), way = *way, done = std::move(done)](Result<Response> answer) {
        if (const auto driver = self.lock()) {
          driver->Ended(way, answer.ok() ? nullptr : &answer.error());
          if (!answer.ok()) answer = driver->WithSilence(way, answer.error());
        }
        done(std::move(answer));
      });
}

}  // namespace volumed
