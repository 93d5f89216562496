#include "os/process_scope.h"

#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace volumed {
namespace {

constexpr char kManager[] = "org.freedesktop.systemd1.Manager";

struct BusDeleter {
  // Not flushed: what was asked is answered, and who does not answer must not hold us up.
  void operator()(sd_bus* bus) const { sd_bus_close_unref(bus); }
};
struct MessageDeleter {
  void operator()(sd_bus_message* message) const { sd_bus_message_unref(message); }
};
using Bus = std::unique_ptr<sd_bus, BusDeleter>;
using Message = std::unique_ptr<sd_bus_message, MessageDeleter>;

Error Failed(const std::string& what, int rc) {
  const Error error = Error::FromErrno(-rc, what, Outcome::kMaybeApplied);
  return Error::FromParts(Code::kUnavailable, Outcome::kMaybeApplied, -rc, error.message());
}

// Zero would be the library's own patience.
uint64_t MicrosLeft(const Deadline& deadline) {
  const auto left = std::chrono::ceil<std::chrono::microseconds>(deadline.Remaining(RealClock()));
  return static_cast<uint64_t>(std::max<int64_t>(left.count(), 1));
}

// Until `satisfied`, which is asked at each turn, with the message that came if one did.
Status RunUntil(sd_bus* bus, const std::string& name, const Deadline& deadline,
                const std::function<bool(sd_bus_message*)>& satisfied) {
  while (!deadline.Passed(RealClock())) {
    sd_bus_message* got = nullptr;
    int rc = sd_bus_process(bus, &got);
    const Message message(got);
    if (rc < 0) return Failed("wait for the start of " + name, rc);
    if (satisfied(message.get())) return OkStatus();
    if (rc > 0) continue;
    rc = sd_bus_wait(bus, MicrosLeft(deadline));
    if (rc < 0 && rc != -EINTR) return Failed("wait for the start of " + name, rc);
  }
  return Error::MaybeApplied(Code::kUnavailable, "systemd did not start " + name + " in time");
}

Result<Bus> Connect(const std::string& socket, const std::string& name, const Deadline& deadline) {
  sd_bus* made = nullptr;
  int rc = sd_bus_new(&made);
  Bus bus(made);
  if (rc >= 0) rc = sd_bus_set_address(bus.get(), ("unix:path=" + socket).c_str());
  if (rc >= 0) rc = sd_bus_start(bus.get());
  if (rc < 0) return Failed("connect to " + socket, rc);
  // Left to a call, this would take as long as the library likes.
  const auto ready = [&bus](sd_bus_message*) { return sd_bus_is_ready(bus.get()) > 0; };
  RETURN_IF_ERROR(RunUntil(bus.get(), name, deadline, ready));
  return bus;
}

// StartTransientUnit(name, mode, properties, auxiliary units). A service that is stopped leaves
// what its mounts need: at shutdown these scopes end after it, and after the containers.
int FillRequest(sd_bus_message* message, const std::string& name, const std::string& description,
                uint32_t pid) {
  int rc = sd_bus_message_append(message, "ss", name.c_str(), "fail");
  if (rc >= 0) rc = sd_bus_message_open_container(message, 'a', "(sv)");
  if (rc >= 0) {
    rc = sd_bus_message_append(message, "(sv)(sv)(sv)(sv)", "Description", "s", description.c_str(),
                               "CollectMode", "s", "inactive-or-failed", "PIDs", "au", 1, pid,
                               "Before", "as", 3, "volumed.service", "containerd.service",
                               "crio.service");
  }
  if (rc >= 0) rc = sd_bus_message_close_container(message);
  if (rc >= 0) rc = sd_bus_message_append(message, "a(sa(sv))", 0);
  return rc;
}

// The job that was queued, by its object path.
Result<std::string> QueueStart(sd_bus* bus, pid_t pid, const std::string& name,
                               const std::string& description, const Deadline& deadline) {
  sd_bus_message* made = nullptr;
  int rc =
      sd_bus_message_new_method_call(bus, &made, "org.freedesktop.systemd1",
                                     "/org/freedesktop/systemd1", kManager, "StartTransientUnit");
  const Message message(made);
  if (rc >= 0) rc = FillRequest(message.get(), name, description, static_cast<uint32_t>(pid));
  if (rc < 0) return Failed("make the request for " + name, rc);
  sd_bus_error error = {};
  sd_bus_message* answer = nullptr;
  rc = sd_bus_call(bus, message.get(), MicrosLeft(deadline), &error, &answer);
  const Message answered(answer);
  const std::string why = error.message == nullptr ? "" : std::string(": ") + error.message;
  sd_bus_error_free(&error);
  if (rc < 0) return Failed("start " + name + why, rc);
  const char* job = nullptr;
  rc = sd_bus_message_read(answered.get(), "o", &job);
  if (rc < 0) return Failed("read systemd's answer for " + name, rc);
  return std::string(job);
}

// The result of the job, if the message says that it has ended.
std::optional<std::string> ResultIn(sd_bus_message* message, const std::string& job) {
  if (sd_bus_message_is_signal(message, kManager, "JobRemoved") <= 0) return std::nullopt;
  uint32_t id = 0;
  const char* path = nullptr;
  const char* unit = nullptr;
  const char* result = nullptr;
  if (sd_bus_message_read(message, "uoss", &id, &path, &unit, &result) < 0) return std::nullopt;
  return path == job ? std::make_optional<std::string>(result) : std::nullopt;
}

// "done", or why not. A signal that came before the answer to the call was kept by the library, so
// none is missed.
Result<std::string> WaitForJob(sd_bus* bus, const std::string& job, const std::string& name,
                               const Deadline& deadline) {
  std::optional<std::string> result;
  const auto ended = [&](sd_bus_message* message) {
    if (message != nullptr) result = ResultIn(message, job);
    return result.has_value();
  };
  RETURN_IF_ERROR(RunUntil(bus, name, deadline, ended));
  return *std::move(result);
}

// The kernel's word. Source: cgroups(7).
bool IsIn(pid_t pid, const std::string& name, const std::string& proc) {
  std::ifstream file(proc + "/" + std::to_string(pid) + "/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    if (line.ends_with("/" + name)) return true;
  }
  return false;
}

}  // namespace

