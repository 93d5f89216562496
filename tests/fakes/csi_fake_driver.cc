#include "fakes/csi_fake_driver.h"

#include <google/protobuf/util/json_util.h>
#include <grpcpp/support/status.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "csi/rpc/csi_methods.h"
#include "fakes/csi_fake_deeds.h"
#include "fakes/csi_fake_log.h"
#include "fakes/csi_fake_script.h"
#include "unit/csi/scripted_driver.h"

namespace volumed {

// Found by the type's own namespace alone.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(CsiFakeOptions, name, node_id, version, directory,
                                                endpoint, registration, log, registered_name,
                                                registered_endpoint, type, versions,
                                                plugin_capabilities, node_capabilities,
                                                controller_capabilities, max_volumes, topology,
                                                volumes, size_bytes, known_only, forgets)

using google::protobuf::Message;
using RpcStatus = grpc::Status;
using grpc::StatusCode;
using Json = nlohmann::json;

// Of this file alone; it has a name because a class with a name has members of these types.
namespace csi_fake {

using Milliseconds = std::chrono::milliseconds;

// Does things later, one after the other, on a thread of its own. What is left at its end is
// dropped.
class Later {
 public:
  Later() : thread_([this] { Run(); }) {}
  ~Later() { End(); }
  void In(Milliseconds delay, std::function<void()> deed) {
    const std::lock_guard lock(mu_);
    due_.emplace(std::chrono::steady_clock::now() + delay, std::move(deed));
    changed_.notify_all();
  }
  void End() {
    {
      const std::lock_guard lock(mu_);
      ends_ = true;
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  void Run() {
    std::unique_lock lock(mu_);
    while (!ends_) {
      if (due_.empty()) {
        changed_.wait(lock);
      } else if (due_.begin()->first > std::chrono::steady_clock::now()) {
        changed_.wait_until(lock, due_.begin()->first);
      } else {
        const std::function<void()> deed = std::move(due_.extract(due_.begin()).mapped());
        lock.unlock();
        deed();
        lock.lock();
      }
    }
  }

  std::mutex mu_;
  std::condition_variable changed_;
  std::multimap<std::chrono::steady_clock::time_point, std::function<void()>> due_;
  bool ends_ = false;
  std::thread thread_;
};

// "\xff" written out is that byte: JSON has no text that is no UTF-8.
inline std::string WithBytes(const std::string& text) {
  std::string bytes;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text.compare(at, 2, "\\x") == 0 && at + 3 < text.size()) {
      bytes += static_cast<char>(std::stoi(text.substr(at + 2, 2), nullptr, 16));
      at += 3;
    } else {
      bytes += text[at];
    }
  }
  return bytes;
}

// The values of the request's secrets, where the message has the word "{secrets}".
inline std::string WithSecrets(std::string text, const Message& request) {
  constexpr std::string_view kWord = "{secrets}";
  const size_t at = text.find(kWord);
  const auto* field = request.GetDescriptor()->FindFieldByName("secrets");
  if (at == std::string::npos || field == nullptr) return text;
  std::string values;
  for (int i = 0; i < request.GetReflection()->FieldSize(request, field); ++i) {
    const Message& entry = request.GetReflection()->GetRepeatedMessage(request, field, i);
    const auto* value = entry.GetDescriptor()->FindFieldByName("value");
    values += entry.GetReflection()->GetString(entry, value) + " ";
  }
  return text.replace(at, kWord.size(), values);
}

inline std::unique_ptr<Message> NewMessage(const google::protobuf::Descriptor* type) {
  return std::unique_ptr<Message>(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
}

enum class Socket { kServices, kRegistration };

// A call under way.
struct FakeCall {
  Socket socket = Socket::kServices;
  int server = 0;  // which one of the socket: each listening is another
  int number_there = 0;
  int number = 0;  // of the log
  const CsiMethod* method = nullptr;
  std::unique_ptr<Message> request;
  std::string volume;
  CsiFakeRule rule;
  std::string effect;  // what was made of it
  RpcStatus status = {};
  std::string bytes;
  bool ended = false;
  // Calls of the same volume that arrived before this one's end, and of which it is not said yet
  // whether they may: the news that a caller has gone may come after its next call.
  std::vector<std::shared_ptr<FakeCall>> overlaps;
};
using Call = std::shared_ptr<FakeCall>;

constexpr Milliseconds kNewsOfAGoneCaller(1000);

}  // namespace csi_fake

using csi_fake::Call;
using csi_fake::Socket;

std::string CsiFakeOptionsText(const CsiFakeOptions& options) { return Json(options).dump(); }

CsiFakeOptions ParseCsiFakeOptions(const std::string& json) {
  return Json::parse(json).get<CsiFakeOptions>();
}

class CsiFakeDriver::Servers {
 public:
  Servers(const CsiFakeOptions& options, std::function<void()> die)
      : log_(options.log),
        deeds_(options, [this](const std::string& text) { Violated(text); }),
        die_(std::move(die)) {
    log_.Write({.what = "start", .text = options.version});
    Listen(Socket::kServices);
    Listen(Socket::kRegistration);
  }
  ~Servers() {
    later_.End();
    Stop(Socket::kRegistration);
    Stop(Socket::kServices);
  }

