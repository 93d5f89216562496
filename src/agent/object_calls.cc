// The calls of the control API about objects of any kind.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/apply_check.h"
#include "agent/command_admission.h"
#include "agent/control_service.h"
#include "agent/delete_commands.h"
#include "agent/describer.h"
#include "agent/snapshot_backend.h"
#include "agent/storage_list.h"
#include "agent/view_codec.h"
#include "kube/decode.h"
#include "kube/pod_facts.h"
#include "kube/prepare_for_create.h"

namespace volumed {
namespace {

// ---- apply --------------------------------------------------------------------------------------

using ApplyCall = UnaryCall<v1::ApplyRequest, v1::ApplyResponse>;

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

v1::ObjectRef MakeAppliedRef(const Object& object) {
  v1::ObjectRef ref = MakeObjectRef(KeyOf(object));
  ref.set_uid(MetaOf(object).uid);
  return ref;
}

// Returns false if the manifest has problems, which are in the answer then.
bool TellProblems(const ManifestDecode& decoded, v1::ApplyResponse* response) {
  for (const DecodeProblem& problem : decoded.problems) {
    EncodeProblem(problem, response->add_problems());
  }
  if (!decoded.problems.empty()) return false;
  for (const DecodeProblem& warning : decoded.warnings) {
    EncodeProblem(warning, response->add_warnings());
  }
  return true;
}

// Writes the admitted objects and answers. Blocks: on disk.
void Store(const ApplyCall& call, ApplyCommand* command) {
  const Result<std::vector<AppliedObject>> applied =
      call.backend.directory.Apply(std::move(*command));
  if (!applied.ok()) return call.Finish(applied.error());
  for (const AppliedObject& one : *applied) {
    v1::AppliedObject* out = call.response->add_applied();
    *out->mutable_object() = MakeAppliedRef(*one.object);
    out->set_result(std::string(ResultName(one.what)));
    const Pod* before = one.before == nullptr ? nullptr : std::get_if<Pod>(one.before.get());
    if (before == nullptr) continue;
    out->set_replaced_uid(before->metadata.uid);
    for (const std::string& volume : VolumesThatEndWithPod(*before)) out->add_disk_data(volume);
  }
  call.Finish(OkStatus());
}

Status CheckNoPod(const std::vector<Object>& objects) {
  const bool has_pod = std::any_of(objects.begin(), objects.end(), [](const Object& object) {
    return std::holds_alternative<Pod>(object);
  });
  if (!has_pod) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition,
                           "this agent is a CSI driver alone (csi-only), and runs no pods");
}

// Threads: the control thread.
void AdmitAndStore(const ApplyCall& call, ApplyWords words) {
  ControlBackend& backend = call.backend;
  const Status runs = backend.csi_only ? CheckNoPod(words.objects) : OkStatus();
  if (!runs.ok()) return call.Finish(runs);
  const Status free = CheckNobodyElseHas(backend.catalog, backend.node, words.objects);
  if (!free.ok()) return call.Finish(free);
  Result<ApplyCommand> admitted =
      AdmitApply(backend.catalog, backend.manager, backend.node, std::move(words));
  if (!admitted.ok()) return call.Finish(admitted.error());
  backend.manager.object_commands().Number(
      [call, command = std::make_shared<ApplyCommand>(*std::move(admitted))](
          const Result<uint64_t>& number) {
        if (!number.ok()) return call.Finish(number.error());
        command->number = *number;
        call.backend.scheduler.RunBlocking([call, command] { Store(call, command.get()); });
      });
}

void HandleApply(const ApplyCall& call) {
  const v1::ApplyRequest& request = call.request;
  ManifestDecode decoded = DecodeManifest(request.file(), request.manifest());
  if (decoded.documents == 0 && decoded.problems.empty()) {
    decoded.problems.push_back({request.file(), -1, "", "", "holds no document"});
  }
  if (!TellProblems(decoded, call.response)) return call.Finish(OkStatus());
  auto words = std::make_shared<ApplyWords>();
  words->replace = request.replace();
  for (DecodedObject& object : decoded.objects) {
    const Status placed =
        request.namespace_().empty() ? OkStatus() : PutIntoNamespace(request.namespace_(), object);
    if (!placed.ok()) return call.Finish(placed);
    PrepareForCreate(object.object);
    words->objects.push_back(std::move(object.object));
  }
  call.backend.scheduler.Post([call, words] { AdmitAndStore(call, std::move(*words)); });
}

// ---- delete -------------------------------------------------------------------------------------

PeerRole RoleToDelete(const v1::DeleteRequest& request) {
  return request.force() ? PeerRole::kAdmin : PeerRole::kOperate;
}

PeerRole RoleToDeleteAll(const v1::DeleteObjectsRequest& request) {
  PeerRole needed = PeerRole::kOperate;
  for (const v1::DeleteRequest& one : request.objects()) {
    needed = std::max(needed, RoleToDelete(one));
  }
  return needed;
}

using DeleteCall = UnaryCall<v1::DeleteRequest, v1::DeleteResponse>;
using DeleteObjectsCall = UnaryCall<v1::DeleteObjectsRequest, v1::DeleteObjectsResponse>;

void HandleDelete(const std::shared_ptr<DeleteCommands>& deletes, const DeleteCall& call) {
  call.backend.scheduler.Post([deletes, call] {
    deletes->Delete(
        {{call.request, call.response, [call](const Status& status) { call.Finish(status); }}});
  });
}

void HandleDeleteObjects(const std::shared_ptr<DeleteCommands>& deletes,
                         const DeleteObjectsCall& call) {
  if (call.request.objects().empty()) return call.Finish(OkStatus());
  // The answers come on several threads; the last one finishes the call.
  const auto open = std::make_shared<std::atomic<int>>(call.request.objects_size());
  std::vector<DeleteCommands::Command> commands;
  for (const v1::DeleteRequest& object : call.request.objects()) {
    v1::DeleteResult* const result = call.response->add_results();
    commands.push_back(
        {object, result->mutable_response(), [call, result, open](const Status& status) {
           const grpc::Status answer = ToGrpcStatus(status);
           result->set_code(answer.error_code());
           result->set_message(answer.error_message());
           result->set_details(answer.error_details());
           if (--*open == 0) call.Finish(OkStatus());
         }});
  }
  call.backend.scheduler.Post(
      [deletes, commands = std::move(commands)] { deletes->Delete(commands); });
}

// ---- what there is ------------------------------------------------------------------------------

// What is known of VolumeSnapshots and their contents.
SnapshotQuestions KnownOfSnapshots(const ControlBackend& backend) {
  if (backend.snapshots == nullptr) return {};
  const SnapshotObjects* const objects = &backend.snapshots->objects;
  SnapshotQuestions known;
  known.with_state = [objects](const Object& object) -> Object {
    if (const auto* snapshot = std::get_if<VolumeSnapshot>(&object)) {
      return objects->Shown(*snapshot);
    }
    const auto* const content = std::get_if<VolumeSnapshotContent>(&object);
    return content == nullptr ? object : Object(objects->Shown(*content));
  };
  known.held_by = [objects](const ObjectKey& object) { return objects->HeldBy(object); };
  return known;
}

Describer MakeDescriber(const ControlBackend& backend) {
  return {backend.catalog,
          backend.manager,
          backend.events,
          backend.node,
          [csi = backend.csi](const std::string& name) -> std::shared_ptr<CsiSecretMemory> {
            const std::shared_ptr<CsiDriver> driver =
                csi == nullptr ? nullptr : csi->drivers().Find(name);
            return driver == nullptr ? nullptr : driver->secrets();
          },
          backend.node_labels,
          backend.label_givers,
          KnownOfSnapshots(backend)};
}

void HandleDescribe(const UnaryCall<v1::DescribeRequest, v1::DescribeResponse>& call) {
  call.backend.scheduler.Post([call] {
    const Result<MountQuestions> questions =
        MakeDescriber(call.backend).Describe(call.request, call.response);
    if (!questions.ok()) return call.Finish(questions.error());
    if (questions->empty()) return call.Finish(OkStatus());
    call.backend.scheduler.RunBlocking([call, asked = *questions] {
      AddMountFacts(call.backend.kernel, call.backend.look_limit(), asked, call.response);
      call.Finish(OkStatus());
    });
  });
}

Status HandleListObjects(ControlBackend& backend, const v1::ListObjectsRequest& request,
                         v1::ListObjectsResponse* response) {
  return MakeDescriber(backend).List(request, response);
}

Status HandleGetStorage(ControlBackend& backend, const v1::GetStorageRequest& request,
                        v1::GetStorageResponse* response) {
  return ListStorage(backend.catalog, backend.manager, request, response);
}

}  // namespace

void AddObjectCalls(ControlService& service) {
  service.Unary("Apply", PeerRole::kOperate, HandleApply);
  const auto deletes = std::make_shared<DeleteCommands>(service.backend());
  service.Unary<v1::DeleteRequest, v1::DeleteResponse>(
      "Delete", RoleToDelete, [deletes](const DeleteCall& call) { HandleDelete(deletes, call); });
  service.Unary<v1::DeleteObjectsRequest, v1::DeleteObjectsResponse>(
      "DeleteObjects", RoleToDeleteAll,
      [deletes](const DeleteObjectsCall& call) { HandleDeleteObjects(deletes, call); });
  service.Unary("Describe", PeerRole::kRead, HandleDescribe);
  service.OnControl("ListObjects", PeerRole::kRead, HandleListObjects);
  service.OnControl("GetStorage", PeerRole::kRead, HandleGetStorage);
}

}  // namespace volumed
