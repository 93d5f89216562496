// The calls of the control API about one pod, and about what happens to pods.
#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/container_mounts.h"
#include "agent/control_service.h"
#include "agent/events_stream.h"
#include "agent/kept_directories.h"
#include "agent/pod_list.h"
#include "agent/pod_lookup.h"
#include "agent/pod_waiter.h"

namespace volumed {
namespace {

// Adds pods to the list until it is complete, and then answers. Threads: the control thread.
void ContinueList(const UnaryCall<v1::GetPodsRequest, v1::GetPodsResponse>& call,
                  const std::shared_ptr<PodList>& list) {
  if (list->Continue()) return call.Finish(OkStatus());
  call.backend.scheduler.Post([call, list] { ContinueList(call, list); });
}

void HandleGetPods(const UnaryCall<v1::GetPodsRequest, v1::GetPodsResponse>& call) {
  call.backend.scheduler.Post([call] {
    const ControlBackend& backend = call.backend;
    const PodList::Parts parts{backend.manager, backend.events, backend.scheduler.clock(),
                               backend.node};
    const Result<PodName> last_before = PodList::LastBefore(parts, call.request);
    if (!last_before.ok()) return call.Finish(last_before.error());
    ContinueList(call, std::make_shared<PodList>(parts, call.request, *last_before, call.response));
  });
}

using HoldCall = UnaryCall<v1::HoldRequest, v1::HoldResponse>;
using ChangeOfHold = void (PodCommands::*)(const HoldRequest&, std::function<void(Status)>);

template <ChangeOfHold change>
void HandleHold(const HoldCall& call) {
  call.backend.scheduler.Post([call] {
    VolumeManager& manager = call.backend.manager;
    const v1::HoldRequest& request = call.request;
    const Result<PodUid> pod = FindPodUid(manager, request.pod(), call.backend.node);
    if (!pod.ok()) return call.Finish(pod.error());
    (manager.pod_commands().*change)({*pod, request.pid(), request.cgroup()},
                                     [call](const Status& status) { call.Finish(status); });
  });
}

// What a retry does to a volume that was in this state before.
std::string RetryAnswer(const VolumeView& volume) {
  if (!volume.running_step.empty()) return "running already";
  return volume.problem ? "tried now" : "nothing to do";
}

// Tries again what the request names. Returns the directories of `local` volumes that the answer
// still has to look at.
Result<std::vector<KeptDirectory>> RetryPod(ControlBackend& backend,
                                            const v1::RetryRequest& request,
                                            v1::RetryResponse* response) {
  ASSIGN_OR_RETURN(const PodUid pod, FindPodUid(backend.manager, request.pod(), backend.node));
  const std::optional<PodView> before = backend.manager.pods().Find(pod);
  const VolumeView* one = before ? FindVolumeByName(*before, request.volume()) : nullptr;
  const SpecName named = one == nullptr ? SpecName(request.volume()) : one->spec;
  RETURN_IF_ERROR(request.volume().empty()
                      ? backend.manager.pod_commands().Retry(pod)
                      : backend.manager.pod_commands().RetryVolume({pod, named}));
  if (!before) return std::vector<KeptDirectory>();
  for (const VolumeView& volume : before->volumes) {
    if (!request.volume().empty() && volume.spec != named) continue;
    v1::RetriedVolume* retried = response->add_volumes();
    retried->set_name(volume.spec.str());
    retried->set_what(RetryAnswer(volume));
  }
  return KeptDirectoriesOf(backend.catalog, *before);
}

void HandleRetry(const UnaryCall<v1::RetryRequest, v1::RetryResponse>& call) {
  call.backend.scheduler.Post([call] {
    const Result<std::vector<KeptDirectory>> kept =
        RetryPod(call.backend, call.request, call.response);
    if (!kept.ok()) return call.Finish(kept.error());
    if (kept->empty()) return call.Finish(OkStatus());
    call.backend.scheduler.RunBlocking([call, asked = *kept] {
      TellOfOtherDirectories(call.backend.kernel, call.backend.look_limit(), asked, call.response);
      call.Finish(OkStatus());
    });
  });
}

using RetryAllCall = UnaryCall<v1::RetryAllRequest, v1::RetryAllResponse>;

// Tries some of the pods again that are not ready, from this place in the list on, and posts itself
// for the others, so that nobody waits long for the control thread. Threads: the control thread.
void RetrySome(const RetryAllCall& call, const std::shared_ptr<const std::vector<PodName>>& pods,
               size_t from) {
  constexpr size_t kMostInATask = 32;
  VolumeManager& manager = call.backend.manager;
  const size_t end = std::min(pods->size(), from + kMostInATask);
  for (size_t i = from; i < end; ++i) {
    const PodName& pod = (*pods)[i];
    const std::string& name_space = call.request.namespace_();
    if (!name_space.empty() && pod.ns != name_space) continue;
    const std::optional<PodView> view = manager.pods().Find(pod.uid);
    // A pod that has gone since the names were taken has nothing to be tried again.
    if (!view || view->phase == "Ready" || !manager.pod_commands().Retry(pod.uid).ok()) continue;
    v1::ObjectRef* const ref = call.response->add_pods();
    ref->set_kind("Pod");
    ref->set_namespace_(pod.ns);
    ref->set_name(pod.name);
    ref->set_uid(pod.uid.str());
  }
  if (end == pods->size()) return call.Finish(OkStatus());
  call.backend.scheduler.Post([call, pods, end] { RetrySome(call, pods, end); });
}

void HandleRetryAll(const RetryAllCall& call) {
  call.backend.scheduler.Post([call] {
    // An answer without pods would say that there is none to be tried again.
    if (const Status loaded = call.backend.manager.pods().CheckLoaded(); !loaded.ok()) {
      return call.Finish(loaded);
    }
    constexpr size_t kAll = std::numeric_limits<size_t>::max();
    RetrySome(call,
              std::make_shared<const std::vector<PodName>>(
                  call.backend.manager.pods().Names(PodName(), kAll)),
              0);
  });
}

Status HandleGetContainerMounts(ControlBackend& backend,
                                const v1::GetContainerMountsRequest& request,
                                v1::GetContainerMountsResponse* response) {
  ASSIGN_OR_RETURN(const PodUid uid, FindPodUid(backend.manager, request.pod(), backend.node));
  const std::shared_ptr<const Pod> pod = backend.catalog.FindPod(uid);
  const std::optional<PodView> view = backend.manager.pods().Find(uid);
  if (!pod || !view) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "pod " + DisplayName(request.pod()) + " is leaving");
  }
  ASSIGN_OR_RETURN(
      const std::vector<ContainerMount> mounts,
      GetContainerMounts(*pod, *view, request.container(), backend.features.mount_setattr));
  for (const ContainerMount& mount : mounts) {
    v1::ContainerMount* encoded = response->add_mounts();
    encoded->set_destination(mount.destination);
    encoded->set_source(mount.source);
    for (const std::string& option : mount.options) encoded->add_options(option);
  }
  ASSIGN_OR_RETURN(const std::vector<ContainerDevice> devices,
                   GetContainerDevices(*pod, *view, request.container()));
  for (const ContainerDevice& device : devices) {
    v1::ContainerDevice* encoded = response->add_devices();
    encoded->set_path(device.path);
    encoded->set_host_path(device.host_path);
    encoded->set_permissions(device.permissions);
  }
  return OkStatus();
}

}  // namespace

void AddPodCalls(ControlService& service) {
  service.Unary("GetPods", PeerRole::kRead, HandleGetPods);
  service.Unary("Hold", PeerRole::kOperate, HandleHold<&PodCommands::Hold>);
  service.Unary("ReleaseHold", PeerRole::kOperate, HandleHold<&PodCommands::ReleaseHold>);
  service.Unary("Retry", PeerRole::kOperate, HandleRetry);
  service.Unary("RetryAll", PeerRole::kOperate, HandleRetryAll);
  service.OnControl("GetContainerMounts", PeerRole::kRead, HandleGetContainerMounts);
  service.Streaming<v1::WaitRequest, PodWaiter>("Wait", PeerRole::kRead);
  service.Streaming<v1::WatchEventsRequest, EventsStream>("WatchEvents", PeerRole::kRead);
}

}  // namespace volumed
