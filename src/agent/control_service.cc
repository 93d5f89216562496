#include "agent/control_service.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "agent/apply_check.h"
#include "agent/command_admission.h"
#include "agent/container_mounts.h"
#include "agent/describer.h"
#include "agent/events_stream.h"
#include "agent/kept_directories.h"
#include "agent/operations_stream.h"
#include "agent/pod_lookup.h"
#include "agent/pod_waiter.h"
#include "agent/storage_list.h"
#include "agent/view_codec.h"
#include "kube/decode.h"
#include "kube/pod_facts.h"
#include "kube/prepare_for_create.h"

namespace volumed {
namespace {

std::string_view ResultName(AppliedObject::What what) {
  switch (what) {
    case AppliedObject::What::kCreated:
      return "created";
    case AppliedObject::What::kChanged:
      return "changed";
    case AppliedObject::What::kUnchanged:
      return "unchanged";
    case AppliedObject::What::kReplaced:
      return "replaced";
  }
  return "unknown";
}

// What a retry does to a volume that was in this state before.
std::string RetryAnswer(const VolumeView& volume) {
  if (!volume.running_step.empty()) return "running already";
  return volume.problem ? "tried now" : "nothing to do";
}

v1::ObjectRef MakeRef(const Object& object) {
  v1::ObjectRef ref = MakeObjectRef(KeyOf(object));
  ref.set_uid(MetaOf(object).uid);
  return ref;
}

}  // namespace

grpc::Status ToGrpcStatus(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const Error& error = status.error();
  const std::string note = error.maybe_applied() ? " (maybe applied)" : "";
  // gRPC itself says UNAVAILABLE if nobody answers; the detail shows that the agent did.
  v1::ErrorDetail detail;
  detail.set_outcome(error.maybe_applied() ? "MaybeApplied" : "NotApplied");
  return {static_cast<grpc::StatusCode>(error.code()), error.message() + note,
          detail.SerializeAsString()};
}

bool ControlService::Refuse(grpc::ServerUnaryReactor* reactor, PeerRole needed) const {
  if (role_ >= needed) return false;
  reactor->Finish({grpc::StatusCode::PERMISSION_DENIED,
                   "needs role " + std::string(PeerRoleName(needed)) + "; this peer has role " +
                       std::string(PeerRoleName(role_))});
  return true;
}

grpc::ServerUnaryReactor* ControlService::OnControl(grpc::CallbackServerContext* context,
                                                    PeerRole needed, std::function<Status()> work) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (Refuse(reactor, needed)) return reactor;
  backend_.scheduler.Post(
      [reactor, work = std::move(work)] { reactor->Finish(ToGrpcStatus(work())); });
  return reactor;
}

