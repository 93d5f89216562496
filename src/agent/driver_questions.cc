#include "agent/driver_questions.h"

#include <google/protobuf/message.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "agent/driver_view.h"
#include "base/printable_text.h"
#include "base/strings.h"
#include "csi/csi_names.h"
#include "csi/rpc/csi_json.h"
#include "csi/rpc/csi_methods.h"
#include "csi/rpc/csi_redact.h"
#include "volume/driver_domain.h"

namespace volumed {
namespace {

// Whoever may only read could keep a driver busy otherwise.
constexpr int kMostOpenCalls = 8;
// Of these, whoever may not change anything leaves some to the others.
constexpr int kKeptForAdmins = 2;
constexpr size_t kLongestDriverRequest = size_t{1} << 20;
// Where on the node a driver is asked to look.
constexpr std::array kLookedAt{"volume_path", "volume_publish_path", "staging_target_path"};

Error NoSuchDriver(const std::string& name) {
  return Error::NotApplied(Code::kNotFound, "there is no CSI driver " + name);
}

// Those of the registration are none of csi.v1.
const CsiMethod* FindRpc(const std::string& name) {
  const CsiMethod* const method = FindCsiMethod(name);
  return method != nullptr && method->service.starts_with("csi.v1.") ? method : nullptr;
}

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// "; did you mean NodeGetInfo?", or all that there are.
std::string NearRpcs(const std::string& name) {
  std::vector<std::string> names;
  for (const CsiMethod& method : CsiMethods()) {
    if (!method.service.starts_with("csi.v1.")) continue;
    if (Lower(method.name) == Lower(name)) return "; did you mean " + method.name + "?";
    names.push_back(method.name);
  }
  return "; it has " + Join(names, ", ");
}

// Errors, not applied: InvalidArgument.
Result<const CsiMethod*> AdmitQuestion(const v1::CallDriverRequest& request) {
  const CsiMethod* const method = FindRpc(request.method());
  if (method == nullptr) {
    constexpr size_t kShown = 64;
    return Error::NotApplied(Code::kInvalidArgument,
                             "csi.v1 has no RPC " +
                                 PrintableText(BeginningOf(request.method(), kShown)) +
                                 NearRpcs(request.method()));
  }
  if (request.request_json().size() > kLongestDriverRequest) {
    return Error::NotApplied(Code::kInvalidArgument, "the request is longer than a megabyte");
  }
  return method;
}

std::string FieldOf(const google::protobuf::Message& request, const std::string& name) {
  const auto* const field = request.GetDescriptor()->FindFieldByName(name);
  return field == nullptr ? "" : request.GetReflection()->GetString(request, field);
}

// Errors, not applied: PermissionDenied, about kAboutDriverPaths.
Status CheckMayLook(const DriverQuestion& question, const std::string& driver,
                    const CsiMethod& method, const google::protobuf::Message& request) {
  if (!question.may_look || method.kind == CsiRpcKind::kMutating) return OkStatus();
  // The driver's memory of secrets would learn of them, and forget others for them.
  if (CsiHasSecrets(request)) {
    return Error::NotApplied(Code::kPermissionDenied,
                             "needs role admin; with another one " + method.name +
                                 " is asked without secrets and mount flags")
        .About(std::string(kAboutDriverPaths));
  }
  for (const char* name : kLookedAt) {
    const std::string path = FieldOf(request, name);
    if (path.empty() || question.may_look({driver, FieldOf(request, "volume_id")}, path)) continue;
    return Error::NotApplied(Code::kPermissionDenied,
                             "needs role admin; with another one " + method.name +
                                 " is asked only about a volume that is on record here, at its own "
                                 "path, and " +
                                 name + " is none of it")
        .About(std::string(kAboutDriverPaths));
  }
  return OkStatus();
}

// Threads: an executor's.
Result<std::string> Ask(CsiDriver& driver, const CsiMethod& method,
                        const google::protobuf::Message& request, Deadline deadline) {
  const CsiCallOptions options = WithStreamOf(method, {.deadline = deadline});
  ASSIGN_OR_RETURN(const auto answer, driver.Perform(request, options));
  return CsiShownJsonOf(*answer, CsiSecrets(request, driver.secrets()), options.stream.get());
}

void MakeCommand(const DriverQuestion& question, const std::shared_ptr<CsiDriver>& driver,
                 const CsiMethod& method,
                 const std::shared_ptr<const google::protobuf::Message>& request, Duration patience,
                 const std::function<void(const Result<std::string>&)>& done) {
  if (question.commands == nullptr) {
    return done(Error::NotApplied(Code::kUnavailable,
                                  method.name + " changes something, and this agent has nothing to "
                                                "make such a call with"));
  }
  CommandDriver(*question.commands, driver, method, request, patience, done);
}

constexpr size_t kShownCalls = 5;

void AddOpenCalls(const std::vector<std::string>& calls, v1::Driver* out) {
  out->set_open_call_count(static_cast<int32_t>(calls.size()));
  for (size_t i = 0; i < std::min(calls.size(), kShownCalls); ++i) {
    out->add_open_calls(PrintableText(calls[i]));
  }
}

void AddOwedCalls(const std::vector<std::string>& calls, v1::Driver* out) {
  out->set_owed_call_count(static_cast<int32_t>(calls.size()));
  for (size_t i = 0; i < std::min(calls.size(), kShownCalls); ++i) {
    out->add_owed_calls(PrintableText(calls[i]));
  }
}

}  // namespace

Status DescribeDrivers(const CsiClient& csi, const std::map<std::string, int>& waiting,
                       const Clock& clock, const v1::GetDriversRequest& request,
                       v1::GetDriversResponse* response, const CsiDebts* debts) {
  const auto is_asked_for = [&](const std::string& name) {
    return request.name().empty() || request.name() == name;
  };
  for (const DriverView& driver : csi.drivers().List()) {
    if (!is_asked_for(driver.facts.name)) continue;
    const auto found = waiting.find(DriverDomain(driver.facts.name));
    v1::Driver* const out = response->add_drivers();
    EncodeDriver(driver, found == waiting.end() ? 0 : found->second, out);
    AddOpenCalls(csi.commands().OpenOf(driver.facts.name), out);
    if (debts != nullptr) AddOwedCalls(debts->TextsOf(driver.facts.name), out);
  }
  for (const UnusedController& unused : csi.drivers().UnusedControllers()) {
    if (!is_asked_for(unused.driver)) continue;
    EncodeUnusedController(unused, response->add_unused_controllers());
  }
  // One that has not said its name may be the driver that nobody knows.
  const bool is_awaited = response->drivers().empty() && !response->unused_controllers().empty();
  bool has_nameless = false;
  for (const RegisteredSocket& socket : csi.Sockets()) {
    has_nameless = has_nameless || socket.driver.empty();
    if (!is_asked_for(socket.driver) && !(is_awaited && socket.driver.empty())) continue;
    EncodeSocket(socket, clock, response->add_sockets());
  }
  const bool is_empty = response->drivers().empty() && response->sockets().empty() &&
                        response->unused_controllers().empty();
  if (request.name().empty() || !is_empty) return OkStatus();
  const Error unknown = NoSuchDriver(request.name());
  if (!has_nameless) return unknown;
  return Error::NotApplied(unknown.code(), unknown.message() +
                                               "; sockets that have not said whose they are: "
                                               "`volumectl get drivers`");
}

Status DescribeTrace(const CsiClient& csi, const Clock& clock,
                     const v1::GetDriverTraceRequest& request,
                     v1::GetDriverTraceResponse* response) {
  if (request.back_ms() < 0) {
    return Error::NotApplied(Code::kInvalidArgument, "back_ms must not be negative");
  }
  const std::vector<CsiCallReport> calls = csi.trace().Of(request.driver());
  if (calls.empty() && csi.drivers().Find(request.driver()) == nullptr) {
    return NoSuchDriver(request.driver());
  }
  const int64_t now = clock.WallUnixMillis();
  for (const CsiCallReport& call : calls) {
    const bool is_too_old =
        request.back_ms() > 0 && !call.under_way && call.asked_unix_ms < now - request.back_ms();
    if (!is_too_old) EncodeTracedCall(call, response->add_calls());
  }
  return OkStatus();
}

Status RetryDriver(CsiClient& csi, NodeEvents& events, const v1::RetryDriverRequest& request,
                   v1::RetryDriverResponse* response) {
  const std::shared_ptr<CsiDriver> driver = csi.drivers().Find(request.driver());
  if (driver == nullptr) return NoSuchDriver(request.driver());
  for (const SafePath& endpoint : driver->Endpoints()) driver->EndpointChanged(endpoint.Display());
  csi.drivers().Refresh(request.driver());
  events.DriverIsBack(kCsiPluginName, DriverDomain(request.driver()));
  const std::string why = driver->WhyAway();
  response->set_reason(why.empty() ? driver->WhyControllerAway() : why);
  return OkStatus();
}

PeerRole RoleToAskDriver(const v1::CallDriverRequest& request) {
  const CsiMethod* const method = FindRpc(request.method());
  const bool changes = method != nullptr && method->kind == CsiRpcKind::kMutating;
  return changes ? PeerRole::kAdmin : PeerRole::kRead;
}

void AskDriver(DriverQuestion question, const v1::CallDriverRequest& request,
               std::function<void(const Result<std::string>&)> done) {
  const Result<const CsiMethod*> method = AdmitQuestion(request);
  if (!method.ok()) return done(method.error());
  Result<std::unique_ptr<google::protobuf::Message>> made =
      CsiRequestFromJson(**method, request.request_json());
  if (!made.ok()) return done(made.error());
  const Status may_look = CheckMayLook(question, request.driver(), **method, **made);
  if (!may_look.ok()) return done(may_look.error());
  const std::shared_ptr<CsiDriver> driver = question.csi.drivers().Find(request.driver());
  if (driver == nullptr) return done(NoSuchDriver(request.driver()));
  if (question.open >= (question.may_look ? kMostOpenCalls - kKeptForAdmins : kMostOpenCalls)) {
    return done(Error::NotApplied(Code::kResourceExhausted,
                                  "CSI drivers have " + std::to_string(question.open) +
                                      " calls by hand already; try it again later"));
  }
  Duration patience = question.patience;
  if (request.timeout_ms() > 0) {
    patience = std::min<Duration>(patience, std::chrono::milliseconds(request.timeout_ms()));
  }
  // A task is copied, and a request cannot be.
  const std::shared_ptr<const google::protobuf::Message> message = *std::move(made);
  ++question.open;
  const auto ended = [&open = question.open,
                      done = std::move(done)](const Result<std::string>& answer) {
    --open;
    done(answer);
  };
  if ((*method)->kind == CsiRpcKind::kMutating) {
    return MakeCommand(question, driver, **method, message, patience, ended);
  }
  const Deadline deadline = Deadline::After(question.scheduler.clock(), patience);
  question.scheduler.RunBlocking(
      [&scheduler = question.scheduler, method = *method, driver, message, deadline, ended] {
        const Result<std::string> answer = Ask(*driver, *method, *message, deadline);
        scheduler.Post([answer, ended] { ended(answer); });
      });
}

}  // namespace volumed
