// The calls of the control API about CSI drivers.
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/control_service.h"
#include "agent/driver_commands.h"
#include "agent/driver_questions.h"
#include "agent/forget_driver.h"
#include "base/strings.h"
#include "csi/csi_names.h"
#include "csi/csi_places.h"
#include "volume/driver_domain.h"
#include "volume/storage_name.h"

namespace volumed {
namespace {

Error NoDrivers() {
  return Error::NotApplied(Code::kUnavailable, "this agent has no way to CSI drivers");
}

// Before the records are loaded nobody knows who has what.
void AddVolumeCounts(const ControlBackend& backend, v1::GetDriversResponse* response) {
  if (!backend.volumes_of_drivers || !backend.manager.pods().CheckLoaded().ok()) return;
  const std::map<std::string, int> counts = backend.volumes_of_drivers();
  for (v1::Driver& driver : *response->mutable_drivers()) {
    const auto count = counts.find(DriverDomain(driver.name()));
    driver.set_volumes(count == counts.end() ? 0 : count->second);
  }
}

Status HandleGetDrivers(ControlBackend& backend, const v1::GetDriversRequest& request,
                        v1::GetDriversResponse* response) {
  if (backend.csi == nullptr) return NoDrivers();
  const std::map<std::string, int> waiting =
      backend.waiting_for_drivers ? backend.waiting_for_drivers() : std::map<std::string, int>();
  RETURN_IF_ERROR(DescribeDrivers(*backend.csi, waiting, backend.scheduler.clock(), request,
                                  response, backend.csi_debts));
  AddVolumeCounts(backend, response);
  return OkStatus();
}

Status HandleGetDriverTrace(ControlBackend& backend, const v1::GetDriverTraceRequest& request,
                            v1::GetDriverTraceResponse* response) {
  if (backend.csi == nullptr) return NoDrivers();
  return DescribeTrace(*backend.csi, backend.scheduler.clock(), request, response);
}

using DriverCall = UnaryCall<v1::CallDriverRequest, v1::CallDriverResponse>;

std::optional<DriverCommands> CommandsOf(ControlBackend& backend) {
  if (backend.driver_operations == nullptr) return std::nullopt;
  return DriverCommands{
      .scheduler = backend.scheduler,
      .csi = *backend.csi,
      .operations = *backend.driver_operations,
      .who_needs =
          [&backend](const CsiMethod& method, const CsiVolumeId& volume) {
            // It is made up for once the driver is there, and before anything else.
            if (backend.csi_debts != nullptr) {
              const auto owed = backend.csi_debts->Of(volume);
              if (!owed.ok() || !owed->empty())
                return std::string("a call that the driver is owed");
            }
            return WhoNeedsVolume(backend.manager, backend.catalog, method, volume);
          },
      .settled =
          [&backend](const std::string& driver) {
            backend.manager.events().DriverIsBack(kCsiPluginName, DriverDomain(driver));
          },
      .why_unseen = [&backend] { return backend.manager.WhyUnseen(); }};
}

// Whether the driver has the volume at this path by what is on record. Threads: control.
bool IsPlaceOnRecord(const ControlBackend& backend, const CsiVolumeId& volume,
                     const std::string& path) {
  if (backend.paths == nullptr) return false;
  const PodQueries& pods = backend.manager.pods();
  const UniqueVolumeName device = CsiUniqueName(volume.driver, volume.handle);
  std::vector<PodVolumeKey> users = pods.UsersOf(device);
  const auto pod = backend.paths->ParsePod(path);
  // An inline volume has no device, and its handle is made of its pod and name.
  for (const VolumeProgress& one : pod ? pods.VolumesOf(*pod) : std::vector<VolumeProgress>()) {
    const PodVolumeKey key{*pod, one.spec};
    const bool is_it =
        CsiInlineHandle(*pod, one.spec) == volume.handle &&
        backend.operations.FaultDomainOf(OperationKey(key)) == DriverDomain(volume.driver);
    if (is_it) users.push_back(key);
  }
  if (users.empty() && pods.WhoHas(device).empty()) return false;
  return IsCsiPlace(*backend.paths, volume, users, path);
}

void HandleCallDriver(const DriverCall& call) {
  call.backend.scheduler.Post([call] {
    ControlBackend& backend = call.backend;
    if (backend.csi == nullptr) return call.Finish(NoDrivers());
    if (RoleToAskDriver(call.request) == PeerRole::kAdmin) {
      // Before that nobody knows who has what.
      const Status loaded = backend.manager.pods().CheckLoaded();
      if (!loaded.ok()) return call.Finish(loaded);
    }
    const std::optional<DriverCommands> commands = CommandsOf(backend);
    DriverQuestion question{backend.scheduler, *backend.csi, backend.driver_call_patience,
                            backend.open_driver_calls, commands ? &*commands : nullptr};
    if (call.role < PeerRole::kAdmin) {
      question.may_look = [&backend](const CsiVolumeId& volume, const std::string& path) {
        return IsPlaceOnRecord(backend, volume, path);
      };
    }
    AskDriver(question, call.request, [call](const Result<std::string>& answer) {
      if (!answer.ok() && answer.error().IsAbout(kAboutDriverPaths)) {
        return call.Refuse(answer.error().message());
      }
      if (!answer.ok()) return call.Finish(answer.error());
      call.response->set_response_json(*answer);
      call.Finish(OkStatus());
    });
  });
}

Status HandleRetryDriver(ControlBackend& backend, const v1::RetryDriverRequest& request,
                         v1::RetryDriverResponse* response) {
  if (backend.csi == nullptr) return NoDrivers();
  return RetryDriver(*backend.csi, backend.manager.events(), request, response);
}

using ForgetCall = UnaryCall<v1::ForgetDriverRequest, v1::ForgetDriverResponse>;

void TellGivenUp(const ForgetCall& call, const GivenUp& given_up) {
  const std::string text = TextOf(given_up);
  if (text.empty()) return;
  const std::string& before = call.response->warning();
  call.response->set_warning(before + (before.empty() ? "" : "; ") + text);
  call.backend.log.Warning("by command calls to a CSI driver are given up",
                           {{"driver", call.request.driver()}, {"told", call.response->warning()}});
}

void HandleForgetDriver(const ForgetCall& call) {
  call.backend.scheduler.Post([call] {
    ControlBackend& backend = call.backend;
    if (backend.csi == nullptr) return call.Finish(NoDrivers());
    // Before that nobody knows who has what.
    const Status loaded = backend.manager.pods().CheckLoaded();
    if (!loaded.ok()) return call.Finish(loaded);
    const std::string& driver = call.request.driver();
    const std::string warning = WarningOfForget(backend.manager, driver);
    const auto done = [call, warning](const Result<GivenUp>& given_up) {
      if (!given_up.ok()) return call.Finish(given_up.error());
      call.response->set_warning(warning);
      TellGivenUp(call, *given_up);
      // A DeleteVolume that is given up keeps its volume from nobody any more.
      call.backend.manager.events().MakersChanged();
      call.Finish(OkStatus());
    };
    CsiDrivers& drivers = backend.csi->drivers();
    CsiCommands& commands = backend.csi->commands();
    const bool has_calls = backend.csi_debts != nullptr &&
                           (backend.csi_debts->HasOf(driver) || commands.HasOf(driver));
    if (call.request.force() && has_calls) {
      return ForgetAndOweNothing({backend.scheduler, drivers, *backend.csi_debts, commands,
                                  backend.kernel, backend.look_limit()},
                                 backend.driver_traces(driver), done);
    }
    drivers.Forget(driver, [done](const Status& forgotten) {
      if (!forgotten.ok()) return done(forgotten.error());
      done(GivenUp());
    });
  });
}

}  // namespace

void AddDriverCalls(ControlService& service) {
  service.OnControl("GetDrivers", PeerRole::kRead, HandleGetDrivers);
  service.OnControl("GetDriverTrace", PeerRole::kRead, HandleGetDriverTrace);
  service.OnControl("RetryDriver", PeerRole::kOperate, HandleRetryDriver);
  service.Unary("ForgetDriver", PeerRole::kAdmin, HandleForgetDriver);
  service.Unary("CallDriver", RoleToAskDriver, HandleCallDriver);
}

}  // namespace volumed
