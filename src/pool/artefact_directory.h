// The directory of a volume, or of a cut, which is root's alone: what backends do with it alike;
// and what they say of a volume that has lost its end. Private to the pool.
//
// Threads: any; one call per id at a time. Blocks: until the call's deadline. Errors: those of the
// effects.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/kernel.h"
#include "pool/pool_layout.h"
#include "pool/pool_record.h"

namespace volumed {

// Makes it, and says whether it was not there before. May be repeated.
Result<bool> MakeArtefactDirectory(Kernel& kernel, const PoolLayout& layout, const PoolId& id,
                                   const CallOptions& call);
// Whether a description is on the disk once it is written, and with it what was in the directory
// before; or whenever the kernel likes, where a file that is synced comes after it: a power loss
// may leave one that is empty then, which no program reads.
enum class DescriptionSync { kNow, kNever };

// Writes down in it, for people, what it is. May be repeated.
Status DescribeArtefact(Kernel& kernel, const PoolLayout& layout, const PoolId& id,
                        const std::string& description, DescriptionSync sync,
                        const CallOptions& call);

// Removes it with its description, and with the files of these names. They go first: as long as
// they are there, their description is, too. What somebody else has put beside them stays, and is
// an error.
Status RemoveArtefactDirectory(Kernel& kernel, const PoolLayout& layout, const PoolId& id,
                               const std::vector<std::string>& files, const CallOptions& call);

// That neither it nor anything in it shows elsewhere, and that nothing is mounted in it: whoever
// has it so would have it go under his hands, and what lies beside a mount would go before the
// mount is met. Costs what the mount table does. Errors, not applied: FailedPrecondition, with the
// place.
Status CheckArtefactNotMounted(Kernel& kernel, const PoolLayout& layout, const PoolId& id,
                               const CallOptions& call);

// That a file or logical volume with so many bytes is shorter than the volume of this record, for
// people: "has 32Mi (33554432 bytes), and is to have 64Mi ..". Empty if it has all of them; more
// are those of a growth that has not ended. Pure; blocks: never.
std::string LostEndOf(const PoolVolumeRecord& volume, int64_t size_bytes);
// The same as what keeps it from being opened, cut and grown, as whoever did that would take zeros
// for the bytes that are gone. `its` is "file PATH". Errors: FailedPrecondition, not applied.
Status CheckHasItsEnd(const PoolVolumeRecord& volume, const std::string& its, int64_t size_bytes);

}  // namespace volumed
