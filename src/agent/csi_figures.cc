#include "agent/csi_figures.h"

#include <algorithm>
#include <cstddef>

#include "metrics/family_table.h"
#include "volume/driver_domain.h"

namespace volumed {
namespace {

constexpr size_t kMostLabels = 256;
constexpr size_t kMostSockets = 256;
constexpr char kOther[] = "other";
constexpr char kNoName[] = "unknown";  // a plugin that was refused before it said its name

std::string StateLabel(CsiDriverState state) {
  std::string label(CsiDriverStateName(state));
  std::replace(label.begin(), label.end(), ' ', '_');
  return label;
}

}  // namespace

std::string GoCodeName(std::optional<Code> code) {
  if (!code) return "OK";
  return *code == Code::kCancelled ? "Canceled" : std::string(CodeName(*code));
}

std::string CsiFigures::LabelOf(const std::string& driver) {
  MutexLock lock(mu_);
  if (labels_.contains(driver)) return driver;
  if (labels_.size() >= kMostLabels) return kOther;
  labels_.insert(driver);
  return driver;
}

void CsiFigures::CallEnded(const CsiCallReport& report) {
  if (report.method == nullptr || !report.method->service.starts_with("csi.v1.")) return;
  std::optional<Code> code;
  if (report.error) code = report.error->code();
  families_.Observe(Family::kCsiOperations,
                    {LabelOf(report.driver), report.method->path, GoCodeName(code),
                     report.migrated ? "true" : "false"},
                    report.duration);
}

void CsiFigures::RegistrationEnded(const std::string& driver, bool registered) {
  families_.Add(Family::kCsiRegistrations,
                {driver.empty() ? kNoName : LabelOf(driver), registered ? "registered" : "refused"},
                1);
}

void CsiFigures::Lied(const std::string& driver, const std::string& method) {
  families_.Add(Family::kCsiLies, {LabelOf(driver), method}, 1);
}

void CsiFigures::Collect(const std::vector<DriverView>& drivers,
                         const std::vector<RegisteredSocket>& sockets,
                         const std::map<std::string, int>& waiting) {
  using Series = std::map<ExportedFamilies::LabelValues, double>;
  Series states, in_flight, waits, plugins;
  for (const DriverView& driver : drivers) {
    const std::string& name = driver.facts.name;
    states[{name, StateLabel(driver.health.state)}] = 1;
    in_flight[{name}] = driver.health.in_flight;
    waits[{name}] = 0;
  }
  for (const auto& [lane, count] : waiting) {
    const std::string name = lane.substr(kDriverDomainPrefix.size());
    // Volumes may name drivers that never were here.
    const bool is_known = waits.contains({name});
    waits[{is_known ? name : kOther}] += count;
  }
  for (size_t i = 0; i < std::min(sockets.size(), kMostSockets); ++i) {
    plugins[{sockets[i].path, "desired_state_of_world"}] = 1;
    if (sockets[i].state != RegistrationState::kRegistered) continue;
    plugins[{sockets[i].path, "actual_state_of_world"}] = 1;
  }
  families_.Replace(Family::kCsiDriverState, states);
  families_.Replace(Family::kCsiCallsInFlight, in_flight);
  families_.Replace(Family::kCsiOperationsWaiting, waits);
  families_.Replace(Family::kPlugins, plugins);
}

void CsiFigures::CollectDebts(const std::map<std::string, int>& by_driver) {
  std::map<ExportedFamilies::LabelValues, double> debts;
  for (const auto& [driver, count] : by_driver) debts[{LabelOf(driver)}] += count;
  families_.Replace(Family::kCsiDebts, debts);
}

}  // namespace volumed
