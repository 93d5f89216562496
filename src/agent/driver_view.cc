#include "agent/driver_view.h"

#include <chrono>
#include <vector>

#include "base/printable_text.h"
#include "csi/csi_capability_names.h"

namespace volumed {
namespace {

int64_t MicrosOf(Duration duration) {
  return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
}

int64_t UnixMillisOf(TimePoint moment, const Clock& clock) {
  const Duration left = moment - clock.Now();
  return clock.WallUnixMillis() +
         std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
}

template <typename Texts>
void AddAll(const std::vector<std::string>& names, Texts* out) {
  for (const std::string& name : names) out->Add(std::string(name));
}

void EncodeFacts(const CsiDriverFacts& facts, v1::Driver* out) {
  out->set_name(PrintableText(facts.name));
  out->set_node_id(PrintableText(facts.node_id));
  out->set_version(PrintableText(facts.version));
  out->set_vendor_version(PrintableText(facts.vendor_version));
  out->set_endpoint(PrintableText(facts.endpoint));
  out->set_controller_endpoint(PrintableText(facts.controller_endpoint));
  AddAll(PluginCapabilityNames(facts), out->mutable_plugin_capabilities());
  AddAll(NodeCapabilityNames(facts), out->mutable_node_capabilities());
  AddAll(ControllerCapabilityNames(facts), out->mutable_controller_capabilities());
  out->set_max_volumes(facts.max_volumes);
}

void EncodeController(const DriverView& driver, v1::Driver* out) {
  if (!driver.controller) {
    const bool is_at_own = !driver.facts.controller_capabilities.empty();
    return out->set_controller_state(is_at_own ? "own socket" : "none");
  }
  const CsiControllerLink& link = *driver.controller;
  out->set_controller_endpoint(PrintableText(link.place));
  const std::string connected = link.silent ? "silent" : "connected";
  out->set_controller_state(link.connected ? connected : "not connected");
  out->set_controller_since_unix_ms(link.since_unix_ms);
  out->set_controller_reason(PrintableText(link.last_error));
}

}  // namespace

void EncodeDriver(const DriverView& driver, int waiting, v1::Driver* out) {
  EncodeFacts(driver.facts, out);
  for (const auto& [key, value] : driver.shown_topology) (*out->mutable_topology())[key] = value;
  EncodeController(driver, out);
  out->set_state(std::string(CsiDriverStateName(driver.health.state)));
  out->set_since_unix_ms(driver.health.since_unix_ms);
  out->set_reason(PrintableText(driver.why_away));
  if (!driver.health.last_error.empty()) {
    out->set_last_error(PrintableText(driver.health.last_error));
    out->set_last_error_unix_ms(driver.health.last_error_unix_ms);
  }
  out->set_socket(PrintableText(driver.socket));
  out->set_last_ready_unix_ms(driver.last_ready_unix_ms);
  out->set_connected(driver.health.connected);
  out->set_calls_in_flight(driver.health.in_flight);
  out->set_calls_at_a_time(driver.lane.width);
  out->set_operations_waiting(waiting);
  out->set_sets_up(!driver.lane.closed);
  out->set_takes_away(!driver.lane.closed_to_teardown);
}

void EncodeUnusedController(const UnusedController& unused, v1::UnusedController* out) {
  out->set_driver(PrintableText(unused.driver));
  out->set_endpoint(PrintableText(unused.place));
}

void EncodeSocket(const RegisteredSocket& socket, const Clock& clock, v1::RegistrySocket* out) {
  out->set_path(PrintableText(socket.path));
  out->set_state(std::string(RegistrationStateName(socket.state)));
  out->set_driver(PrintableText(socket.driver));
  if (socket.owner) out->set_owner(*socket.owner);
  out->set_reason(PrintableText(socket.reason));
  if (socket.next_try) out->set_next_try_unix_ms(UnixMillisOf(*socket.next_try, clock));
}

void EncodeTracedCall(const CsiCallReport& report, v1::TracedCall* out) {
  if (report.method != nullptr) out->set_method(report.method->path);
  out->set_key(PrintableText(report.key));
  out->set_asked_unix_ms(report.asked_unix_ms);
  out->set_waited_us(MicrosOf(report.waited));
  out->set_took_us(MicrosOf(report.duration));
  out->set_sent(report.sent);
  out->set_under_way(report.under_way);
  out->set_not_true(PrintableText(report.not_true));
  if (!report.under_way) {
    out->set_code(report.error ? std::string(CodeName(report.error->code())) : "OK");
  }
  if (report.error) {
    out->set_outcome(report.error->maybe_applied() ? "MaybeApplied" : "NotApplied");
    out->set_message(PrintableText(report.error->message()));
  }
  out->set_request(PrintableText(report.request));
  out->set_answer(PrintableText(report.answer));
}

}  // namespace volumed
