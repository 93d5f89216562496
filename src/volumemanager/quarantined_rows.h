// Rows of the records that cannot be read or believed, and those that are gone: whatever they are
// about, or may have been, is left alone, and a pod that may have had a holder by them is held.
//
// Threads: any, if no other thread uses `actual`. Blocks: never. Errors: none.
#pragma once

#include <map>
#include <set>
#include <string>

#include "base/ids.h"
#include "operation/volume_record.h"
#include "volumehost/kubelet_paths.h"
#include "volumemanager/actual_state_of_world.h"
#include "volumemanager/found_at_start.h"

namespace volumed {

// Each pod and device that a quarantined row is about, and each pod that it may hold, gets the row
// as its quarantine reason; a block volume whose device's row it is lacks its pin. Returns the
// pods. REQUIRES: what the other rows say is in `actual`.
std::set<PodUid> QuarantineByRows(const FoundAtStart& found, const BootId& boot_id,
                                  const KubeletPaths& paths, ActualStateOfWorld& actual);

// Pods whose holds may have been among rows that are gone, and why, for people. Pure.
std::map<PodUid, std::string> PodsThatMayBeHeld(const FoundAtStart& found, const BootId& boot_id);

}  // namespace volumed
