#include "unit/csi/scripted_driver.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace volumed {
namespace {

constexpr std::chrono::seconds kLongest{20};

grpc::ByteBuffer BufferOf(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::string BytesOfBuffer(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Dump(&slices).ok()) return bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

}  // namespace

SocketDirectory::SocketDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "csi-XXXXXX").string();
  path_ = ::mkdtemp(name.data());
}

SocketDirectory::~SocketDirectory() { std::filesystem::remove_all(path_); }

class ScriptedDriver::Reactor final : public grpc::ServerGenericBidiReactor {
 public:
  Reactor(ScriptedDriver& driver, std::string method)
      : driver_(driver), method_(std::move(method)) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return Answer({grpc::Status::CANCELLED});
    ScriptedCall call{.method = method_, .request = BytesOfBuffer(request_)};
    {
      const std::lock_guard lock(driver_.mu_);
      call.number = number_ = static_cast<int>(driver_.requests_.size());
      driver_.requests_.push_back(call.request);
      driver_.methods_.push_back(method_);
      driver_.undecided_.insert(number_);
    }
    std::optional<ScriptedAnswer> answer = driver_.handler_(call);
    {
      const std::lock_guard lock(driver_.mu_);
      driver_.undecided_.erase(number_);
      const auto decided = driver_.decided_.find(number_);
      if (decided != driver_.decided_.end()) {
        answer = std::move(decided->second);
        driver_.decided_.erase(decided);
      }
      if (!answer && cancelled_) answer = ScriptedAnswer{grpc::Status::CANCELLED};
      if (!answer) driver_.held_.push_back(this);
      driver_.most_held_ = std::max(driver_.most_held_, static_cast<int>(driver_.held_.size()));
      driver_.changed_.notify_all();
    }
    if (answer) Answer(*answer);
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    StartWriteAndFinish(&answer_, {}, grpc::Status::OK);
  }

  void OnCancel() override {
    bool was_held = false;
    int number = -1;
    {
      const std::lock_guard lock(driver_.mu_);
      cancelled_ = true;
      number = number_;
      was_held = std::erase(driver_.held_, this) > 0;
      ++driver_.cancelled_;
      driver_.changed_.notify_all();
    }
    if (number >= 0 && driver_.cancelled_handler_) driver_.cancelled_handler_(number);
    if (was_held) Answer({grpc::Status::CANCELLED});
  }

  void OnDone() override { delete this; }

  void Answer(const ScriptedAnswer& answer) {
    if (!answer.status.ok() || answer.no_message) return Finish(answer.status);
    answer_ = BufferOf(answer.bytes);
    if (answer.twice) return StartWrite(&answer_);
    StartWriteAndFinish(&answer_, {}, answer.status);
  }

  int number() const { return number_; }

 private:
  ScriptedDriver& driver_;
  const std::string method_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer answer_;
  int number_ = -1;
  bool cancelled_ = false;
};

class ScriptedDriver::Service final : public grpc::CallbackGenericService {
 public:
  explicit Service(ScriptedDriver& driver) : driver_(driver) {}
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    return new Reactor(driver_, context->method());
  }

 private:
  ScriptedDriver& driver_;
};

ScriptedDriver::ScriptedDriver(const std::string& socket, Script script)
    : ScriptedDriver(socket, [script = std::move(script)](const ScriptedCall& call) {
        return script(call.number);
      }) {}

ScriptedDriver::ScriptedDriver(const std::string& socket, Handler handler,
                               std::function<void(int)> cancelled)
    : handler_(std::move(handler)),
      cancelled_handler_(std::move(cancelled)),
      service_(std::make_unique<Service>(*this)) {
  std::filesystem::remove(socket);
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
  builder.RegisterCallbackGenericService(service_.get());
  builder.SetMaxReceiveMessageSize(-1);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 1024 * 1024);
  server_ = builder.BuildAndStart();
}