grpc::ServerUnaryReactor* ControlService::Apply(grpc::CallbackServerContext* context,
                                                const v1::ApplyRequest* request,
                                                v1::ApplyResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (Refuse(reactor, PeerRole::kOperate)) return reactor;
  ManifestDecode decoded = DecodeManifest(request->file(), request->manifest());
  if (decoded.documents == 0 && decoded.problems.empty()) {
    decoded.problems.push_back({request->file(), -1, "", "", "holds no document"});
  }
  for (const DecodeProblem& problem : decoded.problems) {
    EncodeProblem(problem, response->add_problems());
  }
  if (!decoded.problems.empty()) {
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  for (const DecodeProblem& warning : decoded.warnings) {
    EncodeProblem(warning, response->add_warnings());
  }
  auto words = std::make_shared<ApplyWords>();
  words->replace = request->replace();
  for (DecodedObject& object : decoded.objects) {
    const Status placed = request->namespace_().empty()
                              ? OkStatus()
                              : PutIntoNamespace(request->namespace_(), object);
    if (!placed.ok()) {
      reactor->Finish(ToGrpcStatus(placed));
      return reactor;
    }
    PrepareForCreate(object.object);
    words->objects.push_back(std::move(object.object));
  }
  backend_.scheduler.Post([this, reactor, response, words] {
    const Status free = CheckNobodyElseHas(backend_.catalog, backend_.node, words->objects);
    if (!free.ok()) {
      reactor->Finish(ToGrpcStatus(free));
      return;
    }
    Result<ApplyCommand> command =
        AdmitApply(backend_.catalog, backend_.manager, backend_.node, std::move(*words));
    if (!command.ok()) {
      reactor->Finish(ToGrpcStatus(command.error()));
      return;
    }
    backend_.manager.object_commands().Number(
        [this, reactor, response, command = std::make_shared<ApplyCommand>(*std::move(command))](
            const Result<uint64_t>& number) {
          if (!number.ok()) {
            reactor->Finish(ToGrpcStatus(number.error()));
            return;
          }
          command->number = *number;
          backend_.scheduler.RunBlocking(
              [this, reactor, response, command] { Store(reactor, response, command.get()); });
        });
  });
  return reactor;
}

void ControlService::Store(grpc::ServerUnaryReactor* reactor, v1::ApplyResponse* response,
                           ApplyCommand* command) {
  const Result<std::vector<AppliedObject>> applied = backend_.directory.Apply(std::move(*command));
  if (!applied.ok()) {
    reactor->Finish(ToGrpcStatus(applied.error()));
    return;
  }
  for (const AppliedObject& one : *applied) {
    v1::AppliedObject* out = response->add_applied();
    *out->mutable_object() = MakeRef(*one.object);
    out->set_result(std::string(ResultName(one.what)));
    const Pod* before = one.before == nullptr ? nullptr : std::get_if<Pod>(one.before.get());
    if (before == nullptr) continue;
    out->set_replaced_uid(before->metadata.uid);
    for (const std::string& volume : VolumesThatEndWithPod(*before)) out->add_disk_data(volume);
  }
  reactor->Finish(grpc::Status::OK);
}

grpc::ServerUnaryReactor* ControlService::Delete(grpc::CallbackServerContext* context,
                                                 const v1::DeleteRequest* request,
                                                 v1::DeleteResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (Refuse(reactor, request->force() ? PeerRole::kAdmin : PeerRole::kOperate)) return reactor;
  backend_.scheduler.Post([this, reactor, request, response] {
    deletes_.Delete({{*request, response,
                      [reactor](const Status& status) { reactor->Finish(ToGrpcStatus(status)); }}});
  });
  return reactor;
}

grpc::ServerUnaryReactor* ControlService::DeleteObjects(grpc::CallbackServerContext* context,
                                                        const v1::DeleteObjectsRequest* request,
                                                        v1::DeleteObjectsResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const auto& objects = request->objects();
  const bool force = std::any_of(objects.begin(), objects.end(),
                                 [](const v1::DeleteRequest& one) { return one.force(); });
  if (Refuse(reactor, force ? PeerRole::kAdmin : PeerRole::kOperate)) return reactor;
  if (objects.empty()) {
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  // The answers come on several threads; the last one finishes the call.
  const auto open = std::make_shared<std::atomic<int>>(request->objects_size());
  std::vector<DeleteCommands::Command> commands;
  for (const v1::DeleteRequest& object : objects) {
    v1::DeleteResult* const result = response->add_results();
    commands.push_back(
        {object, result->mutable_response(), [reactor, result, open](const Status& status) {
           const grpc::Status answer = ToGrpcStatus(status);
           result->set_code(answer.error_code());
           result->set_message(answer.error_message());
           result->set_details(answer.error_details());
           if (--*open == 0) reactor->Finish(grpc::Status::OK);
         }});
  }
  backend_.scheduler.Post([this, commands = std::move(commands)] { deletes_.Delete(commands); });
  return reactor;
}

grpc::ServerUnaryReactor* ControlService::GetPods(grpc::CallbackServerContext* context,
                                                  const v1::GetPodsRequest* request,
                                                  v1::GetPodsResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (Refuse(reactor, PeerRole::kRead)) return reactor;
  backend_.scheduler.Post([this, reactor, request, response] {
    const auto list =
        std::make_shared<PodList>(PodList::Parts{backend_.manager, backend_.events,
                                                 backend_.scheduler.clock(), backend_.node},
                                  *request, response);
    ContinueList(reactor, list);
  });
  return reactor;
}

void ControlService::ContinueList(grpc::ServerUnaryReactor* reactor,
                                  const std::shared_ptr<PodList>& list) {
  if (list->Continue()) {
    reactor->Finish(grpc::Status::OK);
  } else {
    backend_.scheduler.Post([this, reactor, list] { ContinueList(reactor, list); });
  }
}

grpc::ServerWriteReactor<v1::WaitResponse>* ControlService::Wait(
    grpc::CallbackServerContext* /*context*/, const v1::WaitRequest* request) {
  return PodWaiter::Start(std::make_shared<PodWaiter>(backend_, *request));
}

grpc::ServerUnaryReactor* ControlService::Hold(grpc::CallbackServerContext* context,
                                               const v1::HoldRequest* request,
                                               v1::HoldResponse* /*response*/) {
  return ChangeHold(context, *request, &PodCommands::Hold);
}

grpc::ServerUnaryReactor* ControlService::ReleaseHold(grpc::CallbackServerContext* context,
                                                      const v1::HoldRequest* request,
                                                      v1::HoldResponse* /*response*/) {
  return ChangeHold(context, *request, &PodCommands::ReleaseHold);
}

grpc::ServerUnaryReactor* ControlService::ChangeHold(
    grpc::CallbackServerContext* context, const v1::HoldRequest& request,
    void (PodCommands::*change)(HoldRequest, std::function<void(Status)>)) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (Refuse(reactor, PeerRole::kOperate)) return reactor;
  backend_.scheduler.Post([this, reactor, request, change] {
    const Result<PodUid> pod = FindPodUid(backend_.manager, request.pod(), backend_.node);
    if (!pod.ok()) {
      reactor->Finish(ToGrpcStatus(pod.error()));
      return;
    }
    (backend_.manager.pod_commands().*change)(
        {*pod, request.pid(), request.cgroup()},
        [reactor](const Status& status) { reactor->Finish(ToGrpcStatus(status)); });
  });
  return reactor;
}

grpc::ServerUnaryReactor* ControlService::Retry(grpc::CallbackServerContext* context,
                                                const v1::RetryRequest* request,
                                                v1::RetryResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (Refuse(reactor, PeerRole::kOperate)) return reactor;
  backend_.scheduler.Post([this, reactor, request, response] {
    const Result<std::vector<KeptDirectory>> kept = RetryPod(*request, response);
    if (!kept.ok() || kept->empty()) {
      reactor->Finish(kept.ok() ? grpc::Status::OK : ToGrpcStatus(kept.error()));
      return;
    }
    backend_.scheduler.RunBlocking([this, reactor, response, asked = *kept] {
      TellOfOtherDirectories(backend_.kernel, backend_.scheduler.clock(), asked, response);
      reactor->Finish(grpc::Status::OK);
    });
  });
  return reactor;
}

Result<std::vector<KeptDirectory>> ControlService::RetryPod(const v1::RetryRequest& request,
                                                            v1::RetryResponse* response) {
  ASSIGN_OR_RETURN(const PodUid pod, FindPodUid(backend_.manager, request.pod(), backend_.node));
  const std::optional<PodView> before = backend_.manager.pods().Find(pod);
  const VolumeView* one = before ? FindVolumeByName(*before, request.volume()) : nullptr;
  const SpecName named = one == nullptr ? SpecName(request.volume()) : one->spec;
  RETURN_IF_ERROR(request.volume().empty()
                      ? backend_.manager.pod_commands().Retry(pod)
                      : backend_.manager.pod_commands().RetryVolume({pod, named}));
  if (!before) return std::vector<KeptDirectory>();
  for (const VolumeView& volume : before->volumes) {
    if (!request.volume().empty() && volume.spec != named) continue;
    v1::RetriedVolume* retried = response->add_volumes();
    retried->set_name(volume.spec.str());
    retried->set_what(RetryAnswer(volume));
  }
  return KeptDirectoriesOf(backend_.catalog, *before);
}

grpc::ServerUnaryReactor* ControlService::GetSources(grpc::CallbackServerContext* context,
                                                     const v1::GetSourcesRequest* /*request*/,
                                                     v1::GetSourcesResponse* response) {
  return OnControl(context, PeerRole::kRead, [this, response]() -> Status {
    for (const SourceStatus& source : backend_.catalog.Sources()) {
      v1::Source* const out = response->add_sources();
      EncodeSource(source, out);
      out->set_incomplete_because(backend_.losses.IncompleteBecause(source.name));
      backend_.losses.EncodeAbsent(source.name, out->mutable_absent());
      backend_.losses.EncodeReplaced(source.name, out->mutable_replaced());
      backend_.losses.EncodeMissing(source.name, out);
      EncodeUnreadFiles(backend_.unread_files(source.name), out);
    }
    backend_.losses.EncodeForgotten(response);
    backend_.losses.EncodeAdoptedRoot(response);
    return OkStatus();
  });
}

grpc::ServerUnaryReactor* ControlService::ForgetSource(grpc::CallbackServerContext* context,
                                                       const v1::ForgetSourceRequest* request,
                                                       v1::ForgetSourceResponse* response) {
  return OnControl(context, PeerRole::kAdmin, [this, request, response]() -> Status {
    RETURN_IF_ERROR(backend_.forget_source(request->name(), /*dry_run=*/true));
    backend_.losses.EncodeAll(request->name(), response->mutable_goes());
    if (request->dry_run()) return OkStatus();
    RETURN_IF_ERROR(SourceLosses::CheckConfirmed(response->goes(), request->yes()));
    return backend_.forget_source(request->name(), /*dry_run=*/false);
  });
}

grpc::ServerUnaryReactor* ControlService::AcceptSource(grpc::CallbackServerContext* context,
                                                       const v1::AcceptSourceRequest* request,
                                                       v1::AcceptSourceResponse* response) {
  return OnControl(context, PeerRole::kAdmin, [this, request, response]() -> Status {
    RETURN_IF_ERROR(backend_.accept_source(request->name(), /*dry_run=*/true));
    backend_.losses.EncodeAccepted(request->name(), response->mutable_goes());
    if (request->dry_run()) return OkStatus();
    RETURN_IF_ERROR(SourceLosses::CheckConfirmed(response->goes(), request->yes()));
    return backend_.accept_source(request->name(), /*dry_run=*/false);
  });
}

grpc::ServerUnaryReactor* ControlService::GetContainerMounts(
    grpc::CallbackServerContext* context, const v1::GetContainerMountsRequest* request,
    v1::GetContainerMountsResponse* response) {
  return OnControl(context, PeerRole::kRead, [this, request, response]() -> Status {
    ASSIGN_OR_RETURN(const PodUid uid, FindPodUid(backend_.manager, request->pod(), backend_.node));
    const std::shared_ptr<const Pod> pod = backend_.catalog.FindPod(uid);
    const std::optional<PodView> view = backend_.manager.pods().Find(uid);
    if (!pod || !view) {
      return Error::NotApplied(Code::kFailedPrecondition,
                               "pod " + DisplayName(request->pod()) + " is leaving");
    }
    ASSIGN_OR_RETURN(const std::vector<ContainerMount> mounts,
                     volumed::GetContainerMounts(*pod, *view, request->container(),
                                                 backend_.features.mount_setattr));
    for (const ContainerMount& mount : mounts) {
      v1::ContainerMount* encoded = response->add_mounts();
      encoded->set_destination(mount.destination);
      encoded->set_source(mount.source);
      for (const std::string& option : mount.options) encoded->add_options(option);
    }
    ASSIGN_OR_RETURN(const std::vector<ContainerDevice> devices,
                     GetContainerDevices(*pod, *view, request->container()));
    for (const ContainerDevice& device : devices) {
      v1::ContainerDevice* encoded = response->add_devices();
      encoded->set_path(device.path);
      encoded->set_host_path(device.host_path);
      encoded->set_permissions(device.permissions);
    }
    return OkStatus();
  });
}

grpc::ServerUnaryReactor* ControlService::GetStatus(grpc::CallbackServerContext* context,
                                                    const v1::GetStatusRequest* /*request*/,
                                                    v1::GetStatusResponse* response) {
  return OnControl(context, PeerRole::kRead, [this, response]() -> Status {
    *response = backend_.status();
    return OkStatus();
  });
}

grpc::ServerUnaryReactor* ControlService::Describe(grpc::CallbackServerContext* context,
                                                   const v1::DescribeRequest* request,
                                                   v1::DescribeResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (Refuse(reactor, PeerRole::kRead)) return reactor;
  backend_.scheduler.Post([this, reactor, request, response] {
    const Describer describer(backend_.catalog, backend_.manager, backend_.events, backend_.node);
    const Result<MountQuestions> questions = describer.Describe(*request, response);
    if (!questions.ok() || questions->empty()) {
      reactor->Finish(questions.ok() ? grpc::Status::OK : ToGrpcStatus(questions.error()));
      return;
    }
    backend_.scheduler.RunBlocking([this, reactor, response, asked = *questions] {
      AddMountFacts(backend_.kernel, backend_.scheduler.clock(), asked, response);
      reactor->Finish(grpc::Status::OK);
    });
  });
  return reactor;
}

grpc::ServerUnaryReactor* ControlService::GetStorage(grpc::CallbackServerContext* context,
                                                     const v1::GetStorageRequest* request,
                                                     v1::GetStorageResponse* response) {
  return OnControl(context, PeerRole::kRead, [this, request, response] {
    return ListStorage(backend_.catalog, backend_.manager, *request, response);
  });
}

grpc::ServerUnaryReactor* ControlService::ListObjects(grpc::CallbackServerContext* context,
                                                      const v1::ListObjectsRequest* request,
                                                      v1::ListObjectsResponse* response) {
  return OnControl(context, PeerRole::kRead, [this, request, response] {
    const Describer describer(backend_.catalog, backend_.manager, backend_.events, backend_.node);
    return describer.List(*request, response);
  });
}

grpc::ServerWriteReactor<v1::WatchOperationsResponse>* ControlService::WatchOperations(
    grpc::CallbackServerContext* /*context*/, const v1::WatchOperationsRequest* request) {
  return OperationsStream::Start(std::make_shared<OperationsStream>(backend_, *request));
}

grpc::ServerWriteReactor<v1::WatchEventsResponse>* ControlService::WatchEvents(
    grpc::CallbackServerContext* /*context*/, const v1::WatchEventsRequest* request) {
  return EventsStream::Start(std::make_shared<EventsStream>(backend_, *request));
}

}  // namespace volumed
