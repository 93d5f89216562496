#include "volume/storage_growth.h"

#include <utility>

namespace volumed {
namespace {

StorageGrowth WaitFor(std::string what) {
  StorageGrowth growth;
  growth.action = StorageGrowthAction::kWait;
  growth.waits_for = std::move(what);
  return growth;
}

StorageGrowth GoOn(const StorageGrowthQuestion& question, StorageGrowthAction action,
                   const Quantity& size) {
  if (question.only_unused && question.is_on_node) {
    StorageGrowth growth =
        WaitFor("its storage is made larger only while nothing of the volume is on the node");
    growth.for_users = true;
    return growth;
  }
  StorageGrowth growth;
  growth.action = action;
  growth.size = size;
  return growth;
}

}  // namespace

StorageGrowth DecideStorageGrowth(const StorageGrowthQuestion& question) {
  const Quantity& request = question.claim_request;
  if (question.resize_status == kControllerResizeInProgress && question.allocated) {
    // The call may have been made, so no other one may follow it.
    return GoOn(question, StorageGrowthAction::kExpand, *question.allocated);
  }
  const bool infeasible = question.resize_status == kControllerResizeInfeasible;
  if (infeasible && question.allocated == request) return {};
  if (request <= question.volume_capacity) {
    StorageGrowth growth;
    if (infeasible) growth.action = StorageGrowthAction::kTakeBack;
    return growth;
  }
  if (!question.class_allows) {
    StorageGrowth growth = WaitFor("its class does not have allowVolumeExpansion");
    growth.for_class = true;
    return growth;
  }
  const bool pending = question.resize_status == kNodeResizePending && !question.is_on_node;
  if (!question.resize_status.empty() && !infeasible && !pending) {
    return WaitFor("the node makes the volume as large as its storage is already");
  }
  return GoOn(question, StorageGrowthAction::kIntend, request);
}

bool IsInfeasibleGrowth(const Error& error) {
  if (error.maybe_applied()) return false;
  return error.code() == Code::kInvalidArgument || error.code() == Code::kNotFound ||
         error.code() == Code::kOutOfRange;
}

}  // namespace volumed
