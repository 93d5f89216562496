#include "os/process_scope.h"

#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

namespace volumed {
namespace {

// systemd's own: it needs no message bus. Source: systemd 252 src/shared/bus-util.c
// (bus_connect_system_systemd).
constexpr char kSocket[] = "/run/systemd/private";
constexpr char kAddress[] = "unix:path=/run/systemd/private";
constexpr auto kPatience = std::chrono::seconds(5);
constexpr timespec kPause = {0, 2'000'000};

struct BusDeleter {
  void operator()(sd_bus* bus) const { sd_bus_flush_close_unref(bus); }
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

Result<Bus> Connect() {
  sd_bus* made = nullptr;
  int rc = sd_bus_new(&made);
  Bus bus(made);
  if (rc >= 0) rc = sd_bus_set_address(bus.get(), kAddress);
  if (rc >= 0) rc = sd_bus_start(bus.get());
  if (rc < 0) return Failed(std::string("connect to ") + kSocket, rc);
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

// The kernel's word. Source: cgroups(7).
bool IsIn(pid_t pid, const std::string& name) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    if (line.ends_with("/" + name)) return true;
  }
  return false;
}

}  // namespace

std::optional<std::string> WhyNoScopes() {
  if (sd_booted() <= 0) return "systemd does not run this machine";
  if (::access(kSocket, W_OK) != 0) {
    return std::string(kSocket) + ": " +
           Error::FromErrno(errno, "", Outcome::kNotApplied).message();
  }
  return std::nullopt;
}

std::string ScopeName(std::string_view kind, std::string_view what, pid_t pid) {
  std::array<char, 17> hash{};
  std::snprintf(hash.data(), hash.size(), "%016zx", std::hash<std::string_view>()(what));
  return "volumed-" + std::string(kind) + "-" + hash.data() + "-" + std::to_string(pid) + ".scope";
}

Status MoveToScope(pid_t pid, const std::string& name, const std::string& description) {
  ASSIGN_OR_RETURN(const Bus bus, Connect());
  sd_bus_message* made = nullptr;
  int rc = sd_bus_message_new_method_call(bus.get(), &made, "org.freedesktop.systemd1",
                                          "/org/freedesktop/systemd1",
                                          "org.freedesktop.systemd1.Manager", "StartTransientUnit");
  const Message message(made);
  if (rc >= 0) rc = FillRequest(message.get(), name, description, static_cast<uint32_t>(pid));
  if (rc < 0) return Failed("make the request for " + name, rc);
  sd_bus_error error = {};
  const auto micros = std::chrono::microseconds(kPatience).count();
  rc = sd_bus_call(bus.get(), message.get(), static_cast<uint64_t>(micros), &error, nullptr);
  const std::string why = error.message == nullptr ? "" : std::string(": ") + error.message;
  sd_bus_error_free(&error);
  if (rc < 0) return Failed("start " + name + why, rc);
  // The answer says that a job is queued; the process moves when it runs.
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!IsIn(pid, name)) {
    if (std::chrono::steady_clock::now() > until) {
      return Error::MaybeApplied(Code::kUnavailable, "the process is not in " + name + " in time");
    }
    ::nanosleep(&kPause, nullptr);
  }
  return OkStatus();
}

}  // namespace volumed
