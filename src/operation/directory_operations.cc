#include "operation/directory_operations.h"

#include "operation/call_options.h"
#include "operation/operation_executor.h"
#include "operation/operation_parts.h"
#include "operation/pod_directories.h"

namespace volumed {
namespace {

constexpr const char* kMakeDirectoriesOperation = "pod_make_directories";

}  // namespace

OperationTraits MakeDirectoriesOfPod::Traits(const OperationParts&) const {
  return {.key = key(),
          .name = kMakeDirectoriesOperation,
          .plugin_name = "",
          .pod_display_name = "",
          .on_own_filesystem = true};
}

std::optional<OperationFailure> MakeDirectoriesOfPod::Run(const OperationParts& parts,
                                                          OperationProgress& progress,
                                                          Unit&) const {
  progress.EnterStep("MakePodDirectories");
  CallOptions call = OperationCall(key().ToString(), "", progress);
  call.deadline = Deadline::After(parts.host.clock, parts.settings.make_pod_directories);
  const Status made = MakePodDirectories(parts.host.kernel, parts.host.paths, pod, call);
  if (made.ok()) return std::nullopt;
  return OperationFailure{kMakeDirectoriesOperation, "MakePodDirectories", made.error()};
}

}  // namespace volumed
