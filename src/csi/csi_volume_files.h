// The directories of a staged or published volume, and the file vol_data.json beside it: what is
// made before a driver is called, and what has to go after it was.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "csi/csi_context.h"
#include "csi/csi_names.h"
#include "kube/object_meta.h"
#include "os/kernel.h"

namespace volumed {

// All have: Threads: any, one call per place at a time. Blocks: until the deadline, on the agent's
// own filesystem alone: what a driver has mounted is never touched. Errors: those of the effects.

// Makes the directory, with parents, by mode 0750, and writes vol_data.json in it. `durable`: it
// outlives a power loss.
Status WriteVolData(const CsiContext& context, const SafePath& directory, const StringMap& data,
                    bool durable, const CallOptions& call);

// Which volume the file says that this is; nullopt if there is no file. Errors: DataLoss, not
// applied, if it cannot be understood.
Result<std::optional<CsiVolumeId>> ReadVolumeId(const CsiContext& context,
                                                const SafePath& directory, const CallOptions& call);
// All that the file says. Errors: NotFound if there is none, and as above.
Result<StringMap> ReadVolData(const CsiContext& context, const SafePath& directory,
                              const CallOptions& call);

// What a driver was to leave behind at a place that it has taken away, if it left anything else
// than an empty directory: in words that follow "and". Nullopt: nothing, and nothing is there any
// more. REQUIRES: nothing is mounted there.
Result<std::optional<std::string>> RemoveLeftPlace(const CsiContext& context, const SafePath& place,
                                                   const CallOptions& call);
// Removes vol_data.json and then the directory that has it.
Status RemoveVolData(const CsiContext& context, const SafePath& directory, const CallOptions& call);

// A driver refused to set something up. After an error that had no effect, and if nothing is
// mounted at the place, all is removed that was made for it. Returns the error; it is maybe applied
// if anything is left.
Error AfterRefusal(const CsiContext& context, const SafePath& place, const Error& error,
                   const CallOptions& call);

}  // namespace volumed
