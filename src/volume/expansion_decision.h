// Whether, and to which size, a node makes a volume larger: the decision, and what a failure of it
// means, as pure functions.
// Source: kubernetes pkg/volume/util/operationexecutor/{node_expander,operation_generator}.go
// @v1.36.2 (runPreCheck, expandOnPlugin, nodeExpandVolume, legacyCallNodeExpandOnPlugin).
//
// Threads: any. Blocks: never. Errors: none.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/quantity.h"
#include "base/result.h"
#include "volume/claim_resize.h"

namespace volumed {

// On a claim whose volume needs nothing of the nodes once its storage is larger.
inline constexpr std::string_view kNodeExpansionNotRequired =
    "volume.kubernetes.io/node-expansion-not-required";

// What is known of a volume on this node, and of its claim. A size of zero is one that is not
// known.
struct ExpansionQuestion {
  Quantity volume_capacity;  // of the PersistentVolume's spec
  Quantity recorded_size;    // that the volume has on this node, as far as is known
  Quantity claim_request;    // of the claim's spec
  // The claim's status.
  Quantity claim_capacity;
  std::optional<Quantity> allocated;
  std::string resize_status;
  bool read_write_many = false;              // one of the claim's access modes
  bool node_expansion_not_required = false;  // the annotation above
  bool read_only = false;                    // every pod of the node reads only
  bool failed_finally = false;               // an attempt of this node, to this size
  bool in_use = false;                       // an attempt of this node could not be made in use
};

// What the node does next about the size of a volume.
enum class ExpansionAction {
  kNothing,
  kExpand,          // the plugin is called
  kReportDone,      // the volume has `new_size`: somebody else has seen to it
  kRefuseReadOnly,  // an event, and then as if it were done
  kWait,            // somebody else has to move first: looked at again when the claim changes
  kGiveUp,          // not before the volume is mounted anew
  kUnknownSize,     // "current or new size of the volume is not set"
};
// "nothing", "report done", ...: for logs.
std::string_view ExpansionActionName(ExpansionAction action);

// `new_size` is the size that the action is about.
struct ExpansionDecision {
  ExpansionAction action = ExpansionAction::kNothing;
  Quantity new_size;
  // The claim says how far its expansion is, and is told before the call (kubelet's feature
  // RecoverVolumeExpansionFailure); else only afterwards.
  bool recovers = false;
  bool claim_already_updated = false;  // its capacity is the new size already: another node's work
  bool infeasible_on_failure =
      false;  // its owner has given up this size: the next failure is final
};

// The same question gets the same answer: whoever asks remembers what came of earlier attempts, in
// `failed_finally`, `in_use` and `recorded_size`.
ExpansionDecision DecideExpansion(const ExpansionQuestion& question);

// What is to follow when the plugin's call has failed.
enum class ExpansionEnd {
  kDone,        // although it failed: the plugin has nothing to do on a node
  kInUse,       // cannot be done while it is in use; not tried again before it is mounted anew
  kInfeasible,  // cannot be done at all: the claim says so, and somebody has to change it
  kFailed,      // certainly not done; tried again
  kUnknown,     // may have been done: tried again
};

// What a failed call means. An error that is maybe applied is kUnknown, whatever its code. Source:
// IsOperationNotSupportedError, IsFailedPreconditionError, IsInfeasibleError,
// IsOperationFinishedError of pkg/volume/util/types/types.go@v1.36.2.
ExpansionEnd ClassifyExpansionFailure(const Error& error, const ExpansionDecision& decision);

}  // namespace volumed
