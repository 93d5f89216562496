// UnrecordedMounts: what a start found mounted and on no record, as after lost records. A pod of an
// earlier agent may use it still, so its volume is given to no other pod alone, detached or deleted
// as long as it is there. It is kept in memory, and found anew at each start.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/mutex.h"
#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

// The subject of errors that a mount on no record causes (Error::About): an administrator has to
// act, whoever waits for it.
inline constexpr char kAboutUnrecordedMount[] = "unrecorded mount";

struct UnrecordedMount {
  std::string plugin;  // empty: nothing tells that either, and it may be any plugin's
  // Empty: nothing tells which volume it is. Then it may be that of its plugin which is called as
  // its directory is.
  UniqueVolumeName volume;
  // The volume has no device, and no other has anything of it: it counts by its place alone, and
  // for its pod. `volume` is empty.
  bool is_pods_own = false;
  SpecName spec;  // the name of its directory; empty for a device whose place does not say it
  PodUid pod;     // empty: it is a device's
  // Where it is mounted, or something in it. For people the first one counts.
  std::vector<std::string> places;
  // The places are those of a block volume's pods, as its map: what lies in them is each the pod's
  // of its name.
  bool is_map = false;
  bool is_block = false;  // of volumeMode Block
  // Where the device is of which it is: its mount, or a block volume's global map directory. Empty
  // for a filesystem that a pod has: wherever that device is, pods share it.
  std::string device_place = {};
};

// Threads: any.
class UnrecordedMounts {
 public:
  UnrecordedMounts() = default;
  UnrecordedMounts(const UnrecordedMounts&) = delete;
  UnrecordedMounts& operator=(const UnrecordedMounts&) = delete;

  // The volume about which something is decided; `spec` is the name that its directories have, as
  // it is or escaped.
  struct Volume {
    UniqueVolumeName name;
    std::string plugin;
    SpecName spec;
  };
  // What is mounted now.
  struct Mounted {
    PodUid pod;     // empty: it is a device's
    SpecName spec;  // as the entry has it
    std::string place;
    std::string mount_point;       // at the place, or in it
    UniqueVolumeName volume = {};  // as the entry has it
    bool is_block = false;
    std::string device_place = {};  // as the entry has it
  };

  // Replaces all. Blocks: never.
  void Set(std::vector<UnrecordedMount> found) EXCLUDES(mu_);

  // What of the volume is still mounted, by the mount table of this moment. What is gone is
  // forgotten. Costs nothing for a volume of which nothing was found, else one question for each
  // place. Blocks: as ListMounts. Errors: those of ListMounts.
  Result<std::vector<Mounted>> Find(const Volume& volume, Kernel& kernel, const CallOptions& call)
      EXCLUDES(mu_);

  // The same of all entries for which `counts` is true, of whichever volume, those too that are
  // pods' own, of which Find() knows nothing. It is asked about each entry there is, without a
  // lock.
  Result<std::vector<Mounted>> FindWhere(const std::function<bool(const UnrecordedMount&)>& counts,
                                         Kernel& kernel, const CallOptions& call) EXCLUDES(mu_);

  // Errors: FailedPrecondition, not applied, about kAboutUnrecordedMount, with the text of
  // Describe(), if anything of the volume is mounted for which `counts` is true; if that has
  // another name, the text says that it is the storage of this volume. Those of Find().
  Status CheckNone(const Volume& volume, Kernel& kernel, const CallOptions& call,
                   const std::function<bool(const Mounted&)>& counts) EXCLUDES(mu_);

  // "volume v is mounted in pod <uid>, of which no record tells: <path>", and who must act.
  static std::string Describe(const SpecName& volume, const Mounted& mounted);
  // The same, under the name that the entry has: its directory's, or else the volume's own.
  static std::string Describe(const Mounted& mounted);
  // The same for a volume that waits for it, and that may have another name than what is mounted:
  // "volume w has the storage of volume v: volume v is mounted in ..". What has no name of its own
  // is told under that of the waiting one.
  static std::string DescribeFor(const SpecName& waiting, const Mounted& mounted);

 private:
  using PlaceName = std::pair<std::string, std::string>;  // plugin, and name of the directory

  std::vector<UnrecordedMount> Of(const Volume& volume) const EXCLUDES(mu_);
  std::vector<UnrecordedMount> All() const EXCLUDES(mu_);
  Status AddMounted(const UnrecordedMount& entry, Kernel& kernel, const CallOptions& call,
                    std::vector<Mounted>& mounted) EXCLUDES(mu_);
  void Forget(const UnrecordedMount& gone) EXCLUDES(mu_);

  mutable Mutex mu_;
  std::map<UniqueVolumeName, std::vector<UnrecordedMount>> by_volume_ GUARDED_BY(mu_);
  std::map<PlaceName, std::vector<UnrecordedMount>> of_unknown_volumes_ GUARDED_BY(mu_);
  std::map<PodUid, std::vector<UnrecordedMount>> of_pods_alone_ GUARDED_BY(mu_);
};

}  // namespace volumed
