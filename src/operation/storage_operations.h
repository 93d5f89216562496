// The operations on the records of storage: they are forgotten with their volume, and a command
// accepts a directory that has changed.
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

// Forgets what is on record of the storage of a PersistentVolume that has ended
// (StorageGuard::Forget). Success if nothing is on record. Errors: the store's.
struct ForgetStorage : OperationOf<Unit> {
  explicit ForgetStorage(std::string of_volume) : volume_name(std::move(of_volume)) {}

  OperationKey key() const;
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      Unit& result) const;

  std::string volume_name;
};

// The same for all volumes but these, by their names: an agent that ended may have left some of
// their records. Errors: the store's; what came before the failure is forgotten.
struct ForgetStorageBut : OperationOf<Unit> {
  explicit ForgetStorageBut(std::set<std::string> kept) : volume_names(std::move(kept)) {}

  OperationKey key() const;
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      Unit& result) const;

  std::set<std::string> volume_names;
};

// Does StorageGuard::AcceptDirectory, with its errors. A command starts it, not the volume manager.
struct AcceptDirectory : OperationOf<AcceptedDirectory> {
  explicit AcceptDirectory(std::string of_volume) : volume_name(std::move(of_volume)) {}

  OperationKey key() const;
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      AcceptedDirectory& result) const;

  std::string volume_name;
};

}  // namespace volumed
