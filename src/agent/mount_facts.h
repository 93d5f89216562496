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

// The places of a volume and of the mounts of its parts.
struct MountQuestion {
  std::string volume;
  std::string path;
  std::vector<std::string> sub_paths;
};
using MountQuestions = std::vector<MountQuestion>;

// Answers each question from the whole table; sets `not_shown` to how many mounts were left out.
// Threads: any. Blocks: never.
void AnswerMountQuestions(const std::vector<MountEntry>& table, const MountQuestions& questions,
                          v1::DescribeResponse* response);

// Like AnswerMountQuestions, but asks the kernel only about these places. If a question fails,
// `mounts_error` says why.
// Threads: any. Blocks: for as long as the limit says, at most.
void AddMountFacts(Kernel& kernel, const LookLimit& limit, const MountQuestions& questions,
                   v1::DescribeResponse* response);

}  // namespace volumed