  std::string Tell(std::string_view text) {
    Json answer = {{"ok", true}};
    try {
      const Json commands = Json::parse(text);
      for (const auto& [command, value] : commands.items()) Obey(command, value, &answer);
    } catch (const Json::exception& error) {
      answer = {{"problem", error.what()}};
    }
    return answer.dump();
  }

 private:
  struct Slot {
    std::shared_ptr<ScriptedDriver> server;
    int generation = 0;
  };

  void Obey(const std::string& command, const Json& value, Json* answer);
  void Listen(Socket socket);
  void Stop(Socket socket);
  std::string PathOf(Socket socket) const;
  std::optional<ScriptedAnswer> Arrived(Socket socket, int server, const ScriptedCall& arrived);
  void NoteBegin(const csi_fake::FakeCall& call);
  std::optional<ScriptedAnswer> MakeEffect(const Call& call);
  void Make(csi_fake::FakeCall& call, const std::string& effect);
  std::optional<ScriptedAnswer> Answer(const Call& call);
  void GoOnLater(const Call& call, int delay_ms,
                 std::optional<ScriptedAnswer> (Servers::*next)(const Call&));
  void ReleaseHeld();
  void Cancelled(Socket socket, int server, int number);
  void NoteOverlaps(const Call& call);
  void Die(const CsiFakeRule& rule);
  void Violated(const std::string& text) { log_.Write({.what = "violation", .text = text}); }

