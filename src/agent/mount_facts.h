// Mount facts: what the mount table says of the places of a pod's volumes. Reads /proc alone, never
// a path inside a volume.
#pragma once

#include <string>
#include <vector>

#include "agent.pb.h"
#include "base/clock.h"
#include "os/kernel.h"
#include "os/mount_entry.h"

namespace volumed {

// Where a volume and the mounts of its parts are.
struct MountQuestion {
  std::string volume;
  std::string path;
  std::vector<std::string> sub_paths;
};
using MountQuestions = std::vector<MountQuestion>;

// Answers each question from the whole table; says in `not_shown` how many were left out.
// Threads: any. Blocks: never.
void AnswerMountQuestions(const std::vector<MountEntry>& table, const MountQuestions& questions,
                          v1::DescribeResponse* response);

// The same by questions to the kernel that cost what their answers do; where one fails,
// `mounts_error` says why.
// Threads: any. Blocks: at most 5 s.
void AddMountFacts(Kernel& kernel, const Clock& clock, const MountQuestions& questions,
                   v1::DescribeResponse* response);

}  // namespace volumed
