#include "csi/csi_health.h"

#include <algorithm>
#include <string_view>

#include "base/printable_text.h"
#include "csi/csi_driver.h"
#include "csi/csi_node_requests.h"
#include "csi/rpc/csi_outcome.h"
#include "metrics/family_table.h"

namespace volumed {
namespace {

using NodeCan = ::csi::v1::NodeServiceCapability_RPC;

// What of a driver's words is kept: of a message, of a reason, and how many things.
constexpr size_t kMostMessage = 2048;
constexpr size_t kMostReason = 128;
constexpr size_t kMostIlls = 16;

std::string KeptWords(const std::string& text, size_t most, const CsiSecrets& secrets) {
  return PrintableText(BeginningOf(secrets.Replaced(text, most), most));
}

// A number that this program does not know is shown as that.
std::string HealthName(::csi::v1::VolumeHealthErrorType status) {
  const std::string& name = ::csi::v1::VolumeHealthErrorType_Name(status);
  return name.empty() ? std::to_string(static_cast<int>(status)) : name;
}

std::string HealthName(::csi::v1::StorageHealthErrorType status) {
  const std::string& name = ::csi::v1::StorageHealthErrorType_Name(status);
  return name.empty() ? std::to_string(static_cast<int>(status)) : name;
}

}  // namespace

bool TellsCondition(const CsiDriverFacts& driver) {
  return driver.HasNode(NodeCan::VOLUME_CONDITION);
}

bool TellsHealth(const CsiDriverFacts& driver, CsiLevel level) {
  return level == CsiLevel::k1_13 && driver.HasNode(NodeCan::GET_VOLUME_HEALTH);
}

std::optional<CsiCondition> ConditionOf(const ::csi::v1::NodeGetVolumeStatsResponse& answer,
                                        const CsiSecrets& secrets) {
  if (!answer.has_volume_condition()) return std::nullopt;
  return CsiCondition{answer.volume_condition().abnormal(),
                      KeptWords(answer.volume_condition().message(), kMostMessage, secrets)};
}

CsiCondition ConditionOf(const ::csi::v1::VolumeHealth& health, const CsiSecrets& secrets) {
  CsiCondition condition;
  size_t told = 0;
  for (const auto& entry : health.health_statuses()) {
    condition.abnormal = true;
    if (++told > kMostIlls) break;
    if (!condition.message.empty()) condition.message += "; ";
    condition.message += HealthName(entry.status());
    if (!entry.reason().empty()) {
      condition.message += ": " + KeptWords(entry.reason(), kMostReason, secrets);
    }
    if (!entry.message().empty()) {
      condition.message += ": " + KeptWords(entry.message(), kMostMessage, secrets);
    }
  }
  condition.message = std::string(BeginningOf(condition.message, kMostMessage));
  return condition;
}

Result<CsiCondition> AskVolumeHealth(const CsiContext& context, const std::string& driver,
                                     const std::string& handle, const std::string& publish_path,
                                     const CallOptions& call) {
  const auto answer = CallDriver<::csi::v1::NodeGetVolumeHealthResponse>(
      context, driver, NodeHealthRequest(handle, publish_path, ""), call);
  if (!answer.ok()) {
    const bool was_asked = !answer.error().IsAbout(kCsiNeverSent);
    const bool is_late = answer.error().code() == Code::kDeadlineExceeded;
    return is_late && was_asked ? answer.error().AsMaybeApplied() : answer.error();
  }
  if (!answer->has_volume_health()) {
    const Error lie = DriverLied(context, {driver, "NodeGetVolumeHealth", handle},
                                 "this is the volume's health", "said nothing of it");
    return Error::NotApplied(lie.code(), lie.message());
  }
  return ConditionOf(answer->volume_health(), SecretsOf(context, driver));
}

CsiStorageHealth::CsiStorageHealth(Parts parts, Duration period) : parts_(parts), period_(period) {
  Arm();
}

CsiStorageHealth::~CsiStorageHealth() {
  if (timer_ != 0) parts_.scheduler.Cancel(timer_);
}

void CsiStorageHealth::SetPeriod(Duration period) {
  if (period == period_) return;
  period_ = period;
  Arm();
}

void CsiStorageHealth::Arm() {
  if (timer_ != 0) parts_.scheduler.Cancel(timer_);
  timer_ = 0;
  if (period_ <= Duration::zero()) return;
  timer_ = parts_.scheduler.PostAfter(period_, [this] {
    timer_ = 0;
    Arm();
    AskAll();
  });
}

void CsiStorageHealth::AskAll() {
  const bool asks = parts_.settings.Get().level == CsiLevel::k1_13;
  std::set<std::string> able;
  if (asks) {
    for (const DriverView& driver : parts_.drivers.List()) {
      const CsiDriverState state = driver.health.state;
      const bool answers = state == CsiDriverState::kReady || state == CsiDriverState::kUnhealthy;
      if (answers && driver.facts.HasNode(NodeCan::GET_STORAGE_HEALTH))
        able.insert(driver.facts.name);
    }
  }
  std::erase_if(ills_, [&](const auto& known) { return !able.contains(known.first); });
  for (const std::string& driver : able) Ask(driver);
  Show();
}

void CsiStorageHealth::Ask(const std::string& driver) {
  const std::shared_ptr<CsiDriver> found = parts_.drivers.Find(driver);
  if (found == nullptr || !asked_.insert(driver).second) return;
  CsiCallOptions options;
  options.deadline = Deadline::After(parts_.scheduler.clock(), parts_.settings.Get().deadline);
  found->Start<::csi::v1::NodeGetStorageHealthResponse>(
      ::csi::v1::NodeGetStorageHealthRequest(), options,
      [this, driver,
       owner = alive_.watch()](const Result<::csi::v1::NodeGetStorageHealthResponse>& answer) {
        if (owner.alive()) Take(driver, answer);
      });
}

void CsiStorageHealth::Take(const std::string& driver,
                            const Result<::csi::v1::NodeGetStorageHealthResponse>& answer) {
  asked_.erase(driver);
  if (!answer.ok()) {
    ills_.erase(driver);
    parts_.log.LogLimited("csi storage health " + driver, LogLevel::kInfo,
                          "a CSI driver does not tell the health of its storage",
                          {{"driver", driver}, {"error", answer.error()}});
    return Show();
  }
  const std::shared_ptr<CsiDriver> found = parts_.drivers.Find(driver);
  const CsiSecrets secrets = found == nullptr ? CsiSecrets() : CsiSecrets(found->secrets());
  Ills ills;
  for (const auto& entry : answer->backend_health()) {
    if (ills.size() == kMostIlls) break;
    ills.emplace(HealthName(entry.status()), KeptWords(entry.reason(), kMostReason, secrets));
  }
  Ills& known = ills_[driver];
  for (const auto& [status, reason] : ills) {
    if (known.contains({status, reason})) continue;
    parts_.log.Warning("a CSI driver says that its storage is not well",
                       {{"driver", driver}, {"status", status}, {"reason", reason}});
  }
  known = std::move(ills);
  Show();
}

void CsiStorageHealth::Show() {
  std::map<ExportedFamilies::LabelValues, double> series;
  for (const auto& [driver, ills] : ills_) {
    for (const auto& [status, reason] : ills) series[{driver, status, reason}] = 1;
  }
  parts_.metrics.Replace(Family::kCsiNodeStorageHealth, series);
}

}  // namespace volumed
