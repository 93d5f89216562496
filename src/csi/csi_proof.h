// What the node shows of a volume, to be held against what a driver has said of it. The mount table
// is asked first: it never hangs. Nothing that a volume's filesystem answers is believed, or waited
// for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "csi/csi_context.h"
#include "os/kernel.h"
#include "os/mount_entry.h"

namespace volumed {

// All have: Threads: any. Blocks: until the deadline. Errors: those of the effects, not applied;
// whoever looks after an RPC makes them "maybe applied".

// The mounts at exactly this path, in the kernel's order: a later one lies upon an earlier one.
Result<std::vector<MountEntry>> MountLayers(Kernel& kernel, const std::string& path,
                                            const CallOptions& call);

struct CsiFinding {
  // What is not as it has to be, in words that follow "and": "nothing is mounted at /x". Nullopt:
  // nothing.
  std::optional<std::string> wrong = {};
  // What is mounted there, if it is one mount.
  std::optional<MountEntry> mount = {};
};

// The directory at which a volume is staged: there may be one mount, and many drivers make none. It
// must not be a disk that another volume is staged from.
Result<CsiFinding> LookAtStaged(const CsiContext& context, const SafePath& place,
                                const CallOptions& call);

// What a volume was just staged as must not be the device that pods have raw as another volume: in
// words that follow "and"; nullopt: it is not.
Result<std::optional<std::string>> WhyPodsDevice(const CsiContext& context,
                                                 const CsiVolumeId& volume, const MountEntry& mount,
                                                 const CallOptions& call);

struct PublishedLook {
  std::string driver;
  SafePath target;
  bool read_only = false;  // it was asked to be
  // Where the volume is staged; nullopt: its driver stages nothing.
  std::optional<SafePath> staging = {};
  // It is to be no other persistent volume than this one; nullopt: that is not asked. Inline
  // volumes of several pods may show one directory by right.
  std::optional<CsiVolumeId> persistent = {};
};

// A pod's volume has to be one mount (of some drivers a directory does, see CsiPluginSettings),
// which nobody can write to if that was asked for; of the disk that is staged, if one is; of no
// other volume's disk, nor what a pod has as another persistent volume; and not the agent's own
// directory or one above it. Of what the agent has for volumes below its root, the volume's own
// target and staging path may be shown.
Result<CsiFinding> LookAtPublished(const CsiContext& context, const PublishedLook& look,
                                   const CallOptions& call);

// A pod's raw volume has to be a block device, or a link to one.
Result<CsiFinding> LookAtPublishedDevice(const CsiContext& context, const SafePath& target,
                                         const CallOptions& call);

// What was taken away must not be mounted any more.
Result<CsiFinding> LookAtTakenAway(const CsiContext& context, const SafePath& place,
                                   const CallOptions& call);

}  // namespace volumed
