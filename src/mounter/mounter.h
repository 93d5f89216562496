// Mounter and Unmounter: one volume of one pod, to be set up or torn down.
// Source: kubernetes pkg/volume/volume.go@v1.36.2 (Mounter, Unmounter, MounterArgs, Attributes).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/objects.h"
#include "os/kernel.h"
#include "volume/volume.h"

namespace volumed {

struct MounterArgs {
  std::optional<int64_t> fs_user;  // the common runAsUser of all containers
  std::optional<int64_t> fs_group;
  std::optional<FsGroupChangePolicy> fs_group_change_policy;
  std::optional<int64_t> desired_size_bytes;
  // Directories that other volumeMounts need inside this volume, relative to its root.
  std::vector<std::string> nested_mount_points;
  // The volume was found at start and is not yet certain.
  bool reconstructed_volume = false;
  // The volume is set up and only its content is brought up to date: a failure leaves it as it is.
  bool is_remount = false;
  // A certain record of this boot says that it is set up: it is to be proven on the node alone,
  // without a call to a driver. If it cannot be, that is maybe applied, and the next call is a
  // whole one.
  bool as_recorded = false;
  std::string selinux_label;  // of the mount as a whole; empty: none
  // False: for a plan that is not made, to know again what one has made. Its tokens are empty.
  bool issue_tokens = true;
  // Deadline, key and cancel token for every effect of the call.
  CallOptions call;
  // What an effect on the place alone hangs with (CallOptions::domain), if that is not the
  // volume's: of a place that a CO gave. Empty: it hangs with what the others do.
  std::string place_domain;

  // The options of an effect on the place alone.
  CallOptions PlaceCall() const {
    CallOptions of_place = call;
    if (!place_domain.empty()) of_place.domain = place_domain;
    return of_place;
  }
};

struct Attributes {
  bool read_only = false;
  bool managed = false;  // the agent manages ownership and labels
  bool selinux_relabel = false;
};

// The wall time in which what a volume holds is good: tokens that expire, and that nobody takes
// before the moment at which they were issued.
struct Freshness {
  int64_t from_unix_ms = 0;   // earlier than that, the clock was set back: it is to be renewed
  int64_t until_unix_ms = 0;  // it is to be renewed
  friend bool operator==(const Freshness&, const Freshness&) = default;
};

// Threads: one call at a time. Blocks: until args.call.deadline.
// Errors: NotApplied = nothing of the volume changed; MaybeApplied = some of it may be there, so
// only the same call or its inverse may follow.
class Mounter : public Volume {
 public:
  // Whether the node has what SetUp needs (programs, kernel features): asked right before it, and
  // an error ends the operation before anything is done. Of the seed; v1.36 finds out by SetUp.
  virtual Status CanMount(const CallOptions&) { return OkStatus(); }
  // Makes the volume present at GetPath(). Idempotent: a volume that is there is brought up to
  // date.
  virtual Status SetUp(const MounterArgs& args) = 0;
  // The same at another place; InvalidArgument for plugins whose place is fixed (hostPath).
  virtual Status SetUpAt(const SafePath& dir, const MounterArgs& args) = 0;
  // For a volume that needs no device and lies on the agent's own filesystem: the one effect that
  // SetUpAt() is, so that the volumes of a pod can be made together. Nothing if it is more than
  // that. Nothing is changed. Errors: as SetUpAt() has them before its effect, not applied.
  virtual Result<std::optional<EnsureVolume>> PlanSetUpAt(const SafePath& /*dir*/,
                                                          const MounterArgs& /*args*/) {
    return std::optional<EnsureVolume>();
  }
  // The effect that was planned has been made.
  virtual void SetUpDone(const EnsuredVolume& /*answer*/) {}
  // Valid after SetUp.
  virtual Attributes GetAttributes() const = 0;
  // Where GetPath() is for effects: a checked root and the rest below it.
  virtual SafePath GetSafePath() const = 0;
  // When the content should be refreshed although no object changed (token rotation); valid after
  // SetUp.
  virtual std::optional<Freshness> freshness() const { return std::nullopt; }
};

// Threads: one call at a time. Blocks: until the deadline. Idempotent; a volume that is not there
// is success. Never crosses into a filesystem that the plugin did not mount.
class Unmounter : public Volume {
 public:
  virtual Status TearDown(const CallOptions& call) = 0;
  virtual Status TearDownAt(const SafePath& dir, const CallOptions& call) = 0;
  // As Mounter::PlanSetUpAt: the one effect that TearDownAt() is, which is about to be made.
  virtual std::optional<RemoveVolume> PlanTearDownAt(const SafePath& /*dir*/) {
    return std::nullopt;
  }
};

}  // namespace volumed
