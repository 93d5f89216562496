// CallByHand: the operation of a person who calls a driver by hand to change something. It has the
// lane of the driver, the lock of the volume's device, and a row of its own, so that it never meets
// what the agent does to the volume for a pod.
#pragma once

#include <google/protobuf/message.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "csi/csi_command.h"
#include "csi/csi_driver.h"
#include "csi/csi_names.h"
#include "operation/operation.h"
#include "operation/storage_guard.h"

namespace volumed {

inline constexpr const char* kCallByHandOperation = "csi_command";

// Who has the volume here, by the records of devices and of pods: "pod shop/web", or what state its
// device is in. Empty: nobody. The cost depends on all volumes of the node. Threads: any. Blocks:
// never.
std::string WhoHasCsiVolume(const OperationParts& parts, const CsiVolumeId& volume);

// For StorageGuard::AddDeletions: what calls by hand may have deleted, or may be deleting still. A
// claim that got it would have storage that goes. The argument outlives the result.
StorageGuard::Deletions OpenDeletionsOf(const CsiCommands& commands);

// The row is written before the call is sent, and goes when the outcome is known. What is answered
// is JSON without the driver's secrets. Errors: FailedPrecondition, not applied, with the name of
// who has the volume (for DeleteVolume also of a PersistentVolume that names it, whenever that
// came) or a volume at a path that the request names, or with the path of a mount of the volume of
// which no record tells; those of WhoHasPlace() and FindUnrecorded(), of CsiCommands::Begin() and
// Write(), of the StorageGuard, of CsiDriver::Perform() and CsiShownJsonOf(). Threads: one at a
// time per volume. Blocks: until the answer or the deadline.
struct CallByHand : OperationOf<std::string> {
  CallByHand(CsiCommands& of_commands, std::shared_ptr<CsiDriver> of_driver,
             CsiCommandRecord of_command, std::shared_ptr<const google::protobuf::Message> message,
             Deadline until);

  // "csi-command/<what the call is about>": its back-off is none of the volume's.
  OperationKey key() const;
  OperationTraits Traits(const OperationParts&) const { return Traits(); }
  OperationTraits Traits() const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      std::string& answer) const;

  CsiCommands* commands;  // it outlives the operation
  std::shared_ptr<CsiDriver> driver;
  CsiCommandRecord command;
  // Nullopt: the call is about no volume that a node may have.
  std::optional<CsiVolumeId> volume;
  std::shared_ptr<const google::protobuf::Message> request;
  Deadline deadline;
};

}  // namespace volumed
