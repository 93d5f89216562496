// What the files of the import have in common. Private to them.
#pragma once

#include <string>

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

// Looks at what is on a device, and writes it down in the plan: its filesystem, its mode, and what
// is not in order. Nothing is written to the device.
Status LookAtImported(Kernel& kernel, const std::string& device, ImportPlan& plan,
                      const CallOptions& call);
// The same of a file, by way of a loop device that takes no writes.
Status LookAtImage(Kernel& kernel, const ImportedFile& file, ImportPlan& plan,
                   const CallOptions& call);

}  // namespace volumed
