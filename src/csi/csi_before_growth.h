// What was mounted of a volume before its driver was first called to make it larger: it is in the
// row of the device, and what is there later is held against it. A growth that puts something else
// in its place is a lie each time that it is looked at, and not the first time alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "csi/csi_context.h"
#include "csi/csi_names.h"
#include "os/kernel.h"
#include "os/mount_entry.h"

namespace volumed {

// As the row keeps it. Of a source that is no device only the kind of the filesystem is kept: its
// text is the driver's, and may have what is secret. Pure; threads: any.
MountBeforeGrowth BeforeGrowthOf(const std::string& path, const std::optional<MountEntry>& mount);

// Puts on record what is mounted at the paths, unless the row has them already. Of a volume without
// a row nothing is kept. Threads: any but control. Blocks: until the store has answered. Errors:
// those of DeviceRecordKeeper::RememberBeforeGrowth().
Status RememberBeforeGrowth(const CsiContext& context, const CsiVolumeId& volume,
                            const std::vector<MountBeforeGrowth>& places);

// What is wrong with what is mounted at the path, in words that follow "and"; nullopt: nothing, or
// the row does not say what has to be there. Threads: any. Blocks: never.
std::optional<std::string> WhyNotAsBeforeGrowth(const CsiContext& context,
                                                const CsiVolumeId& volume, const std::string& path,
                                                const std::optional<MountEntry>& mount);

// Before the driver is called to put the volume at the path: if somebody has unmounted what was
// there, what comes now is the volume's. Threads: any but control. Blocks: until the store has
// answered. Errors: those of ListMounts; of DeviceRecordKeeper::ForgetBeforeGrowth().
Status ForgetIfUnmounted(const CsiContext& context, const CsiVolumeId& volume,
                         const std::string& path, const CallOptions& call);

}  // namespace volumed