std::optional<std::string> WhyNoScopes() {
  if (sd_booted() <= 0) return "systemd does not run this machine";
  const std::string socket = ScopePlaces().socket;
  if (::access(socket.c_str(), W_OK) != 0) {
    return socket + ": " + Error::FromErrno(errno, "", Outcome::kNotApplied).message();
  }
  return std::nullopt;
}

std::string ScopeName(std::string_view kind, std::string_view what, pid_t pid) {
  std::array<char, 17> hash{};
  std::snprintf(hash.data(), hash.size(), "%016zx", std::hash<std::string_view>()(what));
  return "volumed-" + std::string(kind) + "-" + hash.data() + "-" + std::to_string(pid) + ".scope";
}

Status MoveToScope(pid_t pid, const std::string& name, const std::string& description,
                   const ScopePlaces& places) {
  const Deadline deadline = Deadline::After(RealClock(), places.patience);
  ASSIGN_OR_RETURN(const Bus bus, Connect(places.socket, name, deadline));
  ASSIGN_OR_RETURN(const std::string job, QueueStart(bus.get(), pid, name, description, deadline));
  ASSIGN_OR_RETURN(const std::string result, WaitForJob(bus.get(), job, name, deadline));
  if (result != "done") {
    return Error::MaybeApplied(Code::kUnavailable, "the start of " + name + " ended: " + result);
  }
  if (!IsIn(pid, name, places.proc)) {
    return Error::MaybeApplied(Code::kUnavailable, "the process is not in " + name);
  }
  return OkStatus();
}

}  // namespace volumed