  CsiFakeLog log_;
  CsiFakeScript script_;
  CsiFakeDeeds deeds_;
  const std::function<void()> die_;
  std::mutex mu_;
  std::map<Socket, Slot> slots_;
  std::map<std::string, Call> under_way_;  // volumes, and the call that changes it
  std::vector<Call> held_;
  int calls_ = 0;
  csi_fake::Later later_;
};

std::string CsiFakeDriver::Servers::PathOf(Socket socket) const {
  const CsiFakeOptions options = deeds_.options();
  return socket == Socket::kServices ? options.endpoint : options.registration;
}

void CsiFakeDriver::Servers::Listen(Socket socket) {
  const std::string path = PathOf(socket);
  if (path.empty()) return;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  int generation = 0;
  {
    const std::lock_guard lock(mu_);
    if (slots_[socket].server != nullptr) return;
    generation = ++slots_[socket].generation;
  }
  auto server = std::make_shared<ScriptedDriver>(
      path,
      [this, socket, generation](const ScriptedCall& arrived) {
        return Arrived(socket, generation, arrived);
      },
      [this, socket, generation](int number) { Cancelled(socket, generation, number); });
  if (socket == Socket::kServices) log_.Write({.what = "listen"});
  const std::lock_guard lock(mu_);
  slots_[socket].server = std::move(server);
}

// Handlers have the lock, and the server waits for them.
void CsiFakeDriver::Servers::Stop(Socket socket) {
  std::shared_ptr<ScriptedDriver> server;
  {
    const std::lock_guard lock(mu_);
    server = std::move(slots_[socket].server);
  }
  server.reset();
}

void CsiFakeDriver::Servers::NoteBegin(const csi_fake::FakeCall& call) {
  CsiFakeEntry entry = CsiFakeEntryOf(*call.method, *call.request);
  entry.number = call.number;
  log_.Write(entry);
}

std::optional<ScriptedAnswer> CsiFakeDriver::Servers::Arrived(Socket socket, int server,
                                                              const ScriptedCall& arrived) {
  auto call = std::make_shared<csi_fake::FakeCall>();
  call->socket = socket;
  call->server = server;
  call->number_there = arrived.number;
  call->method = FindCsiMethod(arrived.method);
  if (call->method == nullptr) return ScriptedAnswer{{StatusCode::UNIMPLEMENTED, arrived.method}};
  call->request = csi_fake::NewMessage(call->method->request);
  if (!call->request->ParseFromString(arrived.request)) {
    return ScriptedAnswer{{StatusCode::INTERNAL, "no " + call->method->request->full_name()}};
  }
  call->volume = CsiFakeEntryOf(*call->method, *call->request).volume;
  Call other;
  {
    const std::lock_guard lock(mu_);
    call->number = calls_++;
    if (call->method->kind == CsiRpcKind::kMutating && !call->volume.empty()) {
      const auto [under_way, is_first] = under_way_.try_emplace(call->volume, call);
      if (!is_first) other = under_way->second;
      if (other != nullptr) other->overlaps.push_back(call);
    }
  }
  NoteBegin(*call);
  if (other != nullptr) {
    later_.In(csi_fake::kNewsOfAGoneCaller, [this, other] { NoteOverlaps(other); });
  }
  call->rule = script_.Take(call->method->name, call->volume);
  if (call->rule.die == "before") {
    Die(call->rule);
    return std::nullopt;
  }
  if (call->rule.before_ms == 0) return MakeEffect(call);
  GoOnLater(call, call->rule.before_ms, &Servers::MakeEffect);
  return std::nullopt;
}

void CsiFakeDriver::Servers::Make(csi_fake::FakeCall& call, const std::string& effect) {
  const std::unique_ptr<Message> response = csi_fake::NewMessage(call.method->response);
  call.effect = effect;
  call.status = deeds_.Do(*call.method, *call.request, effect, response.get());
  call.bytes = response->SerializeAsString();
}

std::optional<ScriptedAnswer> CsiFakeDriver::Servers::MakeEffect(const Call& call) {
  const CsiFakeRule& rule = call->rule;
  const bool is_made_by_itself = rule.code == 0 && !rule.hang;
  Make(*call, !rule.effect.empty() ? rule.effect : is_made_by_itself ? "made" : "none");
  if (rule.die == "after") {
    Die(rule);
    return std::nullopt;
  }
  if (rule.hang) {
    const std::lock_guard lock(mu_);
    held_.push_back(call);
    return std::nullopt;
  }
  if (rule.after_ms == 0) return Answer(call);
  GoOnLater(call, rule.after_ms, &Servers::Answer);
  return std::nullopt;
}

std::optional<ScriptedAnswer> CsiFakeDriver::Servers::Answer(const Call& call) {
  const CsiFakeRule& rule = call->rule;
  ScriptedAnswer answer{
      .status = call->status, .bytes = call->bytes, .no_message = rule.no_message};
  answer.twice = rule.twice;
  if (rule.code != 0) {
    const std::string message =
        csi_fake::WithSecrets(csi_fake::WithBytes(rule.message), *call->request);
    answer.status = {static_cast<StatusCode>(rule.code), message};
  }
  if (!rule.answer.empty()) {
    const std::unique_ptr<Message> response = csi_fake::NewMessage(call->method->response);
    const auto parsed = google::protobuf::util::JsonStringToMessage(rule.answer, response.get());
    if (!parsed.ok()) Violated("the script has no answer of " + call->method->name);
    answer.status = RpcStatus::OK;
    answer.bytes = response->SerializeAsString();
  }
  if (rule.garbage) answer.bytes = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff";
  if (rule.huge_bytes > 0) answer.bytes = std::string(static_cast<size_t>(rule.huge_bytes), 'x');
  {
    const std::lock_guard lock(mu_);
    call->ended = true;
    std::erase_if(under_way_, [&](const auto& one) { return one.second == call; });
  }
  NoteOverlaps(call);
  log_.Write({.what = "end",
              .number = call->number,
              .rpc = call->method->name,
              .volume = call->volume,
              .code = static_cast<int>(answer.status.error_code()),
              .effect = call->effect,
              .text = answer.status.error_message()});
  // Once the answer has had time to leave.
  constexpr csi_fake::Milliseconds kOnItsWay(50);
  if (rule.die == "answered") later_.In(kOnItsWay, [this, rule] { Die(rule); });
  return answer;
}

void CsiFakeDriver::Servers::GoOnLater(
    const Call& call, int delay_ms, std::optional<ScriptedAnswer> (Servers::*next)(const Call&)) {
  later_.In(csi_fake::Milliseconds(delay_ms), [this, call, next] {
    const std::optional<ScriptedAnswer> answer = (this->*next)(call);
    if (!answer) return;
    std::shared_ptr<ScriptedDriver> server;
    {
      const std::lock_guard lock(mu_);
      const Slot& slot = slots_[call->socket];
      if (slot.generation == call->server) server = slot.server;
    }
    if (server != nullptr) server->ReleaseCall(call->number_there, *answer);
  });
}

void CsiFakeDriver::Servers::ReleaseHeld() {
  std::vector<Call> released;
  {
    const std::lock_guard lock(mu_);
    released = std::move(held_);
    held_.clear();
  }
  for (const Call& call : released) {
    const bool is_made = call->effect != "none";
    call->rule = {};
    if (is_made) {
      GoOnLater(call, 0, &Servers::Answer);
    } else {
      GoOnLater(call, 0, &Servers::MakeEffect);
    }
  }
}

// The caller has gone, and may call again.
void CsiFakeDriver::Servers::Cancelled(Socket socket, int server, int number) {
  const auto is_it = [&](const Call& call) {
    return call->socket == socket && call->server == server && call->number_there == number;
  };
  const std::lock_guard lock(mu_);
  std::erase_if(held_, is_it);
  const auto gone = std::find_if(under_way_.begin(), under_way_.end(),
                                 [&](const auto& one) { return is_it(one.second); });
  if (gone == under_way_.end()) return;
  const std::vector<Call> next = std::exchange(gone->second->overlaps, {});
  const auto goes_on =
      std::find_if(next.begin(), next.end(), [](const Call& call) { return !call->ended; });
  if (goes_on == next.end()) {
    under_way_.erase(gone);
  } else {
    gone->second = *goes_on;
  }
}

// They are violations, for the caller of this one has waited for it all the time.
void CsiFakeDriver::Servers::NoteOverlaps(const Call& call) {
  std::vector<Call> overlaps;
  {
    const std::lock_guard lock(mu_);
    overlaps = std::exchange(call->overlaps, {});
  }
  for (const Call& other : overlaps) {
    Violated(other->method->name + " of " + other->volume + " while " + call->method->name +
             " is under way");
  }
}

void CsiFakeDriver::Servers::Die(const CsiFakeRule& rule) {
  log_.Write({.what = "die", .text = rule.die});
  if (rule.remove_sockets) {
    std::error_code absent;
    std::filesystem::remove(PathOf(Socket::kRegistration), absent);
    std::filesystem::remove(PathOf(Socket::kServices), absent);
  }
  if (die_) die_();
  later_.In(csi_fake::Milliseconds(0), [this] {
    Stop(Socket::kServices);
    Stop(Socket::kRegistration);
  });
}

void CsiFakeDriver::Servers::Obey(const std::string& command, const Json& value, Json* answer) {
  if (command == "script") {
    std::string problem;
    std::vector<CsiFakeRule> rules = ParseCsiFakeRules(value.dump(), &problem);
    if (!problem.empty()) *answer = {{"problem", problem}};
    script_.Exchange(std::move(rules));
  } else if (command == "release") {
    ReleaseHeld();
  } else if (command == "set") {
    Json merged = Json(deeds_.options());
    merged.merge_patch(value);
    deeds_.Configure(merged.get<CsiFakeOptions>());
  } else if (command == "forget") {
    deeds_.world().Forget();
  } else if (command == "stop") {
    Stop(Socket::kRegistration);
    Stop(Socket::kServices);
  } else if (command == "unregister") {
    Stop(Socket::kRegistration);
  } else if (command == "listen") {
    Listen(Socket::kServices);
    Listen(Socket::kRegistration);
  } else if (command == "register") {
    Listen(Socket::kRegistration);
  } else if (command == "status") {
    const std::lock_guard lock(mu_);
    (*answer)["calls"] = calls_;
    (*answer)["held"] = held_.size();
  } else if (command == "volumes") {
    (*answer)["volumes"] = Json::parse(deeds_.world().StateText());
  } else {
    *answer = {{"problem", "no command \"" + command + "\""}};
  }
}

CsiFakeDriver::CsiFakeDriver(CsiFakeOptions options, std::function<void()> die)
    : servers_(std::make_unique<Servers>(options, std::move(die))) {}

CsiFakeDriver::~CsiFakeDriver() = default;

std::string CsiFakeDriver::Tell(std::string_view command) { return servers_->Tell(command); }

}  // namespace volumed
