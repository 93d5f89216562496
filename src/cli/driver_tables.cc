#include "cli/driver_tables.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strings.h"

namespace volumed {
namespace {

using TableRows = std::vector<std::vector<std::string>>;

constexpr const char* kIsRegistered = "registered";

std::string OwnerOf(const v1::RegistrySocket& socket) {
  return socket.has_owner() ? std::to_string(socket.owner()) : "-";
}

std::string NextTry(const v1::RegistrySocket& socket, int64_t now) {
  if (socket.next_try_unix_ms() <= now) return "-";
  return "in " + FormatAge(now, socket.next_try_unix_ms());
}

void PrintSockets(const v1::GetDriversResponse& drivers, int64_t now, std::ostream& out) {
  TableRows rows = {{"SOCKET", "STATE", "OWNER", "DRIVER", "NEXT TRY", "REASON"}};
  for (const v1::RegistrySocket& socket : drivers.sockets()) {
    if (socket.state() == kIsRegistered) continue;
    rows.push_back({socket.path(), socket.state(), OwnerOf(socket), OrDash(socket.driver()),
                    NextTry(socket, now), OrDash(socket.reason())});
  }
  if (rows.size() == 1) return;
  out << "\nnot registered:\n";
  PrintTable(rows, out);
}

void PrintUnusedControllers(const v1::GetDriversResponse& drivers, std::ostream& out) {
  if (drivers.unused_controllers().empty()) return;
  TableRows rows = {{"DRIVER", "ENDPOINT"}};
  for (const v1::UnusedController& unused : drivers.unused_controllers()) {
    rows.push_back({unused.driver(), unused.endpoint()});
  }
  out << "\nin csi-controller-endpoints, and not known here:\n";
  PrintTable(rows, out);
}

void AddFact(TableRows& rows, const std::string& name, const std::string& value) {
  if (!value.empty()) rows.push_back({name + ":", value});
}

std::string Ago(int64_t moment, int64_t now) {
  return moment == 0 ? "" : FormatAge(moment, now) + " ago";
}

std::string Topology(const v1::Driver& driver) {
  std::vector<std::string> labels;
  for (const auto& [key, value] : driver.topology()) labels.push_back(key + "=" + value);
  std::sort(labels.begin(), labels.end());
  return Join(labels, ",");
}

std::string OperationsOf(const v1::Driver& driver) {
  const std::string may = driver.sets_up()      ? "may begin"
                          : driver.takes_away() ? "wait, but for those that take away"
                                                : "wait";
  return may + "; " + std::to_string(driver.operations_waiting()) + " waiting, " +
         std::to_string(driver.calls_in_flight()) + " calls under way of " +
         std::to_string(driver.calls_at_a_time()) + " at a time";
}

// An older agent does not say how many there are.
std::string CountOfVolumes(const v1::Driver& driver) {
  return driver.has_volumes() ? std::to_string(driver.volumes()) : "-";
}

std::string VolumesAndLimit(const v1::Driver& driver) {
  const std::string here = driver.has_volumes() ? CountOfVolumes(driver) + " here, " : "";
  const int64_t most = driver.max_volumes();
  return here + (most > 0 ? std::to_string(most) + " at most" : std::string("no limit"));
}

// "2: a, b"; "" if there is none.
template <typename Texts>
std::string CountAndFirst(int count, const Texts& first) {
  if (count == 0) return "";
  const std::string rest = count > first.size() ? ", ..." : "";
  return std::to_string(count) + ": " + Join(first, ", ") + rest;
}

std::string LastErrorOf(const v1::Driver& driver, int64_t now) {
  if (!driver.reason().empty() || driver.last_error().empty()) return "";
  if (driver.last_error_unix_ms() == 0) return driver.last_error();
  return driver.last_error() + " (" + Ago(driver.last_error_unix_ms(), now) + ")";
}

std::string ControllerOf(const v1::Driver& driver, int64_t now) {
  const std::string& state = driver.controller_state();
  const std::string& place = driver.controller_endpoint();
  if (state == "none") return "not configured: csi-controller-endpoints names none for it";
  if (state == "own socket") return "at the driver's own socket";
  if (state == "connected") return "connected at " + place;
  if (state != "not connected" && state != "silent") return place;
  return state + " since " + FormatAge(driver.controller_since_unix_ms(), now) + " at " + place +
         ": " + driver.controller_reason();
}

// A driver may be ready, and its controller be away or silent.
std::string ReasonToShow(const v1::Driver& driver) {
  const bool is_silent = driver.controller_state() == "silent";
  const bool is_all =
      !driver.reason().empty() || (!is_silent && driver.controller_state() != "not connected");
  if (is_all) return driver.reason();
  const std::string at = " at " + driver.controller_endpoint();
  return (is_silent ? "its controller" + at + " does not answer: "
                    : "no connection to its controller" + at + ": ") +
         driver.controller_reason();
}

// Without what stands in the driver's row: "CSI driver x is gone since 2026-05-01T09:30:00Z: ".
std::string BesideItsRow(const v1::Driver& driver, const std::string& reason) {
  constexpr std::string_view kSince = " since ";
  const std::string begin = "CSI driver " + driver.name() + " ";
  if (!reason.starts_with(begin)) return reason;
  const size_t since = reason.find(kSince, begin.size());
  const size_t time = since + kSince.size();
  const bool has_time = since != std::string::npos && time < reason.size() &&
                        std::isdigit(static_cast<unsigned char>(reason[time])) != 0;
  if (!has_time) return reason.substr(begin.size());
  const size_t why = reason.find(": ", time);
  return why == std::string::npos ? "" : reason.substr(why + 2);
}

void PrintDriver(const v1::Driver& driver, int64_t now, std::ostream& out) {
  TableRows rows;
  AddFact(rows, "Name", driver.name());
  AddFact(rows, "State", driver.state() + " since " + FormatAge(driver.since_unix_ms(), now));
  AddFact(rows, "Reason", driver.reason());
  AddFact(rows, "Last error", LastErrorOf(driver, now));
  AddFact(rows, "Connected", driver.connected() ? "yes" : "no");
  AddFact(rows, "Introduced", Ago(driver.last_ready_unix_ms(), now));
  AddFact(rows, "Operations", OperationsOf(driver));
  AddFact(rows, "Open calls", CountAndFirst(driver.open_call_count(), driver.open_calls()));
  AddFact(rows, "Owed calls", CountAndFirst(driver.owed_call_count(), driver.owed_calls()));
  AddFact(rows, "Node ID", driver.node_id());
  AddFact(rows, "Volumes", VolumesAndLimit(driver));
  AddFact(rows, "Topology", Topology(driver));
  AddFact(rows, "Version", driver.version());
  AddFact(rows, "Vendor version", driver.vendor_version());
  AddFact(rows, "Registered by", driver.socket());
  AddFact(rows, "Endpoint", driver.endpoint());
  AddFact(rows, "Controller", ControllerOf(driver, now));
  AddFact(rows, "Plugin can", Join(driver.plugin_capabilities(), ", "));
  AddFact(rows, "Node can", Join(driver.node_capabilities(), ", "));
  AddFact(rows, "Controller can", Join(driver.controller_capabilities(), ", "));
  PrintTable(rows, out);
}

std::string Took(int64_t micros) {
  if (micros < 1000) return std::to_string(micros) + "us";
  return std::to_string(micros / 1000) + "ms";
}

// "NodeStageVolume" of the path.
std::string RpcOf(const v1::TracedCall& call) {
  return call.method().substr(call.method().rfind('/') + 1);
}

std::string EndOf(const v1::TracedCall& call, int64_t now) {
  if (call.under_way()) {
    return "running since " + FormatAge(call.asked_unix_ms() + call.waited_us() / 1000, now);
  }
  std::string end = call.code();
  if (!call.message().empty()) {
    const std::string unsent = call.sent() ? "" : ", not sent";
    end += " (" + call.outcome() + unsent + "): " + call.message();
  }
  return call.not_true().empty() ? end : end + ", not true: " + call.not_true();
}

}  // namespace

void PrintDrivers(const v1::GetDriversResponse& drivers, OutputFormat format, int64_t now,
                  std::ostream& out) {
  if (IsForPrograms(format)) return PrintMessage(drivers, format, out);
  const bool wide = format == OutputFormat::kWide;
  TableRows rows = {{"NAME", "STATE", "SINCE", "VERSION", "VOLUMES", "CALLS", "WAITING"}};
  if (wide) rows[0].insert(rows[0].end(), {"NODE ID", "ENDPOINT"});
  rows[0].emplace_back("REASON");
  for (const v1::Driver& driver : drivers.drivers()) {
    rows.push_back(
        {driver.name(), driver.state(), FormatAge(driver.since_unix_ms(), now),
         OrDash(driver.vendor_version()), CountOfVolumes(driver),
         std::to_string(driver.calls_in_flight()) + "/" + std::to_string(driver.calls_at_a_time()),
         std::to_string(driver.operations_waiting())});
    if (wide) rows.back().insert(rows.back().end(), {driver.node_id(), driver.endpoint()});
    rows.back().push_back(OrDash(BesideItsRow(driver, ReasonToShow(driver))));
  }
  if (rows.size() == 1) {
    out << "no CSI driver has registered\n";
  } else {
    PrintTable(rows, out);
  }
  PrintSockets(drivers, now, out);
  PrintUnusedControllers(drivers, out);
}

void PrintDriverDescription(const v1::GetDriversResponse& drivers, int64_t now, std::ostream& out) {
  if (drivers.drivers().empty()) out << "no driver of this name is known here\n";
  for (const v1::Driver& driver : drivers.drivers()) PrintDriver(driver, now, out);
  PrintSockets(drivers, now, out);
  PrintUnusedControllers(drivers, out);
}

void PrintTrace(const v1::GetDriverTraceResponse& trace, OutputFormat format, int64_t now,
                std::ostream& out) {
  if (IsForPrograms(format)) return PrintMessage(trace, format, out);
  if (trace.calls().empty()) {
    out << "no call is kept\n";
    return;
  }
  TableRows rows = {{"AGE", "WAITED", "TOOK", "RPC", "ABOUT", "END"}};
  if (format == OutputFormat::kWide) rows[0].insert(rows[0].end(), {"REQUEST", "ANSWER"});
  for (const v1::TracedCall& call : trace.calls()) {
    rows.push_back({FormatAge(call.asked_unix_ms(), now), Took(call.waited_us()),
                    call.under_way() ? "-" : Took(call.took_us()), RpcOf(call), OrDash(call.key()),
                    EndOf(call, now)});
    if (format != OutputFormat::kWide) continue;
    rows.back().insert(rows.back().end(), {OrDash(call.request()), OrDash(call.answer())});
  }
  PrintTable(rows, out);
}

}  // namespace volumed