ScriptedDriver::~ScriptedDriver() {
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

bool ScriptedDriver::WaitFor(const std::function<bool()>& condition) {
  std::unique_lock lock(mu_);
  return changed_.wait_for(lock, kLongest, condition);
}

bool ScriptedDriver::WaitForArrived(int calls) {
  return WaitFor([&] { return static_cast<int>(requests_.size()) >= calls; });
}

bool ScriptedDriver::WaitForCancelled(int calls) {
  return WaitFor([&] { return cancelled_ >= calls; });
}

int ScriptedDriver::held() {
  const std::lock_guard lock(mu_);
  return static_cast<int>(held_.size());
}

int ScriptedDriver::most_held() {
  const std::lock_guard lock(mu_);
  return most_held_;
}

std::vector<std::string> ScriptedDriver::requests() {
  const std::lock_guard lock(mu_);
  return requests_;
}

std::string ScriptedDriver::method(int number) {
  const std::lock_guard lock(mu_);
  return methods_.at(static_cast<size_t>(number));
}

ScriptedDriver::Reactor* ScriptedDriver::TakeHeld(int number) {
  const auto held = std::find_if(held_.begin(), held_.end(), [number](const Reactor* reactor) {
    return number < 0 || reactor->number() == number;
  });
  if (held == held_.end()) return nullptr;
  Reactor* reactor = *held;
  held_.erase(held);
  return reactor;
}

bool ScriptedDriver::Release(const ScriptedAnswer& answer) {
  Reactor* reactor = nullptr;
  {
    const std::lock_guard lock(mu_);
    reactor = TakeHeld(-1);
  }
  if (reactor != nullptr) reactor->Answer(answer);
  return reactor != nullptr;
}

bool ScriptedDriver::ReleaseCall(int number, const ScriptedAnswer& answer) {
  Reactor* reactor = nullptr;
  {
    const std::lock_guard lock(mu_);
    reactor = TakeHeld(number);
    if (reactor == nullptr && undecided_.count(number) > 0) {
      return decided_.emplace(number, answer).second;
    }
  }
  if (reactor != nullptr) reactor->Answer(answer);
  return reactor != nullptr;
}

RawServer::RawServer(const std::string& socket, std::function<void(int)> serve) {
  std::filesystem::remove(socket);
  listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const bool listens =
      ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
      ::listen(listener_, 16) == 0 && ::pipe(stop_) == 0;
  if (!listens) std::abort();
  thread_ = std::thread([this, serve = std::move(serve)] {
    for (;;) {
      pollfd fds[] = {{listener_, POLLIN, 0}, {stop_[0], POLLIN, 0}};
      ::poll(fds, 2, -1);
      if (fds[1].revents != 0) return;
      const int connection = ::accept(listener_, nullptr, nullptr);
      if (connection < 0) continue;
      serve(connection);
      ::close(connection);
    }
  });
}

RawServer::~RawServer() {
  ::close(stop_[1]);
  thread_.join();
  ::close(stop_[0]);
  ::close(listener_);
}

void RawServer::SendSettings(int connection) {
  // Length 0, type 4, no flags, stream 0. Source: RFC 9113, 6.5.
  constexpr char kFrame[9] = {0, 0, 0, 4, 0, 0, 0, 0, 0};
  if (::write(connection, kFrame, sizeof(kFrame)) < 0) return;
}

void RawServer::ReadOn(int connection) {
  char bytes[4096];
  for (;;) {
    pollfd fds[] = {{connection, POLLIN, 0}, {stop_[0], POLLIN, 0}};
    ::poll(fds, 2, -1);
    if (fds[1].revents != 0 || ::read(connection, bytes, sizeof(bytes)) <= 0) return;
  }
}

bool RawServer::ReadCall(int connection) {
  std::string seen;
  char bytes[4096];
  for (;;) {
    pollfd fds[] = {{connection, POLLIN, 0}, {stop_[0], POLLIN, 0}};
    ::poll(fds, 2, -1);
    if (fds[1].revents != 0) return false;
    const ssize_t count = ::read(connection, bytes, sizeof(bytes));
    if (count <= 0) return false;
    seen.append(bytes, static_cast<size_t>(count));
    // Names of headers are not compressed by gRPC when they come for the first time.
    if (seen.find("csi.v1") != std::string::npos) return true;
  }
}

}  // namespace volumed
