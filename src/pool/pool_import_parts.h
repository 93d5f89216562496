// What the files of the import have in common. Private to them.
#pragma once

#include <string>
#include <utility>

#include "mounter/host_directory.h"
#include "pool/pool_import.h"

namespace volumed {

inline Error ImportRefusal(const std::string& why) {
  return Error::NotApplied(Code::kFailedPrecondition, why);
}

// A plan with a PersistentVolume that has a name, and which nobody deletes.
ImportPlan NewImportPlan(const ImportRequest& request, ImportKind kind);
// The PersistentVolume of a path that stays where it is.
void PlanLocalVolume(const ImportParts& parts, const std::string& path, ImportPlan& plan);
// The same of a volume of a pool; of one that is not made yet the id is empty.
void PlanPoolVolume(const ImportParts& parts, const std::string& id, ImportPlan& plan);

// A path that leads to a device, and one that leads to a directory or a file.
Result<ImportPlan> PlanDeviceImport(const ImportParts& parts, const ImportRequest& request,
                                    const CallOptions& call);
Result<ImportPlan> PlanFileImport(const ImportParts& parts, const ImportRequest& request,
                                  const CallOptions& call);

// What a path leads to that is no device.
struct ImportedPath {
  std::string path;
  StorageIdentity identity;
  // It stays where it is, and pods get it from there.
  bool is_in_place = false;
  ImportedFile file() const { return {SplitLast(path), identity.object}; }
};
// REQUIRES: it is nobody's by its path, and seen at no other place as a whole.
Result<ImportPlan> PlanDirectory(const ImportParts& parts, const ImportRequest& request,
                                 const ImportedPath& source, const CallOptions& call);
// The plan of a directory that is not where it was, as an earlier call has moved it from there, or
// has taken it over; nullopt: there was no such call. Errors, not applied: InvalidArgument for
// another pool than that call's.
Result<std::optional<ImportPlan>> PlanMovedBefore(const ImportParts& parts,
                                                  const ImportRequest& request);

inline CallOptions InDomain(CallOptions call, const std::string& domain) {
  call.domain = domain;
  return call;
}
// By which an import of the same thing is found again, whatever path leads to it. No other volume
// has a name of this form. Pure.
std::string ImportNameOf(const StorageObject& object);
// The pool on whose filesystem it lies, if that is the one that is asked for.
Result<const Pool*> PoolOfImported(const ImportParts& parts, const ImportRequest& request,
                                   const ImportedPath& source, const CallOptions& call);
// What an earlier call has made, or begun, by this name. Whether that was the whole import.
bool FindEarlierImport(const ImportParts& parts, const std::string& name, ImportPlan& plan);
// The same of its row.
bool IsWholeImport(const ImportParts& parts, const PoolVolumeRecord& there, ImportPlan& plan);

// Looks at what is on a device, and writes it down in the plan: its filesystem, its mode, and what
// is not in order. Nothing is written to the device.
Status LookAtImported(Kernel& kernel, const std::string& device, ImportPlan& plan,
                      const CallOptions& call);
// The same of a file, by way of a loop device that takes no writes.
Status LookAtImage(Kernel& kernel, const ImportedFile& file, ImportPlan& plan,
                   const CallOptions& call);

}  // namespace volumed
