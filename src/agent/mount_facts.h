// Mount facts: what the mount table says of the places of a pod's volumes. Only /proc is read,
// never a path inside a volume.
#pragma once

#include <string>
#include <vector>

#include "agent.pb.h"
#include "agent/look_limit.h"
#include "os/kernel.h"
#include "os/mount_entry.h"

namespace volumed {

// The places of a volume and of the mounts of its parts: absolute paths on the node, which are
// compared with the table and never opened.
struct MountQuestion {
  std::string volume;  // its name in the answer
  std::string path;    // "": nothing is mounted for it yet
  std::vector<std::string> sub_paths;
};
using MountQuestions = std::vector<MountQuestion>;

// Adds one entry to `mounts` for each question, from the whole table: the mounts at the path and
// below it, those at the sub-paths, and for a path that is no mount point the mount on which it
// lies. A volume shows 32 mounts at most; a line of `not_shown` says how many it has beyond.
// Threads: any. Blocks: never.
void AnswerMountQuestions(const std::vector<MountEntry>& table, const MountQuestions& questions,
                          v1::DescribeResponse* response);

// Like AnswerMountQuestions, but asks the kernel only about these places. If a question fails,
// `mounts_error` says why, and it and the ones after it have no entry.
// Threads: any but the control thread. Blocks: for as long as the limit says, at most, for all
// questions together.
void AddMountFacts(Kernel& kernel, const LookLimit& limit, const MountQuestions& questions,
                   v1::DescribeResponse* response);

}  // namespace volumed
