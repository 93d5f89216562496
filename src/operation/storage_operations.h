// The operations on what is on record of storage: it is forgotten with its volume, and a directory
// that is another one now is accepted by command.
//
// Of each Run: Threads: any. Blocks: until the store, or the directory, has answered.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "operation/operation.h"
#include "operation/storage_guard.h"

namespace volumed {

// A PersistentVolume is no more, and what is on record of its storage may go.
struct ForgetStorage : OperationOf<Unit> {
  explicit ForgetStorage(std::string of_volume) : volume_name(std::move(of_volume)) {}

  OperationKey key() const;
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      Unit& result) const;

  std::string volume_name;
};

// The same of all volumes but these: an agent that ended may have left some of it.
struct ForgetStorageBut : OperationOf<Unit> {
  explicit ForgetStorageBut(std::set<std::string> kept) : volume_names(std::move(kept)) {}

  OperationKey key() const;
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      Unit& result) const;

  std::set<std::string> volume_names;
};

// StorageGuard::AcceptDirectory: a command, and no wish of the volume manager.
struct AcceptDirectory : OperationOf<AcceptedDirectory> {
  explicit AcceptDirectory(std::string of_volume) : volume_name(std::move(of_volume)) {}

  OperationKey key() const;
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      AcceptedDirectory& result) const;

  std::string volume_name;
};

}  // namespace volumed
