#include "operation/storage_operations.h"

#include "operation/operation_executor.h"
#include "operation/operation_parts.h"

namespace volumed {
namespace {

using Failure = std::optional<OperationFailure>;

constexpr const char* kForgetStorageOperation = "forget_storage";      // ours
constexpr const char* kAcceptDirectoryOperation = "accept_directory";  // ours

OperationTraits TraitsOfName(OperationKey key, const char* name) {
  return {.key = std::move(key), .name = name, .plugin_name = "", .pod_display_name = ""};
}

Failure AfterForgetting(const Status& forgotten) {
  if (forgotten.ok()) return std::nullopt;
  return OperationFailure{kForgetStorageOperation, "RemoveRecord", forgotten.error()};
}

}  // namespace

OperationKey ForgetStorage::key() const {
  return OperationKey(UniqueVolumeName("storage/" + volume_name));
}

OperationTraits ForgetStorage::Traits(const OperationParts&) const {
  return TraitsOfName(key(), kForgetStorageOperation);
}

Failure ForgetStorage::Run(const OperationParts& parts, OperationProgress& progress, Unit&) const {
  progress.EnterStep("RemoveRecord");
  return AfterForgetting(parts.storage.Forget(volume_name));
}

OperationKey ForgetStorageBut::key() const { return OperationKey(UniqueVolumeName("storage")); }

OperationTraits ForgetStorageBut::Traits(const OperationParts&) const {
  return TraitsOfName(key(), kForgetStorageOperation);
}

Failure ForgetStorageBut::Run(const OperationParts& parts, OperationProgress& progress,
                              Unit&) const {
  progress.EnterStep("RemoveRecord");
  return AfterForgetting(parts.storage.ForgetBut(volume_names));
}

OperationKey AcceptDirectory::key() const {
  return OperationKey(UniqueVolumeName("accept/" + volume_name));
}

OperationTraits AcceptDirectory::Traits(const OperationParts&) const {
  return TraitsOfName(key(), kAcceptDirectoryOperation);
}

Failure AcceptDirectory::Run(const OperationParts& parts, OperationProgress& progress,
                             AcceptedDirectory& result) const {
  progress.EnterStep("Accept");
  CallOptions call;
  call.deadline = Deadline::After(parts.host.clock, parts.settings.set_up);
  Result<AcceptedDirectory> said = parts.storage.AcceptDirectory(volume_name, call);
  if (!said.ok()) return OperationFailure{kAcceptDirectoryOperation, "Accept", said.error()};
  result = std::move(said).value();
  return std::nullopt;
}

}  // namespace volumed
