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
    int number = 0;
    {
      const std::lock_guard lock(driver_.mu_);
      number = static_cast<int>(driver_.requests_.size());
      driver_.requests_.push_back(BytesOfBuffer(request_));
      driver_.methods_.push_back(method_);
    }
    const std::optional<ScriptedAnswer> answer = driver_.script_(number);
    {
      const std::lock_guard lock(driver_.mu_);
      if (!answer && !cancelled_) driver_.held_.push_back(this);
      driver_.most_held_ = std::max(driver_.most_held_, static_cast<int>(driver_.held_.size()));
      if (!answer && cancelled_) must_end_ = true;
      driver_.changed_.notify_all();
    }
    if (answer) Answer(*answer);
    if (must_end_) Answer({grpc::Status::CANCELLED});
  }

  void OnCancel() override {
    bool was_held = false;
    {
      const std::lock_guard lock(driver_.mu_);
      cancelled_ = true;
      was_held = std::erase(driver_.held_, this) > 0;
      ++driver_.cancelled_;
      driver_.changed_.notify_all();
    }
    if (was_held) Answer({grpc::Status::CANCELLED});
  }

  void OnDone() override { delete this; }

  void Answer(const ScriptedAnswer& answer) {
    if (!answer.status.ok() || answer.no_message) return Finish(answer.status);
    answer_ = BufferOf(answer.bytes);
    StartWriteAndFinish(&answer_, {}, answer.status);
  }

 private:
  ScriptedDriver& driver_;
  const std::string method_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer answer_;
  bool cancelled_ = false;
  bool must_end_ = false;
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
    : script_(std::move(script)), service_(std::make_unique<Service>(*this)) {
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

bool ScriptedDriver::Release(const ScriptedAnswer& answer) {
  Reactor* reactor = nullptr;
  {
    const std::lock_guard lock(mu_);
    if (held_.empty()) return false;
    reactor = held_.front();
    held_.erase(held_.begin());
  }
  reactor->Answer(answer);
  return true;
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
